// The answers of lookups are those of the command.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Index, SymdexError } from "symdex";

import { engine } from "../engine.js";
import { built, builtWith, golden, isSwift, random, read, symdex, testWithCommand, testdata } from "./support.mjs";

const hexadecimal = (offset) => `0x${offset.toString(16)}`;

/** The answers of the command for the offsets, with its numbers as this package has them. */
function answersOf(file, offsets, options = []) {
  const input = offsets.map(hexadecimal).join("\n");
  const lines = symdex(["lookup", "--json", ...options, file], { input }).toString().trimEnd().split("\n");
  const number = (text) => (text === null ? null : Number(text));
  return lines.map((line) => {
    const { functions, error } = JSON.parse(line);
    assert.equal(error, undefined);
    if (functions.length === 0) return null;
    return functions.map(({ aliases, function_start: start, ...frame }) => {
      return { ...frame, function_start: number(start) };
    });
  });
}

/** The same of an index without readable names, in which the package cannot read Swift names. */
function expected(file, offsets, options) {
  const own = (frame) => (isSwift(frame.name) ? { ...frame, function: frame.name } : frame);
  return answersOf(file, offsets, options).map((frames) => frames?.map(own) ?? null);
}

/** Offsets in the image and past its end: all of a small one, some of a large one. */
function offsetsOf(index, count) {
  const { image_size: size } = index.metadata;
  const below = random(size);
  if (size <= count) return Array.from({ length: size + 16 }, (_, offset) => offset);
  return [0, size - 1, size, ...Array.from({ length: count }, () => below(size + 64))];
}

/** Compares with the answers that `expect` returns. */
function compare(file, bytes, count, expect = expected) {
  const index = Index.open(bytes);
  const offsets = offsetsOf(index, count);
  for (const [options, own] of [
    [[], {}],
    [["--lines", "exact", "--no-demangle"], { lines: "exact", demangle: false }],
  ]) {
    const answers = expect(file, offsets, options);
    const many = index.lookupMany(offsets, own);
    assert.equal(answers.length, offsets.length);
    offsets.forEach((offset, at) => {
      const where = `${file} ${hexadecimal(offset)}`;
      assert.deepEqual(many[at], answers[at], where);
      if (at % 7 === 0) assert.deepEqual(index.lookup(offset, own), answers[at], where);
    });
  }
  return offsets.length;
}

testWithCommand("the golden indexes have the answers of the command", () => {
  for (const name of golden) {
    const expect = name.includes("readable-names") ? answersOf : expected;
    compare(testdata(name), read(name), 4000, expect);
  }
});

testWithCommand("the indexes of the debug files of the repository have the answers of the command", () => {
  const { indexes } = built("demo", "dsyms", "elf");
  const compared = indexes.map(({ path, bytes }) => compare(path, bytes, 1000));
  assert.ok(compared.length > 20, `${compared.length} indexes`);
});

testWithCommand("an index with readable names has readable Swift names", () => {
  const isReadable = ({ name, function: shown }) => isSwift(name) && name !== shown;
  let swift = 0;
  for (const { path, bytes } of builtWith(["--readable-names"], "demo").indexes) {
    compare(path, bytes, 4000, (...asked) => {
      const answers = answersOf(...asked);
      swift += answers.flatMap((frames) => frames ?? []).filter(isReadable).length;
      return answers;
    });
  }
  assert.ok(swift > 50, `${swift} readable Swift names`);
});

test("frames are the innermost inlined function first", () => {
  const index = Index.open(read("golden/v1/inline-dwarf4-1.symdex"));
  const offset = index.imageOffset(0x104a343d0n, 0x104a34000n);
  assert.equal(offset, 0x3cf);
  const frames = index.lookup(offset);
  assert.deepEqual(
    frames.map((frame) => [frame.function, frame.line, frame.inlined]),
    [
      ["cell", 9, true],
      ["row", 16, true],
      ["mip", 6, true],
      ["pyramid", 11, false],
    ],
  );
  assert.equal(frames[0].function_start, frames[3].function_start);
  assert.equal(frames[3].function_start + frames[3].function_offset, offset);
  assert.equal(index.lookup(2 ** 40), null);
});

