// One message as an element. Every word of a user becomes a text node; only rendered markdown has structure.

import { mediaUrl } from "./api.js";
import { button, el } from "./dom.js";
import { highlight } from "./markdown.js";

const GROUPED_WITHIN_MS = 5 * 60_000;
const HUES = 8;

const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const calendar = new Intl.DateTimeFormat(undefined, { weekday: "long", day: "numeric", month: "long", year: "numeric" });
const full = new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeStyle: "medium" });

/** Return one of eight calm hues for an account, the same one each time. */
export function hueOf(uid) {
  let sum = 0;
  for (const char of uid) sum = (sum * 31 + char.codePointAt(0)) % 9973;
  return `hue-${sum % HUES}`;
}

export const avatar = ({ uid, name }) =>
  el("span", { class: `avatar ${hueOf(uid)}`, "aria-hidden": "true" }, [...name][0]?.toUpperCase() ?? "?");

export const badgeOf = ({ kind }) => (kind === "persona" ? [el("span", { class: "persona" }, "persona")] : []);

/** Return the first words of a message on one line. */
export function snippet(message) {
  const text = message.text?.replace(/\s+/gu, " ").trim() || message.media?.name || `(${message.type})`;
  return text.length > 90 ? `${text.slice(0, 90)}…` : text;
}

const dayOf = (message) => new Date(message.sent_at).toDateString();

/** Return the line between two days, or null when `message` is of the same day as `previous`. */
export function dayLine(message, previous) {
  if (previous && dayOf(previous) === dayOf(message)) return null;
  return el("div", { class: "day", role: "separator" }, el("span", {}, calendar.format(new Date(message.sent_at))));
}

/** Return whether `message` continues what `previous` said, so that its head need not be shown again. */
export function continues(message, previous) {
  return Boolean(previous)
    && previous.sender.uid === message.sender.uid
    && !message.reply_to
    && dayOf(previous) === dayOf(message)
    && new Date(message.sent_at) - new Date(previous.sent_at) < GROUPED_WITHIN_MS;
}

/**
 * Return the article of a message, its text not yet rendered (`renderBody` does that).
 * `context`: `{me, find(id), onReply(message), onJump(id)}`.
 */
export function messageArticle(message, previous, { me, find, onReply, onJump }) {
  const sent = new Date(message.sent_at);
  const isForMe = message.mentions.includes(me.uid) || (message.broadcast && message.sender.uid !== me.uid);
  const classes = ["message"];
  if (continues(message, previous)) classes.push("continued");
  if (message.sender.uid === me.uid) classes.push("mine");
  if (isForMe) classes.push("for-me");
  const body = el("div", { class: "body", "aria-live": "off" }, message.text ?? "");
  body.hidden = !message.text;
  return el(
    "article",
    { class: classes.join(" "), id: `m-${message.id}`, "data-id": message.id, "data-seq": message.seq, tabindex: -1 },
    avatar(message.sender),
    el(
      "header",
      {},
      el("span", { class: "sender" }, message.sender.name),
      ...badgeOf(message.sender),
      el("time", { datetime: message.sent_at, title: full.format(sent) }, clock.format(sent)),
    ),
    ...quote(message, find, onJump),
    body,
    ...media(message),
    button("Reply", () => onReply(message), { class: "reply quiet", tabindex: -1 }),
  );
}

/** Put rendered markdown into the article and mark its mentions; those that the text does not name get a line. */
export function renderBody(article, message, fragment, nameOf) {
  const body = article.querySelector(".body");
  if (fragment) body.replaceChildren(fragment);
  body.classList.toggle("plain", !fragment);
  const names = message.mentions.map(nameOf).filter(Boolean);
  const found = highlight(body, names, message.broadcast);
  const silent = names.filter((name) => !found.has(name)).map((name) => `@${name}`);
  article.querySelector(".called")?.remove();
  if (silent.length > 0) body.after(el("p", { class: "called" }, "calls ", el("span", { class: "mention" }, silent.join(" "))));
  if (article.tabIndex !== 0) setReachable(article, false);
}

/** Let Tab reach the links and controls of this message, or pass them by. */
export function setReachable(article, isReachable) {
  article.tabIndex = isReachable ? 0 : -1;
  for (const control of article.querySelectorAll("a, button, audio")) control.tabIndex = isReachable ? 0 : -1;
}

function quote(message, find, onJump) {
  if (!message.reply_to) return [];
  const original = find(message.reply_to);
  if (!original) return [el("p", { class: "quote" }, "In reply to an earlier message")];
  return [
    button("", () => onJump(original.id), { class: "quote", tabindex: -1, "aria-label": `In reply to ${original.sender.name}` }),
  ].map((node) => {
    node.append(el("b", {}, original.sender.name), ` ${snippet(original)}`);
    return node;
  });
}

function media({ media: item, type }) {
  if (!item) return [];
  const address = mediaUrl(item);
  const name = item.name || `${type} (${item.type})`;
  if (type === "image") {
    const picture = el("img", { src: address, alt: item.name || "image", loading: "lazy", decoding: "async" });
    return [el("a", { class: "picture", href: address, target: "_blank", rel: "noopener", tabindex: -1 }, picture)];
  }
  const link = el("a", { class: "file", href: address, download: item.name || true, tabindex: -1 }, `${name} · ${sizeOf(item.size)}`);
  if (type !== "voice") return [link];
  return [el("audio", { controls: true, preload: "metadata", src: address, "aria-label": name, tabindex: -1 })];
}

function sizeOf(bytes) {
  if (bytes < 1024) return `${bytes} B`;
  if (bytes < 1024 * 1024) return `${(bytes / 1024).toFixed(1)} KiB`;
  return `${(bytes / 1024 / 1024).toFixed(1)} MiB`;
}
