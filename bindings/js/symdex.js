// The package: indexes, lookups and reports. index.d.ts documents it.

import { engine, newEngine } from "./engine.js";
import { SymdexError } from "./error.js";

export { SymdexError };

const encoder = new TextEncoder();

/** Closes the indexes that nobody has closed and nobody can use any more. */
const unused = new FinalizationRegistry(close);

function close({ engine: from, number, places }) {
  from.answers.close(places);
  if (!from.isBroken) from.guard((exports) => exports.index_close(number));
}

/** The bytes of `data`: text, a buffer, or a view of a buffer. */
function bytesOf(data, what) {
  if (typeof data === "string") return encoder.encode(data);
  if (data instanceof Uint8Array) return data;
  if (ArrayBuffer.isView(data)) return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  if (data instanceof ArrayBuffer || data instanceof SharedArrayBufferOrNothing) return new Uint8Array(data);
  throw new TypeError(`${what}: expected bytes, found ${data === null ? "null" : typeof data}`);
}

/** Pages have no SharedArrayBuffer unless they are isolated. */
const SharedArrayBufferOrNothing = globalThis.SharedArrayBuffer ?? class {};

/** An image offset as a number. */
function offsetOf(offset) {
  const number = typeof offset === "bigint" ? Number(offset) : offset;
  if (!Number.isSafeInteger(number) || number < 0) {
    throw new RangeError(`${String(offset)}: an offset is a whole number from 0 to 2^53 - 1`);
  }
  return number;
}

/** A runtime address as a bigint of 64 bits. */
function addressOf(address) {
  const isExact = typeof address === "bigint" || Number.isSafeInteger(address);
  const exact = isExact ? BigInt(address) : -1n;
  if (exact < 0n || exact >= 1n << 64n) {
    throw new RangeError(`${String(address)}: an address is a whole number of 64 bits; above 2^53 - 1, a bigint`);
  }
  return exact;
}

/** Whether `value` is the second of two words, of which the first is the default. */
function isSecond(value, words, what) {
  if (value === undefined || value === words[0]) return false;
  if (value === words[1]) return true;
  throw new TypeError(`${what}: expected "${words.join('" or "')}", found ${String(value)}`);
}

const isExact = ({ lines } = {}) => isSecond(lines, ["statement", "exact"], "lines");
const isReadable = ({ demangle = true } = {}) => Boolean(demangle);

/** The map of cached answers for these options. */
const placesOf = (places, exact, readable) => places[(exact ? 2 : 0) + (readable ? 1 : 0)];

export class Index {
  #opened;
  #metadata;

  /** Indexes are opened with {@link Index.open}. */
  constructor(opened) {
    this.#opened = opened;
    unused.register(this, opened, this);
  }

  static open(bytes, { name } = {}) {
    const given = bytesOf(bytes, "bytes of an index");
    const encodedName = name === undefined ? undefined : encoder.encode(name);
    const from = engine();
    return from.guard((exports) => {
      from.input(given);
      const number = exports.index_open();
      if (number < 0) throw from.failure();
      if (encodedName !== undefined) {
        from.input(encodedName);
        exports.index_name(number);
      }
      return new Index({ engine: from, number, places: from.answers.open() });
    });
  }

  get #open() {
    if (this.#opened === null) throw new SymdexError("closed", "the index is closed");
    return this.#opened;
  }

