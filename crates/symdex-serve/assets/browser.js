// An image: its functions, what is at an address, and its code by file.

import { files, functions, image, images, lookup } from "./api.js";
import { codeMap } from "./code-map.js";
import {
  announce,
  byId,
  copyButton,
  count,
  el,
  errorNotice,
  fileName,
  size,
  spelledId,
  whenTyped,
} from "./dom.js";
import { WITHOUT } from "./images.js";

const PAGE = 100;

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
    el("p", { class: "lead" }, "The functions of an image, their sizes, and its code by source file."),
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
  byId("images-page").replaceChildren(title, about, section, functionSection(id), fileSection(id));
  describe(id, title, about);
  return show;
}

async function describe(id, title, about) {
  const known = await image(id).catch(() => null);
  if (!known) return;
  title.textContent = known.name;
  const arch = `${known.arch}${WITHOUT[known.grade] ?? ""}`;
  about.replaceChildren(el("span", { class: "badge" }, arch), " ", copyButton(spelledId(id)));
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

function functionSection(id) {
  const search = el("input", {
    id: "function-search",
    type: "search",
    spellcheck: "false",
    autocomplete: "off",
  });
  const sort = el(
    "select",
    { id: "function-sort" },
    el("option", { value: "address" }, "By address"),
    el("option", { value: "size" }, "Largest first"),
  );
  const summary = el("p", { class: "muted", role: "status" });
  const body = el("tbody");
  const more = el("button", { type: "button", class: "more", hidden: true }, "Show more");
  const load = latest(async (signal, offset) => {
    if (offset === 0) body.replaceChildren();
    more.hidden = true;
    const query = { search: search.value.trim(), sort: sort.value, offset };
    const next = await fill(id, query, body, summary, signal);
    more.hidden = next === null;
    more.onclick = () => load(next);
  }, summary);
  search.addEventListener(
    "input",
    whenTyped(() => load(0)),
  );
  sort.addEventListener("change", () => load(0));
  load(0);
  const head = ["Start", "Bytes", "Ranges", "Function", "Source"];
  return el(
    "section",
    { class: "card", "aria-labelledby": "functions-title" },
    el("h2", { id: "functions-title" }, "Functions"),
    el(
      "div",
      { class: "row fields" },
      el("div", {}, el("label", { for: "function-search" }, "Name"), search),
      el("div", {}, el("label", { for: "function-sort" }, "Order"), sort),
    ),
    summary,
    el(
      "div",
      { class: "scroller", tabindex: "0", role: "region", "aria-label": "Table of functions" },
      el(
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
      ),
    ),
    more,
  );
}

/** Adds a page of functions. A search looks at a part of the functions in each request, so that it may need several. */
async function fill(id, query, body, summary, signal) {
  let { offset } = query;
  const wanted = body.children.length + PAGE;
  for (;;) {
    const left = wanted - body.children.length;
    const list = await functions(id, { ...query, offset, limit: left }, { signal });
    body.append(...list.functions.map((one) => functionRow(id, one)));
    const shown = body.children.length;
    const isEnd = list.next_offset === null;
    const found = query.search ? ` found${isEnd ? "" : " so far"}` : "";
    summary.textContent = `${shown.toLocaleString("en")} of ${count(list.total, "function")}${found}`;
    if (isEnd || shown >= wanted) return list.next_offset;
    offset = list.next_offset;
  }
}

function functionRow(id, one) {
  const source = one.file ? `${fileName(one.file)}${one.line === null ? "" : `:${one.line}`}` : "";
  const full = `${one.file}${one.line === null ? "" : `:${one.line}`}`;
  return el(
    "tr",
    {},
    el(
      "td",
      {},
      el("a", { href: `#image=${encodeURIComponent(id)}&address=${one.start}` }, el("code", {}, one.start)),
    ),
    el("td", { class: "number" }, one.size.toLocaleString("en")),
    el("td", { class: "number" }, one.ranges.toLocaleString("en")),
    el(
      "th",
      { scope: "row" },
      el("code", { title: one.name }, one.function ?? "?"),
      one.table === "symbol_table" && el("span", { class: "badge" }, "symbol"),
    ),
    el("td", {}, source && copyButton(source, full)),
  );
}

function fileSection(id) {
  const contents = el("div", {}, el("p", { class: "muted" }, "Loading…"));
  const load = async () => {
    try {
      const list = await files(id);
      const without = list.without_file > 0 ? `, ${size(list.without_file)} of it without a file` : "";
      const about = el(
        "p",
        { class: "muted" },
        `${size(list.bytes)} of code${without}. Inlined code counts for the file `,
        "that it is written in.",
      );
      contents.replaceChildren(about, list.files.length > 0 ? codeMap(list) : "");
      announce("The image is shown");
    } catch (error) {
      contents.replaceChildren(errorNotice(error));
    }
  };
  load();
  return el(
    "section",
    { class: "card", "aria-labelledby": "files-title" },
    el("h2", { id: "files-title" }, "Code by file"),
    contents,
  );
}
