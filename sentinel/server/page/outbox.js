// What the writer sent and the server has not acknowledged yet. Each entry keeps its nonce through every try, so a
// repeat after a lost answer is the same message and not a second one.

import { api, canHeal, newNonce } from "./api.js";
import { backoffMs } from "./socket.js";

const TRIES = 4;
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

export class Outbox {
  entries = [];
  #queue = Promise.resolve();
  #onChange;
  #onPosted;

  /** `onChange()` after each change of an entry; `onPosted(message)` with the stored message. */
  constructor({ onChange, onPosted }) {
    this.#onChange = onChange;
    this.#onPosted = onPosted;
  }

  /** Queue `input` (a SendInput without nonce) for room `cid`; `file` is uploaded first. Order is kept. */
  add(cid, input, file) {
    const entry = { cid, input: { ...input, nonce: newNonce() }, file, state: "sending", error: "" };
    this.entries.push(entry);
    this.#enqueue(entry);
  }

  /** Try a failed entry again, under its own nonce. */
  retry(entry) {
    if (entry.state !== "failed") return;
    this.#enqueue(entry);
  }

  /** Try again all that failed for want of a connection. */
  retryUnreached() {
    for (const entry of this.entries) if (entry.healable) this.retry(entry);
  }

  discard(entry) {
    this.#remove(entry);
  }

  /** The message stands in the room, however we came to know it. */
  acknowledge(nonce) {
    const entry = this.entries.find((candidate) => candidate.input.nonce === nonce);
    if (entry) this.#remove(entry);
  }

  #enqueue(entry) {
    entry.state = "sending";
    entry.error = "";
    entry.healable = false;
    this.#onChange();
    this.#queue = this.#queue.then(() => this.#deliver(entry));
  }

  async #deliver(entry) {
    for (let attempt = 0; this.entries.includes(entry); attempt += 1) {
      try {
        await this.#upload(entry);
        const message = await api.post(entry.cid, entry.input);
        this.#onPosted(message);
        this.#remove(entry);
        return;
      } catch (error) {
        if (!canHeal(error) || attempt + 1 >= TRIES) {
          this.#fail(entry, error);
          return;
        }
        await sleep(error.retryAfter ? error.retryAfter * 1000 : backoffMs(attempt, Math.random()));
      }
    }
  }

  async #upload(entry) {
    if (!entry.file || entry.input.media_id) return;
    const media = await api.upload(entry.file);
    entry.input.media_id = media.id;
  }

  #fail(entry, error) {
    entry.state = "failed";
    entry.error = error.message;
    entry.healable = canHeal(error);
    this.#onChange();
  }

  #remove(entry) {
    this.entries = this.entries.filter((other) => other !== entry);
    this.#onChange();
  }
}
