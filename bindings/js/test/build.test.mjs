// Indexes are built as by the command.

import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";

import { Index, SymdexError, buildIndexes } from "symdex";

import { built, random, read, testWithCommand, testdata } from "./support.mjs";

const KINDS = ["damaged", "unsupported", "not_found", "limit"];
const inside = (dsym) => `dsyms/${dsym}.dSYM/Contents/Resources/DWARF/${dsym}`;
const dsyms = readdirSync(testdata("dsyms")).map((name) => path.basename(name, ".dSYM"));

testWithCommand("each index has the bytes of the command's", () => {
  let compared = 0;
  for (const dsym of dsyms) {
    const expected = built(inside(dsym)).indexes.map(({ bytes }) => Buffer.from(bytes).toString("base64"));
    const own = buildIndexes(read(inside(dsym)), { name: dsym });
    assert.deepEqual(own.map((bytes) => Buffer.from(bytes).toString("base64")).sort(), expected.sort(), dsym);
    compared += own.length;
  }
  assert.ok(compared > 20, `${compared} indexes`);
});

test("the indexes of a universal file are in its order, and can be opened", () => {
  const opened = buildIndexes(read(inside("fat"))).map((bytes) => Index.open(bytes));
  assert.deepEqual(opened.map((index) => index.metadata.arch), ["x86_64", "arm64", "arm64e"]);
  assert.ok(opened.every((index) => index.metadata.counts.functions > 0));
  opened.forEach((index) => index.close());
});

test("what is wrong with one architecture leaves the others", () => {
  const bytes = read(inside("fat"));
  const [first, ...others] = buildIndexes(bytes.subarray(0, bytes.length - 100));
  assert.equal(Index.open(first).metadata.arch, "x86_64");
  const last = others.at(-1);
  assert.ok(last instanceof SymdexError && last.kind === "damaged", String(last));
  assert.match(last.message, /cut short: the arm64e slice/);
});

test("other files are refused, with what they are", () => {
  const refused = (bytes, message) =>
    assert.throws(
      () => buildIndexes(bytes),
      (error) => error instanceof SymdexError && error.kind === "unsupported" && message.test(error.message),
    );
  refused(new Uint8Array(), /expected a Mach-O file/);
  refused(new TextEncoder().encode("Incident Identifier: 1"), /expected a Mach-O file/);
  refused(new Uint8Array([0x50, 0x4b, 3, 4, 0, 0, 0, 0]), /zip/);
  assert.throws(() => buildIndexes("text".length), TypeError);
});

test("a damaged debug file has an index or a typed error, and the module goes on", () => {
  const bytes = new Uint8Array(readFileSync(testdata(inside("inline-dwarf4"))));
  const below = random(bytes.length);
  for (let turn = 0; turn < 300; turn += 1) {
    const changed = bytes.slice();
    for (let change = 0; change < 4; change += 1) changed[below(changed.length)] ^= 1 << below(8);
    const errors = [];
    try {
      errors.push(...buildIndexes(changed).filter((one) => one instanceof SymdexError));
    } catch (error) {
      errors.push(error);
    }
    for (const error of errors) assert.ok(KINDS.includes(error.kind), `${error.kind}: ${error.stack}`);
  }
});
