// The list of rooms with what is unread in each. How far one has read is remembered in this browser, per account.

import { byId, el } from "./dom.js";

const MANY = 99;
const shown = (count) => (count > MANY ? `${MANY}+` : String(count));

export class RoomsView {
  #list = byId("room-list");
  #rooms = [];
  #read = {};
  #storageKey = "";
  #open = null;

  /** Start over for the account `uid`. */
  begin(uid) {
    this.#storageKey = `hoop-read:${uid}`;
    try {
      this.#read = JSON.parse(localStorage.getItem(this.#storageKey)) ?? {};
    } catch {
      this.#read = {};
    }
    this.#rooms = [];
    this.#open = null;
  }

  get rooms() {
    return this.#rooms;
  }

  find(cid) {
    return this.#rooms.find((room) => room.cid === cid);
  }

  set(rooms) {
    this.#rooms = rooms;
    this.#show();
  }

  open(cid) {
    this.#open = cid;
    this.#show();
  }

  /** A message of room `cid` exists up to `seq`. */
  heard(cid, seq) {
    const room = this.find(cid);
    if (!room || room.last_seq >= seq) return;
    room.last_seq = seq;
    this.#show();
  }

  /** The reader saw room `cid` up to `seq`. */
  read(cid, seq) {
    if ((this.#read[cid] ?? 0) >= seq) return;
    this.#read[cid] = seq;
    try {
      localStorage.setItem(this.#storageKey, JSON.stringify(this.#read));
    } catch {
      // A browser that keeps nothing only forgets what was read.
    }
    this.#show();
  }

  #unread({ cid, last_seq: last }) {
    return Math.max(0, (last ?? 0) - (this.#read[cid] ?? 0));
  }

  #show() {
    this.#list.replaceChildren(...this.#rooms.map((room) => this.#entry(room)));
    byId("no-rooms").hidden = this.#rooms.length > 0;
    const total = this.#rooms.reduce((sum, room) => sum + this.#unread(room), 0);
    const elsewhere = byId("elsewhere");
    elsewhere.hidden = total === 0;
    elsewhere.textContent = shown(total);
    const title = this.find(this.#open)?.title ?? "HOOP";
    document.title = total > 0 ? `(${shown(total)}) ${title}` : title;
  }

  #entry(room) {
    const unread = this.#unread(room);
    const badge = unread > 0 ? [el("span", { class: "badge", "aria-label": `${unread} unread` }, shown(unread))] : [];
    return el(
      "li",
      {},
      el(
        "a",
        {
          href: `#cid=${encodeURIComponent(room.cid)}`,
          "data-cid": room.cid,
          "aria-current": room.cid === this.#open ? "page" : null,
        },
        el("span", { class: "name" }, room.title),
        ...badge,
      ),
    );
  }
}
