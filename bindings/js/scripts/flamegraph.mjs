// Writes crates/symdex-serve/assets/flamegraph.js: d3-flame-graph with what it needs of D3, in one module, and their
// licences. The versions are those of the file; another one is a change of `VERSIONS`.

import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";

const VERSIONS = {
  esbuild: "0.28.2",
  "d3-flame-graph": "5.0.0",
  "d3-array": "3.2.5",
  "d3-color": "3.1.1",
  "d3-dispatch": "3.0.2",
  "d3-ease": "3.0.2",
  "d3-format": "3.1.3",
  "d3-hierarchy": "3.1.3",
  "d3-interpolate": "3.0.2",
  "d3-scale": "4.0.3",
  "d3-selection": "3.0.1",
  "d3-time": "3.1.1",
  "d3-time-format": "4.1.1",
  "d3-timer": "3.0.2",
  "d3-transition": "3.0.2",
  internmap: "2.0.3",
};

const APACHE = "Apache License, Version 2.0: https://www.apache.org/licenses/LICENSE-2.0";

const target = fileURLToPath(new URL("../../../crates/symdex-serve/assets/flamegraph.js", import.meta.url));
const folder = mkdtempSync(path.join(tmpdir(), "flamegraph-"));
const inFolder = (name) => path.join(folder, name);

try {
  writeFileSync(inFolder("package.json"), JSON.stringify({ private: true, dependencies: VERSIONS }));
  execFileSync("npm", ["install", "--silent", "--no-audit", "--no-fund"], { cwd: folder, stdio: "inherit" });
  writeFileSync(
    inFolder("entry.js"),
    'export { default as flamegraph } from "d3-flame-graph";\nexport { select } from "d3-selection";\n',
  );
  // The page has its own styles.
  const options = ["--bundle", "--minify", "--format=esm", "--loader:.css=empty", "--legal-comments=none"];
  const made = ["--metafile=made.json", "--outfile=made.js"];
  const bundle = ["entry.js", ...options, ...made, "--log-level=error"];
  execFileSync(inFolder("node_modules/.bin/esbuild"), bundle, { cwd: folder });
  writeFileSync(target, `${notices()}${readFileSync(inFolder("made.js"), "utf8")}`);
} finally {
  rmSync(folder, { recursive: true, force: true });
}

/** The licences of the packages in the module, as a comment. Equal texts are there once, below all their copyrights. */
function notices() {
  const [{ inputs }] = Object.values(JSON.parse(readFileSync(inFolder("made.json"), "utf8")).outputs);
  const names = new Set(Object.keys(inputs).map((input) => /^node_modules\/([^/]+)/.exec(input)?.[1]));
  const texts = new Map();
  for (const name of [...names].filter(Boolean).sort()) {
    const { author, version } = JSON.parse(readFileSync(inFolder(`node_modules/${name}/package.json`), "utf8"));
    const text = readFileSync(inFolder(`node_modules/${name}/LICENSE`), "utf8").trim();
    const isApache = text.startsWith("Apache License");
    const [copyright, ...rest] = isApache ? [author] : text.split("\n");
    const licence = isApache ? APACHE : rest.join("\n").trim();
    texts.set(licence, [...(texts.get(licence) ?? []), `${name} ${version}: ${copyright}`]);
  }
  const all = [...texts].map(([licence, packages]) => [...packages, "", licence].join("\n"));
  return `/*!\n${all.join("\n\n----\n\n")}\n*/\n`;
}
