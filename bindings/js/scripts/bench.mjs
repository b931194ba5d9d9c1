// Lookups in Node.js beside those of the Rust reader, in one run: `npm run bench -- INDEX`.
//
// Each offset is drawn once, uniformly. It is asked for when nothing is cached, of an index that is opened several times,
// and then again several times: systems state CPU time in steps of some milliseconds. The rounds of both readers
// alternate, and the medians of their CPU time are compared: on a busy machine, wall time says little.

import { spawnSync } from "node:child_process";
import { readFileSync, statSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

import { Index } from "symdex";

const COUNT = 20_000;
const ROUNDS = 5;
// How often each offset is asked for the first time, and then again; as in examples/bench_rust.rs.
const OPENED = 4;
const REPEATS = 20;
const root = fileURLToPath(new URL("../../..", import.meta.url));
const [file = path.join(root, "testdata/golden/v1/made-up-1.symdex")] = process.argv.slice(2);
const bytes = readFileSync(file);

function drawn() {
  const { image_size: size } = Index.open(bytes).metadata;
  const all = new Set();
  for (let tries = 0; all.size < COUNT && tries < 10 * COUNT; tries += 1) all.add(Math.floor(Math.random() * size));
  return [...all];
}

const offsets = drawn();

function rust() {
  const target = path.join(root, "target/release/examples/bench_rust");
  const { status, stdout, stderr } = spawnSync(target, [file], { input: offsets.join("\n"), encoding: "utf8" });
  if (status !== 0) throw new Error(stderr);
  return stdout.trim().split("\n").map(Number);
}

/** Nanoseconds of CPU time, those of compiling and collecting garbage included. */
function time(run) {
  const begun = process.cpuUsage();
  run();
  const { user, system } = process.cpuUsage(begun);
  return (user + system) * 1000;
}

function javaScript(isMany) {
  return [false, true].flatMap((demangle) => {
    const one = (index) => offsets.forEach((offset) => index.lookup(offset, { demangle }));
    const many = (index) => {
      for (let at = 0; at < offsets.length; at += 100) index.lookupMany(offsets.slice(at, at + 100), { demangle });
    };
    const ask = isMany ? many : one;
    let [first, again] = [0, 0];
    for (let opened = 1; opened <= OPENED; opened += 1) {
      const index = Index.open(bytes);
      first += time(() => ask(index));
      if (opened === OPENED) again = time(() => Array.from({ length: REPEATS }, () => ask(index)));
      index.close();
    }
    return [first / OPENED / offsets.length, again / REPEATS / offsets.length];
  });
}

/** How many milliseconds a new process takes until its first answer, without the start of Node.js itself. */
function first() {
  const program = `
    const begun = process.hrtime.bigint();
    const { Index } = await import("symdex");
    const bytes = (await import("node:fs")).readFileSync(${JSON.stringify(file)});
    Index.open(bytes).lookup(${offsets[0]});
    console.log(Number(process.hrtime.bigint() - begun) / 1e6);`;
  return Number(spawnSync(process.execPath, ["--input-type=module", "--eval", program], { cwd: root + "bindings/js" }).stdout);
}

const median = (numbers) => numbers.toSorted((one, other) => one - other)[numbers.length >> 1];
// It also compiles the builder, which the package depends on: some minutes, the first time. cargo shows how far it is.
const options = ["build", "--release", "--package", "symdex-js", "--example", "bench_rust"];
if (spawnSync("cargo", options, { cwd: root, stdio: "inherit" }).status !== 0) process.exit(1);

const rounds = Array.from({ length: ROUNDS }, () => [rust(), javaScript(false), javaScript(true)]);
const wasm = readFileSync(new URL("../symdex.wasm", import.meta.url));
console.log(`symdex.wasm: ${wasm.length} bytes, ${gzipSync(wasm, { level: 9 }).length} with gzip`);
console.log(`first answer: ${median(Array.from({ length: ROUNDS }, first)).toFixed(1)} ms after the start of Node.js`);
console.log(`${path.basename(file)}, ${statSync(file).size} bytes, ${offsets.length} offsets; microseconds for a lookup:`);
console.log("| | Rust | lookup | times | lookupMany of 100 | times |\n| --- | ---: | ---: | ---: | ---: | ---: |");
["first time", "again", "first time, readable names", "again, readable names"].forEach((what, at) => {
  const [own, one, many] = [0, 1, 2].map((reader) => median(rounds.map((round) => round[reader][at])));
  const shown = (time) => (time / 1000).toFixed(2);
  const times = (time) => (time / own).toFixed(1);
  console.log(`| ${what} | ${shown(own)} | ${shown(one)} | ${times(one)} | ${shown(many)} | ${times(many)} |`);
});
