// The page: what the user gives, and the open reports.

import { announce, byId } from "./dom.js";
import { sorted } from "./files.js";
import { listen } from "./given.js";
import { buildIndexes, isIndex, openIndexes } from "./indexes.js";
import { fromLink, keptReports } from "./kept.js";
import { answerAllAgain, openPasted, openReports, restore } from "./reports.js";

/** Takes files, whatever they are. */
async function take(files) {
  const are = await Promise.all(files.map(({ file }) => isIndex(file)));
  const indexes = files.filter((_, at) => are[at]).map(({ file }) => file);
  const { reports, debugFiles } = await sorted(files.filter((_, at) => !are[at]));
  const opened = (await openIndexes(indexes)) + (await buildIndexes(debugFiles));
  if (opened > 0) await answerAllAgain();
  await openReports(reports);
  if (files.length === 0) announce("No report, dSYM or index found");
}

listen(take, openPasted, { "choose-reports": "report-files", "choose-debug-files": "debug-files" });
// They are read before the report of a link replaces them.
const kept = keptReports();
const parameters = new URLSearchParams(location.hash.slice(1));
if (parameters.has("report")) {
  history.replaceState(null, "", location.pathname);
  try {
    await openReports([await fromLink(parameters)]);
  } catch {
    byId("link-error").hidden = false;
  }
}
await restore(await kept);
