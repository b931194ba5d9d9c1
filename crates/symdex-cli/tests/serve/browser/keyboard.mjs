// Everything with keys: paste, open threads and folds, copy, go to an image and back.

import assert from "node:assert/strict";
import { crash, withBrowser } from "./harness.mjs";

/** Presses Tab until `isThere` is true of the focused element. */
async function tabTo(page, what, isThere) {
  for (let presses = 0; presses < 300; presses += 1) {
    await page.keyboard.press("Tab");
    if (await page.evaluate(isThere)) return;
  }
  assert.fail(`Tab does not lead to ${what}`);
}

await withBrowser(async (open) => {
  const page = await open();
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.textContent), "Skip to the contents");
  await tabTo(page, "the field", () => document.activeElement.id === "pasted");
  await page.evaluate((text) => navigator.clipboard.writeText(text), crash);
  await page.keyboard.press("Control+V");
  await page.waitForFunction(() => document.activeElement.value !== "");
  await page.keyboard.press("Control+Enter");
  await page.locator("#report-title").waitFor();
  // The title of the report is read out, and the keyboard goes on there.
  await page.waitForFunction(() => document.activeElement.id === "report-title");
  await page.locator("#live", { hasText: /of 52 frames symbolicated/ }).waitFor({ state: "attached" });

  await tabTo(page, "a fold", () => document.activeElement.matches(".fold > summary"));
  await page.keyboard.press("Enter");
  await page.locator(".fold[open] .frame").first().waitFor();
  await tabTo(page, "the second thread", () =>
    document.activeElement.matches(".thread:nth-child(2) > summary"),
  );
  await page.keyboard.press("Space");
  await page.locator(".thread:nth-child(2)[open] .frame").first().waitFor();
  await tabTo(page, "file and line", () => document.activeElement.matches(".place .copy"));
  const title = await page.evaluate(() => document.activeElement.title);
  await page.keyboard.press("Enter");
  await page.waitForFunction(
    (copied) => document.querySelector("#live").textContent === copied.replace("Copy", "Copied"),
    title,
  );

  await tabTo(page, "the search in threads", () => document.activeElement.id === "frame-search");
  await page.keyboard.type("ring");
  await page.getByText("1 of 52 frames, in 1 thread").waitFor();
  await page.keyboard.press("Control+A");
  await page.keyboard.press("Delete");
  await page.locator(".fold").first().waitFor();
  await tabTo(page, "App frames only", () => document.activeElement.id === "app-only");
  await page.keyboard.press("Space");
  await page.getByText(/ of 52 frames, in \d threads/).waitFor();
  await tabTo(page, "the stack as text", () => document.activeElement.textContent === "Copy stack");
  await page.keyboard.press("Enter");
  await page.locator("#live", { hasText: "Copied the stack of" }).waitFor({ state: "attached" });

  await tabTo(page, "an image", () => document.activeElement.matches("a[href^='#image=']"));
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.activeElement.id === "address-title");
  await page.locator(".answers li").first().waitFor();
  await page.goBack();
  await page.locator("#report-title").waitFor();
});
