// The page: what the user gives, the open reports, and which view is shown.

import { symbolicated } from "./api.js";
import { showImage, showImages } from "./browser.js";
import { announce, byId, count, el } from "./dom.js";
import { chosen, dropped, sorted } from "./files.js";
import { isFetching } from "./images.js";
import { reportView, totals } from "./report.js";
import { askForToken } from "./token.js";
import { uploadAll } from "./uploads.js";

/** The open reports: `{name, blob, data, error}`. They are nowhere but in this tab. */
const reports = [];
let selected = null;

/** How often a report is asked for while the server fetches debug files. */
const FETCH_TRIES = 60;

/** Asks the server for the answers of a report. */
async function answer(report) {
  report.native = undefined;
  try {
    const { data, retryAfter } = await symbolicated(report.blob);
    report.data = data;
    report.error = undefined;
    report.tries = (report.tries ?? 0) + 1;
    if (isFetching(data) && report.tries < FETCH_TRIES) setTimeout(refresh, 1000 * retryAfter, report);
  } catch (error) {
    report.error = error;
  }
}

/** Asks again, if the report is still open. */
async function refresh(report) {
  if (!reports.includes(report)) return;
  await answer(report);
  if (report === selected) showAgain();
}

/** Opens reports, and selects the first of them. */
async function open(entries) {
  if (entries.length === 0) return;
  announce(`Symbolicating ${count(entries.length, "report")}`);
  for (const entry of entries) {
    const report = { ...entry };
    await answer(report);
    reports.push(report);
    if (entry === entries[0]) select(report);
    else showTabs();
  }
  location.hash = "";
  const { error, data } = selected;
  announce(error ? error.message : totals(data));
  byId("report-title")?.focus();
}

/** After an upload, the open reports may have answers that were missing. */
async function answerAgain() {
  await Promise.all(reports.map(answer));
  showAgain();
}

/** Shows new answers of the selected report. The keyboard stays in the report. */
function showAgain() {
  const hasFocus = byId("report").contains(document.activeElement);
  show();
  if (hasFocus) byId("report-title")?.focus({ preventScroll: true });
  if (selected?.data) announce(`Symbolicated again: ${totals(selected.data)}`);
}

function close(report) {
  reports.splice(reports.indexOf(report), 1);
  select(reports.at(-1) ?? null);
  (byId("report-title") ?? byId("pasted")).focus();
}

function select(report) {
  selected = report;
  show();
}

function show() {
  document.body.classList.toggle("has-report", selected !== null);
  showTabs();
  const controls = { upload: () => byId("debug-files").click(), close: () => close(selected) };
  byId("report").replaceChildren(...(selected ? [reportView(selected, controls)] : []));
}

/** With several reports, a button for each. */
function showTabs() {
  const tabs = byId("open-reports");
  tabs.hidden = reports.length < 2;
  tabs.replaceChildren(
    el(
      "ul",
      { class: "tabs" },
      reports.map((report) => {
        const header = report.data?.header;
        const detail = report.error ? "not read" : (header?.exception?.type ?? header?.process ?? "");
        return el(
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
            el("span", { class: "muted" }, detail),
          ),
        );
      }),
    ),
  );
}

/** Takes files, whatever they are. */
async function take(files) {
  const { reports: given, debugFiles } = await sorted(files);
  if (debugFiles.length > 0) uploadAll(debugFiles, answerAgain);
  await open(given);
  if (given.length + debugFiles.length === 0) announce("No report or debug file found");
}

const pastedReport = (text) => ({
  name: "pasted report.txt",
  blob: new Blob([text], { type: "text/plain" }),
});

function listen() {
  const pasted = byId("pasted");
  const form = byId("paste-form");
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (pasted.value.trim() === "") {
      pasted.focus();
      announce("Paste a report first");
      return;
    }
    open([pastedReport(pasted.value)]);
    pasted.value = "";
  });
  pasted.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
  });
  document.addEventListener("paste", (event) => {
    const { files } = event.clipboardData;
    const isInField = event.target.closest?.("input, textarea");
    const text = event.clipboardData.getData("text/plain");
    if (files.length > 0) take([...files].map((file) => ({ file, path: file.name })));
    else if (!isInField && text.trim()) open([pastedReport(text)]);
  });
  for (const [button, input] of [
    ["choose-reports", "report-files"],
    ["choose-debug-files", "debug-files"],
  ]) {
    byId(button).addEventListener("click", () => byId(input).click());
    byId(input).addEventListener("change", () => take(chosen(byId(input))));
  }
  byId("token-button").addEventListener("click", () => askForToken());
  listenToDrops();
  window.addEventListener("hashchange", route);
}

function listenToDrops() {
  const veil = byId("drop-veil");
  const hasFiles = (event) => event.dataTransfer?.types.includes("Files");
  const over = (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    veil.hidden = false;
  };
  document.addEventListener("dragenter", over);
  document.addEventListener("dragover", over);
  document.addEventListener("dragleave", (event) => {
    if (event.relatedTarget === null) veil.hidden = true;
  });
  document.addEventListener("drop", async (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    veil.hidden = true;
    take(await dropped(event.dataTransfer));
  });
}

/** The images of the open reports that have an index, each once. */
function knownImages() {
  const all = reports.flatMap((report) => report.data?.images ?? []);
  const found = all.filter((image) => image.status === "found" && image.id);
  return [...new Map(found.map((image) => [image.id, image])).values()];
}

/** The image that is shown, and what shows an address of it. */
let shownImage = null;

/** Shows what the address says: `#image=ID&address=0x..`, `#images`, or reports. It never has anything of a report. */
function route() {
  const parameters = new URLSearchParams(location.hash.slice(1));
  const image = parameters.get("image");
  const isImages = image !== null || parameters.has("images");
  byId("reports-page").hidden = isImages;
  byId("images-page").hidden = !isImages;
  for (const link of document.querySelectorAll("[data-page]")) {
    const isCurrent = link.dataset.page === (isImages ? "images" : "reports");
    if (isCurrent) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = isImages ? "Images – symdex" : "symdex";
  const address = parameters.get("address");
  if (image === null) {
    shownImage = null;
    if (isImages) showImages(knownImages());
  } else if (image !== shownImage?.id) {
    shownImage = { id: image, showAddress: showImage(image) };
  }
  if (address) shownImage?.showAddress(address);
  else if (isImages) byId("images-page").querySelector("h1").focus();
}

listen();
route();
