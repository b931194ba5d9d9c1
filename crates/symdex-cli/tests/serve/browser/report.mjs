// A pasted crash: its exception, the frames that llvm-symbolizer has, both texts, and the download.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { crash, paste, testdata, waitForCount, waitForHash, withBrowser } from "./harness.mjs";

/** The lines of demo.expected.tsv for thread 0: `function`, `file` and `line` of each frame, innermost first. */
function expected() {
  const [head, ...rows] = readFileSync(testdata("demo/demo.expected.tsv"), "utf8").trim().split("\n");
  const names = head.replace(/^# ?/, "").split("\t");
  const all = rows.map((row) => Object.fromEntries(row.split("\t").map((value, at) => [names[at], value])));
  return all.filter((row) => row.thread === "0" && row.image !== "DemoPlain.dylib");
}

await withBrowser(async (open) => {
  const page = await open();
  await paste(page, crash);
  assert.equal(await page.locator("#report-title").textContent(), "EXC_BAD_ACCESS (SIGSEGV)");
  await page.getByText("KERN_INVALID_ADDRESS at 0x0000000000000000").waitFor();
  assert.equal(new URL(page.url()).hash, "");

  // The crashed thread comes first and is open; the others are closed.
  const threads = page.locator(".threads > details");
  assert.equal(await threads.count(), 4);
  assert.match(
    await threads.nth(0).locator("> summary").textContent(),
    /Thread 0 Crashed.*com.apple.main-thread/,
  );
  assert.deepEqual(await threads.evaluateAll((all) => all.map((one) => one.open)), [
    true,
    false,
    false,
    false,
  ]);

  // Each function, file and line, inlined ones included.
  const shown = await threads
    .nth(0)
    .locator(".frames > .frame")
    .evaluateAll((frames) =>
      frames.flatMap((frame) =>
        [...frame.querySelectorAll(".function")].map((one) => ({
          frame: frame.querySelector(".number").textContent,
          name: one.querySelector(".name code").textContent,
          source: one.querySelector(".place .copy")?.title.replace(/^Copy /, "") ?? "",
          inlined: one.querySelector(".badge")?.textContent === "inlined",
        })),
      ),
    );
  const rows = expected();
  assert.ok(rows.length > 40, `${rows.length}`);
  for (const frame of new Set(rows.map((row) => row.frame))) {
    const wanted = rows.filter((row) => row.frame === frame).map((row) => `${row.file}:${row.line}`);
    const found = shown.filter((one) => one.frame === frame);
    assert.deepEqual(
      found.map((one) => one.source),
      wanted,
      `frame ${frame}`,
    );
    assert.deepEqual(
      found.map((one) => one.inlined),
      wanted.map((_, at) => at < wanted.length - 1),
      `frame ${frame}`,
    );
  }
  assert.equal(shown[0].name, "demokit::Ring<demokit::Fault, 8>::push(demokit::Fault const&)");

  // Frames of the system are folded, and open.
  const fold = threads.nth(0).locator(".fold");
  assert.match(await fold.locator("summary").textContent(), /^7 system frames.*UIKitCore/);
  assert.equal(await fold.locator(".frame").count(), 0);
  await fold.locator("summary").click();
  await waitForCount(fold.locator(".frame"), 7);

  // What is missing, with its UUID and path.
  const missing = page.getByRole("region", { name: "1 debug file missing" });
  await missing.getByText("DemoPlain.dylib", { exact: true }).waitFor();
  await missing.getByText("4C4C444E-5555-3144-A1E5-129C2DC95135").waitFor();
  await missing.getByText("/Frameworks/DemoPlain.dylib").waitFor();

  // Copying file and line.
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await threads.nth(0).getByRole("button", { name: "TileCache.hpp:32" }).first().click();
  const copied = "/src/symdex/demo/Kit/TileCache.hpp:32";
  await page.locator("#live", { hasText: `Copied ${copied}` }).waitFor({ state: "attached" });
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), copied);

  // Both texts, and the download, are the report in its own format.
  await page.getByRole("button", { name: "Side by side" }).click();
  const columns = page.locator(".compare pre");
  assert.equal((await columns.nth(0).textContent()).trimEnd(), crash.trimEnd());
  const answered = await columns.nth(1).textContent();
  assert.match(answered, /^Incident Identifier: 0D7B1E5C/);
  assert.match(answered, /demokit::Decoder::fail\(unsigned int\) const \+ 28 \(Decoder.cpp:41\)/);
  // The texts scroll together: the frame at the top of one is at the top of the other.
  const tops = () =>
    columns.evaluateAll((all) =>
      all.map((pre) => {
        const height = pre.scrollHeight / pre.textContent.split("\n").length;
        return pre.textContent.split("\n")[Math.round(pre.scrollTop / height)];
      }),
    );
  const isAt = (text) => crash.slice(0, crash.indexOf(text)).split("\n").length - 1;
  await columns.nth(0).evaluate((pre, line) => {
    pre.scrollTop = (line * pre.scrollHeight) / pre.textContent.split("\n").length;
  }, isAt("Thread 1:"));
  await page.waitForFunction(() => document.querySelectorAll(".compare pre")[1].scrollTop > 1000);
  assert.deepEqual(await tops(), ["Thread 1:", "Thread 1:"]);
  const [download] = await Promise.all([
    page.waitForEvent("download"),
    page.getByRole("button", { name: "Download" }).click(),
  ]);
  assert.equal(download.suggestedFilename(), "pasted report.symbolicated.txt");
  assert.equal(readFileSync(await download.path(), "utf8").trimEnd(), answered.trimEnd());

  // A link to an image has its id and an offset, and nothing of the report.
  await threads.nth(0).getByRole("link", { name: "DemoKit" }).first().click();
  await waitForHash(page, "#image=4c4c442755553144a19dbd913be790e0&address=0x4158");

  // Two reports at a time, one of which is none.
  await page.getByRole("link", { name: "Reports" }).click();
  await page.locator("#report-files").setInputFiles([testdata("demo/demo.crash"), testdata("README.md")]);
  const tabs = page.getByRole("navigation", { name: "Open reports" }).getByRole("button");
  await tabs.nth(2).click();
  await page.getByRole("alert").getByText("The body is not a report that symdex reads").waitFor();
  await page.getByRole("button", { name: "Close" }).click();
  await waitForCount(tabs, 2);
});
