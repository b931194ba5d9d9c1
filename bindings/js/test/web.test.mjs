// The package in Chromium, without a bundler: it has the answers that it has in Node.js.

import assert from "node:assert/strict";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";

import { Index, symbolicate } from "symdex";

import { harnessFor, serve, testInBrowser } from "./browser.mjs";
import { read } from "./support.mjs";

const PAGE = '<!doctype html><html lang="en"><title>symdex</title><h1>symdex</h1></html>\n';

testInBrowser("the package answers in a page as in Node.js", async () => {
  const folder = mkdtempSync(path.join(os.tmpdir(), "symdex-js-"));
  try {
    const home = fileURLToPath(new URL("..", import.meta.url));
    const { files } = JSON.parse(readFileSync(path.join(home, "package.json")));
    for (const name of files) cpSync(path.join(home, name), path.join(folder, name));
    writeFileSync(path.join(folder, "index.html"), PAGE);
    const { url } = await serve(folder);
    const { withBrowser } = await harnessFor(url);
    const bytes = read("golden/v1/inline-dwarf4-1.symdex");
    const report = "App 0x104a343d0 0x104a34000 4c4c447055553144a1a22a1f1f7676f4\n";
    const index = Index.open(bytes);
    const offsets = Array.from({ length: index.metadata.image_size }, (_, offset) => offset);
    const expected = { answers: index.lookupMany(offsets), report: symbolicate(report, [index]) };
    await withBrowser(async (open) => {
      const page = await open();
      const answered = await page.evaluate(
        async ({ encoded, offsets: asked, report: text }) => {
          const symdex = await import("/web.js");
          const opened = symdex.Index.open(Uint8Array.from(atob(encoded), (one) => one.charCodeAt(0)));
          return { answers: opened.lookupMany(asked), report: symdex.symbolicate(text, [opened]) };
        },
        { encoded: Buffer.from(bytes).toString("base64"), offsets, report },
      );
      assert.deepEqual(answered, expected);
      assert.equal(expected.report.threads[0].frames[0].status, "symbolicated");
    });
  } finally {
    rmSync(folder, { recursive: true });
  }
});
