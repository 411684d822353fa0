// Structured mentions inside a plain text: which spans are chips, and what happens to them when the text changes.
// Pure. A chip is `{start, end, uid}` (`uid` null: the broadcast); its text is always "@" and a name.

/** Entry of the picker that calls everybody. */
export const EVERYBODY = { uid: null, name: "everyone", names: ["everyone", "所有人", "all"] };

const LETTER_BEFORE = /[\p{Script=Latin}\p{Script=Cyrillic}\p{Script=Greek}\p{N}_.\-\\]$/u;
const LETTER_BEHIND = /^[\p{Script=Latin}\p{Script=Cyrillic}\p{Script=Greek}\p{N}_]/u;
const LONGEST_QUERY = 48;

/** Return text as it is compared: NFC, case folded as far as a browser can. */
export const folded = (text) => text.normalize("NFC").toLowerCase();

/** Return the chips that survive the edit from `before` to `after`: moved along, or dropped when cut into. */
export function shifted(chips, before, after) {
  let head = 0;
  const shortest = Math.min(before.length, after.length);
  while (head < shortest && before[head] === after[head]) head += 1;
  let tail = 0;
  while (tail < shortest - head && before.at(-1 - tail) === after.at(-1 - tail)) tail += 1;
  const end = before.length - tail;
  const by = after.length - before.length;
  return chips
    .filter((chip) => chip.end <= head || chip.start >= end)
    .map((chip) => (chip.end <= head ? chip : { ...chip, start: chip.start + by, end: chip.end + by }));
}

/** Return `{start, query}` of the "@…" that the caret stands behind, or null. Chips are no queries. */
export function queryAt(text, caret, chips) {
  const start = Math.max(text.lastIndexOf("@", caret - 1), text.lastIndexOf("＠", caret - 1));
  if (start < 0 || caret === 0 || caret - start > LONGEST_QUERY) return null;
  if (chips.some((chip) => chip.start <= start && start < chip.end)) return null;
  if (LETTER_BEFORE.test(text.slice(0, start))) return null;
  const query = text.slice(start + 1, caret);
  return query.includes("\n") || query.startsWith(" ") ? null : { start, query };
}

/** Return the members (and everybody) that `query` can mean: beginning of the name first, then of a word, then within. */
export function matching(members, query) {
  const wanted = folded(query);
  const rank = (entry) => {
    const names = (entry.names ?? [entry.name]).map(folded);
    if (names.some((name) => name.startsWith(wanted))) return 0;
    if (names.some((name) => name.split(/[\s._-]+/u).some((word) => word.startsWith(wanted)))) return 1;
    return names.some((name) => name.includes(wanted)) ? 2 : 3;
  };
  return [...members, EVERYBODY]
    .map((entry) => ({ entry, rank: rank(entry) }))
    .filter(({ rank: found }) => found < 3)
    .sort((one, other) => one.rank - other.rank)
    .map(({ entry }) => entry);
}

/** Return the word that stands for everybody, in the script that the writer began with. */
export const everybodyIn = (query) => (/^\p{Script=Han}/u.test(query) ? "所有人" : "everyone");

/** Return where `name` is called in plain text outside the chips: `[{start, end}]`, both kinds of "@". */
export function callsOf(name, text, chips) {
  const wanted = folded(name);
  const found = [];
  for (let at = 0; at < text.length; at += 1) {
    if (text[at] !== "@" && text[at] !== "＠") continue;
    const end = at + 1 + name.length;
    if (folded(text.slice(at + 1, end)) !== wanted || LETTER_BEHIND.test(text.slice(end))) continue;
    if (chips.some((chip) => chip.start < end && at < chip.end)) continue;
    found.push({ start: at, end });
  }
  return found;
}

/** Return the text without its chips (each one a neutral sign that ends a word): what the resolver still has to read. */
export function withoutChips(text, chips) {
  let rest = text;
  for (const { start, end } of [...chips].sort((one, other) => other.start - one.start)) {
    rest = `${rest.slice(0, start)}\uFFFC${rest.slice(end)}`;
  }
  return rest;
}

/** Return whether a text may hold a call that was not picked; an entity can be an "@" too. */
export const mayCall = (text) => /[@＠]|&(?:#|commat;)/iu.test(text);
