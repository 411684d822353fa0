// The member picker: a listbox above the composer, driven by the keys of the textarea or by the mouse.

import { el } from "./dom.js";

export class Picker {
  #list;
  #field;
  #onPick;
  #entries = [];
  #active = 0;

  /** `onPick(entry)` with the chosen member, or with EVERYBODY. */
  constructor(list, field, onPick) {
    this.#list = list;
    this.#field = field;
    this.#onPick = onPick;
    list.addEventListener("mousedown", (event) => event.preventDefault()); // the field keeps the focus
    list.addEventListener("click", (event) => {
      const option = event.target.closest("[role=option]");
      if (option) this.#pick(Number(option.dataset.index));
    });
  }

  get isOpen() {
    return !this.#list.hidden;
  }

  /** Show `entries`; none closes. */
  show(entries) {
    if (entries.length === 0) {
      this.close();
      return;
    }
    const active = this.isOpen ? this.#entries[this.#active]?.uid : undefined;
    this.#entries = entries;
    this.#active = Math.max(0, entries.findIndex((entry) => entry.uid === active));
    this.#list.replaceChildren(...entries.map(option));
    this.#list.hidden = false;
    this.#field.setAttribute("aria-expanded", "true");
    this.#mark();
  }

  close() {
    this.#list.hidden = true;
    this.#entries = [];
    this.#field.setAttribute("aria-expanded", "false");
    this.#field.removeAttribute("aria-activedescendant");
  }

  /** Return whether the key was one of the picker's. Escape is told by `event.key` and closes. */
  takes(event) {
    if (!this.isOpen || event.isComposing) return false;
    const steps = { ArrowDown: 1, ArrowUp: -1 };
    if (event.key in steps) {
      const count = this.#entries.length;
      this.#active = (this.#active + steps[event.key] + count) % count;
      this.#mark();
    } else if ((event.key === "Enter" || event.key === "Tab") && !event.shiftKey) {
      this.#pick(this.#active);
    } else if (event.key === "Escape") {
      this.close();
    } else {
      return false;
    }
    event.preventDefault();
    return true;
  }

  #pick(index) {
    const entry = this.#entries[index];
    this.close();
    this.#onPick(entry);
  }

  #mark() {
    for (const [index, node] of [...this.#list.children].entries()) {
      node.setAttribute("aria-selected", String(index === this.#active));
    }
    const active = this.#list.children[this.#active];
    this.#field.setAttribute("aria-activedescendant", active.id);
    active.scrollIntoView({ block: "nearest" });
  }
}

function option(entry, index) {
  const isEverybody = entry.uid === null;
  const node = el(
    "li",
    { role: "option", id: `option-${index}`, "data-index": index, "data-uid": entry.uid ?? "" },
    el("span", { class: "name" }, isEverybody ? "@所有人 / @everyone" : entry.name),
  );
  if (isEverybody) node.append(el("span", { class: "hint" }, "everybody in this room"));
  else if (entry.kind === "persona") node.append(el("span", { class: "persona" }, "persona"));
  if (entry.twin) node.append(el("span", { class: "hint" }, entry.uid)); // two of one name: told apart by uid
  return node;
}
