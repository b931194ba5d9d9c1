// Reports are answered as by `symdex symbolicate`.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Index, SymdexError, neededImages, symbolicate, symbolicateWith } from "symdex";

import { built, builtWith, isSwift, read, symdex, testWithCommand, testdata } from "./support.mjs";

const crash = read("demo/demo.crash");

/** The JSON of the command, as the package has it: Swift names as they are. */
function asPackage(text) {
  const { report, ...view } = JSON.parse(text);
  for (const frame of view.threads.flatMap((thread) => thread.frames)) {
    frame.functions = frame.functions.map((one) => (isSwift(one.name) ? { ...one, function: one.name } : one));
  }
  // The command states the path of an index, and the package its name.
  for (const image of view.images.filter(({ source }) => source)) image.source = image.source.split("/").pop();
  return view;
}

testWithCommand("the JSON of the demo's report is that of the command, with each set of options", () => {
  const { folder, indexes } = built("demo");
  const open = indexes.map(({ bytes }) => Index.open(bytes));
  for (const [options, own] of [
    [[], {}],
    [["--lines", "exact", "--addresses", "as-given"], { lines: "exact", addresses: "as-given" }],
    [["--no-inlines", "--no-demangle"], { inlines: false, demangle: false }],
  ]) {
    const arguments_ = ["symbolicate", "--format", "json", "--index", folder, ...options, testdata("demo/demo.crash")];
    assert.deepEqual(symbolicate(crash, open, own), asPackage(symdex(arguments_)));
  }
});

testWithCommand("a report without Swift functions is rewritten byte for byte as by the command", () => {
  const { folder, indexes } = built("demo/DemoKit.framework.dSYM");
  const open = indexes.map(({ bytes }) => Index.open(bytes));
  for (const format of ["native", "text"]) {
    const expected = symdex(["symbolicate", "--format", format, "--index", folder, testdata("demo/demo.crash")]);
    const own = symbolicate(crash, open, { format });
    assert.equal(typeof own, format === "text" ? "string" : "object");
    assert.equal(Buffer.from(own).toString(), expected.toString());
    assert.match(expected.toString(), /rle\.c:16/);
  }
});

testWithCommand("with readable names in the indexes, Swift functions are as the command writes them", () => {
  const { folder, indexes } = builtWith(["--readable-names"], "demo");
  const open = indexes.map(({ bytes }) => Index.open(bytes));
  for (const format of ["native", "text"]) {
    const expected = symdex(["symbolicate", "--format", format, "--index", folder, testdata("demo/demo.crash")]);
    assert.equal(Buffer.from(symbolicate(crash, open, { format })).toString(), expected.toString());
    assert.match(expected.toString(), /closure #1 in/);
  }
});

testWithCommand("images without an index are listed, with indexes that are near", () => {
  const { indexes } = built("demo");
  const open = indexes.map(({ bytes, name }) => Index.open(bytes, { name }));
  const ids = new Map(open.map((index) => [index.metadata.name, index.id]));
  const without = open.filter((index) => index.metadata.name !== "DemoKit");
  const { images } = symbolicate(crash, without);
  const byName = (name) => images.find((image) => image.name === name);
  assert.equal(byName("DemoKit").status, "missing");
  assert.equal(byName("DemoKit").reason, "no index or debug file has its id");
  assert.equal(byName("DemoApp").status, "found");
  assert.equal(byName("DemoApp").source, `${ids.get("DemoApp")}.symdex`);
  const otherBuild = crash.toString().replaceAll(ids.get("DemoKit"), "0".repeat(32));
  const text = new TextDecoder().decode(crash);
  const dashed = /<?4c4c4427-?5555-?3144-?a19d-?bd913be790e0>?/gi;
  const changed = text.replace(dashed, (id) => id.replace(/4c4c4427/i, "00000000"));
  assert.notEqual(changed, text, otherBuild.slice(0, 0));
  const near = symbolicate(changed, open).images.find((image) => image.name === "DemoKit").near;
  assert.equal(near[0].nearness, "other_build");
  assert.equal(near[0].id, ids.get("DemoKit"));
  const assumed = symbolicate(changed, open, { assume: { DemoKit: ids.get("DemoKit") } });
  assert.equal(assumed.images.find((image) => image.name === "DemoKit").matched_by, "assumed");
});

testWithCommand("a report that states no ids is matched by name if asked to", () => {
  const { indexes } = built("demo");
  const open = indexes.map(({ bytes }) => Index.open(bytes));
  const text = new TextDecoder().decode(crash);
  const unlisted = text.slice(0, text.indexOf("Binary Images:"));
  const statuses = (options) => symbolicate(unlisted, open, options).images.map((image) => image.matched_by);
  assert.ok(statuses({}).every((by) => by === undefined));
  assert.ok(statuses({ matchByName: true }).includes("name"));
});

testWithCommand("a finder is asked once for each image, and may be asynchronous", async () => {
  const { indexes } = built("demo");
  const byId = new Map(indexes.map(({ bytes }) => Index.open(bytes)).map((index) => [index.id, index]));
  const asked = [];
  const answered = await symbolicateWith(crash, async (image) => {
    asked.push(image.name);
    await new Promise((resolve) => setTimeout(resolve, 1));
    return byId.get(image.id);
  });
  assert.deepEqual(answered, symbolicate(crash, byId.values()));
  assert.equal(new Set(asked).size, asked.length);
  assert.ok(asked.includes("DemoKit"));
  const needed = neededImages(crash);
  assert.deepEqual(needed.map((image) => image.name), asked);
  assert.equal(needed.find((image) => image.name === "DemoApp").is_app, true);
  await assert.rejects(
    symbolicateWith(crash, () => Promise.reject(new Error("the store is closed"))),
    /the store is closed/,
  );
});

testWithCommand("a damaged index is told from a missing one, and another index of the image answers", () => {
  const { indexes } = built("demo/DemoKit.framework.dSYM");
  const [{ bytes }] = indexes;
  const intact = Index.open(bytes, { name: "intact" });
  const image = (...open) => symbolicate(crash, open).images.find(({ name }) => name === "DemoKit");
  let isTold = false;
  for (let at = bytes.length >> 2; at < bytes.length && !isTold; at += 16) {
    const changed = bytes.slice();
    changed[at] ^= 0x40;
    let damaged;
    try {
      damaged = Index.open(changed, { name: "damaged" });
    } catch {
      continue;
    }
    const { status, reason } = image(damaged);
    if (status !== "damaged") continue;
    isTold = true;
    assert.match(reason, /^damaged: parts of it are damaged/);
    assert.match(image(damaged, intact).reason, /answered from|damaged/);
    const { threads } = symbolicate(crash, [damaged, intact]);
    assert.deepEqual(
      threads.flatMap(({ frames }) => frames.map((frame) => frame.functions)),
      symbolicate(crash, [intact]).threads.flatMap(({ frames }) => frames.map((frame) => frame.functions)),
    );
  }
  assert.ok(isTold, "a page that the report needs was damaged");
});

test("a closed index cannot answer a report", () => {
  const index = Index.open(read("golden/v1/plain-1.symdex"));
  index.close();
  const isClosed = (error) => error instanceof SymdexError && error.kind === "closed";
  assert.throws(() => symbolicate(crash, [index]), isClosed);
});
