// Whatever the bytes are, there is an answer or a typed error, and the module goes on.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Index, SymdexError, neededImages, symbolicate } from "symdex";

import { golden, random, read } from "./support.mjs";

const OF_INDEXES = ["unsupported", "damaged"];
const OF_REPORTS = ["unsupported", "damaged"];

/** The kind of the error that `run` throws, which must be one of `kinds`; null if it throws none. */
function kindOf(run, kinds) {
  try {
    run();
    return null;
  } catch (error) {
    if (!(error instanceof SymdexError)) throw error;
    assert.ok(kinds.includes(error.kind), `${error.kind}: ${error.message}`);
    assert.ok(error.message.length > 10, error.message);
    return error.kind;
  }
}

test("bytes that are no index are refused, with what they are", () => {
  const refused = (bytes) => {
    assert.equal(kindOf(() => Index.open(bytes), OF_INDEXES), "unsupported");
  };
  refused(new Uint8Array());
  refused(new TextEncoder().encode("Incident Identifier: 1"));
  refused(read("demo/DemoPlain.dylib"));
  assert.throws(() => Index.open(read("demo/DemoPlain.dylib")), /a Mach-O file/);
  assert.throws(() => Index.open(null), TypeError);
  assert.throws(() => Index.open(7), TypeError);
});

test("every index that is cut is refused", () => {
  const bytes = read("golden/v1/plain-1.symdex");
  for (let size = 0; size < bytes.length; size += 1) {
    assert.notEqual(kindOf(() => Index.open(bytes.subarray(0, size)), OF_INDEXES), null, `${size} bytes`);
  }
});

test("an index with a changed byte is refused, or answers right or not at all", () => {
  let [opened, damaged] = [0, 0];
  for (const name of golden) {
    const bytes = read(name);
    const below = random(bytes.length);
    const intact = Index.open(bytes);
    const offsets = Array.from({ length: 64 }, () => below(intact.metadata.image_size));
    const right = intact.lookupMany(offsets);
    for (let turn = 0; turn < 400; turn += 1) {
      const changed = bytes.slice();
      changed[below(changed.length)] ^= 1 << below(8);
      kindOf(() => {
        const index = Index.open(changed);
        opened += 1;
        index.lookupMany(offsets).forEach((answer, at) => {
          if (answer instanceof SymdexError) {
            damaged += 1;
            assert.equal(answer.kind, "damaged");
            assert.throws(() => index.lookup(offsets[at]), SymdexError);
          } else {
            assert.deepEqual(answer, right[at], name);
          }
        });
      }, OF_INDEXES);
    }
  }
  assert.ok(opened > 100 && damaged > 100, `${opened} opened, ${damaged} damaged answers`);
});

test("a report that is cut or changed has a result or a typed error", () => {
  const crash = read("demo/demo.crash");
  const below = random(1);
  const index = Index.open(read(golden[0]));
  for (let turn = 0; turn < 300; turn += 1) {
    const changed = crash.slice(0, turn % 2 === 0 ? crash.length : below(crash.length));
    for (let byte = 0; byte < 8 && changed.length > 0; byte += 1) changed[below(changed.length)] = below(256);
    kindOf(() => symbolicate(changed, [index]), OF_REPORTS);
    kindOf(() => neededImages(changed), OF_REPORTS);
  }
  assert.equal(kindOf(() => symbolicate("Dear diary", []), OF_REPORTS), "unsupported");
});

test("an option that does not exist, or of the wrong type, is an error", () => {
  const isUsage = (error) => error instanceof SymdexError && error.kind === "usage";
  assert.throws(() => symbolicate(read("demo/demo.crash"), [], { inline: false }), isUsage);
  assert.throws(() => symbolicate(read("demo/demo.crash"), [], { lines: "some" }), isUsage);
  assert.throws(() => symbolicate(read("demo/demo.crash"), [], { format: "xml" }), isUsage);
});

test("without memory for the bytes, the error says so and the open indexes stay", () => {
  const index = Index.open(read(golden[0]));
  const huge = { get length() { return 2 ** 31; } };
  Object.setPrototypeOf(huge, Uint8Array.prototype);
  assert.throws(() => Index.open(huge), (error) => error instanceof SymdexError && error.kind === "limit");
  assert.ok(index.lookupMany([0]).length === 1);
});

/** What `iterable` yields. Then it runs `last`. */
function* thenRun(iterable, last) {
  yield* iterable;
  last();
}

test("code of the caller that closes the index in a call gets an error, and no answer of another index", () => {
  const [plain, other] = [read("golden/v1/plain-1.symdex"), read("golden/v1/inline-dwarf4-1.symdex")];
  const isClosed = { name: "SymdexError", kind: "closed" };
  // The answers that are read now do not have the strings of the calls below.
  const large = Index.open(other);
  large.lookupMany(new Float64Array(100_000).fill(0x3cf));
  for (const opensAnother of [false, true]) {
    const others = [];
    const replaced = (index) => () => {
      index.close();
      if (opensAnother) others.push(Index.open(other));
    };
    const of = (call) => {
      const index = Index.open(plain);
      assert.throws(() => call(index, replaced(index)), isClosed);
    };
    of((index, replace) => index.lookupMany(thenRun([0, 1], replace)));
    of((index, replace) => index.lookupMany([0], { get lines() { return void replace(); } }));
    of((index, replace) => index.lookup(0, { get demangle() { return void replace(); } }));
    of((index, replace) => symbolicate("App 0x1 0x1", thenRun([index], replace)));
    of((index, replace) => symbolicate("App 0x1 0x1", [index], { get format() { return void replace(); } }));
    others.forEach((index) => assert.notEqual(index.lookup(0x3cf), null));
  }
  assert.notEqual(large.lookup(0x3cf), null);
});
