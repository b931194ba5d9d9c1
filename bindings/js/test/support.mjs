// What the tests share: test data, the command to compare with, and tests that need a missing program.

import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";

export const root = fileURLToPath(new URL("../../..", import.meta.url));
export const testdata = (name) => path.join(root, "testdata", name);
export const read = (name) => new Uint8Array(readFileSync(testdata(name)));

/** The names of the golden indexes. */
export const golden = readdirSync(testdata("golden/v1"))
  .filter((name) => name.endsWith(".symdex"))
  .map((name) => `golden/v1/${name}`);

const programs = ["release", "debug"].map((profile) => path.join(root, "target", profile, "symdex"));

/** The command `symdex`: SYMDEX_COMMAND, or what cargo has built. */
export const command = [process.env.SYMDEX_COMMAND, ...programs].find((program) => program && existsSync(program));

/** A test that is skipped, with a reason, unless `found`. Where SYMDEX_TEST_REQUIRE names programs, it fails. */
export function testThatNeeds(found, reason, name, run) {
  const isRequired = (process.env.SYMDEX_TEST_REQUIRE ?? "").split(",").includes("programs");
  test(name, { skip: !found && !isRequired && reason }, (context) => {
    if (!found) throw new Error(reason);
    return run(context);
  });
}

/** A test that compares with the command. */
export const testWithCommand = (name, run) =>
  testThatNeeds(command, "the command is not built; `cargo build --package symdex-cli` does it", name, run);

/** What the command prints. The exit codes that are `allowed` say that some addresses have no answer. */
export function symdex(options, { input, allowed = [0, 3] } = {}) {
  const run = spawnSync(command, options, { input, maxBuffer: 1 << 30 });
  if (!allowed.includes(run.status)) throw new Error(`symdex ${options.join(" ")}: ${run.stderr}`);
  return run.stdout;
}

const folders = [];
after(() => folders.forEach((folder) => rmSync(folder, { recursive: true, force: true })));

/** The indexes of debug files of the test data, which the command builds: `{name, path, bytes}`. */
export const built = (...debugFiles) => builtWith([], ...debugFiles);

/** The same, built with options. */
export function builtWith(options, ...debugFiles) {
  const folder = mkdtempSync(path.join(os.tmpdir(), "symdex-js-"));
  folders.push(folder);
  symdex(["build", "--quiet", ...options, ...debugFiles.map(testdata), "-o", folder]);
  const names = readdirSync(folder).filter((name) => name.endsWith(".symdex"));
  return {
    folder,
    indexes: names.map((name) => {
      const file = path.join(folder, name);
      return { name, path: file, bytes: new Uint8Array(readFileSync(file)) };
    }),
  };
}

/** Numbers that look random and are the same in every run. */
export function random(seed) {
  let state = BigInt(seed);
  return (below) => {
    state = (state * 6364136223846793005n + 1442695040888963407n) & 0xffffffffffffffffn;
    return Number((state >> 33n) % BigInt(below));
  };
}

/** Whether a name is one that only the demangler for Swift reads, which the package does not have. */
export const isSwift = (name) => /^(DYLD-STUB\$\$)?(_?\$[sSe]|_T0)/.test(name ?? "");
