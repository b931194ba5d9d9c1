// Stacks without frames: what a search of the stack has found is marked, in a minidump and in a stack list.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { paste, waitForReport, withBrowser } from "./harness.mjs";

const [minidump] = process.argv.slice(2);
const word = (address) => Buffer.from(new BigUint64Array([address]).buffer).toString("hex");

/** The thread of the minidump as text. */
const list = `stack-list arm64 linux
image 0x10498c000 0x10000 4c4c442755553144a19dbd913be790e0 /DemoKit
thread 1 main
crashed
registers pc=0x104990158 lr=0x0 sp=0x70000000 fp=0x0
memory 0x70000000 ${[0n, 0n, 0x104990134n, 0n].map(word).join("")}
`;

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
  await paste(page, list);
  assert.deepEqual(await frames(page), expected);
});
