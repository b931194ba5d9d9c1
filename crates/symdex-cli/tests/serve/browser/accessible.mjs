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
      await page.locator(".answers li").first().waitFor();
      await check(page, `image, ${at}`);
      await page.getByRole("link", { name: "Images" }).click();
      await page.getByText("In the open reports").waitFor();
      await page.getByText("1 image", { exact: true }).waitFor();
      await check(page, `images, ${at}`);
      await page.getByRole("link", { name: "Reports" }).click();
      await page.getByRole("button", { name: "Close" }).click();
      await paste(page, crash.slice(0, crash.indexOf("Binary Images:")));
      await page.getByRole("button", { name: "Match by name" }).waitFor();
      await check(page, `images without ids, ${at}`);
      await page.getByRole("button", { name: "Match by name" }).click();
      await page.getByText("Not matched by id: DemoKit.").waitFor();
      await page.getByLabel("Search in threads").fill("ring");
      await page.getByText("of 52 frames, in").waitFor();
      await page.getByRole("button", { name: "Copy link" }).click();
      await page.locator("#report .notice", { hasText: "link" }).waitFor();
      await check(page, `matched by name, ${at}`);
      let goOn;
      const seen = new Promise((resolve) => (goOn = resolve));
      await page.route(/v1.symbolicate/, async (route) => {
        await seen;
        await route.abort();
      });
      await page.getByRole("button", { name: "Match by id only" }).click();
      await page.getByText("Symbolicating again…").waitFor();
      await check(page, `busy, ${at}`);
      goOn();
      await page.getByRole("button", { name: "Try again" }).waitFor();
      await check(page, `failed, ${at}`);
      await page.context().close();
    }
  }
});
