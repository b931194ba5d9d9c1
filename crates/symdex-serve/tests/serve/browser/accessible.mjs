// axe finds nothing, in light and dark mode, on a wide screen and on a phone; and nothing is wider than the phone.

import assert from "node:assert/strict";
import { crash, hasSidewaysScroll, openAll, paste, violations, withBrowser } from "./harness.mjs";

const WIDE = { width: 1200, height: 900 };
const PHONE = { width: 360, height: 780 };

async function check(page, what) {
  assert.deepEqual(await violations(page), [], what);
  assert.equal(await hasSidewaysScroll(page), false, `${what}: wider than the screen`);
}

await withBrowser(async (open) => {
  for (const colorScheme of ["light", "dark"]) {
    for (const viewport of [WIDE, PHONE]) {
      const at = `${colorScheme}, ${viewport.width}`;
      const page = await open({ colorScheme, viewport, reducedMotion: "reduce" });
      await check(page, `start, ${at}`);
      await paste(page, crash);
      await page.getByRole("button", { name: "Side by side" }).click();
      await page.locator(".compare pre").first().waitFor();
      await openAll(page);
      await check(page, `report, ${at}`);
      await page.getByRole("button", { name: "Access token" }).click();
      await check(page, `token, ${at}`);
      await page.keyboard.press("Escape");
      await page.getByRole("link", { name: "DemoKit" }).first().click();
      await page.locator(".treemap").waitFor();
      await page.locator("#images-page tbody tr").first().waitFor();
      await check(page, `image, ${at}`);
      await page.getByRole("link", { name: "Images" }).click();
      await page.getByText("In the open reports").waitFor();
      await check(page, `images, ${at}`);
      await page.context().close();
    }
  }
});
