// The answers of lookups, from the numbers and the text that src/answers.rs describes.

import { SymdexError } from "./error.js";

const DAMAGED = 0xffffffff;
const NONE = 0xffffffff;
const SAME = 0xfffffffe;
const INLINED = 1;
const FROM_SYMBOL_TABLE = 2;
const HALF = 2 ** 32;

/** Reads the answers of one call, one after the other. */
export class AnswerReader {
  #numbers;
  #at;
  #text;
  #textAt = 0;

  /** The answers of the last call of `engine`. */
  constructor(engine) {
    this.#text = engine.text();
    this.#numbers = engine.numbers;
    this.#at = engine.exports.numbers() >>> 2;
  }

  /** The frames at `offset`, null for a gap, or the error that says how the index is damaged. */
  next(offset) {
    const count = this.#numbers[this.#at++];
    if (count === 0) return null;
    if (count === DAMAGED) return new SymdexError("damaged", this.#string(this.#numbers[this.#at++]));
    const frames = new Array(count);
    for (let at = 0; at < count; at += 1) frames[at] = this.#frame(offset);
    return frames;
  }

  #frame(offset) {
    const numbers = this.#numbers;
    const at = this.#at;
    this.#at += 7;
    const flags = numbers[at];
    const line = numbers[at + 1];
    const high = numbers[at + 3];
    const start = high === NONE ? null : high * HALF + numbers[at + 2];
    const name = this.#string(numbers[at + 4]);
    const readable = numbers[at + 5] === SAME ? name : this.#string(numbers[at + 5]);
    const file = this.#string(numbers[at + 6]);
    return {
      function: readable,
      name,
      file,
      line: line === NONE ? null : line,
      inlined: (flags & INLINED) !== 0,
      table: (flags & FROM_SYMBOL_TABLE) !== 0 ? "symbol_table" : "dwarf",
      function_start: start,
      function_offset: start === null ? null : offset - start,
    };
  }

  #string(length) {
    if (length === NONE) return null;
    const at = this.#textAt;
    this.#textAt += length;
    return this.#text.substring(at, this.#textAt);
  }
}
