// What is being written in one room: a text, the spans of it that are chips, what it answers, what is attached.

import { api } from "./api.js";
import { EVERYBODY, callsOf, mayCall, queryAt, shifted, withoutChips } from "./chips.js";

const NOBODY = { mentions: [], broadcast: false, ambiguous: [] };

const typeOf = (file) => ({ image: "image", audio: "voice" })[file.type.split("/")[0]] ?? "file";

export class Draft {
  text = "";
  chips = []; // in order of their place
  reply = null;
  file = null;

  get isEmpty() {
    return !this.text.trim() && !this.file;
  }

  /** Its length as the server counts it. */
  get length() {
    return [...this.text].length;
  }

  /** The names of those whom its chips call. */
  get calls() {
    return [...new Set(this.chips.map(({ start, end }) => this.text.slice(start + 1, end)))];
  }

  /** Take the text as it is now; chips move along, and one that was cut into is text again. */
  take(text) {
    this.chips = shifted(this.chips, this.text, text);
    this.text = text;
  }

  add(...chips) {
    this.chips = [...this.chips, ...chips].sort((one, other) => one.start - other.start);
  }

  /** Return the "@…" that is being typed at `caret`, or null. */
  queryAt(caret) {
    return queryAt(this.text, caret, this.chips);
  }

  /** Return the chip that Backspace (`isBackward`) or Delete would cut into at `caret`. */
  chipAt(caret, isBackward) {
    return this.chips.find(({ start, end }) =>
      isBackward ? start < caret && caret <= end : start <= caret && caret < end);
  }

  /** Ask the server whom the text calls beside its chips. What it names becomes chips; returns its whole answer. */
  async resolve(cid, members) {
    const asked = this.text;
    const rest = withoutChips(asked, this.chips);
    if (!mayCall(rest)) return NOBODY;
    const answer = await api.resolve(cid, rest);
    if (this.text !== asked) return answer; // edited meanwhile: the places are no longer known
    const called = members.filter(({ uid }) => answer.mentions.includes(uid));
    called.sort((one, other) => other.name.length - one.name.length); // longest first, as the resolver reads
    for (const { uid, name } of called) this.#addCalls(name, uid);
    if (answer.broadcast) for (const name of EVERYBODY.names) this.#addCalls(name, null);
    return answer;
  }

  /** Return the SendInput, without nonce and upload, given the resolver's answer. */
  input(answer) {
    const uids = this.chips.map(({ uid }) => uid);
    const input = {
      type: this.file ? typeOf(this.file) : "text",
      mentions: [...new Set([...uids.filter((uid) => uid !== null), ...answer.mentions])],
      broadcast: answer.broadcast || uids.includes(null),
    };
    if (this.text.trim()) input.text = this.text;
    if (this.reply) input.reply_to = this.reply.id;
    return input;
  }

  #addCalls(name, uid) {
    this.add(...callsOf(name, this.text, this.chips).map((span) => ({ ...span, uid })));
  }
}
