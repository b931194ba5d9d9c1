// The page of docs/try in Chromium: indexes, dSYMs and a report are dropped and answered, and nothing is requested.

import assert from "node:assert/strict";
import { mkdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { before } from "node:test";

import { assemble } from "../scripts/assemble.mjs";
import { canRun, harnessFor, serve, testInBrowser } from "./browser.mjs";
import { built, testdata } from "./support.mjs";

let harness;
let indexes;
/** The paths that the browser has asked for. */
let requested;

before(async () => {
  if (!canRun) return;
  ({ indexes } = built("demo"));
  const server = await serve(assemble());
  ({ requested } = server);
  harness = await harnessFor(server.url);
});

const DEMO_KIT = "demo/DemoKit.framework.dSYM/Contents/Resources/DWARF/DemoKit";
const PHONE = { width: 390, height: 844 };

/** Drops files, `{name, bytes}`, on the page. */
async function drop(page, files) {
  const encoded = files.map(({ name, bytes }) => ({ name, text: Buffer.from(bytes).toString("base64") }));
  await page.evaluate((all) => {
    const transfer = new DataTransfer();
    for (const { name, text } of all) {
      transfer.items.add(new File([Uint8Array.from(atob(text), (one) => one.charCodeAt(0))], name));
    }
    document.dispatchEvent(new DragEvent("drop", { dataTransfer: transfer, bubbles: true, cancelable: true }));
  }, encoded);
}

const report = { name: "demo.crash", bytes: readFileSync(testdata("demo/demo.crash")) };
const isOf = (name) => (index) => Buffer.from(index.bytes).includes(name);

/** Writes a picture into the folder SYMDEX_PICTURES, if that is set. */
async function picture(page, name) {
  const folder = process.env.SYMDEX_PICTURES;
  if (!folder) return;
  mkdirSync(folder, { recursive: true });
  await page.screenshot({ path: path.join(folder, `${name}.png`), fullPage: true });
}

testInBrowser("an index and a report are dropped and read, without a request", async () => {
  await harness.withBrowser(async (open) => {
    requested.length = 0;
    const page = await open();
    await page.getByRole("button", { name: "Symbolicate" }).waitFor();
    const loaded = [...requested];
    assert.ok(loaded.includes("/assets/symdex/module.js"), loaded.join());
    const sent = [];
    page.on("request", (request) => sent.push(request.url()));
    await drop(page, [report, ...indexes.filter(isOf("DemoKit"))]);
    await harness.waitForReport(page);
    await page.getByText("rle.c:16").first().waitFor();
    await page.getByText("2 debug files missing").waitFor();
    await picture(page, "partial");
    await drop(page, indexes);
    await page.getByText("2 debug files missing").waitFor({ state: "detached" });
    await page.getByRole("button", { name: "Side by side" }).click();
    await page.locator(".compare pre").first().waitFor();
    const download = page.waitForEvent("download");
    await page.getByRole("button", { name: "Download" }).click();
    const saved = readFileSync(await (await download).path(), "utf8");
    assert.match(saved, /dk_rle_expand.*rle\.c:24/);
    await picture(page, "report");
    await harness.paste(page, "Dear diary");
    await page.getByRole("strong").getByText("not a crash report of a known format").waitFor();
    assert.deepEqual(sent.filter((url) => !url.startsWith("blob:")), []);
    assert.deepEqual(requested, loaded);
    const entries = await page.evaluate(() => performance.getEntriesByType("resource").map(({ name }) => name));
    assert.ok(entries.every((url) => url.startsWith(harness.url)), entries.join());
  });
});

testInBrowser("a profile is shown as a flame graph, and only the page's own script is loaded for it", async () => {
  const { pprof } = await import("../../../crates/symdex-cli/tests/serve/browser/profile.mjs");
  await harness.withBrowser(async (open) => {
    const page = await open();
    await page.getByRole("button", { name: "Symbolicate" }).waitFor();
    const loaded = [...requested];
    await drop(page, [{ name: "profile.pb", bytes: pprof }, ...indexes.filter(isOf("DemoKit"))]);
    await page.locator(".flame-graph title", { hasText: "abort_with" }).waitFor({ state: "attached" });
    await page.getByRole("region", { name: "Images without names" }).getByText("30.0 %").waitFor();
    await picture(page, "flame");
    assert.deepEqual(await harness.violations(page), []);
    assert.deepEqual(requested.slice(loaded.length), ["/assets/flamegraph.js"]);
  });
});

testInBrowser("the policy of the page forbids every connection", async () => {
  const attempts = {
    fetch: 'fetch("/index.html").then(() => "sent", () => "forbidden")',
    other: 'fetch("https://symdex.invalid/").then(() => "sent", () => "forbidden")',
    beacon: 'Promise.resolve(navigator.sendBeacon("/beacon", "x") ? "queued" : "forbidden")',
    socket: `new Promise((resolve) => {
      try {
        const socket = new WebSocket("ws://" + location.host);
        socket.onerror = () => resolve("forbidden");
        socket.onopen = () => resolve("sent");
      } catch { resolve("forbidden"); }
    })`,
    image: `new Promise((resolve) => {
      const image = new Image();
      image.onload = () => resolve("sent");
      image.onerror = () => resolve("forbidden");
      image.src = "https://symdex.invalid/x.png";
    })`,
  };
  const refused = [];
  const run = harness.withBrowser(async (open) => {
    const page = await open();
    const before = requested.length;
    for (const [name, attempt] of Object.entries(attempts)) {
      assert.notEqual(await page.evaluate(attempt), "sent", name);
    }
    assert.deepEqual(requested.slice(before), [], "nothing has reached the server");
    refused.push("all");
  });
  // The harness reports what the browser logs: each attempt is a violation of the policy.
  await assert.rejects(run, /Content Security Policy/);
  assert.deepEqual(refused, ["all"]);
});

testInBrowser("a dSYM is dropped, its index is built and answers, and it can be saved", async () => {
  await harness.withBrowser(async (open) => {
    const page = await open();
    await page.getByRole("button", { name: "Symbolicate" }).waitFor();
    const loaded = [...requested];
    await drop(page, [report]);
    await page.getByText("3 debug files missing").waitFor();
    await drop(page, [{ name: "DemoKit", bytes: readFileSync(testdata(DEMO_KIT)) }]);
    await page.getByText("Index built", { exact: true }).waitFor();
    await page.getByText("2 debug files missing").waitFor();
    await page.getByText("rle.c:16").first().waitFor();
    await picture(page, "built");
    const download = page.waitForEvent("download");
    await page.getByRole("button", { name: "Save the index" }).click();
    const file = await download;
    const { name, bytes } = indexes.find(isOf("DemoKit"));
    assert.equal(file.suggestedFilename(), name);
    assert.deepEqual(readFileSync(await file.path()), Buffer.from(bytes));
    assert.deepEqual(requested, loaded, "nothing has reached the server");
  });
});

testInBrowser("archives and damaged files are refused with what helps", async () => {
  await harness.withBrowser(async (open) => {
    const page = await open();
    const [{ bytes }] = indexes;
    await drop(page, [
      { name: "dsyms.zip", bytes: Buffer.from("PK\x03\x04".padEnd(64, "\0")) },
      { name: "cut.symdex", bytes: bytes.subarray(0, bytes.length - 9) },
      { name: "cut", bytes: readFileSync(testdata(DEMO_KIT)).subarray(0, 5000) },
    ]);
    await page.getByText("symdex build dsyms.zip -o indexes also reads archives").waitFor();
    await page.getByText("it was cut or appended to").waitFor();
    await page.getByText("the file is cut short").waitFor();
    await picture(page, "refused");
  });
});

testInBrowser("the page is accessible in both colour schemes and fits a phone", async () => {
  await harness.withBrowser(async (open) => {
    for (const colorScheme of ["light", "dark"]) {
      for (const viewport of [{ width: 1200, height: 900 }, PHONE]) {
        const at = `${colorScheme}-${viewport.width}`;
        const page = await open({ colorScheme, viewport, reducedMotion: "reduce" });
        const check = async (what) => {
          assert.deepEqual(await harness.violations(page), [], `${what}, ${at}`);
          assert.equal(await harness.hasSidewaysScroll(page), false, `${what}, ${at}: wider than the screen`);
          await picture(page, `${what}-${at}`);
        };
        await check("start");
        await drop(page, [report, ...indexes.filter(isOf("DemoKit"))]);
        await harness.waitForReport(page);
        await page.getByText("2 debug files missing").waitFor();
        await check("missing");
        await drop(page, indexes);
        await page.getByText("2 debug files missing").waitFor({ state: "detached" });
        await harness.openAll(page);
        await check("open");
        await page.context().close();
      }
    }
  });
});
