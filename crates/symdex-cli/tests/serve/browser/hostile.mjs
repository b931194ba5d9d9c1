// Names with HTML and scripts in them are text.

import assert from "node:assert/strict";
import { crash, hasSidewaysScroll, openAll, paste, withBrowser } from "./harness.mjs";

const ATTACK = `<img/src=x/onerror=window.ran=1><script>window.ran=1</script>"'&lt;`;
const LONG = "x".repeat(3000);

const hostile = crash
  .replaceAll("DemoPlain.dylib", `<img/src=x/onerror=window.ran=1>`)
  .replace("Process:             DemoApp", `Process:             ${ATTACK}`)
  .replace("KERN_INVALID_ADDRESS at 0x0000000000000000", `${ATTACK}${LONG}`)
  .replace("com.apple.main-thread", ATTACK)
  .replace("iPhone13,2", `javascript:window.ran=1//${ATTACK}`);

await withBrowser(
  async (open) => {
    const page = await open({ viewport: { width: 390, height: 844 } });
    await page.evaluate(() => {
      window.violated = [];
      document.addEventListener("securitypolicyviolation", (event) =>
        window.violated.push(event.violatedDirective),
      );
    });
    await paste(page, hostile);
    await page.locator(".reason", { hasText: "<script>window.ran=1</script>" }).waitFor();
    await page.locator(".facts dd", { hasText: "<img/src=x/onerror=window.ran=1>" }).first().waitFor();
    await page.getByRole("button", { name: "Side by side" }).click();
    await page.locator(".compare pre").first().waitFor();
    await openAll(page);
    assert.deepEqual(await page.evaluate(() => [window.ran, document.images.length, window.violated]), [
      undefined,
      0,
      [],
    ]);
    assert.equal(await hasSidewaysScroll(page), false);

    // A link that somebody sends.
    await page.goto(
      `${page.url().split("#")[0]}#image=${encodeURIComponent(ATTACK)}&address=${encodeURIComponent(ATTACK)}`,
    );
    await page.getByRole("alert").first().waitFor();
    assert.deepEqual(await page.evaluate(() => [window.ran, document.images.length, window.violated]), [
      undefined,
      0,
      [],
    ]);

    // The policy forbids what the page does not do.
    const isForbidden = await page.evaluate(() => {
      try {
        document.body.innerHTML = "<p>";
        return false;
      } catch (error) {
        return error instanceof TypeError;
      }
    });
    assert.equal(isForbidden, true);
  },
  ["This document requires 'TrustedHTML' assignment. The action has been blocked."],
);