  get metadata() {
    const { engine: from, number } = this.#open;
    this.#metadata ??= from.guard((exports) => {
      exports.index_metadata(number);
      const stated = JSON.parse(from.text());
      const address = (text) => (text === null ? null : BigInt(text));
      return Object.freeze({
        ...stated,
        base: address(stated.base),
        text_exec_base: address(stated.text_exec_base),
        executable: stated.executable.map((range) => range.map(Number)),
        segments: stated.segments?.map((segment) => segment.map(BigInt)) ?? null,
      });
    });
    return this.#metadata;
  }

  get id() {
    return this.metadata.id;
  }

  imageOffset(address, loadAddress, { returnAddress = true } = {}) {
    const { engine: from, number } = this.#open;
    const [at, load] = [addressOf(address), addressOf(loadAddress)];
    const offset = from.guard((exports) => exports.image_offset(number, at, load, Boolean(returnAddress)));
    return offset < 0 ? null : offset;
  }

  lookup(offset, options) {
    const at = offsetOf(offset);
    const exact = isExact(options);
    const readable = isReadable(options);
    // Options may run code of the caller, which may close the index, and whose number another one then has.
    const { engine: from, number, places } = this.#open;
    const ofOptions = placesOf(places, exact, readable);
    const place = from.isBroken ? undefined : ofOptions.get(at);
    if (place !== undefined) return from.answers.cached(place, at);
    const answer = from.guard((exports) => {
      from.answers.prepare(exports);
      from.answers.begin(from, exports.lookup(number, at, exact, readable) >>> 0);
      return from.answers.next(at, ofOptions);
    });
    if (answer instanceof SymdexError) throw answer;
    return answer;
  }

  lookupMany(offsets, options) {
    void this.#open;
    const asked = Array.from(offsets, offsetOf);
    const exact = isExact(options);
    const readable = isReadable(options);
    const { engine: from, number, places } = this.#open;
    const ofOptions = placesOf(places, exact, readable);
    return from.guard((exports) => {
      const answers = new Array(asked.length);
      const others = [];
      for (let at = 0; at < asked.length; at += 1) {
        const place = ofOptions.get(asked[at]);
        if (place === undefined) others.push(at);
        else answers[at] = from.answers.cached(place, asked[at]);
      }
      if (others.length === 0) return answers;
      from.input(new Uint8Array(Float64Array.from(others, (at) => asked[at]).buffer));
      from.answers.prepare(exports);
      from.answers.begin(from, exports.lookup_many(number, exact, readable) >>> 0);
      for (const at of others) answers[at] = from.answers.next(asked[at], ofOptions);
      return answers;
    });
  }

  close() {
    if (this.#opened === null) return;
    unused.unregister(this);
    close(this.#opened);
    this.#opened = null;
  }

  [Symbol.dispose ?? Symbol.for("Symbol.dispose")]() {
    this.close();
  }

  /** The number of an open index of `from`. */
  static _numberIn(from, index) {
    const opened = index.#open;
    if (opened.engine !== from) throw new SymdexError("closed", "the index was open when the module has ended");
    return opened.number;
  }
}

export function buildIndexes(debugFile, { name = "" } = {}) {
  // The memory of WebAssembly does not shrink, and a build may need much of it.
  const from = newEngine();
  return from.guard((exports) => {
    const encoded = encoder.encode(name);
    from.input(encoded, bytesOf(debugFile, "bytes of a debug file"));
    if (!exports.build(encoded.length)) throw from.failure();
    return builtOf(from);
  }, "build the index with the command symdex");
}

/** The indexes of a build, or errors in their places. src/build.rs describes the numbers. */
function builtOf(from) {
  const bytes = from.result();
  const numbers = from.numbers.subarray(from.exports.numbers() >>> 2);
  let at = 0;
  const part = (size) => bytes.subarray(at, (at += size));
  return Array.from({ length: numbers[0] }, (_, position) => {
    const [index, failure] = [part(numbers[1 + 2 * position]), part(numbers[2 + 2 * position])];
    if (index.length > 0) return index.slice();
    const { kind, message } = JSON.parse(decoder.decode(failure));
    return new SymdexError(kind, message);
  });
}

/** Calls a function of the module that reads a report. Returns its result as bytes of their own. */
function readReport(call, report, indexes, options) {
  const { assume = {}, ...rest } = options;
  // All code of the caller runs before the numbers are taken: it may close indexes and open others.
  const stated = JSON.parse(JSON.stringify({ ...rest, assume: Object.entries(assume) }));
  const given = Array.from(indexes);
  const bytes = bytesOf(report, "report");
  const from = engine();
  const numbers = given.map((index) => Index._numberIn(from, index));
  const request = encoder.encode(JSON.stringify({ ...stated, indexes: numbers }));
  return from.guard((exports) => {
    from.input(request, bytes);
    const isRead = exports[call](request.length);
    const result = isRead ? from.result().slice() : from.failure();
    exports.release();
    if (!isRead) throw result;
    return result;
  });
}

const decoder = new TextDecoder();

export function symbolicate(report, indexes, options = {}) {
  const { format = "json" } = options;
  const bytes = readReport("symbolicate", report, indexes, { ...options, format });
  if (format === "native") return bytes;
  const text = decoder.decode(bytes);
  return format === "text" ? text : JSON.parse(text);
}

export function neededImages(report, options = {}) {
  return JSON.parse(decoder.decode(readReport("needed_images", report, [], options)));
}

export async function symbolicateWith(report, find, options = {}) {
  const found = await Promise.all(neededImages(report, options).map((image) => find(image)));
  const indexes = new Set(found.flat().filter((index) => index instanceof Index));
  return symbolicate(report, indexes, options);
}
