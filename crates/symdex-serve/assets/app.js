// The page: what the user gives, the open reports, and which view is shown.

import { showImage, showImages } from "./browser.js";
import { announce, byId } from "./dom.js";
import { sorted } from "./files.js";
import { listen } from "./given.js";
import { fromLink, keptReports } from "./kept.js";
import { answerAllAgain, knownImages, openPasted, openReports, restore } from "./reports.js";
import { askForToken } from "./token.js";
import { uploadAll } from "./uploads.js";

/** Takes files, whatever they are. */
async function take(files) {
  const { reports: given, debugFiles } = await sorted(files);
  if (debugFiles.length > 0) uploadAll(debugFiles, answerAllAgain);
  await openReports(given);
  if (given.length + debugFiles.length === 0) announce("No report or debug file found");
}

/** The image that is shown, and what shows an address of it. */
let shownImage = null;

/** Opens the report of a link. The address is replaced, so that the report is not in the history of the browser. */
async function openLink(parameters) {
  history.replaceState(null, "", location.pathname);
  route();
  try {
    await openReports([await fromLink(parameters)]);
  } catch {
    byId("link-error").hidden = false;
  }
}

/** Shows what the address says: `#image=ID&address=0x..`, `#images`, reports, or the report of a link. */
function route() {
  const parameters = new URLSearchParams(location.hash.slice(1));
  if (parameters.has("report")) {
    openLink(parameters);
    return;
  }
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

listen(take, openPasted, { "choose-reports": "report-files", "choose-debug-files": "debug-files" });
byId("token-button").addEventListener("click", () => askForToken());
window.addEventListener("hashchange", route);
// They are read before the report of a link replaces them.
const kept = keptReports();
route();
restore(await kept);
