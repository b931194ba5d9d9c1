// The open reports: asked for, shown, kept for a reload, and closed.

import { symbolicated } from "./api.js";
import { announce, byId, count, el } from "./dom.js";
import { isFetching } from "./images.js";
import { keep } from "./kept.js";
import { reportView, totals } from "./report.js";

/**
 * The open reports: `{name, blob, text, options, data, error, isBusy, filter}`. The server does not keep them; the
 * storage of this tab does, until it is closed.
 */
const reports = [];
let selected = null;

/** How often a report is asked for while the server fetches debug files. */
const FETCH_TRIES = 60;

/**
 * Asks the server for the answers of a report. An earlier answer stays until there is a new one. The page does not say so
 * if it `isPolling`, because it then says what the server does.
 */
async function answer(report, isPolling = false) {
  const turn = {};
  Object.assign(report, { turn, isBusy: !isPolling, native: undefined });
  if (report === selected && !isPolling) showBusy(report);
  const done = await symbolicated(report.blob, report.options).catch((error) => ({ error }));
  if (report.turn !== turn) return;
  Object.assign(report, { isBusy: false, error: done.error });
  if (done.error) return;
  report.data = done.data;
  // The text has stayed in the field until now.
  if (byId("pasted").value === report.text) byId("pasted").value = "";
  report.tries = (report.tries ?? 0) + 1;
  if (isFetching(done.data) && report.tries < FETCH_TRIES) {
    setTimeout(() => reports.includes(report) && answerAgain(report, true), 1000 * done.retryAfter);
  }
}

/** Opens the reports that were open before the page was loaded again. */
export async function restore(entries) {
  reports.push(...entries);
  if (!selected && entries.length > 0) select(entries[0]);
  else showTabs();
  for (const report of entries) await answerAgain(report);
}

/** Opens reports, and selects the first of them. */
export async function openReports(entries) {
  if (entries.length === 0) return;
  announce(`Symbolicating ${count(entries.length, "report")}`);
  const opened = entries.map((entry) => ({ ...entry, isBusy: true }));
  reports.push(...opened);
  select(opened[0]);
  location.hash = "";
  const kept = keep(reports);
  for (const report of opened) {
    await Promise.all([answer(report), kept]);
    if (report !== selected) {
      showTabs();
      continue;
    }
    show();
    announce(report.error ? report.error.message : totals(report.data));
    byId("report-title")?.focus();
  }
}

/** Opens a report that was pasted into the field. An earlier try to open it is closed. */
export function openPasted(text) {
  for (const failed of reports.filter((report) => report.text === text && !report.data)) remove(failed);
  const blob = new Blob([text], { type: "text/plain" });
  return openReports([{ name: "pasted report.txt", blob, text }]);
}

/** Asks again: an error may be over, or the options were changed. The keyboard stays in the report. */
async function answerAgain(report, isPolling) {
  await answer(report, isPolling);
  if (!reports.includes(report)) return;
  if (report !== selected) {
    showTabs();
    return;
  }
  const hadFocus = byId("report").contains(document.activeElement) || document.activeElement === document.body;
  show();
  if (hadFocus) byId("report-title")?.focus({ preventScroll: true });
  announce(report.error ? report.error.message : `Symbolicated again: ${totals(report.data)}`);
}

/** After an upload, the open reports may have answers that were missing. */
export const answerAllAgain = () => Promise.all(reports.map((report) => answerAgain(report)));

function remove(report) {
  report.turn = null;
  reports.splice(reports.indexOf(report), 1);
}

function close(report) {
  remove(report);
  keep(reports);
  select(reports.at(-1) ?? null);
  (byId("report-title") ?? byId("pasted")).focus();
}

function select(report) {
  selected = report;
  show();
}

/** Says that `report` is worked on. An earlier answer stays as it is, with what the user has opened in it. */
function showBusy(report) {
  const sign = byId("report").querySelector(".busy");
  if (!report.data || report.error || !sign) show();
  else sign.hidden = false;
  byId("report").setAttribute("aria-busy", "true");
}

function show() {
  const view = byId("report");
  document.body.classList.toggle("has-report", selected !== null);
  showTabs();
  view.setAttribute("aria-busy", String(selected?.isBusy ?? false));
  const report = selected;
  const controls = {
    upload: () => byId("debug-files").click(),
    close: () => close(report),
    retry: () => answerAgain(report),
    setOptions(options) {
      report.options = options;
      keep(reports);
      answerAgain(report);
    },
  };
  view.replaceChildren(...(report ? [reportView(report, controls)] : []));
}

/** With several reports, a button for each. */
function showTabs() {
  const tabs = byId("open-reports");
  tabs.hidden = reports.length < 2;
  const tab = (report) =>
    el(
      "li",
      {},
      el(
        "button",
        {
          type: "button",
          "aria-current": report === selected ? "true" : false,
          onclick: () => select(report),
        },
        report.name,
        el("span", { class: "muted" }, stateOf(report)),
      ),
    );
  tabs.replaceChildren(el("ul", { class: "tabs" }, reports.map(tab)));
}

function stateOf({ isBusy, error, data }) {
  if (isBusy) return "working…";
  if (error) return "not read";
  return data?.header.exception?.type ?? data?.header.process ?? "";
}

/** The images of the open reports that have an index, each once. */
export function knownImages() {
  const all = reports.flatMap((report) => report.data?.images ?? []);
  const found = all.filter((image) => image.status === "found" && image.id);
  return [...new Map(found.map((image) => [image.id, image])).values()];
}
