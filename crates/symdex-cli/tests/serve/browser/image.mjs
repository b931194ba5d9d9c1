// Images: the search for one, and the functions at an address.

import assert from "node:assert/strict";
import { url, waitForCount, waitForHash, withBrowser } from "./harness.mjs";

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
  await page.getByRole("heading", { name: "DemoKit" }).waitFor();
  await page.locator("#live", { hasText: "The image is shown" }).waitFor({ state: "attached" });

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

  // An image that no store has.
  await page.goto(`${url}#image=${"ab".repeat(16)}`);
  await page.getByRole("alert").first().getByText("no store has the image").waitFor();
});
