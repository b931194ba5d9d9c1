// The frames of a thread: their functions, files and lines, and what they lie in.

import { copyButton, count, el, fileName, longList } from "./dom.js";
import { imageLink } from "./place.js";

/** So many frames of a thread are shown at first, and more when the user asks. */
const FRAMES = 300;

/** From so many functions on, those between the innermost and the outermost one are folded. */
const FOLDED_FUNCTIONS = 4;

const REASONS = {
  missing_symbol: "no name at this address",
  missing: "debug file missing",
  fetching: "debug file is being fetched",
  fetching_failed: "debug file not fetched",
  damaged: "index damaged",
  lost: "index lost by its store",
  unavailable: "store of indexes failed",
  limit: "answer too large",
};

/** What Apple's reports call the stack of an exception that was thrown. The crashed thread only shows how it ended. */
const EXCEPTION = "Last Exception Backtrace";

/** Whether a thread says where the program crashed. */
export const isOfCrash = (thread) => thread.crashed || thread.name === EXCEPTION;

/** The threads of a report: the one of an exception, those that crashed, and the others. */
export function inOrder({ threads }) {
  const rank = (thread) => (thread.name === EXCEPTION ? 0 : thread.crashed ? 1 : 2);
  return threads.toSorted((one, other) => rank(one) - rank(other));
}

/** The name of one function of a frame, or else what the report says of the frame. */
export function nameOf(report, frame, one) {
  return one?.function ?? one?.name ?? placeOf(frame, imageOf(report, frame));
}

/** The text of a frame, a line for each function. */
export function textOf(report, frame, number) {
  const image = imageOf(report, frame)?.name ?? "";
  const functions = frame.functions.length > 0 ? frame.functions : [null];
  const line = (one) => {
    const source = one?.file ? ` (${sourceOf({ ...one, file: fileName(one.file) })})` : "";
    const inlined = one?.inlined ? " [inlined]" : "";
    return `${String(number).padEnd(4)}${image.padEnd(30)} ${nameOf(report, frame, one)}${source}${inlined}`;
  };
  return functions.map(line).join("\n");
}

/** Frames `{frame, number}` one by one. If `isFolding`, neighbouring frames of the system are one entry that opens. */
export function frameList(report, frames, isFolding) {
  const groups = [];
  for (const entry of frames) {
    const isFolded = isFolding && isOfSystem(report, entry.frame);
    const last = groups.at(-1);
    if (isFolded && last?.isFolded) last.frames.push(entry);
    else groups.push({ isFolded, frames: [entry] });
  }
  const render = (group) =>
    group.frames.length > 1
      ? foldedView(report, group.frames)
      : frameView(report, group.frames[0].frame, group.frames[0].number);
  return longList(groups, render, el("ol", { class: "frames" }), FRAMES);
}

export const imageOf = (report, frame) => (frame.image === null ? null : report.images[frame.image]);

function isOfSystem(report, frame) {
  const image = imageOf(report, frame);
  return image !== null && !image.is_app;
}

function foldedView(report, frames) {
  const names = [...new Set(frames.map(({ frame }) => imageOf(report, frame).name))];
  const shown = names.slice(0, 3).join(", ") + (names.length > 3 ? " and others" : "");
  const summary = el(
    "summary",
    {},
    `${count(frames.length, "system frame")}`,
    el("span", { class: "muted" }, shown),
  );
  const fold = el("details", { class: "fold" }, summary);
  fold.addEventListener("toggle", () => {
    if (!fold.open || fold.children.length > 1) return;
    const render = ({ frame, number }) => frameView(report, frame, number);
    fold.append(...longList(frames, render, el("ol", { class: "frames" }), FRAMES));
  });
  return el("li", { class: "folded" }, fold);
}

function frameView(report, frame, number) {
  const image = imageOf(report, frame);
  const functions = frame.functions.length > 0 ? frame.functions : [null];
  const views = functions.map((one, at) => functionView(report, frame, one, at === functions.length - 1));
  const isApp = image?.is_app ?? false;
  return el(
    "li",
    { class: isApp ? "frame app" : "frame" },
    el("span", { class: "number", "aria-label": `Frame ${number}` }, String(number)),
    el("div", { class: "functions" }, views.length < FOLDED_FUNCTIONS ? views : foldedFunctions(views)),
  );
}

/** The innermost function, those that it is inlined into, in an element that opens, and the function of the code. */
function foldedFunctions(views) {
  const between = views.slice(1, -1);
  const summary = el("summary", {}, `${count(between.length, "inlined function")} between`);
  return [views[0], el("details", { class: "inlines" }, summary, between), views.at(-1)];
}

function functionView(report, frame, one, isLast) {
  const image = imageOf(report, frame);
  const name = one?.function ?? one?.name;
  const title = one?.name && one.name !== name ? one.name : undefined;
  return el(
    "div",
    { class: one?.inlined ? "function inlined" : "function" },
    el(
      "div",
      { class: "name" },
      name ? el("code", { title }, name) : el("code", { class: "muted" }, placeOf(frame, image)),
      one?.inlined &&
        el("span", { class: "badge", title: "Its code is inlined into the next function" }, "inlined"),
      isLast &&
        frame.found_by === "scan" &&
        el("span", { class: "badge", title: "Found by a search of the stack: it may be wrong" }, "scan"),
      isLast && frame.status !== "symbolicated" && statusView(frame, image),
    ),
    el(
      "div",
      { class: "place" },
      one?.file && sourceButton(one),
      isLast && image && name && imageView(image, frame),
      isLast && el("span", { class: "muted address" }, frame.address),
    ),
  );
}

/** The frame as the report has it: image and offset. */
function placeOf(frame, image) {
  if (image === null) return frame.address;
  const offset = offsetOf(frame, image);
  return offset === null ? image.name : `${image.name} + ${offset}`;
}

function offsetOf(frame, image) {
  const offset = BigInt(frame.address) - BigInt(image.load_address);
  return offset < 0n ? null : `0x${offset.toString(16)}`;
}

function statusView(frame, image) {
  const isApp = image?.is_app ?? false;
  const unknown = image ? "its build is not known" : "in no image";
  const text = frame.status === "unknown_image" ? unknown : (REASONS[frame.status] ?? frame.status);
  // The report itself names some functions of the system. Nothing is missing then.
  if (!isApp && frame.functions.some((one) => one.function)) return null;
  return el("span", { class: isApp ? "badge warn" : "badge", title: frame.reason }, text);
}

const sourceOf = ({ file, line }) => `${file}${line === null ? "" : `:${line}`}`;

/** A button with file and line, which copies them with the folder. */
export function sourceButton({ file, line }) {
  return copyButton(sourceOf({ file: fileName(file), line }), sourceOf({ file, line }));
}

function imageView(image, frame) {
  const offset = offsetOf(frame, image);
  const isFound = image.status === "found" && image.id && offset !== null;
  const link = isFound ? imageLink(image.id, offset) : null;
  if (!link) return el("span", { class: "muted" }, image.name);
  return el("a", { href: link, title: `Show ${offset} in the image` }, image.name);
}
