// The packed package, installed in an empty folder.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { testdata } from "./support.mjs";

const PROGRAM = `
  import { readFileSync } from "node:fs";
  import { Index } from "symdex";
  const index = Index.open(readFileSync(process.argv[2]));
  console.log(index.lookup(0x3cf).map((frame) => frame.function).join());`;

test("the packed package works where it is installed", () => {
  const folder = mkdtempSync(path.join(os.tmpdir(), "symdex-js-"));
  try {
    const home = fileURLToPath(new URL("..", import.meta.url));
    const npm = (cwd, ...options) => execFileSync("npm", options, { cwd, stdio: ["ignore", "pipe", "ignore"] });
    npm(home, "pack", "--pack-destination", folder);
    const [packed] = readdirSync(folder);
    writeFileSync(path.join(folder, "package.json"), '{ "private": true, "type": "module" }\n');
    npm(folder, "install", "--offline", "--no-audit", "--no-fund", `./${packed}`);
    writeFileSync(path.join(folder, "program.js"), PROGRAM);
    const golden = testdata("golden/v1/inline-dwarf4-1.symdex");
    const out = execFileSync(process.execPath, ["program.js", golden], { cwd: folder, encoding: "utf8" });
    assert.equal(out.trim(), "cell,row,mip,pyramid");
  } finally {
    rmSync(folder, { recursive: true });
  }
});
