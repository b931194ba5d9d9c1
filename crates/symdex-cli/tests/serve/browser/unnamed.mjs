// Images without an id: no upload helps, but an image of the same name can answer.

import assert from "node:assert/strict";
import { crash, paste, waitForCount, withBrowser } from "./harness.mjs";

const cut = crash.slice(0, crash.indexOf("Binary Images:"));
const KIT = "4C4C4427-5555-3144-A19D-BD913BE790E0";

await withBrowser(async (open) => {
  const page = await open();
  await paste(page, cut);
  const unnamed = page.getByRole("region", { name: "3 images without an id" });
  await unnamed.waitFor();
  await unnamed.locator(".image", { hasText: "DemoPlain.dylib" }).getByText("no image of this name").waitFor();
  // Nothing of the report asks for an upload.
  assert.ok(!/upload/i.test(await page.locator("#report").textContent()));
  const first = page.locator(".threads .frame").first();
  assert.match(await first.textContent(), /DemoKit.*its build is not known/);

  // All images of which the server has one of the name.
  await unnamed.getByRole("button", { name: "Match by name" }).click();
  await first.getByText("demokit::Ring<demokit::Fault, 8>::push(demokit::Fault const&)").waitFor();
  await page.getByText("Not matched by id: ").getByText("DemoKit").waitFor();
  await page.getByRole("region", { name: "1 image without an id" }).waitFor();
  await page.locator("#all-images > summary").click();
  await page.locator("#all-images .badge", { hasText: "found, by name" }).first().waitFor();

  // The choice survives a reload, and is taken back.
  await page.reload();
  await page.getByText("Not matched by id: ").waitFor();
  await page.getByRole("button", { name: "Match by id only" }).click();
  await unnamed.waitFor();
  await waitForCount(page.getByText("Not matched by id: "), 0);

  // One image, as chosen. Both texts are matched in the same way.
  await unnamed.getByRole("button", { name: `Use this one: ${KIT}` }).click();
  await page.getByText("Not matched by id: DemoKit.").waitFor();
  await page.getByRole("region", { name: "2 images without an id" }).waitFor();
  await page.getByRole("button", { name: "Side by side" }).click();
  await page.locator(".compare pre").nth(1).getByText("demokit::Decoder::fail").first().waitFor();
});
