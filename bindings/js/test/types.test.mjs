// The types of the package: TypeScript accepts what users write, and refuses what they must not.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import * as symdex from "symdex";

import { root, testThatNeeds } from "./support.mjs";

const compiler = path.join(root, "target/playwright/node_modules/typescript/bin/tsc");
const project = fileURLToPath(new URL("types", import.meta.url));

testThatNeeds(existsSync(compiler), `${compiler} is not installed; .ci/run does it`, "the types fit an example", () => {
  const { status, stdout } = spawnSync(process.execPath, [compiler, "--project", project], { encoding: "utf8" });
  assert.equal(status, 0, stdout);
});

testThatNeeds(existsSync(compiler), `${compiler} is not installed; .ci/run does it`, "the types have all exports", () => {
  // The values that index.d.ts declares, from the compiler's own reading of it.
  const program = `
    import ts from ${JSON.stringify(path.join(root, "target/playwright/node_modules/typescript/lib/typescript.js"))};
    const file = ${JSON.stringify(path.join(root, "bindings/js/index.d.ts"))};
    const program = ts.createProgram([file], { lib: ["lib.es2022.d.ts"], types: [] });
    const checker = program.getTypeChecker();
    const all = checker.getExportsOfModule(checker.getSymbolAtLocation(program.getSourceFile(file)));
    console.log(all.filter((symbol) => symbol.flags & ts.SymbolFlags.Value).map((symbol) => symbol.name).join());`;
  const { stdout, stderr } = spawnSync(process.execPath, ["--input-type=module", "--eval", program], { encoding: "utf8" });
  assert.deepEqual(stdout.trim().split(",").sort(), Object.keys(symdex).sort(), stderr);
});
