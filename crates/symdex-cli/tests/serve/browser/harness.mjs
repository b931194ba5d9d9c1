// What the scenarios share: the browser, and steps that several of them take.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const { CHROMIUM, NODE_MODULES, SYMDEX_TESTDATA, SYMDEX_URL } = process.env;
const require = createRequire(join(NODE_MODULES, "x"));
const { chromium } = require("playwright-core");

export const testdata = (path) => join(SYMDEX_TESTDATA, path);
export const crash = readFileSync(testdata("demo/demo.crash"), "utf8");
export const url = `${SYMDEX_URL}/`;
const axe = readFileSync(join(NODE_MODULES, "axe-core/axe.min.js"), "utf8");

/** Runs `scenario` with a function that opens pages. It fails if a page logs other errors than `expected`. */
export async function withBrowser(scenario, expected = []) {
  // Chromium's sandbox needs a user; tests may run as root.
  const browser = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox"] });
  const problems = [];
  const open = async (options = {}) => {
    const context = await browser.newContext({ viewport: { width: 1200, height: 900 }, ...options });
    const page = await context.newPage();
    page.on("pageerror", (error) => problems.push(error.message));
    // Answers that are errors are logged too, and the scenarios look at those themselves.
    const isAnswer = (message) => message.text().startsWith("Failed to load resource");
    page.on(
      "console",
      (message) => message.type() === "error" && !isAnswer(message) && problems.push(message.text()),
    );
    page.on("dialog", (dialog) => problems.push(`a dialog: ${dialog.message()}`));
    await page.goto(url);
    return page;
  };
  try {
    await scenario(open);
    assert.deepEqual(problems, expected);
  } finally {
    await browser.close();
  }
}

/** Pastes `report` into the field, and waits until it is shown. */
export async function paste(page, report) {
  await page.getByLabel("Report", { exact: true }).fill(report);
  await page.getByRole("button", { name: "Symbolicate" }).click();
  await waitForReport(page);
}

/** Waits until the selected report is answered, or refused. */
export const waitForReport = (page) => page.locator("#report[aria-busy=false] #report-title").waitFor();

/** Waits until `locator` has `count` elements. What a click shows may be made after the click has returned. */
export async function waitForCount(locator, count) {
  const end = Date.now() + 30_000;
  let found = await locator.count();
  while (found !== count && Date.now() < end) {
    await new Promise((resolve) => setTimeout(resolve, 20));
    found = await locator.count();
  }
  assert.equal(found, count, String(locator));
}

/** Waits until the fragment of the page's address is `hash`. */
export const waitForHash = (page, hash) => page.waitForURL((address) => address.hash === hash);

/** Opens everything that opens. What is inside is made when the browser reports the opening, and may open too. */
export async function openAll(page) {
  const closed = page.locator("details:not([open])");
  while ((await closed.count()) > 0) {
    await closed.evaluateAll((all) =>
      Promise.all(
        all.map((one) => {
          const opened = new Promise((resolve) => one.addEventListener("toggle", resolve, { once: true }));
          one.open = true;
          return opened;
        }),
      ),
    );
  }
}

/** The violations that axe finds, in words. */
export async function violations(page) {
  // Playwright's evaluate is not subject to the policy of the page.
  await page.evaluate(axe);
  const { violations: found } = await page.evaluate(() => globalThis.axe.run());
  return found.flatMap(({ id, nodes }) => nodes.map((node) => `${id}: ${node.html}: ${node.failureSummary}`));
}

/** Whether the page is wider than the screen. */
export const hasSidewaysScroll = (page) =>
  page.evaluate(() => document.documentElement.scrollWidth > document.documentElement.clientWidth);
