// The log of the open room: appends, renders what comes into view, stays at the newest unless the reader scrolled
// away, and is one stop of the Tab key (arrows move within, R replies).

import { byId } from "./dom.js";
import { dayLine, messageArticle, renderBody, setReachable } from "./message.js";

const NEAR_BOTTOM_PX = 90;

export class LogView {
  #log = byId("log");
  #scroll = byId("scroll");
  #newest = byId("newest");
  #renderer;
  #context;
  #nameOf;
  #seen;
  #articles = new Map(); // id -> {article, message}
  #previous = null;
  #current = null;
  #isPinned = true; // stays at the newest message, however heights change
  #lastTop = 0;
  #unseen = 0;

  /** `context` as for `messageArticle`, without `onJump`; `nameOf(uid)` gives a member's name or undefined. */
  constructor({ renderer, context, nameOf }) {
    this.#renderer = renderer;
    this.#nameOf = nameOf;
    this.#context = { ...context, onJump: (id) => this.jump(id) };
    this.#seen = new IntersectionObserver((entries) => this.#renderSeen(entries), { root: this.#scroll, rootMargin: "900px" });
    new ResizeObserver(() => this.#isPinned && this.toNewest()).observe(this.#log);
    new ResizeObserver(() => this.#isPinned && this.toNewest()).observe(this.#scroll);
    this.#scroll.addEventListener("scroll", () => this.#scrolled(), { passive: true });
    this.#newest.addEventListener("click", () => this.toNewest());
    this.#log.addEventListener("keydown", (event) => this.#key(event));
    this.#log.addEventListener("focusin", ({ target }) => this.#setCurrent(target.closest("article")));
  }

  clear() {
    this.#seen.disconnect();
    this.#log.replaceChildren();
    this.#articles.clear();
    this.#previous = null;
    this.#current = null;
    this.#isPinned = true;
    this.#unseen = 0;
    this.#showUnseen();
  }

  set isBusy(isBusy) {
    this.#log.setAttribute("aria-busy", String(isBusy));
  }

  append(messages, me) {
    const fragment = document.createDocumentFragment();
    for (const message of messages) {
      const line = dayLine(message, this.#previous);
      const article = messageArticle(message, this.#previous, { ...this.#context, me });
      if (line) fragment.append(line);
      fragment.append(article);
      this.#articles.set(message.id, { article, message });
      this.#previous = message;
      this.#seen.observe(article);
    }
    this.#log.append(fragment);
    this.#setCurrent(this.#articles.get(this.#previous.id).article, { onlyIfIdle: true });
    if (messages.at(-1).sender.uid === me.uid) this.#isPinned = true;
    if (this.#isPinned) this.toNewest();
    else this.#unseen += messages.length;
    this.#showUnseen();
  }

  toNewest() {
    this.#isPinned = true;
    this.#unseen = 0;
    this.#showUnseen();
    this.#scroll.scrollTop = this.#scroll.scrollHeight;
  }

  jump(id) {
    const article = this.#articles.get(id)?.article;
    if (!article) return;
    this.#isPinned = false;
    article.focus({ preventScroll: true });
    article.scrollIntoView({ block: "center" });
  }

  /** Only moving up lets go of the newest: a gap below may also come from messages that grew while being laid out. */
  #scrolled() {
    const { scrollTop, scrollHeight, clientHeight } = this.#scroll;
    const isNear = scrollHeight - scrollTop - clientHeight < NEAR_BOTTOM_PX;
    const isMovedUp = scrollTop < this.#lastTop - 1;
    this.#lastTop = scrollTop;
    if (isNear) this.#isPinned = true;
    else if (isMovedUp) this.#isPinned = false;
    else if (this.#isPinned) this.toNewest();
    if (this.#isPinned) this.#unseen = 0;
    this.#showUnseen();
  }

  #showUnseen() {
    this.#newest.hidden = this.#isPinned;
    this.#newest.textContent = this.#unseen > 0 ? `${this.#unseen} new ↓` : "Newest ↓";
  }

  #renderSeen(entries) {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue;
      this.#seen.unobserve(target);
      const { message } = this.#articles.get(target.dataset.id) ?? {};
      if (message) this.#render(target, message);
    }
  }

  async #render(article, message) {
    if (!message.text) {
      renderBody(article, message, null, this.#nameOf);
      return;
    }
    try {
      renderBody(article, message, await this.#renderer.fragment(message.id, message.text), this.#nameOf);
    } catch {
      renderBody(article, message, null, this.#nameOf); // readable as it was written; rendered when seen again
      setTimeout(() => article.isConnected && this.#seen.observe(article), 3_000);
    }
  }

  #setCurrent(article, { onlyIfIdle = false } = {}) {
    if (!article || article === this.#current || (onlyIfIdle && this.#log.contains(document.activeElement))) return;
    if (this.#current) setReachable(this.#current, false);
    this.#current = article;
    setReachable(article, true);
  }

  #key(event) {
    if (event.ctrlKey || event.altKey || event.metaKey || event.target.matches("audio")) return;
    const articles = [...this.#log.querySelectorAll("article")];
    const at = articles.indexOf(this.#current);
    const to = { ArrowUp: at - 1, ArrowDown: at + 1, Home: 0, End: articles.length - 1 }[event.key];
    if (to !== undefined) {
      event.preventDefault();
      articles[Math.min(Math.max(to, 0), articles.length - 1)]?.focus();
    } else if (event.key.toLowerCase() === "r" && this.#current) {
      event.preventDefault();
      this.#context.onReply(this.#articles.get(this.#current.dataset.id).message);
    }
  }
}
