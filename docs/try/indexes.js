// The indexes that the user has given: which images they are of, or why they are refused.

import { addIndex } from "./api.js";
import { announce, byId, count, el, size, spelledId } from "./dom.js";

/** The first bytes of an index. */
const MAGIC = "SYMDEX\n";

/** Whether a file is an index, by its first bytes. The very first one is no text. */
export async function isIndex(file) {
  return (await file.slice(1, 1 + MAGIC.length).text()) === MAGIC;
}

/** Opens indexes. Calls `onOpened` if there is a new one. */
export async function openIndexes(files, onOpened) {
  byId("uploads").hidden = false;
  let opened = 0;
  for (const file of files) {
    try {
      const metadata = await addIndex(file);
      opened += 1;
      add(file, el("span", { class: "state good" }, "Open"), imageOf(metadata));
    } catch (error) {
      refuse(file, error.message);
    }
  }
  announce(`${count(opened, "index")} opened`);
  if (opened > 0) await onOpened();
}

/** Says that a file is a debug file, from which this page makes no index. */
export function refuseDebugFile({ file, name }) {
  byId("uploads").hidden = false;
  refuse(file, `This is a debug file. Make its index first: symdex build ${name} -o indexes`);
  announce(`${name} is a debug file, not an index`);
}

function refuse(file, why) {
  add(file, el("span", { class: "state bad" }, "Not opened"), el("p", { class: "bad" }, why));
}

function add(file, state, about) {
  const head = [el("strong", {}, file.name), el("span", { class: "muted" }, size(file.size)), state];
  byId("index-list").prepend(
    el("li", { class: "upload" }, el("div", { class: "image-head" }, head), about),
  );
}

const imageOf = ({ id, name, arch, counts }) =>
  el(
    "div",
    { class: "image-head" },
    name,
    el("span", { class: "badge" }, arch),
    el("code", {}, spelledId(id)),
    el("span", { class: "muted" }, count(counts.functions, "function")),
  );
