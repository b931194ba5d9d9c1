// The images of the server, and what is at an address of one.

import { image, images, lookup } from "./api.js";
import { announce, byId, copyButton, count, el, errorNotice, spelledId, whenTyped } from "./dom.js";
import { WITHOUT } from "./images.js";

/** An `LC_UUID`, or a build id of as many digits or more. */
const WHOLE_ID = /^(h-)?([0-9a-f]-?){32,}$/i;

/** `work`, which gets a signal, and is aborted when it begins again. Its error is shown in `place`. */
function latest(work, place) {
  let current = null;
  return async (...rest) => {
    current?.abort();
    current = new AbortController();
    try {
      await work(current.signal, ...rest);
    } catch (error) {
      if (error.name !== "AbortError") place.replaceChildren(errorNotice(error));
    }
  };
}

/** Shows the page of images. `known` are images of the open reports that have an index. */
export function showImages(known) {
  const field = el("input", {
    id: "image-search",
    type: "search",
    spellcheck: "false",
    autocomplete: "off",
    placeholder: "MyApp, or 0C37C502-ABA0",
  });
  const found = el("p", { class: "muted", role: "status" });
  const list = el("ul", { class: "plain results" });
  const search = latest(async (signal) => {
    const { total, images: some } = await images(field.value.trim(), { signal });
    const shown = some.length < total ? `${some.length} of ` : "";
    found.textContent = total > 0 ? `${shown}${count(total, "image")}` : "No image of this name or id";
    list.replaceChildren(...some.map(imageItem));
  }, found);
  const submitted = (event) => {
    event.preventDefault();
    // A whole id needs no search.
    const id = field.value.trim();
    if (WHOLE_ID.test(id)) location.hash = `image=${encodeURIComponent(id)}`;
    else search();
  };
  field.addEventListener("input", whenTyped(search));
  byId("images-page").replaceChildren(
    el("h1", { tabindex: "-1" }, "Look into an image"),
    el("p", { class: "lead" }, "The functions, files and lines at an address of an image."),
    el(
      "form",
      { onsubmit: submitted },
      el("label", { for: "image-search" }, "Name, or first digits of the UUID or build id"),
      el("div", { class: "row" }, field, el("button", { type: "submit", class: "primary" }, "Open")),
    ),
    ...(known.length > 0
      ? [
          el(
            "section",
            { class: "card", "aria-labelledby": "known-title" },
            el("h2", { id: "known-title" }, "In the open reports"),
            el("ul", { class: "plain results" }, known.map(imageItem)),
          ),
        ]
      : []),
    el(
      "section",
      { class: "card", "aria-labelledby": "listed-title" },
      el("h2", { id: "listed-title" }, "On the server"),
      found,
      list,
    ),
  );
  search();
}

const imageItem = ({ id, name, arch }) =>
  el(
    "li",
    {},
    el("a", { href: `#image=${encodeURIComponent(id)}` }, name || spelledId(id)),
    el("span", { class: "badge" }, arch ?? ""),
    el("code", {}, spelledId(id)),
  );

/** Shows one image. Returns a function that shows what is at an address of it. */
export function showImage(id) {
  const title = el("h1", { tabindex: "-1" }, spelledId(id));
  const about = el("p", { class: "lead" });
  const { section, show } = addressSection(id);
  byId("images-page").replaceChildren(title, about, section);
  describe(id, title, about);
  return show;
}

async function describe(id, title, about) {
  try {
    const known = await image(id);
    title.textContent = known.name;
    const arch = `${known.arch}${WITHOUT[known.grade] ?? ""}`;
    about.replaceChildren(el("span", { class: "badge" }, arch), " ", copyButton(spelledId(id)));
    announce("The image is shown");
  } catch (error) {
    about.replaceWith(errorNotice(error));
  }
}

function addressSection(id) {
  const field = el("input", {
    id: "address",
    type: "text",
    required: true,
    spellcheck: "false",
    autocomplete: "off",
    placeholder: "0x5ed8",
    pattern: "\\s*(0x)?[0-9a-fA-F]+\\s*",
    title: "An offset in the image, in hexadecimal",
  });
  const result = el("div", { "aria-live": "polite" });
  const search = async () => {
    const wanted = `0x${field.value.trim().replace(/^0x/i, "").toLowerCase()}`;
    history.replaceState(null, "", `#image=${encodeURIComponent(id)}&address=${wanted}`);
    try {
      result.replaceChildren(answerView(await lookup(id, wanted)));
    } catch (error) {
      result.replaceChildren(errorNotice(error));
    }
  };
  const submitted = (event) => {
    event.preventDefault();
    search();
  };
  const section = el(
    "section",
    { class: "card", "aria-labelledby": "address-title" },
    el("h2", { id: "address-title", tabindex: "-1" }, "What is at an address"),
    el(
      "form",
      { onsubmit: submitted },
      el("label", { for: "address" }, "Offset in the image"),
      el("div", { class: "row" }, field, el("button", { type: "submit" }, "Look up")),
    ),
    result,
  );
  const show = (address) => {
    field.value = address;
    search();
    byId("address-title").focus();
  };
  return { section, show };
}

function answerView(result) {
  const answer = result.answers[0];
  if (!answer) return el("p", {}, result.reason ?? result.status);
  if (answer.functions.length === 0) return el("p", {}, "There is no function at this address.");
  const views = answer.functions.map((one) =>
    el(
      "li",
      { class: one.inlined ? "function inlined" : "function" },
      el(
        "div",
        { class: "name" },
        el("code", {}, one.function ?? "?"),
        one.inlined && el("span", { class: "badge" }, "inlined"),
        one.function_offset !== null &&
          !one.inlined &&
          el("span", { class: "muted" }, `+ ${one.function_offset} bytes`),
      ),
      one.file &&
        el("div", { class: "place" }, copyButton(`${one.file}${one.line === null ? "" : `:${one.line}`}`)),
    ),
  );
  return el("ol", { class: "answers" }, views);
}
