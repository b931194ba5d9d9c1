// The first answer says that a debug file is being fetched; the next one has its answers.

import assert from "node:assert/strict";
import { crash, paste, waitForCount, withBrowser } from "./harness.mjs";

/** The answer of the server, as it is while DemoKit is being fetched. */
function whileFetching(report) {
  const kit = report.images.findIndex((image) => image.name === "DemoKit");
  Object.assign(report.images[kit], { status: "fetching", reason: "its debug file is being fetched" });
  for (const frame of report.threads.flatMap((thread) => thread.frames)) {
    if (frame.image === kit) Object.assign(frame, { status: "fetching", functions: [] });
  }
  return report;
}

await withBrowser(async (open) => {
  const page = await open();
  let asked = 0;
  let goOn;
  const seen = new Promise((resolve) => (goOn = resolve));
  await page.route(/v1.symbolicate$/, async (route) => {
    const response = await route.fetch();
    asked += 1;
    if (asked === 1) {
      const json = whileFetching(await response.json());
      await route.fulfill({ json, headers: { "Retry-After": "0" } });
    } else {
      await seen;
      await route.fulfill({ response });
    }
  });
  await paste(page, crash);
  await page.getByText("The server fetches debug files: DemoKit.").waitFor();
  const first = page.locator(".threads .frame").first();
  assert.match(await first.textContent(), /DemoKit \+ 0x4158debug file is being fetched/);
  await page.getByRole("region", { name: "1 debug file missing" }).waitFor();
  goOn();
  await first.getByText("demokit::FaultLog::append(demokit::Fault const&)").waitFor();
  await waitForCount(page.getByText("The server fetches debug files"), 0);
  await page.waitForFunction(() => document.activeElement.id === "report-title");
  assert.equal(asked, 2);
});
