// The images of a report: what is there, what is missing, and what helps.

import { copyButton, count, el, longList, spelledId } from "./dom.js";
import { ADD_INDEXES, ADD_INDEXES_HELP, OWNER, imageLink } from "./place.js";

const IMAGES = 100;

const NEARNESS = {
  other_arch: "this image, of another architecture",
  other_build: "another build of it",
  other_build_and_arch: "another build, of another architecture",
};

const ORDER = [
  "missing",
  "fetching_failed",
  "fetching",
  "damaged",
  "lost",
  "unsupported",
  "limit",
  "unavailable",
  "other",
  "found",
  "unused",
];

/** What the index of a grade lacks. */
export const WITHOUT = { names: ", without lines", bounds: ", without names", nothing: ", without functions" };

/** The images of the app that frames lie in and that have no answers, by what helps. */
function lackingImages(report) {
  const used = new Set(report.threads.flatMap((thread) => thread.frames.map((frame) => frame.image)));
  const lacking = report.images.filter((image, number) => image.is_app && used.has(number) && isLacking(image));
  return Map.groupBy(lacking, (image) => {
    if (image.status === "other") return "unreachable";
    return image.id ? "missing" : "unnamed";
  });
}

const isLacking = (image) => !["found", "unused", "fetching"].includes(image.status);

/** Whether the server fetches debug files for the report. */
export const isFetching = (report) => report.images.some((image) => image.status === "fetching");

/** Says that more answers will come, or nothing. */
export function fetchingView(report) {
  if (!isFetching(report)) return null;
  const names = report.images.filter((image) => image.status === "fetching").map((image) => image.name);
  const text = `The server fetches debug files: ${names.join(", ")}. Their answers appear when they are there.`;
  return el("p", { class: "notice" }, text);
}

/** Which answers may be of another build, or nothing. */
export function matchedView(report, options, { setOptions }) {
  const matched = report.images.filter((image) => ["name", "assumed"].includes(image.matched_by));
  if (!options && matched.length === 0) return null;
  const names = matched.map((image) => image.name).join(", ") || "no image";
  return el(
    "div",
    { class: "notice warn" },
    el("p", {}, `Not matched by id: ${names}. Their functions and lines may be from another build.`),
    options && el("button", { type: "button", onclick: () => setOptions(undefined) }, "Match by id only"),
  );
}

/** What is missing, and what helps: an upload, an image of the same name, or another try. */
export function missingView(report, options, controls) {
  const lacking = lackingImages(report);
  return [
    lacking.has("missing") && uploadView(lacking.get("missing"), controls),
    lacking.has("unnamed") && unnamedView(lacking.get("unnamed"), options, controls),
    lacking.has("unreachable") && unreachableView(lacking.get("unreachable"), controls),
  ];
}

function lackingView(id, title, button, about, list) {
  return el(
    "section",
    { class: "card missing", "aria-labelledby": id },
    el("div", { class: "card-head" }, el("h2", { id }, title), button),
    el("p", { class: "muted" }, about),
    list,
  );
}

const imageList = (images, render) => longList(images, render, el("ul", { class: "plain images" }), IMAGES);

const actionButton = (text, onclick) => el("button", { type: "button", class: "primary", onclick }, text);

function uploadView(images, { upload }) {
  return lackingView(
    "missing-title",
    `${count(images.length, "debug file")} missing`,
    actionButton(ADD_INDEXES, upload),
    ADD_INDEXES_HELP,
    imageList(images, missingItem),
  );
}

/** Images of the server that have the name and the architecture of `image`. */
const namesakes = (image) => (image.near ?? []).filter(({ nearness }) => nearness === "same_name");

