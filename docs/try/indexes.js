// The indexes that the user has given, or that are built from debug files: of which images they are, or what is wrong.

import { addDebugFile, addIndex } from "./api.js";
import { announce, byId, count, download, el, size, spelledId } from "./dom.js";

/** The first bytes of an index. */
const MAGIC = "SYMDEX\n";

/** Whether a file is an index, by its first bytes. The very first one is no text. */
export async function isIndex(file) {
  return (await file.slice(1, 1 + MAGIC.length).text()) === MAGIC;
}

/** Opens indexes. Returns how many. */
export async function openIndexes(files) {
  let opened = 0;
  for (const file of files) {
    const item = itemOf(file.name, file.size);
    try {
      item.done("Open", imageOf(await addIndex(file)));
      opened += 1;
    } catch (error) {
      item.failed("Not opened", problem(error.message));
    }
  }
  if (files.length > 0) announce(`${count(opened, "file")} of ${files.length} opened`);
  return opened;
}

/** Builds the indexes of debug files and opens them. Returns how many. */
export async function buildIndexes(debugFiles) {
  let opened = 0;
  for (const { file, name } of debugFiles) {
    const item = itemOf(name, file.size);
    await painted();
    try {
      const built = await addDebugFile(file);
      const indexes = built.filter(({ bytes }) => bytes);
      opened += indexes.length;
      const about = built.map((one) => (one.bytes ? builtOf(one) : problem(one.message)));
      if (indexes.length > 0) item.done("Index built", ...about);
      else item.failed("No index", ...about);
    } catch (error) {
      const command = error.kind === "unsupported" ? `symdex build ${name} -o indexes also reads archives.` : "";
      item.failed("No index", problem(`This page cannot build an index: ${error.message}. ${command}`));
    }
  }
  if (debugFiles.length > 0) announce(`${count(opened, "index")} built`);
  return opened;
}

/** Waits until the browser has shown what was added. A build keeps it from doing so. */
const painted = () => new Promise((shown) => requestAnimationFrame(() => setTimeout(shown)));

const problem = (text) => el("p", { class: "bad" }, text);

/** A file in the list. */
function itemOf(name, bytes) {
  const state = el("span", { class: "state" }, "Reading…");
  const head = [el("strong", {}, name), el("span", { class: "muted" }, size(bytes)), state];
  const item = el("li", { class: "upload" }, el("div", { class: "image-head" }, head));
  byId("uploads").hidden = false;
  byId("index-list").prepend(item);
  const show = (kind, text, about) => {
    state.className = `state ${kind}`;
    state.textContent = text;
    item.append(...about);
  };
  return {
    done: (text, ...about) => show("good", text, about),
    failed: (text, ...about) => show("bad", text, about),
  };
}

function imageOf({ id, name, arch, counts }, ...more) {
  const functions = el("span", { class: "muted" }, count(counts.functions, "function"));
  const badge = el("span", { class: "badge" }, arch);
  return el("div", { class: "image-head" }, name, badge, el("code", {}, spelledId(id)), functions, ...more);
}

/** A built index, which the user can keep. */
function builtOf({ bytes, metadata }) {
  const save = () => download(new Blob([bytes]), `${metadata.id}.symdex`);
  const label = `Save the index (${size(bytes.length)})`;
  return imageOf(metadata, el("button", { type: "button", onclick: save }, label));
}
