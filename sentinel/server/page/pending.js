// What is on its way in the open room, below the log: sending, or failed with a way out.

import { byId, button, el } from "./dom.js";

/** Show the outbox entries of room `cid`. */
export function showPending(outbox, cid) {
  const entries = outbox.entries.filter((entry) => entry.cid === cid);
  byId("pending").replaceChildren(...entries.map((entry) => article(outbox, entry)));
}

function article(outbox, entry) {
  const text = [entry.input.text, entry.file && `Attached: ${entry.file.name}`].filter(Boolean).join("\n");
  const node = el(
    "article",
    { class: `message mine ${entry.state}`, "data-nonce": entry.input.nonce },
    el("div", { class: "body plain" }, text),
  );
  if (entry.state === "sending") {
    node.append(el("p", { class: "delivery" }, "Sending…"));
    return node;
  }
  node.append(
    el("p", { class: "delivery error", role: "alert" }, `Not sent. ${entry.error}`),
    button("Try again", () => outbox.retry(entry), { class: "quiet" }),
    button("Discard", () => outbox.discard(entry), { class: "quiet" }),
  );
  return node;
}