function unnamedView(images, options, { setOptions }) {
  const isOne = images.some((image) => namesakes(image).length === 1);
  const assume = (name, id) => setOptions({ ...options, assume: [...(options?.assume ?? []), [name, id]] });
  const item = (image) => {
    const candidates = namesakes(image).map(({ name, arch, id }) =>
      el(
        "li",
        {},
        `${name}, ${arch}, `,
        code(spelledId(id)),
        // The name of an image ends at the first `=` of the parameter.
        !image.name.includes("=") &&
          el(
            "button",
            { type: "button", "aria-label": `Use this one: ${spelledId(id)}`, onclick: () => assume(image.name, id) },
            "Use this one",
          ),
      ),
    );
    return el(
      "li",
      { class: "image" },
      imageHead(image),
      image.path && image.path !== image.name && el("div", { class: "muted path" }, image.path),
      candidates.length > 0
        ? el("ul", { class: "near" }, candidates)
        : el("div", {}, `${OWNER} has no image of this name.`),
    );
  };
  return lackingView(
    "unnamed-title",
    `${count(images.length, "image")} without an id`,
    isOne && actionButton("Match by name", () => setOptions({ ...options, matchByName: true })),
    "The report does not say which build of these images it is from. An image of the same name can stand in. If it is " +
      "from another build, its functions and lines are wrong.",
    imageList(images, item),
  );
}

function unreachableView(images, { retry }) {
  const item = (image) => el("li", { class: "image" }, imageHead(image), el("div", {}, image.reason));
  return lackingView(
    "unreachable-title",
    `${count(images.length, "image")} not looked up`,
    actionButton("Try again", retry),
    "The server could not ask a store of indexes, so it is not known whether these images are there.",
    imageList(images, item),
  );
}

const imageHead = (image) =>
  el(
    "div",
    { class: "image-head" },
    el("strong", {}, image.name),
    image.arch && el("span", { class: "badge" }, image.arch),
    image.status !== "missing" && el("span", { class: "badge bad" }, image.status),
  );

function missingItem(image) {
  const near = (image.near ?? []).map(({ nearness, name, id, arch }) =>
    el("li", {}, `${OWNER} has ${NEARNESS[nearness] ?? nearness}: ${name}, ${arch}, `, code(spelledId(id))),
  );
  return el(
    "li",
    { class: "image" },
    imageHead(image),
    el("div", {}, copyButton(spelledId(image.id))),
    image.path && el("div", { class: "muted path" }, image.path),
    image.status !== "missing" && image.reason && el("div", {}, image.reason),
    near.length > 0 && el("ul", { class: "near" }, near),
  );
}

const code = (text) => el("code", {}, text);

/** All images, as a table in an element that opens. */
export function allImages(report) {
  const { images } = report;
  const found = images.filter((image) => image.status === "found").length;
  const summary = el(
    "summary",
    {},
    el("span", { class: "thread-name" }, "Images"),
    el("span", { class: "muted end" }, `${found} of ${images.length} with an index`),
  );
  const view = el("details", { class: "thread", id: "all-images" }, summary);
  view.addEventListener("toggle", () => {
    if (!view.open || view.children.length > 1) return;
    const ranked = images.map((image) => [rank(image), image]).sort(([one], [other]) => one - other);
    const body = el("tbody");
    const [, more] = longList(
      ranked.map(([, image]) => image),
      imageRow,
      body,
      IMAGES,
    );
    const head = ["Name", "Status", "Architecture", "UUID or build id", "Load address"];
    const table = el(
      "table",
      {},
      el(
        "thead",
        {},
        el(
          "tr",
          {},
          head.map((text) => el("th", { scope: "col" }, text)),
        ),
      ),
      body,
    );
    const scroller = el(
      "div",
      { class: "scroller", tabindex: "0", role: "region", "aria-label": "Table of images" },
      table,
    );
    view.append(scroller, more ?? "");
  });
  return view;
}

const rank = (image) => (image.is_app ? 0 : 10) + ORDER.indexOf(image.status);

function imageRow(image) {
  const link = image.status === "found" && image.id ? imageLink(image.id) : null;
  const name = link ? el("a", { href: link }, image.name) : image.name;
  return el(
    "tr",
    {},
    el("th", { scope: "row", title: image.path }, name),
    el("td", {}, statusBadge(image)),
    el("td", {}, image.arch ?? ""),
    el("td", {}, image.id ? copyButton(spelledId(image.id)) : ""),
    el("td", {}, code(image.load_address)),
  );
}

function statusBadge(image) {
  const kind = image.status === "found" ? " good" : image.is_app && isLacking(image) ? " warn" : "";
  const how = { name: ", by name", assumed: ", as chosen" }[image.matched_by] ?? "";
  const text = `${image.status}${how}${WITHOUT[image.grade] ?? ""}`;
  return el("span", { class: `badge${kind}`, title: image.reason }, text);
}
