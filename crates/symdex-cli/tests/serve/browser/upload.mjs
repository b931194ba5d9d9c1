// A missing debug file is uploaded: progress, the job, and the open report with its answers.

import assert from "node:assert/strict";
import { crash, paste, testdata, withBrowser } from "./harness.mjs";

const KIT = "demo/DemoKit.framework.dSYM/Contents/Resources/DWARF/DemoKit";

await withBrowser(async (open) => {
  const page = await open();
  await paste(page, crash);
  const first = page.locator(".threads .frame").first();
  assert.match(await first.textContent(), /DemoKit \+ 0x4158.*debug file missing/);
  await page
    .getByRole("region", { name: "2 debug files missing" })
    .getByText("4C4C4427-5555-3144-A19D-BD913BE790E0")
    .waitFor();

  await page.locator("#debug-files").setInputFiles(testdata(KIT));
  const uploads = page.getByRole("region", { name: "Uploads" });
  await uploads.getByText("Done").waitFor();
  await uploads.getByRole("link", { name: "DemoKit" }).waitFor();
  await page.getByRole("region", { name: "1 debug file missing" }).waitFor();
  const answer = first.filter({ hasText: /demokit::Ring<demokit::Fault, 8>::push.*TileCache.hpp:32/ });
  await answer.waitFor();
  await page.locator("#live", { hasText: "Symbolicated again" }).waitFor({ state: "attached" });

  // A dropped bundle: the DWARF file in it is sent, its Info.plist is not.
  const sent = [];
  page.on(
    "request",
    (request) => request.method() === "PUT" && sent.push(new URL(request.url()).searchParams.get("name")),
  );
  await page.evaluate(drop, "DemoKit.framework.dSYM");
  await uploads.locator(".upload").nth(1).waitFor();
  await uploads.getByText("DemoKit.framework.dSYM/Contents/Resources/DWARF/DemoKit").waitFor();

  // What is no debug file fails with its reason.
  await page
    .locator("#debug-files")
    .setInputFiles({ name: "empty.zip", mimeType: "", buffer: Buffer.from("PK\u0003\u0004 no zip") });
  await uploads.locator(".upload", { hasText: "empty.zip" }).getByText("Failed").waitFor();
  await uploads.locator(".upload", { hasText: "empty.zip" }).locator("li.bad").first().waitFor();
  assert.deepEqual(sent, ["DemoKit.framework.dSYM/Contents/Resources/DWARF/DemoKit", "empty.zip"]);
});

/** A drop of a folder, as Chromium tells a page of it. Scripts cannot make one of real files. */
function drop(name) {
  const file = (path, bytes) => ({
    isFile: true,
    name: path,
    file: (resolve) => resolve(new File([new Uint8Array(bytes)], path)),
  });
  const folder = (path, entries) => ({
    isFile: false,
    name: path,
    createReader() {
      const parts = [entries, []];
      return { readEntries: (resolve) => resolve(parts.shift()) };
    },
  });
  const bundle = folder(name, [
    folder("Contents", [
      file("Info.plist", [0x3c, 0x3f]),
      folder("Resources", [folder("DWARF", [file("DemoKit", [0xcf, 0xfa, 0xed, 0xfe, 0, 0, 0, 0])])]),
    ]),
  ]);
  const event = new Event("drop", { bubbles: true, cancelable: true });
  event.dataTransfer = { types: ["Files"], items: [{ webkitGetAsEntry: () => bundle }], files: [] };
  document.dispatchEvent(event);
}
