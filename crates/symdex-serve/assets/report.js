// One report: the exception, what is missing, threads and images.

import { symbolicatedNative } from "./api.js";
import { compareView } from "./compare.js";
import { announce, copyButton, count, el, errorNotice } from "./dom.js";
import { threadList } from "./frames.js";
import { allImages, fetchingView, missingView } from "./images.js";

/** The view of a report: `{name, blob, data}`, and `error` if the server has refused it. */
export function reportView(report, { upload, close }) {
  const closeButton = el("button", { type: "button", class: "quiet", onclick: close }, "Close");
  const head = (children) => el("header", { class: "report-head" }, children, closeButton);
  if (report.error) {
    return el(
      "article",
      { "aria-labelledby": "report-title" },
      head(el("h2", { id: "report-title", tabindex: "-1" }, report.name)),
      errorNotice(report.error),
    );
  }
  const { data } = report;
  const compare = el("div", { id: "compare" });
  return el(
    "article",
    { "aria-labelledby": "report-title" },
    head(titleOf(data)),
    facts(data),
    actions(report, compare),
    compare,
    fetchingView(data),
    missingView(data, upload),
    el(
      "section",
      { "aria-labelledby": "threads-title" },
      el(
        "div",
        { class: "card-head" },
        el("h2", { id: "threads-title" }, "Threads"),
        el("p", { class: "muted" }, totals(data)),
      ),
      threadList(data),
      allImages(data),
    ),
  );
}

function titleOf({ header, format }) {
  const exception = header.exception;
  const type = exception?.type ?? exception?.signal ?? header.process ?? format;
  const signal = exception?.signal && exception.signal !== type ? ` (${exception.signal})` : "";
  const lines = [exception?.subtype, exception?.reason, exception?.note, header.termination];
  return el(
    "div",
    {},
    el("h2", { id: "report-title", tabindex: "-1" }, `${type}${signal}`),
    lines.filter(Boolean).map((line) => el("p", { class: "reason" }, line)),
    header.application_information && el("p", { class: "reason" }, header.application_information),
  );
}

const FACTS = [
  [
    "Process",
    (header) => [header.process, header.pid === null ? "" : `[${header.pid}]`].filter(Boolean).join(" "),
  ],
  ["Identifier", (header) => header.identifier],
  ["Version", (header) => header.version],
  ["System", (header) => header.os],
  ["Device", (header) => [header.hardware_model, header.code_type].filter(Boolean).join(", ")],
  ["Time", (header) => header.time],
  ["Exception codes", (header) => header.exception?.codes],
  ["Memory", (header) => header.vm_region],
  ["Ended by", (header) => header.terminating_process],
];

function facts({ header, format }) {
  const stated = FACTS.map(([term, read]) => [term, read(header)]).filter(([, value]) => value);
  stated.push(["Format", format]);
  const isLong = (value) => value.includes("\n") || value.length > 80;
  const ordered = [
    ...stated.filter(([, value]) => !isLong(value)),
    ...stated.filter(([, value]) => isLong(value)),
  ];
  return el(
    "dl",
    { class: "facts" },
    ordered.map(([term, value]) =>
      el("div", { class: isLong(value) && "wide" }, el("dt", {}, term), el("dd", {}, value)),
    ),
  );
}

/** How much of the report is answered. */
export function totals({ threads, images }) {
  const frames = threads.flatMap((thread) => thread.frames);
  const symbolicated = frames.filter((frame) => frame.status === "symbolicated").length;
  const isOpen = ({ image, functions }) => functions.length === 0 && image !== null && images[image].is_app;
  const open = frames.filter(isOpen).length;
  const rest = open > 0 ? `, ${count(open, "frame")} of the app without a function` : "";
  return `${symbolicated.toLocaleString("en")} of ${count(frames.length, "frame")} symbolicated${rest}`;
}

function actions(report, compare) {
  const show = async () => {
    const isShown = compareButton.getAttribute("aria-expanded") === "true";
    compareButton.setAttribute("aria-expanded", String(!isShown));
    compare.replaceChildren();
    if (isShown) return;
    compare.append(await native(report).then((blob) => compareView(report.blob, blob), errorNotice));
  };
  const compareButton = el(
    "button",
    { type: "button", "aria-expanded": "false", "aria-controls": "compare", onclick: show },
    "Side by side",
  );
  const download = el(
    "button",
    { type: "button", onclick: () => save(report).catch(showProblem) },
    "Download",
  );
  const showProblem = (error) => compare.replaceChildren(errorNotice(error));
  const incident = report.data.header.incident;
  return el(
    "div",
    { class: "actions" },
    compareButton,
    download,
    incident &&
      el("span", { class: "end" }, el("span", { class: "muted" }, "Incident "), copyButton(incident)),
  );
}

/** The report in its own format, with answers. It is fetched once. */
function native(report) {
  report.native ??= symbolicatedNative(report.blob).catch((error) => {
    report.native = undefined;
    throw error;
  });
  return report.native;
}

async function save(report) {
  const blob = await native(report);
  const [, stem, extension] = /^(.*?)(\.[^.]*)?$/s.exec(report.name);
  const address = URL.createObjectURL(blob);
  el("a", { href: address, download: `${stem}.symbolicated${extension ?? ".txt"}` }).click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
  announce("The report is downloaded");
}
