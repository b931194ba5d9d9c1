// A profile is shown as a flame graph, with the images that lack names. Names with HTML in them are text.

import assert from "node:assert/strict";
import { hasSidewaysScroll, violations, waitForCount, waitForReport, withBrowser } from "./harness.mjs";
import { ABORT, ATTACK, STRINGS, field, pprof, string } from "./profile.mjs";

/** The frames that are drawn, by row from the top: what the title of each says. */
const drawn = (page) =>
  page.locator(".flame-graph g > title").evaluateAll((all) => {
    const rows = all.map((title) => [title.parentElement.getBoundingClientRect(), title.textContent]);
    return rows.toSorted(([a], [b]) => a.top - b.top || a.left - b.left).map(([, text]) => text);
  });

await withBrowser(async (open) => {
  for (const options of [{}, { colorScheme: "dark", viewport: { width: 360, height: 780 } }]) {
    const page = await open(options);
    await page.evaluate(() => {
      window.violated = [];
      document.addEventListener("securitypolicyviolation", (event) => window.violated.push(event.violatedDirective));
    });
    await page.locator("#report-files").setInputFiles({ name: "profile.pb", mimeType: "", buffer: pprof });
    await waitForReport(page);

    // The samples of the last kind, as pprof shows them; inlined functions are frames.
    await page.locator(".flame-graph g").first().waitFor();
    await page.locator(".d3-flame-graph-label", { hasText: "All samples" }).waitFor();
    const inlined = "demokit::Ring<demokit::Fault, 8>::push(demokit::Fault const&)";
    assert.deepEqual(await drawn(page), [
      "All samples: 100.0 %, 10 nanoseconds",
      `${ATTACK}::run: 100.0 %, 10 nanoseconds`,
      "demokit::Decoder::on_mismatch(void*, unsigned int): 70.0 %, 7 nanoseconds",
      `[${ATTACK.split("/").pop()}]: 30.0 %, 3 nanoseconds`,
      "demokit::Decoder::fail(unsigned int) const: 70.0 %, 7 nanoseconds",
      "demokit::(anonymous namespace)::abort_with(demokit::Fault const&): 60.0 %, 6 nanoseconds",
      "demokit::FaultLog::append(demokit::Fault const&): 60.0 %, 6 nanoseconds",
      `${inlined}: 60.0 %, 6 nanoseconds`,
    ]);
    const missing = page.getByRole("region", { name: "Images without names" }).locator("tbody tr");
    assert.deepEqual(await missing.allTextContents(), [`${ATTACK.split("/").pop()}30.0 %`]);

    // The other kind.
    await page.getByLabel("Samples of").selectOption({ label: "wall (nanoseconds)" });
    const all = page.locator(".flame-graph title", { hasText: "All samples: 100.0 %, 300 nanoseconds" });
    await all.waitFor({ state: "attached" });
    assert.deepEqual(await missing.allTextContents(), [`${ATTACK.split("/").pop()}33.3 %`]);

    // A search, and a frame alone with those that call it.
    await page.getByLabel("Search in the graph").fill("Decoder::FAIL");
    await page.getByText("66.7 % of the samples").waitFor();
    await page.locator(".flame-graph g", { hasText: "on_mismatch" }).last().click();
    await waitForCount(page.locator(".flame-graph g"), 7);
    assert.equal(await all.count(), 1);
    await page.getByRole("button", { name: "Show all" }).click();
    await waitForCount(page.locator(".flame-graph g"), 8);

    assert.deepEqual(await violations(page), []);
    assert.equal(await hasSidewaysScroll(page), false);
    const ran = await page.evaluate(() => [window.ran, document.images.length, window.violated]);
    assert.deepEqual(ran, [undefined, 0, []]);
    await page.context().close();
  }

  // OpenTelemetry has positions instead of ids; without values, each time is a sample. Stacks have a largest depth.
  const page = await open();
  const threeTimes = Array(3 * 8).fill([0]);
  const profile = [
    field(1, [field(1, string("cpu")), field(2, string("nanoseconds"))]),
    field(2, [field(1, 1), field(4, [[6], [1]])]),
    field(2, [field(1, 1), field(5, threeTimes)]),
  ];
  const otlp = [
    field(1, [field(2, [field(2, profile)])]),
    field(2, [
      field(1, []),
      field(1, [field(4, string("/DemoKit"))]),
      field(2, []),
      field(2, [field(1, 1), field(2, ABORT)]),
      field(2, [field(1, 1), field(3, [field(1, 1)]), field(3, [field(1, 2)])]),
      field(3, []),
      field(3, [field(1, string("known"))]),
      field(3, [field(1, string("cpu"))]),
      ...STRINGS.map((text) => field(5, text)),
      field(7, []),
      field(7, [field(1, [[1], [2]])]),
    ]),
  ].flat();
  const read = await page.evaluate(async (bytes) => {
    const { MAX_DEPTH, READERS, missingOf, treeOf } = await import("./assets/profile.js");
    const [kind] = READERS["otlp-profile"](new Uint8Array(bytes));
    const path = [];
    for (let at = treeOf(kind).tree; at; at = at.children[0]) path.push(`${at.name} ${at.value}`);
    let depth = -1;
    const samples = [{ stack: Array(5000).fill(0), value: 1 }];
    const { tree, isCut } = treeOf({ framesAt: () => [{ name: "f", image: "" }], samples });
    for (let at = tree; at; at = at.children[0]) depth += 1;
    return [kind.type, kind.unit, path, missingOf(kind), isCut, depth === MAX_DEPTH];
  }, otlp);
  assert.deepEqual(read, [
    "cpu",
    "nanoseconds",
    ["All samples 10", "cpu 10", "known 10", "[DemoKit] 10"],
    [["DemoKit", 10]],
    true,
    true,
  ]);
});
