// How the user gives files and text to the page: the form, dropping, and pasting.

import { announce, byId } from "./dom.js";
import { chosen, dropped } from "./files.js";

/**
 * Calls `take` with files, and `openPasted` with text. `choosers` has the id of each button that chooses files, and the id
 * of its input.
 */
export function listen(take, openPasted, choosers) {
  listenToForm(openPasted);
  document.addEventListener("paste", (event) => {
    const { files } = event.clipboardData;
    const isInField = event.target.closest?.("input, textarea");
    const text = event.clipboardData.getData("text/plain");
    if (files.length > 0) take([...files].map((file) => ({ file, path: file.name })));
    else if (!isInField && text.trim()) openPasted(text);
  });
  for (const [button, input] of Object.entries(choosers)) {
    byId(button).addEventListener("click", () => byId(input).click());
    byId(input).addEventListener("change", () => take(chosen(byId(input))));
  }
  listenToDrops(take);
}

function listenToForm(openPasted) {
  const pasted = byId("pasted");
  const form = byId("paste-form");
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (pasted.value.trim() === "") {
      pasted.focus();
      announce("Paste a report first");
      return;
    }
    // The field keeps the text until there is an answer.
    openPasted(pasted.value);
  });
  pasted.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
  });
}

function listenToDrops(take) {
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
