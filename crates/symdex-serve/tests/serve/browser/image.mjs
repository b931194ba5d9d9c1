// An image: the functions at an address, search, order, and code by file.

import assert from "node:assert/strict";
import { url, waitForCount, waitForHash, withBrowser } from "./harness.mjs";

const KIT = "4c4c442755553144a19dbd913be790e0";
const APP = "4c4c447955553144a170308419376afa";

await withBrowser(async (open) => {
  const page = await open();
  await page.getByRole("link", { name: "Images" }).click();
  // Images are found by name, and by the first digits of an id.
  const search = page.getByLabel("Name, or first digits of the UUID or build id");
  const found = page.getByRole("region", { name: "On the server" });
  await found.getByText("2 images").waitFor();
  await search.fill("demokit");
  await found.getByText("1 image", { exact: true }).waitFor();
  await found.getByRole("link", { name: "DemoKit" }).waitFor();
  await search.fill("4C4C4479-5555");
  await found.getByRole("link", { name: "DemoApp" }).waitFor();
  await waitForCount(found.getByRole("link"), 1);
  await search.fill("no such image");
  await found.getByText("No image of this name or id").waitFor();
  await search.fill("4C4C4427-5555-3144-A19D-BD913BE790E0");
  await page.getByRole("button", { name: "Open" }).click();
  await page.getByText("10 of 10 functions").waitFor();
  const names = page.locator("section[aria-labelledby=functions-title] tbody th code");
  assert.equal(await names.nth(0).textContent(), "dk_decode");

  await page.getByLabel("Order").selectOption("size");
  await page.waitForFunction(() => document.querySelector("tbody th code")?.textContent === "dk_rle_expand");
  await page.getByLabel("Name").fill("PREFETCHER");
  await page.getByText("1 of 10 functions found").waitFor();
  assert.equal(await names.nth(0).textContent(), "demokit::Prefetcher::wait_for_work()");

  await page.getByLabel("Offset in the image").fill("4158");
  await page.getByRole("button", { name: "Look up" }).click();
  const answers = page.locator(".answers li");
  await answers.first().waitFor();
  assert.match(
    await answers.nth(0).textContent(),
    /Ring<demokit::Fault, 8>::push.*inlined.*TileCache.hpp:32/,
  );
  assert.match(await answers.nth(2).textContent(), /abort_with.*\+ 36 bytes.*Decoder.cpp:29/);
  await waitForHash(page, "#image=4C4C4427-5555-3144-A19D-BD913BE790E0&address=0x4158");

  // The picture has the files of the table, and areas in proportion to their bytes.
  const files = page.locator("section[aria-labelledby=files-title]");
  const rows = await files
    .locator("tbody tr")
    .evaluateAll((all) =>
      all.map((row) => [row.cells[0].textContent, Number(row.cells[1].textContent.replaceAll(",", ""))]),
    );
  assert.deepEqual(rows.map(([name]) => name).sort(), [
    "Decoder.cpp",
    "Prefetcher.cpp",
    "TileCache.cpp",
    "TileCache.hpp",
    "rle.c",
  ]);
  const tiles = await files.locator(".tile").evaluateAll((all) =>
    all.map((tile) => {
      const { width, height } = tile.querySelector("rect").getBBox();
      return [tile.querySelector("title").textContent, (width + 2) * (height + 2)];
    }),
  );
  const bytes = rows.reduce((sum, [, size]) => sum + size, 0);
  rows.forEach(([name, size], at) => {
    assert.ok(tiles[at][0].startsWith(name), `${tiles[at][0]} ${name}`);
    const share = tiles[at][1] / (960 * 420);
    assert.ok(
      Math.abs(share - size / bytes) < 0.001,
      `${name}: ${share} of the picture, ${size} of ${bytes} bytes`,
    );
  });

  // Folders open, with a trail back.
  await page.goto(`${url}#image=${APP}`);
  const folder = files.locator("tbody button").first();
  await folder.waitFor();
  const name = await folder.textContent();
  await folder.click();
  await files.locator("[aria-current]").getByText(name.replace(/\/$/, ""), { exact: true }).waitFor();
  await files.locator(".trail button").first().click();
  await folder.waitFor();

  // An image that no store has.
  await page.goto(`${url}#image=${"ab".repeat(16)}`);
  await page.getByRole("alert").first().getByText("no store has an index of").waitFor();
});
