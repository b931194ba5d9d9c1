// Elements and small controls. Text from reports becomes text nodes and attributes, never HTML.

/** An element. Properties that begin with `on` are listeners, the others attributes; strings become text. */
export function el(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(
    ...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false),
  );
  return element;
}

/** The element with this id in the HTML of the page. */
export function byId(id) {
  return document.getElementById(id);
}

/** Tells users of screen readers. */
export function announce(text) {
  byId("live").textContent = text;
}

/** Text with its unit: `1 frame`, `2 frames`. */
export function count(number, unit) {
  return `${number.toLocaleString("en")} ${unit}${number === 1 ? "" : "s"}`;
}

/** A size in bytes, for people. */
export function size(bytes) {
  const units = ["bytes", "kB", "MB", "GB", "TB"];
  let unit = 0;
  let value = bytes;
  for (; value >= 1000 && unit < units.length - 1; unit += 1) value /= 1000;
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${units[unit]}`;
}

/** The last part of a path. */
export function fileName(path) {
  return path.split(/[\\/]/).pop() || path;
}

/** The id of an image as Apple writes it, if it is a UUID. */
export function spelledId(id) {
  const parts = /^([0-9a-f]{8})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{12})$/.exec(id ?? "");
  return parts ? parts.slice(1).join("-").toUpperCase() : id;
}

/** Puts `text` into the clipboard. */
export async function toClipboard(text) {
  // Pages without TLS have no clipboard, except on this machine.
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const area = el("textarea", { class: "visually-hidden" });
  area.value = text;
  document.body.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  if (!done) throw new Error("the browser has not copied");
  return undefined;
}

/** Gives `blob` to the user as a file. */
export function download(blob, name) {
  const address = URL.createObjectURL(blob);
  el("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
  announce(`${name} is downloaded`);
}

/** A button that shows `text` and copies `copied`, or what that returns. */
export function copyButton(text, copied = text, title = copied) {
  const label = el("span", {}, text);
  const copy = async () => {
    try {
      await toClipboard(typeof copied === "function" ? copied() : copied);
      button.classList.add("copied");
      announce(`Copied ${title}`);
      setTimeout(() => button.classList.remove("copied"), 1500);
    } catch {
      announce("The browser does not allow copying");
    }
  };
  const button = el(
    "button",
    { type: "button", class: "copy", title: `Copy ${title}`, onclick: copy },
    label,
  );
  return button;
}

/** What an error says: the title of the problem, and its detail. `retry`, if any, is a button's. */
export function errorNotice(error, retry) {
  const detail = error.detail ? el("p", {}, error.detail) : null;
  return el(
    "div",
    { class: "notice bad", role: "alert" },
    el("p", {}, el("strong", {}, error.message)),
    detail,
    retry && el("div", { class: "actions" }, el("button", { type: "button", onclick: retry }, "Try again")),
  );
}

/** A sign that something goes on. */
export function busySign(text, hidden) {
  return el("p", { class: "busy", hidden }, el("span", { class: "spinner", "aria-hidden": "true" }), text);
}

/** After how many milliseconds without a key a search begins. */
const TYPING = 200;

/** A listener that calls `search` when no more keys follow. */
export function whenTyped(search) {
  let waiting = 0;
  return () => {
    clearTimeout(waiting);
    waiting = setTimeout(search, TYPING);
  };
}

/** A list that shows `step` items at first, and more when the user asks. */
export function longList(items, render, list, step) {
  let shown = 0;
  const more = el("button", { type: "button", class: "more" });
  const show = () => {
    const next = items.slice(shown, shown + step);
    const first = next.map(render).map((element) => list.appendChild(element))[0];
    const isAsked = shown > 0;
    shown += next.length;
    more.textContent = `Show more (${(items.length - shown).toLocaleString("en")} left)`;
    more.hidden = shown >= items.length;
    // The button may be gone, so the keyboard goes on at the first new item.
    if (isAsked && more.hidden && first) {
      first.tabIndex = -1;
      first.focus();
    }
  };
  more.addEventListener("click", show);
  show();
  return items.length > step ? [list, more] : [list];
}
