// The members strip and who is typing: how each persona is right now, in words.

import { byId, el } from "./dom.js";
import { hueOf } from "./message.js";

const TYPING_FADES_MS = 8_000;

export class MembersView {
  #strip = byId("members");
  #typing = byId("typing");
  #members = new Map();
  #presence = new Map(); // uid -> {state, detail, since}
  #typers = new Map(); // uid -> timer
  #nodes = new Map();

  constructor() {
    setInterval(() => this.#tick(), 1_000);
  }

  nameOf = (uid) => this.#members.get(uid)?.name;

  set(members) {
    this.#members = new Map(members.map((member) => [member.uid, member]));
    for (const { uid, state, detail } of members) this.#note(uid, state, detail);
    this.#nodes.clear();
    this.#strip.replaceChildren(...personasFirst(members).map((member) => this.#entry(member)));
  }

  clear() {
    this.set([]);
    for (const uid of [...this.#typers.keys()]) this.typing(uid, false);
  }

  presence(uid, state, detail) {
    this.#note(uid, state, detail);
    this.#show(uid);
  }

  typing(uid, isOn) {
    clearTimeout(this.#typers.get(uid));
    this.#typers.delete(uid);
    if (isOn) this.#typers.set(uid, setTimeout(() => this.typing(uid, false), TYPING_FADES_MS));
    const names = [...this.#typers.keys()].map(this.nameOf).filter(Boolean);
    const verb = names.length === 1 ? "is" : "are";
    this.#typing.textContent = names.length > 0 ? `${names.join(", ")} ${verb} typing…` : "";
  }

  #note(uid, state, detail) {
    const known = this.#presence.get(uid);
    const since = known && known.state === state ? known.since : performance.now();
    this.#presence.set(uid, { state, detail, since });
  }

  #entry(member) {
    const state = el("span", { class: "state" });
    const node = el(
      "li",
      { class: `member ${hueOf(member.uid)}`, "data-uid": member.uid },
      el("span", { class: "dot", "aria-hidden": "true" }),
      el("span", { class: "name" }, member.name),
      state,
    );
    this.#nodes.set(member.uid, { node, state, kind: member.kind });
    this.#show(member.uid);
    return node;
  }

  #show(uid) {
    const entry = this.#nodes.get(uid);
    if (!entry) return;
    const presence = this.#presence.get(uid) ?? {};
    entry.node.dataset.state = presence.state ?? "";
    const words = entry.kind === "persona" ? inWords(presence) : "";
    if (entry.state.textContent !== words) entry.state.textContent = words;
    entry.node.title = [this.nameOf(uid), presence.state, presence.detail].filter(Boolean).join(" · ");
  }

  #tick() {
    for (const [uid, { state }] of this.#presence) if (state === "working") this.#show(uid);
  }
}

/** Return the members, those first whom one calls. */
export const personasFirst = (members) =>
  [...members].sort((one, other) => Number(other.kind === "persona") - Number(one.kind === "persona"));

function inWords({ state, detail, since }) {
  if (!state) return "";
  if (state === "working") return `working ${Math.floor((performance.now() - since) / 1000)} s`;
  const why = detail && (state === "failing" || state === "dead") ? `: ${detail}` : "";
  return `${state}${why}`;
}
