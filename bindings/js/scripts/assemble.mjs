// Assembles the page of docs/try: a folder of static files that any web server can serve.

import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";

const folder = fileURLToPath(new URL("..", import.meta.url));
const root = path.resolve(folder, "../..");

/** What the page has in common with that of the service. */
const SHARED = [
  "compare.js",
  "dom.js",
  "files.js",
  "flame.js",
  "flamegraph.js",
  "frames.js",
  "given.js",
  "icon.svg",
  "images.js",
  "kept.js",
  "profile.js",
  "report.js",
  "reports.js",
  "style.css",
  "threads.js",
];
const OWN = ["api.js", "app.js", "indexes.js", "place.js"];
const PACKAGE = ["answers.js", "engine.js", "error.js", "symdex.js"];

/** Writes the page, and returns its folder. */
export function assemble() {
  const page = path.join(root, "target/try");
  rmSync(page, { recursive: true, force: true });
  mkdirSync(path.join(page, "assets/symdex"), { recursive: true });
  const copy = (from, names, to) => names.forEach((name) => cpSync(path.join(from, name), path.join(page, to, name)));
  copy(path.join(root, "crates/symdex-serve/assets"), SHARED, "assets");
  copy(path.join(root, "docs/try"), OWN, "assets");
  copy(path.join(root, "docs/try"), ["index.html"], "");
  copy(folder, PACKAGE, "assets/symdex");
  // As text in a script: the page's policy allows no connection, and thus no fetch.
  const module = readFileSync(path.join(folder, "symdex.wasm")).toString("base64");
  writeFileSync(path.join(page, "assets/symdex/module.js"), `export default "${module}";\n`);
  return page;
}
