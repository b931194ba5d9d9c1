// The access token. Only the storage of this tab has it.

import { byId } from "./dom.js";

const KEY = "symdex-token";

/** The headers of a request. */
export function authorization() {
  const token = sessionStorage.getItem(KEY);
  return token ? { Authorization: `Bearer ${token}` } : {};
}

let asking = null;

/** Asks the user for a token. Becomes true if there is a new one. Several requests ask once. */
export function askForToken(reason) {
  asking ??= ask(reason).finally(() => {
    asking = null;
  });
  return asking;
}

function ask(reason) {
  const dialog = byId("token-dialog");
  const field = byId("token");
  if (reason) byId("token-reason").textContent = reason;
  field.value = sessionStorage.getItem(KEY) ?? "";
  dialog.returnValue = "cancel";
  dialog.showModal();
  field.select();
  return new Promise((resolve) => {
    const closed = () => {
      const isUsed = dialog.returnValue === "use";
      const token = field.value.trim();
      field.value = "";
      if (isUsed && token) sessionStorage.setItem(KEY, token);
      if (isUsed && !token) sessionStorage.removeItem(KEY);
      resolve(isUsed && token !== "");
    };
    dialog.addEventListener("close", closed, { once: true });
  });
}
