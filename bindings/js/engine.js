// The WebAssembly module: its memory, and how calls to it fail. src/exports.rs has the other side.

import { Answers } from "./answers.js";
import { SymdexError } from "./error.js";

const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

let compiled;
let current;

/** Sets the compiled module of the package. */
export function start(module) {
  compiled = module;
}

/** The engine that opens the next index. */
export function engine() {
  if (!current || current.isBroken) current = newEngine();
  return current;
}

/** An engine of its own. Its memory is free when it is not used any more. */
export function newEngine() {
  return new Engine(compiled);
}

/** An instance of the module. After a trap, its memory is not used again, and the next index gets a new instance. */
class Engine {
  isBroken = false;

  constructor(module) {
    this.exports = new WebAssembly.Instance(module, {}).exports;
    this.bytes = new Uint8Array();
    this.numbers = new Uint32Array();
    this.answers = new Answers();
  }

  /** Returns what `work` returns, which calls functions of the module. `advice` says what helps if the module ends. */
  guard(work, advice = "open the indexes again") {
    if (this.isBroken) throw crashed(advice);
    try {
      return work(this.exports);
    } catch (error) {
      if (!(error instanceof WebAssembly.RuntimeError)) throw error;
      this.isBroken = true;
      throw crashed(advice);
    }
  }

  /** Makes the views of the memory. When it grows, the former views become empty. */
  refresh() {
    if (this.numbers.length > 0) return;
    const { buffer } = this.exports.memory;
    this.bytes = new Uint8Array(buffer);
    this.numbers = new Uint32Array(buffer);
  }

  /** Puts parts, one after the other, into the input of the next call. */
  input(...parts) {
    const size = parts.reduce((sum, part) => sum + part.length, 0);
    // The length of a buffer is a number of 32 bits, and a signed one in Rust.
    let at = size < 2 ** 31 ? this.exports.input(size) >>> 0 : 0;
    if (at === 0) throw new SymdexError("limit", `WebAssembly has no memory for ${size} bytes`);
    this.refresh();
    for (const part of parts) {
      this.bytes.set(part, at);
      at += part.length;
    }
  }

  /** The bytes of the result. They are valid until the next call. */
  result() {
    this.refresh();
    const at = this.exports.text() >>> 0;
    return this.bytes.subarray(at, at + this.exports.text_len());
  }

  /** The result as text. */
  text() {
    return decoder.decode(this.result());
  }

  /** Text in the memory. */
  decode(at, size) {
    return size === 0 ? "" : decoder.decode(this.bytes.subarray(at, at + size));
  }

  /** The error that is the result. */
  failure() {
    const { kind, message } = JSON.parse(this.text());
    return new SymdexError(kind, message);
  }
}

const crashed = (advice) =>
  new SymdexError("crashed", `the WebAssembly module has ended, most likely for lack of memory; ${advice}`);
