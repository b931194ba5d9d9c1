// A report is never lost: the server is away, no token is given, the page is loaded again, or a link is opened.

import assert from "node:assert/strict";
import { gzipSync } from "node:zlib";
import { crash, url, waitForCount, waitForReport, withBrowser } from "./harness.mjs";

const secret = process.argv[2];
const field = (page) => page.getByLabel("Report", { exact: true });
const title = (page) => page.getByRole("heading", { name: "EXC_BAD_ACCESS (SIGSEGV)" });
const retry = (page) => page.getByRole("button", { name: "Try again" });

async function submit(page) {
  await field(page).fill(crash);
  await page.getByRole("button", { name: "Symbolicate" }).click();
}

await withBrowser(async (open) => {
  const page = await open();
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);

  // Without a token: the text stays, the error says why, and the next try asks for the token again.
  const dialog = page.getByRole("dialog", { name: "Access token" });
  await submit(page);
  await dialog.getByRole("button", { name: "Cancel" }).click();
  await page.getByRole("alert").getByText("this server needs a token").waitFor();
  assert.equal(await field(page).inputValue(), crash);
  await retry(page).click();
  await dialog.getByLabel("Token").fill(secret);
  await dialog.getByRole("button", { name: "Use token" }).click();
  await title(page).waitFor();
  assert.equal(await field(page).inputValue(), "");
  await page.getByRole("button", { name: "Close" }).click();
  await waitForCount(page.locator("#report > *"), 0);

  // The server is away: a sign while it is asked, then an error. The same text again is the same report.
  let goOn;
  const seen = new Promise((resolve) => (goOn = resolve));
  await page.route(/v1.symbolicate$/, async (route) => {
    await seen;
    await route.abort();
  });
  await submit(page);
  await page.getByText("Symbolicating…").waitFor();
  await page.locator("#report[aria-busy=true]").waitFor();
  await page.locator("#live", { hasText: "Symbolicating 1 report" }).waitFor({ state: "attached" });
  goOn();
  await page.getByRole("alert").getByText("The server cannot be reached").waitFor();
  await page.locator("#report[aria-busy=false]").waitFor();
  assert.equal(await page.getByText("Symbolicating…").isVisible(), false);
  assert.equal(await field(page).inputValue(), crash);
  await page.getByRole("button", { name: "Symbolicate" }).click();
  await waitForReport(page);
  assert.equal(await page.getByRole("navigation", { name: "Open reports" }).isVisible(), false);
  await page.unroute(/v1.symbolicate$/);
  await retry(page).click();
  await title(page).waitFor();
  assert.equal(await field(page).inputValue(), "");

  // An answer stays when a later request fails.
  await page.route(/v1.symbolicate\?/, (route) => route.abort());
  await page.getByRole("button", { name: "Side by side" }).click();
  await page.getByRole("alert").getByText("The server cannot be reached").waitFor();
  assert.equal(await title(page).isVisible(), true);

  // The report survives a reload, until it is closed.
  await page.reload();
  await title(page).waitFor();
  await waitForReport(page);

  // A link has the report in its fragment. Whoever opens it sees the report, and the address does not keep it.
  await page.getByRole("button", { name: "Copy link" }).click();
  await page.getByText("Copied a link that contains the report.").waitFor();
  const link = await page.evaluate(() => navigator.clipboard.readText());
  assert.ok(link.startsWith(`${url}#name=pasted+report.txt&report=`), link.slice(0, 80));
  const other = await page.context().newPage();
  const requests = [];
  other.on("request", (request) => requests.push(request.url() + (request.headers().referer ?? "")));
  await other.goto(link);
  await other.evaluate((token) => sessionStorage.setItem("symdex-token", token), secret);
  await other.getByRole("dialog", { name: "Access token" }).getByRole("button", { name: "Cancel" }).click();
  await retry(other).click();
  await title(other).waitFor();
  assert.equal(new URL(other.url()).hash, "");
  assert.ok(requests.every((request) => !request.includes("report=")), requests.join("\n"));
  await other.close();

  await page.getByRole("button", { name: "Close" }).click();
  await waitForCount(page.locator("#report > *"), 0);
  await page.waitForFunction(() => sessionStorage.getItem("symdex-reports") === null);
  await page.reload();
  await field(page).waitFor();
  await waitForCount(page.locator("#report > *"), 0);

  // A report that is too large for a link.
  const noise = Array.from({ length: 3000 }, (_, at) => Math.sin(at).toString(36).slice(2)).join("\n");
  const buffer = Buffer.from(`${crash}\n${noise}`);
  await page.locator("#report-files").setInputFiles({ name: "large.crash", mimeType: "", buffer });
  await title(page).waitFor();
  await page.getByRole("button", { name: "Copy link" }).click();
  await page.getByText("The report is too large for a link.").waitFor();

  // Links that are no reports, or expand to too much.
  const bomb = gzipSync(Buffer.alloc(20_000_000)).toString("base64url");
  for (const report of ["no report", bomb]) {
    const hostile = await open();
    await hostile.goto(`${url}#report=${encodeURIComponent(report)}`);
    await hostile.getByRole("alert").getByText("The link has no report that can be read.").waitFor();
    await hostile.context().close();
  }
});
