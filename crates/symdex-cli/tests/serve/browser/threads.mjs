// Threads: where the program crashed, folded functions, a search, frames of the app, a stack as text, registers.

import assert from "node:assert/strict";
import { crash, paste, waitForCount, withBrowser } from "./harness.mjs";

const headline = (page) => page.locator(".headline");
const threads = (page) => page.locator(".threads > details");

await withBrowser(async (open) => {
  const page = await open();
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await paste(page, crash);
  assert.equal(
    await headline(page).textContent(),
    "Crashed in demokit::Ring<demokit::Fault, 8>::push(demokit::Fault const&) at TileCache.hpp:32",
  );

  // The stack as text.
  await page.getByRole("button", { name: "Copy stack" }).first().click();
  await page.locator("#live", { hasText: "Copied the stack of Thread 0 Crashed" }).waitFor({ state: "attached" });
  const stack = (await page.evaluate(() => navigator.clipboard.readText())).split("\n");
  assert.equal(stack[0], "Thread 0 Crashed");
  assert.match(stack[1], /^0 +DemoKit +demokit::Ring<.*>::push\(.*\) \(TileCache\.hpp:32\) \[inlined\]$/);

  // The registers of the thread that has them.
  await page.getByText("35 registers").click();
  const registers = page.locator(".registers dl > div");
  await waitForCount(registers, 35);
  assert.equal(await registers.first().textContent(), "x00xecdb");

  // A search opens the threads that have it, and leaves the others out.
  const search = page.getByLabel("Search in threads");
  await search.fill("PREFETCHER");
  await page.getByText(/^\d+ of 52 frames, in 1 thread$/).waitFor();
  await waitForCount(threads(page), 1);
  await page.getByText("demokit::Prefetcher::wait_for_work()").waitFor();
  await search.fill("no such function");
  await page.getByText("0 of 52 frames, in 0 threads").waitFor();
  await search.fill("");
  await waitForCount(threads(page), 4);
  await page.getByLabel("App frames only").check();
  await page.getByText(/ of 52 frames, in \d threads$/).waitFor();
  await waitForCount(page.locator(".threads .folded"), 0);
  assert.equal(await page.locator(".threads .frame:not(.app)").count(), 0);
  await page.getByLabel("App frames only").uncheck();
  await page.locator(".threads .folded").first().waitFor();

  // The crash is in the innermost frame of the app, even if the system is further in.
  await page.getByRole("button", { name: "Close" }).click();
  const inSystem = crash.replace(
    "Thread 0 Crashed:\n",
    "Thread 0 Crashed:\n0   libsystem_c.dylib  0x1a0000010 abort + 16\n",
  );
  await paste(page, inSystem);
  assert.match(await headline(page).textContent(), /^Crashed in .*::push\(.*:32 while calling abort$/);

  // The stack of an exception comes before the crashed thread, which only shows how it ended.
  await page.getByRole("button", { name: "Close" }).click();
  const thrown = "Last Exception Backtrace:\n0   DemoKit   0x0000000104990134 0x10498c000 + 16692\n\n";
  await paste(page, crash.replace("Thread 0 name:", `${thrown}Thread 0 name:`));
  assert.equal(await threads(page).first().locator(".thread-name").textContent(), "Last Exception Backtrace");
  await headline(page).getByText("demokit::").waitFor();

  // What the program did, as a sanitizer says it. There are no registers.
  await page.getByRole("button", { name: "Close" }).click();
  const access = "WRITE of size 8 at 0x602000000014 thread T0";
  const asan = `==7==ERROR: AddressSanitizer: heap-buffer-overflow on address 0x602000000014 at pc 0x55d1003b8\n${access}
    #0 0x55d1003b8 in fill (/opt/tool+0x3b8) (BuildId: 00112233445566778899aabbccddee0112233445)\n`;
  await paste(page, asan);
  await page.getByRole("heading", { name: "AddressSanitizer: heap-buffer-overflow" }).waitFor();
  await page.locator(".reason").getByText(access).waitFor();
  assert.equal(await headline(page).textContent(), "Crashed in fill");
  await waitForCount(page.locator(".registers"), 0);

  // Of many functions in one frame, those between the innermost and the outermost one are folded.
  await page.getByRole("button", { name: "Close" }).click();
  await page.route(/v1.symbolicate$/, async (route) => {
    const response = await route.fetch();
    const json = await response.json();
    const [frame] = json.threads[0].frames;
    assert.equal(frame.functions.length, 3);
    frame.functions.splice(1, 0, { ...frame.functions[1], function: "also_inlined" });
    await route.fulfill({ response, json });
  });
  await paste(page, crash);
  const inlines = page.locator(".frame .inlines");
  await waitForCount(inlines, 1);
  const inside = inlines.getByText("also_inlined");
  assert.equal(await inside.isVisible(), false);
  await inlines.getByText("2 inlined functions between").click();
  await inside.waitFor();
});
