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
  scrollTogether(left, right);
  requestAnimationFrame(() => showFirstChange(left));
  const isCut = before.size > SHOWN_BYTES || after.size > SHOWN_BYTES;
  return el(
    "section",
    { class: "compare", "aria-label": "Side by side" },
    columns,
    isCut && el("p", { class: "muted" }, "Only the beginning is shown. The download has all."),
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

/** Where the texts begin to differ. */
function showFirstChange(text) {
  const change = text.querySelector("mark");
  if (change) text.scrollTop = change.offsetTop - text.offsetTop - 3 * change.offsetHeight;
}

/** Both are at the same part of their height. */
function scrollTogether(left, right) {
  let driven = null;
  const follow = (from, to) => () => {
    if (driven === from) {
      driven = null;
      return;
    }
    const part = from.scrollTop / Math.max(from.scrollHeight - from.clientHeight, 1);
    const target = Math.round(part * (to.scrollHeight - to.clientHeight));
    if (Math.abs(to.scrollTop - target) < 1) return;
    driven = to;
    to.scrollTop = target;
  };
  left.addEventListener("scroll", follow(left, right), { passive: true });
  right.addEventListener("scroll", follow(right, left), { passive: true });
}
