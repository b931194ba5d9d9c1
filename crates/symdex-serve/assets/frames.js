// The threads of a report and their frames.

import { copyButton, count, el, fileName, longList } from "./dom.js";

/** So many frames of a thread are shown at first, and more when the user asks. */
const FRAMES = 300;
const THREADS = 200;

const REASONS = {
  missing_symbol: "no function at this address",
  unknown_image: "in no image",
  missing: "debug file missing",
  fetching: "debug file is being fetched",
  fetching_failed: "debug file not fetched",
  malformed: "index damaged",
  other: "store of indexes failed",
  too_large: "answer too large",
};

/** The threads, those that crashed first. */
export function threadList(report) {
  const { threads, header } = report;
  const first = threads.filter((thread) => thread.crashed);
  const others = threads.filter((thread) => !thread.crashed);
  const ordered = [...first, ...others];
  const openAt = header.crashed_thread === null ? ordered[0] : threads[header.crashed_thread];
  const render = (thread) => threadView(report, thread, thread === openAt);
  return longList(ordered, render, el("div", { class: "threads" }), THREADS);
}

function threadView(report, thread, isOpen) {
  const labels = [thread.label, thread.queue].filter(Boolean).join(", ");
  const summary = el(
    "summary",
    {},
    el("span", { class: "thread-name" }, thread.name),
    labels && el("span", { class: "muted" }, labels),
    thread.crashed && !/crash/i.test(thread.name) && el("span", { class: "badge bad" }, "crashed"),
    el("span", { class: "muted end" }, count(thread.frames.length, "frame")),
  );
  const view = el("details", { class: thread.crashed ? "thread crashed" : "thread", open: isOpen }, summary);
  // Reports may have thousands of threads; only what is open is made.
  const fill = () => view.open && view.children.length === 1 && view.append(...frameList(report, thread));
  view.addEventListener("toggle", fill);
  fill();
  return view;
}

/** Frames of the app one by one; neighbouring frames of the system in one entry that opens. */
function frameList(report, thread) {
  const groups = [];
  thread.frames.forEach((frame, number) => {
    const isFolded = isOfSystem(report, frame);
    const last = groups.at(-1);
    if (isFolded && last?.isFolded) last.frames.push({ frame, number });
    else groups.push({ isFolded, frames: [{ frame, number }] });
  });
  const render = (group) =>
    group.isFolded && group.frames.length > 1
      ? foldedView(report, group.frames)
      : frameView(report, group.frames[0].frame, group.frames[0].number);
  return longList(groups, render, el("ol", { class: "frames" }), FRAMES);
}

const imageOf = (report, frame) => (frame.image === null ? null : report.images[frame.image]);

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
  const isApp = image?.is_app ?? false;
  return el(
    "li",
    { class: isApp ? "frame app" : "frame" },
    el("span", { class: "number", "aria-label": `Frame ${number}` }, String(number)),
    el(
      "div",
      { class: "functions" },
      functions.map((one, at) => functionView(report, frame, image, one, at === functions.length - 1)),
    ),
  );
}

function functionView(report, frame, image, one, isLast) {
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
      isLast && frame.status !== "symbolicated" && statusView(frame, image),
    ),
    el(
      "div",
      { class: "place" },
      one?.file && sourceButton(one),
      isLast && image && name && imageLink(image, frame),
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
  const text = REASONS[frame.status] ?? frame.status;
  // The report itself names some functions of the system. Nothing is missing then.
  if (!isApp && frame.functions.length > 0) return null;
  return el("span", { class: isApp ? "badge warn" : "badge", title: frame.reason }, text);
}

function sourceButton({ file, line }) {
  const at = line === null ? "" : `:${line}`;
  return copyButton(`${fileName(file)}${at}`, `${file}${at}`);
}

function imageLink(image, frame) {
  const offset = offsetOf(frame, image);
  if (image.status !== "found" || !image.id || offset === null)
    return el("span", { class: "muted" }, image.name);
  const link = `#image=${encodeURIComponent(image.id)}&address=${offset}`;
  return el("a", { href: link, title: `Show ${offset} in the image` }, image.name);
}
