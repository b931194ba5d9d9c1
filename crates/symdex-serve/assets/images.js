// The images of a report: what is there, and what to upload.

import { copyButton, count, el, longList, spelledId } from "./dom.js";

const IMAGES = 100;

const NEARNESS = {
  other_arch: "this image, of another architecture",
  other_build: "another build of it",
  same_name: "an image of this name",
  same_name_other_arch: "an image of this name, of another architecture",
  other_build_and_arch: "another build, of another architecture",
};

const ORDER = [
  "missing",
  "fetching_failed",
  "fetching",
  "malformed",
  "unsupported",
  "other",
  "found",
  "unused",
];

/** Images that need a debug file: those of the app that frames lie in. */
export function missingImages(report) {
  const used = new Set(report.threads.flatMap((thread) => thread.frames.map((frame) => frame.image)));
  return report.images.filter((image, number) => image.is_app && used.has(number) && isLacking(image));
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

/** What to upload, or nothing. `upload` lets the user choose files. */
export function missingView(report, upload) {
  const missing = missingImages(report);
  if (missing.length === 0) return null;
  const title = `${count(missing.length, "debug file")} missing`;
  const button = el("button", { type: "button", class: "primary", onclick: upload }, "Upload debug files…");
  return el(
    "section",
    { class: "card missing", "aria-labelledby": "missing-title" },
    el("div", { class: "card-head" }, el("h2", { id: "missing-title" }, title), button),
    el(
      "p",
      { class: "muted" },
      "Upload the dSYM (zipped or as a folder), the DWARF file in it, or the ELF file with debug ",
      "information. It must be of the same build: its UUID decides, not its name.",
    ),
    longList(missing, missingItem, el("ul", { class: "plain images" }), IMAGES),
  );
}

function missingItem(image) {
  const near = (image.near ?? []).map(({ nearness, name, id, arch }) =>
    el("li", {}, `The server has ${NEARNESS[nearness] ?? nearness}: ${name}, ${arch}, `, code(spelledId(id))),
  );
  return el(
    "li",
    { class: "image" },
    el(
      "div",
      { class: "image-head" },
      el("strong", {}, image.name),
      image.arch && el("span", { class: "badge" }, image.arch),
      image.status !== "missing" && el("span", { class: "badge bad" }, image.status),
    ),
    el(
      "div",
      {},
      image.id
        ? copyButton(spelledId(image.id))
        : el("span", { class: "muted" }, "The report states no UUID"),
    ),
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
  const isFound = image.status === "found" && image.id;
  const name = isFound ? el("a", { href: `#image=${encodeURIComponent(image.id)}` }, image.name) : image.name;
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
  const text =
    image.matched_by && image.matched_by !== "id" ? `${image.status}, by ${image.matched_by}` : image.status;
  return el("span", { class: `badge${kind}`, title: image.reason }, text);
}
