// Build elements without ever parsing a string as HTML: text becomes text nodes, attributes are named one by one.

export const byId = (id) => document.getElementById(id);

/** Return a new `tag` element; `attrs` are attributes (null and false are left out), `children` nodes or strings. */
export function el(tag, attrs = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attrs)) {
    if (value === null || value === undefined || value === false) continue;
    element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children);
  return element;
}

/** Return a button that runs `onClick`. */
export function button(label, onClick, attrs = {}) {
  const element = el("button", { type: "button", ...attrs }, label);
  element.addEventListener("click", onClick);
  return element;
}

/** Show `text` in `element`, which hides itself when there is none. */
export function say(element, text) {
  element.textContent = text;
  element.hidden = !text;
}
