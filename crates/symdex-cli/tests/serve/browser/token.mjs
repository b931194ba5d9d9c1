// A server with tokens: the page asks, keeps the token in this tab only, and goes on.

import assert from "node:assert/strict";
import { crash, withBrowser } from "./harness.mjs";

const secret = process.argv[2];

await withBrowser(async (open) => {
  const page = await open();
  await page.getByLabel("Report", { exact: true }).fill(crash);
  await page.getByRole("button", { name: "Symbolicate" }).click();
  const dialog = page.getByRole("dialog", { name: "Access token" });
  await dialog.getByText("this server needs a token").waitFor();
  await page.keyboard.type("sdx_wrong");
  await page.keyboard.press("Enter");
  await page.getByRole("alert").getByText("unknown token").waitFor();

  await page.getByRole("button", { name: "Access token" }).click();
  await dialog.getByLabel("Token").fill(secret);
  await dialog.getByRole("button", { name: "Use token" }).click();
  await page.getByLabel("Report", { exact: true }).fill(crash);
  await page.getByRole("button", { name: "Symbolicate" }).click();
  await page.getByRole("heading", { name: "EXC_BAD_ACCESS (SIGSEGV)" }).waitFor();
  assert.equal(await dialog.isVisible(), false);
  const kept = await page.evaluate(() => [
    sessionStorage.getItem("symdex-token"),
    localStorage.length,
    document.cookie,
    location.href,
  ]);
  assert.deepEqual(kept.slice(0, 3), [secret, 0, ""]);
  assert.ok(!kept[3].includes(secret));
});
