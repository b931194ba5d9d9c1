// Stacks without frames: what a search of the stack has found is marked, in a minidump and in a microdump.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { paste, waitForReport, withBrowser } from "./harness.mjs";

const [minidump, microdump] = process.argv.slice(2);

/** The functions of each frame, and whether the frame is marked. */
const frames = (page) =>
  page.locator(".threads .frame").evaluateAll((all) =>
    all.map((frame) => {
      const badges = [...frame.querySelectorAll(".badge")].filter((badge) => badge.textContent === "scan");
      return [frame.querySelector(".function:last-child .name code").textContent, badges.map((badge) => badge.title)];
    }),
  );

await withBrowser(async (open) => {
  const page = await open();
  const expected = [
    ["demokit::(anonymous namespace)::abort_with(demokit::Fault const&)", []],
    ["demokit::Decoder::fail(unsigned int) const", ["Found by a search of the stack: it may be wrong"]],
  ];
  await page.locator("#report-files").setInputFiles({
    name: "crash.dmp",
    mimeType: "",
    buffer: readFileSync(minidump),
  });
  await waitForReport(page);
  assert.deepEqual(await frames(page), expected);
  await page.getByRole("link", { name: "Reports" }).click();
  await paste(page, readFileSync(microdump, "utf8"));
  assert.deepEqual(await frames(page), expected);
});
