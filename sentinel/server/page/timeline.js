// The messages of one room: in order of `seq`, each once, without a hole.
//
// A message that arrives live is taken only when it is the very next one; otherwise it is a doorbell, and the pages
// after the last taken `seq` are pulled until nothing is left. One pull runs at a time; a ring during a pull repeats it.

import { api } from "./api.js";

const PAGE = 200;

export class Timeline {
  messages = [];
  byId = new Map();
  lastSeq = 0;
  #pulling = null;
  #again = false;
  #onMessages;

  /** `onMessages(messages, live)` gets what was appended, in order; `live` is false for pulled history. */
  constructor(cid, onMessages) {
    this.cid = cid;
    this.#onMessages = onMessages;
  }

  /** Take one message as the server sent it, or pull when something lies between. */
  async offer(message) {
    if (message.seq <= this.lastSeq) return;
    if (message.seq === this.lastSeq + 1 && this.#pulling === null) {
      this.#append([message], true);
      return;
    }
    await this.pull();
  }

  /** Take everything newer than the last taken message. Rejects when a page cannot be fetched; call again later. */
  pull() {
    if (this.#pulling) {
      this.#again = true;
      return this.#pulling;
    }
    this.#pulling = this.#pullAll().finally(() => (this.#pulling = null));
    return this.#pulling;
  }

  async #pullAll() {
    let more = true;
    while (more) {
      this.#again = false;
      const page = await api.page(this.cid, this.lastSeq, PAGE);
      this.#append(page.messages.filter((message) => message.seq > this.lastSeq), false);
      more = page.has_more || this.#again;
    }
  }

  #append(messages, live) {
    if (messages.length === 0) return;
    for (const message of messages) this.byId.set(message.id, message);
    this.messages.push(...messages);
    this.lastSeq = messages.at(-1).seq;
    this.#onMessages(messages, live);
  }
}