test("runtime addresses have 64 bits", () => {
  const index = Index.open(read("golden/v1/inline-dwarf4-1.symdex"));
  const kernel = 0xfffffe0007004000n;
  assert.equal(index.imageOffset(kernel + 0x3d0n, kernel), 0x3cf);
  assert.equal(index.imageOffset(kernel + 0x3d0n, kernel, { returnAddress: false }), 0x3d0);
  assert.equal(index.imageOffset(0x1000, 0x2000), null, "below the image");
  assert.equal(index.imageOffset(kernel, 0), null, "no image is so large");
  for (const address of [2 ** 60, -1, 1.5, NaN, 1n << 64n, "0x10"]) {
    assert.throws(() => index.imageOffset(address, 0), RangeError, String(address));
  }
  for (const offset of [2 ** 53, -1, 0.5, Infinity, 1n << 60n]) {
    assert.throws(() => index.lookup(offset), RangeError, String(offset));
    assert.throws(() => index.lookupMany([0, offset]), RangeError, String(offset));
  }
  assert.throws(() => index.lookup(0, { lines: "all" }), TypeError);
});

test("the metadata describe the image", () => {
  const index = Index.open(read("golden/v1/inline-dwarf4-1.symdex"));
  const { base, id, arch, grade, counts, partial, executable } = index.metadata;
  assert.equal(typeof base, "bigint");
  assert.match(id, /^[0-9a-f]{32}$/);
  assert.equal(index.id, id);
  assert.equal(arch, "arm64");
  assert.equal(grade, "lines");
  assert.ok(counts.functions > 0 && Array.isArray(partial));
  assert.ok(executable.every(([start, end]) => start < end));
});

test("a closed index says so, and closing it again does nothing", () => {
  const index = Index.open(read(golden[0]));
  const other = Index.open(read(golden[1]));
  index.close();
  index.close();
  const isClosed = (error) => error instanceof SymdexError && error.kind === "closed";
  assert.throws(() => index.lookup(0), isClosed);
  assert.throws(() => index.metadata, isClosed);
  assert.ok(other.metadata.id, "the other index is open");
  other.close();
});

test("strings that JavaScript has already, and strings that it has forgotten, leave the answers as they are", () => {
  const options = [{}, { demangle: false }, { lines: "exact" }];
  const answers = (index) => {
    const below = random(1);
    const offsets = Array.from({ length: 200 }, () => below(index.metadata.image_size));
    return options.flatMap((own) => [...offsets.map((at) => index.lookup(at, own)), ...index.lookupMany(offsets, own)]);
  };
  const all = golden.map((name) => {
    // A new engine has no strings yet.
    engine().isBroken = true;
    const bytes = read(name);
    return { name, bytes, expected: answers(Index.open(bytes)) };
  });
  const isReadable = ({ name, function: shown }) => name !== shown;
  assert.ok(all.some(({ expected }) => expected.some((frames) => frames?.some(isReadable))));
  const { strings } = engine().answers;
  let isForgotten = false;
  // An index that is opened anew has strings of its own.
  for (let round = 0; !isForgotten; round += 1) {
    const before = strings.length;
    for (const { name, bytes, expected } of all) {
      const index = Index.open(bytes);
      if (round % 100 === 0 || strings.length < before) assert.deepEqual(answers(index), expected, name);
      else index.lookupMany(Array.from({ length: 100 }, (_, at) => at * 16));
      index.close();
    }
    isForgotten = strings.length < before;
    assert.ok(strings.length < 300_000, `${strings.length} strings`);
  }
});

test("indexes that are closed leave their memory to others", () => {
  const bytes = read(golden[0]);
  const open = () => Index.open(bytes).close();
  for (let turn = 0; turn < 1000; turn += 1) open();
  const size = () => engine().exports.memory.buffer.byteLength;
  const before = size();
  for (let turn = 0; turn < 20_000; turn += 1) open();
  assert.equal(size(), before);
});
