// One report: the exception, what is missing, threads and images.

import { symbolicatedNative } from "./api.js";
import { compareView } from "./compare.js";
import { busySign, copyButton, count, download, el, errorNotice, toClipboard } from "./dom.js";
import { flameView } from "./flame.js";
import { inOrder, isOfCrash, nameOf, sourceButton } from "./frames.js";
import { allImages, fetchingView, matchedView, missingView } from "./images.js";
import { linkTo } from "./kept.js";
import { threadsView } from "./threads.js";

/** The view of an open report. See `reports` in reports.js. */
export function reportView(report, controls) {
  const { data, error, isBusy, name } = report;
  const close = el("button", { type: "button", class: "quiet", onclick: controls.close }, "Close");
  const title = data ? titleOf(data) : el("h2", { id: "report-title", tabindex: "-1" }, name);
  const compare = el("div", { id: "compare" });
  const answered = () => [
    facts(data),
    actions(report, compare),
    compare,
    fetchingView(data),
    matchedView(data, report.options, controls),
    missingView(data, report.options, controls),
    flameView(data, () => native(report)),
    el(
      "section",
      { "aria-labelledby": "threads-title" },
      el(
        "div",
        { class: "card-head" },
        el("h2", { id: "threads-title" }, "Threads"),
        el("p", { class: "muted" }, totals(data)),
      ),
      threadsView(report),
      allImages(data),
    ),
  ];
  return el(
    "article",
    { "aria-labelledby": "report-title" },
    el("header", { class: "report-head" }, title, close),
    busySign(data ? "Symbolicating again…" : "Symbolicating…", !isBusy),
    error && !isBusy && errorNotice(error, controls.retry),
    data ? answered() : [],
  );
}

function titleOf(data) {
  const { header, format } = data;
  const exception = header.exception;
  const type = exception?.type ?? exception?.signal ?? header.process ?? format;
  const signal = exception?.signal && exception.signal !== type ? ` (${exception.signal})` : "";
  const lines = [exception?.subtype, exception?.reason, exception?.note, header.termination];
  return el(
    "div",
    {},
    el("h2", { id: "report-title", tabindex: "-1" }, `${type}${signal}`),
    headline(data),
    lines.filter(Boolean).map((line) => el("p", { class: "reason" }, line)),
    header.application_information && el("p", { class: "reason" }, header.application_information),
  );
}

/** Where the program crashed: in the innermost frame of the app, or else in the innermost frame with a name. */
function headline(data) {
  const [thread] = inOrder(data);
  if (!thread || !isOfCrash(thread)) return null;
  const isOfApp = ({ image }) => image !== null && data.images[image].is_app;
  const inApp = thread.frames.findIndex(isOfApp);
  const named = thread.frames.findIndex((frame) => frame.functions.length > 0);
  const at = Math.max(inApp >= 0 ? inApp : named, 0);
  const frame = thread.frames[at];
  if (!frame) return null;
  const called = at > 0 && nameOf(data, thread.frames[at - 1], thread.frames[at - 1].functions.at(-1));
  const [innermost] = frame.functions;
  return el(
    "p",
    { class: "headline" },
    "Crashed in ",
    el("code", {}, nameOf(data, frame, innermost)),
    innermost?.file && [" at ", sourceButton(innermost)],
    called && [" while calling ", el("code", {}, called)],
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
export function totals({ totals: { frames, symbolicated, unresolved_app: open } }) {
  const rest = open > 0 ? `, ${count(open, "frame")} of the app without an answer` : "";
  return `${symbolicated.toLocaleString("en")} of ${count(frames, "frame")} symbolicated${rest}`;
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
  const downloadButton = el(
    "button",
    { type: "button", onclick: () => save(report).catch(showProblem) },
    "Download",
  );
  const showProblem = (error) => compare.replaceChildren(errorNotice(error));
  const note = el("div", { role: "status" });
  const copyLink = async () => {
    const link = await linkTo(report);
    if (link) await toClipboard(link);
    const text = link
      ? "Copied a link that contains the report. Whoever has it can read the report."
      : "The report is too large for a link. Send its file instead.";
    note.replaceChildren(el("p", { class: "notice" }, text));
  };
  const link = el("button", { type: "button", onclick: () => copyLink().catch(showProblem) }, "Copy link");
  const incident = report.data.header.incident;
  const buttons = el(
    "div",
    { class: "actions" },
    compareButton,
    downloadButton,
    link,
    report.isKept === false && el("span", { class: "muted" }, "Too large to survive a reload"),
    incident &&
      el("span", { class: "end" }, el("span", { class: "muted" }, "Incident "), copyButton(incident)),
  );
  return [buttons, note];
}

/** The report in its own format, with answers. It is fetched once. */
function native(report) {
  report.native ??= symbolicatedNative(report.blob, report.options).catch((error) => {
    report.native = undefined;
    throw error;
  });
  return report.native;
}

async function save(report) {
  const blob = await native(report);
  const [, stem, extension] = /^(.*?)(\.[^.]*)?$/s.exec(report.name);
  download(blob, `${stem}.symbolicated${extension ?? ".txt"}`);
}
