// The code of an image by source file: a picture, and the same as a table.

import { el, size } from "./dom.js";
import { treemap } from "./treemap.js";

/** So many entries of a folder are shown; the rest is one entry. */
const ENTRIES = 60;

/** Folders and files as a tree: `{name, bytes, inlined, children}`. Folders with one entry are joined with it. */
export function treeOf(files) {
  const root = { name: "", bytes: 0, inlined: 0, children: new Map() };
  for (const { file, bytes, inlined_bytes: inlined } of files) {
    let folder = root;
    // The first folder of an absolute path is `/`.
    const parts = file.split("/").flatMap((part, at) => (part !== "" ? [part] : at === 0 ? ["/"] : []));
    parts.forEach((part, at) => {
      folder.bytes += bytes;
      folder.inlined += inlined;
      const isFile = at === parts.length - 1;
      const key = `${isFile ? "file" : "folder"}:${part}`;
      const made = { name: part, bytes: 0, inlined: 0, children: isFile ? null : new Map() };
      folder = folder.children.get(key) ?? folder.children.set(key, made).get(key);
    });
    folder.bytes += bytes;
    folder.inlined += inlined;
  }
  return joined(root);
}

/** Paths have at most 64 KiB, and so the tree may be deep: this does not recurse. */
function joined(root) {
  const waiting = [root];
  while (waiting.length > 0) {
    const folder = waiting.pop();
    for (let only = soleFolder(folder); only; only = soleFolder(folder)) {
      folder.name = join(folder.name, only.name);
      folder.children = only.children;
    }
    folder.children = [...folder.children.values()].sort((one, other) => other.bytes - one.bytes);
    waiting.push(...folder.children.filter((child) => child.children !== null));
  }
  return root;
}

function soleFolder(folder) {
  if (folder.children.size !== 1) return null;
  const [only] = folder.children.values();
  return only.children === null ? null : only;
}

const join = (folder, name) =>
  folder === "" || folder.endsWith("/") ? `${folder}${name}` : `${folder}/${name}`;

/** The picture and the table. A folder opens in both. */
export function codeMap(list) {
  const root = treeOf(list.files);
  root.name ||= "all files";
  if (list.others.files > 0) {
    root.children.push({
      name: `${list.others.files} smaller files`,
      bytes: list.others.bytes,
      inlined: 0,
      children: null,
    });
    root.bytes += list.others.bytes;
  }
  const element = el("div", { class: "code-map" });
  const show = (path, isAsked) => {
    const folder = path.at(-1);
    const trail = el(
      "nav",
      { "aria-label": "Folders" },
      el(
        "ol",
        { class: "trail" },
        path.map((one, at) =>
          el(
            "li",
            {},
            at === path.length - 1
              ? el("span", { "aria-current": "true", tabindex: "-1" }, one.name)
              : el(
                  "button",
                  { type: "button", class: "link", onclick: () => show(path.slice(0, at + 1), true) },
                  one.name,
                ),
          ),
        ),
      ),
    );
    const items = entriesOf(folder, list.bytes, (child) => show([...path, child], true));
    element.replaceChildren(trail, treemap(items), tableOf(items));
    if (isAsked) trail.querySelector("[aria-current]").focus();
  };
  show([root], false);
  return element;
}

function entriesOf(folder, all, open) {
  const shown = folder.children.slice(0, ENTRIES);
  const rest = folder.children.slice(ENTRIES);
  const items = shown.map((child) => ({
    name: child.children ? join(child.name, "") : child.name,
    size: child.bytes,
    inlined: child.inlined,
    open: child.children ? () => open(child) : null,
  }));
  if (rest.length > 0) {
    const sum = (member) => rest.reduce((total, child) => total + child[member], 0);
    items.push({ name: `${rest.length} others`, size: sum("bytes"), inlined: sum("inlined"), open: null });
  }
  return items.map((item) => {
    const share = all > 0 ? `${((100 * item.size) / all).toFixed(1)} %` : "";
    return {
      ...item,
      share,
      amount: `${size(item.size)}, ${share}`,
      title: `${item.name}: ${size(item.size)}, ${share}`,
    };
  });
}

function tableOf(items) {
  const head = ["File or folder", "Bytes", "Of the code", "Inlined bytes"];
  const rows = items.map(({ name, size: bytes, share, inlined, open }) =>
    el(
      "tr",
      {},
      el(
        "th",
        { scope: "row" },
        open ? el("button", { type: "button", class: "link", onclick: open }, name) : name,
      ),
      el("td", { class: "number" }, bytes.toLocaleString("en")),
      el("td", { class: "number" }, share),
      el("td", { class: "number" }, inlined.toLocaleString("en")),
    ),
  );
  const table = el(
    "table",
    {},
    el(
      "thead",
      {},
      el(
        "tr",
        {},
        head.map((text, at) => el("th", { scope: "col", class: at > 0 && "number" }, text)),
      ),
    ),
    el("tbody", {}, rows),
  );
  return el(
    "div",
    { class: "scroller", tabindex: "0", role: "region", "aria-label": "Table of code by file" },
    table,
  );
}
