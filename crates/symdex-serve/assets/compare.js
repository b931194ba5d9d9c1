// The report as it was beside the report with answers.

import { el } from "./dom.js";

/** More than this is not shown: browsers get slow. The download has all. */
const SHOWN_BYTES = 400_000;

/** Both texts in columns that scroll together. Lines that are only in one of them are marked. */
export async function compareView(before, after) {
  const [old, now] = await Promise.all([linesOf(before), linesOf(after)]);
  if (old === null || now === null) {
    return el("p", { class: "notice" }, "This report is not text. Its download has the answers.");
  }
  const columns = [column("As it was", old, new Set(now)), column("Symbolicated", now, new Set(old))];
  const [left, right] = columns.map((element) => element.querySelector("pre"));
  scrollTogether(left, right, sameLines(old, now));
  requestAnimationFrame(() => showFirstChange(left));
  const isCut = before.size > SHOWN_BYTES || after.size > SHOWN_BYTES;
  return el(
    "section",
    { class: "compare", "aria-label": "Side by side" },
    columns,
    isCut && el("p", { class: "muted" }, "Only the beginning is shown. The download is complete."),
  );
}

async function linesOf(blob) {
  const bytes = new Uint8Array(await blob.slice(0, SHOWN_BYTES).arrayBuffer());
  if (bytes.includes(0)) return null;
  return new TextDecoder().decode(bytes).split("\n");
}

function column(title, lines, others) {
  const text = el("pre", { tabindex: "0", role: "region", "aria-label": title });
  for (const line of lines) {
    text.append(others.has(line) ? `${line}\n` : el("mark", {}, `${line}\n`));
  }
  return el("div", {}, el("h3", {}, title), text);
}

/** The places of lines that both texts have once, in both: `[old, now]`, ascending, from the start to the end. */
export function sameLines(old, now) {
  const places = (lines) => {
    const found = new Map();
    lines.forEach((line, at) => found.set(line, found.has(line) ? null : at));
    return found;
  };
  const [inOld, inNow] = [places(old), places(now)];
  const same = [[0, 0]];
  for (const [line, at] of inOld) {
    const other = inNow.get(line) ?? null;
    const [lastAt, lastOther] = same.at(-1);
    if (at !== null && other !== null && at > lastAt && other > lastOther) same.push([at, other]);
  }
  same.push([old.length, now.length]);
  return same;
}

/** The place in the other text of a place in one: in proportion between two lines that are the same. */
function placeOf(place, same, from, to) {
  const next = Math.max(
    1,
    same.findIndex((pair) => pair[from] > place),
  );
  const [start, end] = [same[next - 1], same[next]];
  const part = (place - start[from]) / Math.max(end[from] - start[from], 1);
  return start[to] + part * (end[to] - start[to]);
}

/** Where the texts begin to differ. */
function showFirstChange(text) {
  const change = text.querySelector("mark");
  if (change) text.scrollTop = change.offsetTop - text.offsetTop - 3 * change.offsetHeight;
}

/** The same lines are at the top of both. */
function scrollTogether(left, right, same) {
  let driven = null;
  const follow = (from, to, here, there) => () => {
    if (driven === from) {
      driven = null;
      return;
    }
    const height = from.scrollHeight / same.at(-1)[here];
    const target = Math.round(placeOf(from.scrollTop / height, same, here, there) * height);
    const before = to.scrollTop;
    to.scrollTop = target;
    if (to.scrollTop !== before) driven = to;
  };
  left.addEventListener("scroll", follow(left, right, 0, 1), { passive: true });
  right.addEventListener("scroll", follow(right, left, 1, 0), { passive: true });
}
