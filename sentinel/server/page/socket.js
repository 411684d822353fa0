// The live line: a WebSocket that reconnects by itself. It promises nothing across a gap; after each `onUp` the page
// pulls what it missed.

const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 20_000;
const STEADY_AFTER_MS = 5_000; // a line that held this long resets the backoff: a handshake alone proves nothing
const HELLO_WITHIN_MS = 10_000;
const UNAUTHORIZED = 4401;

/** Return the wait before try `attempt` (from 0), in ms: exponential, capped, jittered by `draw` in [0, 1). */
export const backoffMs = (attempt, draw) =>
  Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** attempt) * (0.5 + draw / 2);

/** Calls `onUp()`, `onDown(waitMs)`, `onFrame(frame)`, `onEnd("unauthorized" | "superseded")`. */
export class Line {
  #handlers;
  #socket = null;
  #attempt = 0;
  #timer = null;
  #closed = true;

  constructor(handlers) {
    this.#handlers = handlers;
    addEventListener("online", () => this.retryNow());
    document.addEventListener("visibilitychange", () => document.hidden || this.retryNow());
  }

  open() {
    this.#closed = false;
    this.#attempt = 0;
    this.#connect();
  }

  close() {
    this.#closed = true;
    clearTimeout(this.#timer);
    this.#timer = null;
    this.#socket?.close();
    this.#socket = null;
  }

  /** Skip the rest of a wait. */
  retryNow() {
    if (this.#closed || this.#timer === null) return;
    clearTimeout(this.#timer);
    this.#connect();
  }

  /** Give up this socket, which seems deaf, and connect anew. */
  restart() {
    if (!this.#closed) this.#lost(this.#socket);
  }

  /** Send a frame when the line is up; typing and the like may be lost. */
  send(frame) {
    if (this.#socket?.readyState === WebSocket.OPEN) this.#socket.send(JSON.stringify(frame));
  }

  #connect() {
    this.#timer = null;
    const socket = new WebSocket(`${location.origin.replace(/^http/, "ws")}/v1/ws`);
    const deadline = setTimeout(() => this.#lost(socket), HELLO_WITHIN_MS);
    let steady = null;
    this.#socket = socket;
    socket.addEventListener("message", ({ data }) => {
      if (socket !== this.#socket) return;
      const frame = JSON.parse(data);
      if (frame.type === "hello") {
        clearTimeout(deadline);
        steady = setTimeout(() => (this.#attempt = 0), STEADY_AFTER_MS);
        this.#handlers.onUp();
      } else if (frame.type === "session.superseded") {
        this.close();
        this.#handlers.onEnd("superseded");
      } else {
        this.#handlers.onFrame(frame);
      }
    });
    socket.addEventListener("close", ({ code }) => {
      clearTimeout(deadline);
      clearTimeout(steady);
      if (socket !== this.#socket) return;
      if (code === UNAUTHORIZED) {
        this.close();
        this.#handlers.onEnd("unauthorized");
      } else {
        this.#lost(socket);
      }
    });
  }

  #lost(socket) {
    if (socket !== this.#socket) return;
    this.#socket = null;
    socket?.close();
    const waitMs = backoffMs(this.#attempt++, Math.random());
    this.#timer = setTimeout(() => this.#connect(), waitMs);
    this.#handlers.onDown(waitMs);
  }
}
