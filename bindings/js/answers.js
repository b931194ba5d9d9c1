// The answers of lookups, from the numbers and the text that src/answers.rs describes.

import { SymdexError } from "./error.js";

const DAMAGED = 0xffffffff;
const NONE = 0xffffffff;
const INLINED = 1;
const FROM_SYMBOL_TABLE = 2;
const HALF = 2 ** 32;

/** How many numbers a frame has. */
const FRAME_LEN = 7;
/** The most numbers of cached answers: 8 MiB. */
const CAPACITY = 1 << 21;
/** An answer counts as so many numbers at least, for its place in a map. */
const LEAST = 1 + FRAME_LEN;

/** The answers of an engine: their strings, each of which is decoded once, and a cache of the answers themselves. */
export class Answers {
  /** The strings, by their numbers in src/sent_strings.rs. */
  strings = [];
  /** The numbers of cached answers, up to the end. */
  #cached = new Uint32Array();
  #end = 0;
  /** The memory of the module, and where the next answer is in it. */
  #numbers;
  #at = 0;
  /** Whether strings of a call may not have been read, for lack of stack. */
  #isUnread = false;
  /** The maps of all open indexes. */
  #places = new Set();

  /** Maps from offsets to the places of cached answers, one for each choice of options of an index. */
  open() {
    const places = Array.from({ length: 4 }, () => new Map());
    places.forEach((map) => this.#places.add(map));
    return places;
  }

  /** Forgets the answers of an index. */
  close(places) {
    places.forEach((map) => this.#places.delete(map));
  }

  /** The frames of the cached answer at a place. */
  cached(place, offset) {
    return framesAt(this.#cached, place, this.strings, offset);
  }

  /** Must come before each call whose answers are read. */
  prepare(exports) {
    // The module then sends the strings again.
    if (this.#isUnread) exports.forget_strings();
    this.#isUnread = true;
  }

  /** Prepares {@link Answers#next} for the answers of a call of `engine`, which has returned `address`. */
  begin(engine, address) {
    if (address === 0) throw new SymdexError("closed", "the index is closed");
    engine.refresh();
    const { numbers } = engine;
    const at = address >>> 2;
    const known = numbers[at];
    const strings = this.strings;
    if (strings.length > known) {
      strings.length = known;
      this.#clear();
    }
    const added = numbers[at + 4];
    if (added > 0) this.#decode(engine.decode(numbers[at + 1], numbers[at + 2]), numbers, numbers[at + 3] >>> 2, added);
    this.#isUnread = false;
    this.#numbers = numbers;
    this.#at = at + 5;
  }

  /** The next answer of the call: the frames at `offset`, null for a gap, or the error that says what is damaged. */
  next(offset, places) {
    const numbers = this.#numbers;
    const at = this.#at;
    const count = numbers[at];
    if (count === DAMAGED) {
      this.#at += 2;
      return new SymdexError("damaged", this.strings[numbers[at + 1]]);
    }
    const len = 1 + count * FRAME_LEN;
    this.#at += len;
    this.#keep(numbers, at, len, offset, places);
    return framesAt(numbers, at, this.strings, offset);
  }

  /** Adds strings, whose lengths are `count` numbers at `at`, and which are `text` together. */
  #decode(text, numbers, at, count) {
    let end = 0;
    for (let added = 0; added < count; added += 1) {
      const start = end;
      end += numbers[at + added];
      this.strings.push(text.substring(start, end));
    }
  }

  /** Caches the answer of `len` numbers at `at`. */
  #keep(numbers, at, len, offset, places) {
    const taken = Math.max(len, LEAST);
    if (taken > CAPACITY) return;
    if (this.#cached.length === 0) this.#cached = new Uint32Array(CAPACITY);
    if (this.#end + taken > CAPACITY) this.#clear();
    const cached = this.#cached;
    const end = this.#end;
    for (let copied = 0; copied < len; copied += 1) cached[end + copied] = numbers[at + copied];
    places.set(offset, end);
    this.#end = end + taken;
  }

  #clear() {
    this.#places.forEach((map) => map.clear());
    this.#end = 0;
  }
}

/** The frames of the answer at `at`, or null for a gap. */
function framesAt(numbers, at, strings, offset) {
  const count = numbers[at];
  if (count === 0) return null;
  const frames = new Array(count);
  for (let number = 0, from = at + 1; number < count; number += 1, from += FRAME_LEN) {
    const flags = numbers[from];
    const line = numbers[from + 1];
    const high = numbers[from + 3];
    const start = high === NONE ? null : high * HALF + numbers[from + 2];
    frames[number] = {
      function: stringAt(strings, numbers[from + 5]),
      name: stringAt(strings, numbers[from + 4]),
      file: stringAt(strings, numbers[from + 6]),
      line: line === NONE ? null : line,
      inlined: (flags & INLINED) !== 0,
      table: (flags & FROM_SYMBOL_TABLE) !== 0 ? "symbol_table" : "dwarf",
      function_start: start,
      function_offset: start === null ? null : offset - start,
    };
  }
  return frames;
}

const stringAt = (strings, number) => (number === NONE ? null : strings[number]);
