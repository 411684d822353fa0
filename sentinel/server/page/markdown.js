// From the server's HTML to nodes: the second belt. The string is parsed into an inert document, and only what the
// lists below name is built anew in this one; whatever else was in it stays behind as text.

import { api } from "./api.js";
import { folded } from "./chips.js";
import { el } from "./dom.js";

const TAGS = new Set([
  "a", "blockquote", "br", "code", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p", "pre", "s",
  "strong", "table", "tbody", "td", "th", "thead", "tr", "ul",
]);
const CLASSES = /^(?:align-(?:left|center|right)|language-[\w+#.-]{1,40})$/;
const LINK = /^(?:https?:\/\/|mailto:)/i;
const CALLS_EVERYBODY = ["所有人", "everyone", "all"];
const BATCH_CHARS = 120_000; // a request holds 1 MiB at most, and a character may need six bytes of it
const BATCH = 40;
const CACHED = 4_000;

/** Return a fragment with the allowed parts of `html`. */
export function allowed(html) {
  const inert = new DOMParser().parseFromString(html, "text/html");
  const fragment = document.createDocumentFragment();
  copyInto(fragment, inert.body);
  return fragment;
}

function copyInto(target, source) {
  for (const node of source.childNodes) {
    if (node.nodeType === Node.TEXT_NODE) {
      target.append(node.data);
    } else if (node.nodeType === Node.ELEMENT_NODE) {
      const tag = node.localName;
      if (!TAGS.has(tag)) {
        target.append(node.textContent);
        continue;
      }
      const copy = el(tag, attributesOf(node, tag));
      copyInto(copy, node);
      target.append(copy);
    }
  }
}

function attributesOf(node, tag) {
  if (tag === "a") {
    const href = node.getAttribute("href") ?? "";
    return LINK.test(href) ? { href, rel: "noopener noreferrer", target: "_blank" } : {};
  }
  if (tag === "ol") {
    const start = node.getAttribute("start") ?? "";
    return /^\d{1,9}$/.test(start) ? { start } : {};
  }
  const name = node.getAttribute("class") ?? "";
  return CLASSES.test(name) ? { class: name } : {};
}

/** Wrap what calls one of `names` in `.mention` spans, code and links left alone. Returns the names that were found. */
export function highlight(root, names, isBroadcast) {
  const wanted = [...names, ...(isBroadcast ? CALLS_EVERYBODY : [])].sort((one, other) => other.length - one.length);
  const found = new Set();
  if (wanted.length === 0) return found;
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  const texts = [];
  while (walker.nextNode()) {
    if (!walker.currentNode.parentElement?.closest("code, pre, a, blockquote")) texts.push(walker.currentNode);
  }
  for (const text of texts) text.replaceWith(...pieces(text.data, wanted, found));
  return found;
}

function pieces(text, wanted, found) {
  const parts = [];
  let plain = 0;
  for (let at = 0; at < text.length; at += 1) {
    if (text[at] !== "@" && text[at] !== "＠") continue;
    const name = wanted.find((one) => folded(text.slice(at + 1, at + 1 + one.length)) === folded(one));
    if (name === undefined) continue;
    const end = at + 1 + name.length;
    parts.push(text.slice(plain, at), el("span", { class: "mention" }, text.slice(at, end)));
    found.add(name);
    plain = end;
    at = end - 1;
  }
  return [...parts, text.slice(plain)];
}

/** Renders texts in batches through the server; what was rendered once is kept by message id. */
export class Renderer {
  #cache = new Map();
  #waiting = new Map();
  #isScheduled = false;

  /** Return the allowed fragment for message `id`. Rejects when the server cannot render now. */
  async fragment(id, text) {
    if (!this.#cache.has(id)) this.#cache.set(id, this.#ask(id, text));
    try {
      return allowed(await this.#cache.get(id));
    } catch (error) {
      this.#cache.delete(id);
      throw error;
    }
  }

  #ask(id, text) {
    if (this.#cache.size >= CACHED) this.#cache.delete(this.#cache.keys().next().value);
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { text, resolve, reject });
      if (this.#isScheduled) return;
      this.#isScheduled = true;
      queueMicrotask(() => this.#flush());
    });
  }

  async #flush() {
    this.#isScheduled = false;
    const jobs = [...this.#waiting.values()];
    this.#waiting.clear();
    while (jobs.length > 0) {
      const batch = [jobs.shift()];
      let chars = batch[0].text.length;
      while (jobs.length > 0 && batch.length < BATCH && (chars += jobs[0].text.length) <= BATCH_CHARS) batch.push(jobs.shift());
      try {
        const { html } = await api.render(batch.map(({ text }) => text));
        batch.forEach(({ resolve }, index) => resolve(html[index]));
      } catch (error) {
        batch.forEach(({ reject }) => reject(error));
      }
    }
  }
}
