// The composer: a plain textarea (input methods, undo and screen readers just work) whose chips are spans of its text,
// painted by a mirror behind it. A name that was typed or pasted becomes a chip through the server's resolver.

import { EVERYBODY, everybodyIn, folded, matching, mayCall } from "./chips.js";
import { button, byId, el, say } from "./dom.js";
import { Draft } from "./draft.js";
import { snippet } from "./message.js";
import { Picker } from "./picker.js";

const TEXT_LIMIT = 20_000;
const MEDIA_LIMIT_BYTES = 25 * 1024 * 1024;

export class Composer {
  #form = byId("composer");
  #field = byId("message");
  #mirror = byId("mirror");
  #notice = byId("notice");
  #picker = new Picker(byId("picker"), this.#field, (entry) => this.#insert(entry));
  #drafts = new Map(); // cid -> Draft
  #draft = new Draft();
  #members = [];
  #cid = null;
  #dismissed = null; // start of the "@" whose picker was closed by Escape
  #isSending = false;
  #onSend;
  #onTyping;

  /** `onSend(cid, input, file)` with a SendInput; `onTyping(on)` as the writer types or stops. */
  constructor({ onSend, onTyping }) {
    this.#onSend = onSend;
    this.#onTyping = onTyping;
    this.#field.addEventListener("input", (event) => this.#edited(event));
    this.#field.addEventListener("keydown", (event) => this.#key(event));
    this.#field.addEventListener("click", () => this.#suggest());
    this.#field.addEventListener("blur", () => this.#picker.close());
    this.#field.addEventListener("scroll", () => (this.#mirror.scrollTop = this.#field.scrollTop));
    this.#field.addEventListener("paste", (event) => this.#pasted(event));
    this.#form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#send();
    });
    byId("attach").addEventListener("click", () => byId("file").click());
    byId("file").addEventListener("change", ({ target }) => {
      if (target.files[0]) this.#attach(target.files[0]);
      target.value = "";
    });
  }

  /** Write in room `cid` now; what was begun in another room stays there. */
  enter(cid) {
    if (!this.#drafts.has(cid)) this.#drafts.set(cid, new Draft());
    this.#cid = cid;
    this.#members = [];
    this.#form.hidden = false;
    this.#load(this.#drafts.get(cid));
  }

  /** Forget everything: another account may log in next. */
  leave() {
    this.#cid = null;
    this.#drafts.clear();
    this.#form.hidden = true;
    this.#load(new Draft());
  }

  /** Who can be called here, in the order of the picker. */
  setMembers(members) {
    const isTwin = ({ uid, name }) =>
      members.some((other) => other.uid !== uid && folded(other.name) === folded(name));
    this.#members = members.map((member) => ({ ...member, twin: isTwin(member) }));
  }

  /** Answer `message`, whose first words are shown above the field. */
  replyTo(message) {
    this.#draft.reply = message;
    this.#showContext();
    this.#field.focus();
  }

  focus() {
    this.#field.focus();
  }

  #attach(file) {
    if (file.size > MEDIA_LIMIT_BYTES) {
      this.#warn(`“${file.name}” is larger than 25 MiB, which is the most that can be sent.`);
      return;
    }
    this.#draft.file = file;
    this.#showContext();
    this.#field.focus();
  }

  #load(draft) {
    this.#draft = draft;
    this.#field.value = draft.text;
    this.#picker.close();
    this.#warn("");
    this.#showContext();
    this.#paint();
  }

  // --- writing ---

  #edited(event) {
    this.#take();
    this.#warn("");
    this.#onTyping(this.#draft.text !== "");
    if (!event.isComposing) this.#suggest();
  }

  #take() {
    this.#draft.take(this.#field.value);
    this.#paint();
  }

  #key(event) {
    const query = this.#query();
    if (this.#picker.takes(event)) {
      if (event.key === "Escape") this.#dismissed = query?.start ?? null;
      return;
    }
    if (event.isComposing || event.keyCode === 229) return; // the input method's own keys
    if (event.key === "Enter" && !event.shiftKey && !event.ctrlKey && !event.altKey) {
      event.preventDefault();
      this.#send();
    } else if (event.key === "Escape" && this.#draft.reply) {
      this.#draft.reply = null;
      this.#showContext();
    } else if (event.key === "Backspace" || event.key === "Delete") {
      this.#eraseChip(event);
    }
  }

  /** Backspace behind a chip, or Delete before it, takes the whole chip. */
  #eraseChip(event) {
    const { selectionStart: caret, selectionEnd } = this.#field;
    if (caret !== selectionEnd || event.ctrlKey || event.altKey || event.metaKey) return;
    const chip = this.#draft.chipAt(caret, event.key === "Backspace");
    if (!chip) return;
    event.preventDefault();
    this.#replace(chip.start, chip.end, "");
  }

  /** Replace a span as if it had been typed, so that undo still works. */
  #replace(start, end, text) {
    this.#field.focus();
    this.#field.setSelectionRange(start, end);
    const isDone = text === "" ? document.execCommand("delete") : document.execCommand("insertText", false, text);
    if (!isDone) this.#field.setRangeText(text, start, end, "end");
    this.#take();
  }

  // --- calling ---

  #query() {
    const { selectionStart: caret, selectionEnd } = this.#field;
    return caret === selectionEnd ? this.#draft.queryAt(caret) : null;
  }

  #suggest() {
    const query = this.#query();
    if (query?.start !== this.#dismissed) this.#dismissed = null;
    if (query === null || query.start === this.#dismissed) this.#picker.close();
    else this.#picker.show(matching(this.#members, query.query));
  }

  #insert(entry) {
    const query = this.#query();
    if (query === null) return;
    const { start } = query;
    const name = entry === EVERYBODY ? everybodyIn(query.query) : entry.name;
    this.#replace(start, start + 1 + query.query.length, `@${name} `);
    this.#draft.add({ start, end: start + 1 + name.length, uid: entry.uid });
    this.#picker.close();
    this.#paint();
  }

  #pasted(event) {
    const [file] = event.clipboardData.files;
    if (file) {
      event.preventDefault();
      this.#attach(file);
    } else if (mayCall(event.clipboardData.getData("text/plain"))) {
      setTimeout(() => this.#resolvePasted(), 0); // once the text is in
    }
  }

  async #resolvePasted() {
    const draft = this.#draft;
    this.#picker.close();
    try {
      await draft.resolve(this.#cid, this.#members);
    } catch {
      return; // nothing is lost: sending resolves again, and says so when it cannot
    }
    if (draft === this.#draft) this.#paint();
  }

  // --- sending ---

  async #send({ evenIfAmbiguous = false } = {}) {
    const draft = this.#draft;
    const cid = this.#cid;
    if (this.#isSending || cid === null || draft.isEmpty) return;
    if (draft.length > TEXT_LIMIT) {
      this.#warn(`The text has ${draft.length} characters; the most that can be sent is ${TEXT_LIMIT}.`);
      return;
    }
    this.#isSending = true;
    try {
      const answer = await draft.resolve(cid, this.#members);
      if (draft !== this.#draft) return; // the writer went to another room; it waits there
      if (answer.ambiguous.length > 0 && !evenIfAmbiguous) this.#warnAmbiguous(answer.ambiguous);
      else this.#dispatch(draft.input(answer), draft.file);
    } catch (error) {
      this.#warn(`Who is called could not be looked up, so nothing was sent: ${error.message}`);
    } finally {
      this.#isSending = false;
    }
  }

  #dispatch(input, file) {
    this.#drafts.set(this.#cid, new Draft());
    this.#load(this.#drafts.get(this.#cid));
    this.#onTyping(false);
    this.#onSend(this.#cid, input, file);
  }

  #warnAmbiguous(names) {
    this.#paint();
    const list = names.map((name) => `“@${name.replace(/^[@＠]/u, "")}”`).join(", ");
    this.#warn(
      `${list} could mean more than one member, so nothing was sent. Type @ and pick the one you mean, or `,
      button("send without calling", () => this.#send({ evenIfAmbiguous: true })),
    );
  }

  // --- showing ---

  #warn(text, ...controls) {
    say(this.#notice, text);
    this.#notice.append(...controls);
  }

  #showContext() {
    const { reply, file } = this.#draft;
    context(byId("replying"), reply && `Replying to ${reply.sender.name}: ${snippet(reply)}`, "Do not reply", () => {
      this.#draft.reply = null;
      this.#showContext();
    });
    context(byId("attached"), file && `Attached: ${file.name}`, "Remove the attachment", () => {
      this.#draft.file = null;
      this.#showContext();
    });
  }

  #paint() {
    const { text, chips, calls } = this.#draft;
    const parts = [];
    let at = 0;
    for (const { start, end, uid } of chips) {
      parts.push(text.slice(at, start), el("mark", { class: "chip", "data-uid": uid ?? "everybody" }, text.slice(start, end)));
      at = end;
    }
    this.#mirror.replaceChildren(...parts, `${text.slice(at)}\u200B`); // the last line counts even when empty
    this.#mirror.scrollTop = this.#field.scrollTop;
    byId("calls").textContent = calls.length > 0 ? `Calls ${calls.join(", ")}` : "";
  }
}

function context(box, text, label, onDrop) {
  box.hidden = !text;
  box.replaceChildren();
  if (text) box.append(el("span", {}, text), button("✕", onDrop, { class: "icon", "aria-label": label }));
}
