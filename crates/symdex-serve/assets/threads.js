// The threads of a report: which are shown, and what each has beside its frames.

import { copyButton, count, el, longList, whenTyped } from "./dom.js";
import { frameList, imageOf, inOrder, isOfCrash, textOf } from "./frames.js";

const THREADS = 200;

/** So many threads open by themselves when frames are searched. */
const OPENED = 20;

/** The threads of a report, and what chooses among their frames: a text, and whether only frames of the app count. */
export function threadsView(report) {
  report.filter ??= { text: "", isAppOnly: false };
  const { filter } = report;
  const list = el("div");
  const found = el("p", { class: "muted", role: "status", id: "frames-found" });
  const search = el("input", {
    id: "frame-search",
    type: "search",
    value: filter.text,
    spellcheck: "false",
    autocomplete: "off",
    placeholder: "Function, file, image or thread",
  });
  const appOnly = el("input", { id: "app-only", type: "checkbox" });
  appOnly.checked = filter.isAppOnly;
  const show = () => {
    const chosen = choose(report.data, filter);
    list.replaceChildren(...threadList(report.data, filter, chosen));
    found.textContent = isChoosing(filter) ? summary(report.data, chosen) : "";
  };
  const searched = () => {
    filter.text = search.value;
    show();
  };
  search.addEventListener("input", whenTyped(searched));
  appOnly.addEventListener("change", () => {
    filter.isAppOnly = appOnly.checked;
    show();
  });
  show();
  return [
    el(
      "div",
      { class: "row fields" },
      el("div", {}, el("label", { for: "frame-search" }, "Search in threads"), search),
      el("label", { class: "check", for: "app-only" }, appOnly, "App frames only"),
    ),
    found,
    list,
  ];
}

const isChoosing = ({ text, isAppOnly }) => text.trim() !== "" || isAppOnly;

/** The threads, those that crashed first, as `{thread, frames}` with the chosen frames as `{frame, number}`. */
function choose(data, filter) {
  const text = filter.text.trim().toLowerCase();
  const isOfApp = (frame) => imageOf(data, frame)?.is_app ?? false;
  const has = (one) => one.toLowerCase().includes(text);
  const chosen = inOrder(data).map((thread) => {
    const isNamed = [thread.name, thread.label, thread.queue].some((name) => name && has(name));
    const isChosen = ({ frame, number }) =>
      (!filter.isAppOnly || isOfApp(frame)) && (isNamed || has(textOf(data, frame, number)));
    const frames = thread.frames.map((frame, number) => ({ frame, number }));
    return { thread, frames: isChoosing(filter) ? frames.filter(isChosen) : frames };
  });
  return isChoosing(filter) ? chosen.filter(({ frames }) => frames.length > 0) : chosen;
}

function summary({ threads }, chosen) {
  const frames = chosen.reduce((sum, one) => sum + one.frames.length, 0);
  const all = threads.reduce((sum, thread) => sum + thread.frames.length, 0);
  return `${frames.toLocaleString("en")} of ${count(all, "frame")}, in ${count(chosen.length, "thread")}`;
}

function threadList(data, filter, chosen) {
  const isSearch = filter.text.trim() !== "";
  const render = (one) => threadView(data, one, isSearch, chosen.indexOf(one) < (isSearch ? OPENED : 1));
  return longList(chosen, render, el("div", { class: "threads" }), THREADS);
}

function threadView(data, { thread, frames }, isSearch, isOpen) {
  const labels = [thread.label, thread.queue].filter(Boolean).join(", ");
  const head = el(
    "summary",
    {},
    el("span", { class: "thread-name" }, thread.name),
    labels && el("span", { class: "muted" }, labels),
    thread.crashed && !/crash/i.test(thread.name) && el("span", { class: "badge bad" }, "crashed"),
    el("span", { class: "muted end" }, count(frames.length, "frame")),
  );
  const view = el("details", { class: isOfCrash(thread) ? "thread crashed" : "thread", open: isOpen }, head);
  // Reports may have thousands of threads; only what is open is made.
  const fill = () => {
    if (!view.open || view.children.length > 1) return;
    const list = frameList(data, frames, !isSearch);
    view.append(el("div", { class: "thread-tools" }, tools(data, thread)), ...list);
  };
  view.addEventListener("toggle", fill);
  fill();
  return view;
}

function tools(data, thread) {
  const stack = () => {
    const frames = thread.frames.map((frame, number) => textOf(data, frame, number));
    return [thread.name, ...frames, ""].join("\n");
  };
  return [copyButton("Copy stack", stack, `the stack of ${thread.name}`), registersView(thread)];
}

function registersView({ registers = [] }) {
  if (registers.length === 0) return null;
  const render = ({ name, value, description }) =>
    el("div", {}, el("dt", {}, name), el("dd", {}, [value, description].filter(Boolean).join(" ")));
  return el(
    "details",
    { class: "registers" },
    el("summary", {}, count(registers.length, "register")),
    el("dl", {}, registers.map(render)),
  );
}
