// The flame graph of a profile, and which images lack names in it. d3-flame-graph draws it, once a profile is shown.

import { count, el, errorNotice, size, whenTyped } from "./dom.js";
import { MAX_DEPTH, READERS, missingOf, treeOf } from "./profile.js";

/** The largest profile that is read for a graph, in bytes. */
const MAX_SIZE = 32_000_000;

/** Frames that are narrower, in pixels, are not drawn. */
const NARROWEST = 1;

/** The section with the flame graph of a report, or nothing. `native` becomes the profile with answers. */
export function flameView(data, native) {
  const read = READERS[data.format];
  if (!read) return null;
  const contents = el("div", {}, el("p", { class: "muted" }, "Reading the samples…"));
  const draw = async () => {
    const blob = await native();
    if (blob.size > MAX_SIZE) {
      const limits = `The profile has ${size(blob.size)}. This page shows graphs of up to ${size(MAX_SIZE)}.`;
      return [el("p", { class: "notice" }, `${limits} Download the profile for another viewer.`)];
    }
    const [bytes, library] = await Promise.all([blob.arrayBuffer(), import("./flamegraph.js")]);
    const kinds = read(new Uint8Array(bytes)).filter(({ samples }) => samples.some(({ value }) => value > 0));
    return kinds.length > 0 ? kindsView(kinds, library) : [el("p", { class: "muted" }, "The profile has no samples.")];
  };
  draw().then(
    (views) => contents.replaceChildren(...views),
    (error) => contents.replaceChildren(errorNotice(error)),
  );
  return el(
    "section",
    { class: "card flame", "aria-labelledby": "flame-title" },
    el("div", { class: "card-head" }, el("h2", { id: "flame-title" }, "Flame graph")),
    contents,
  );
}

/** The graph of one kind of samples, and a choice if there are several. */
function kindsView(kinds, library) {
  const shown = el("div");
  const show = (kind) => shown.replaceChildren(...kindView(kind, library));
  show(kinds[0]);
  if (kinds.length === 1) return [shown];
  const options = kinds.map(({ type, unit }, at) => el("option", { value: at }, `${type} (${unit})`));
  const choice = el("select", { id: "flame-kind" }, options);
  choice.addEventListener("change", () => show(kinds[choice.value]));
  return [el("div", { class: "row" }, el("label", { for: "flame-kind" }, "Samples of"), choice), shown];
}

function kindView(kind, { flamegraph, select }) {
  const { unit, samples } = kind;
  const { tree, isCut } = treeOf(kind);
  const part = (value) => `${((100 * value) / tree.value).toFixed(1)} %`;
  const about = ({ data: { name, value } }) => `${name}: ${part(value)}, ${value.toLocaleString("en")} ${unit}`;
  const frame = el("p", { class: "muted flame-frame" });
  const found = el("p", { class: "muted", role: "status" });
  const label = `Flame graph of ${count(samples.length, "stack")}. The list of locations below has their functions.`;
  const graph = el("div", { class: "flame-graph", tabindex: "0", role: "region", "aria-label": "Stacks" });
  const chart = flamegraph()
    .inverted(true)
    // Of all samples, also while a part of them is shown.
    .getValue((one) => (one.data ?? one).value)
    .minFrameSize(NARROWEST)
    .transitionDuration(0)
    .sort((one, other) => other.data.value - one.data.value)
    .setColorMapper(({ data, highlight }) => `var(--flame-${highlight ? "found" : data.isNamed ? "named" : "missing"})`)
    .setLabelHandler(about)
    .setDetailsHandler((text) => (frame.textContent = text ?? ""))
    .setSearchMatch(({ data }, text) => text !== "" && data.name.toLowerCase().includes(text))
    .setSearchHandler((_, value) => (found.textContent = `${part(value)} of the samples`));
  const search = el("input", { id: "flame-search", type: "search", spellcheck: "false", autocomplete: "off" });
  const searched = () => {
    chart.search(search.value.trim().toLowerCase());
    if (search.value.trim() === "") found.textContent = "";
  };
  search.addEventListener("input", whenTyped(searched));
  const reset = el("button", { type: "button", onclick: () => chart.resetZoom() }, "Show all");
  drawAtWidth(graph, (width, isFirst) => {
    chart.width(width);
    if (!isFirst) return chart.update();
    select(graph).datum(tree).call(chart);
    const picture = graph.querySelector("svg");
    picture.setAttribute("role", "img");
    picture.setAttribute("aria-label", label);
    return picture;
  });
  return [
    el(
      "div",
      { class: "row fields" },
      el("div", {}, el("label", { for: "flame-search" }, "Search in the graph"), search),
      reset,
    ),
    found,
    graph,
    frame,
    isCut && el("p", { class: "muted" }, `The graph has the outermost ${MAX_DEPTH} frames of each stack.`),
    missingView(missingOf(kind), part),
  ].filter(Boolean);
}

/** Calls `draw` with the width of `element` and whether it is the first time, whenever that changes. */
function drawAtWidth(element, draw) {
  let drawn = 0;
  const observer = new ResizeObserver(() => {
    // What is drawn changes the height, which must not be observed in the same turn.
    requestAnimationFrame(() => {
      const width = element.clientWidth;
      if (width === 0 || width === drawn) return;
      draw(width, drawn === 0);
      drawn = width;
    });
  });
  observer.observe(element);
}

/** Which images lack names, and in how much of the samples. */
function missingView(missing, part) {
  if (missing.length === 0) return el("p", { class: "muted" }, "Every frame has a name.");
  const row = ([image, value]) => el("tr", {}, el("th", { scope: "row" }, image), el("td", {}, part(value)));
  const head = ["Image", "Samples with a frame without a name"].map((text) => el("th", { scope: "col" }, text));
  const table = el("table", {}, el("thead", {}, el("tr", {}, head)), el("tbody", {}, missing.map(row)));
  const label = "Images without names";
  return el("div", { class: "scroller", tabindex: "0", role: "region", "aria-label": label }, table);
}
