// The samples of a profile, read from its binary encoding: that of pprof, and that of OpenTelemetry's protocol 1.8.

/** The fields of a message, as lists by number. A value is a number, or the bytes of a string or message. */
class Message {
  #fields = new Map();

  constructor(bytes = new Uint8Array()) {
    let at = 0;
    const varint = () => {
      let number = 0;
      for (let factor = 1; at < bytes.length; factor *= 128) {
        const byte = bytes[at++];
        number += (byte % 128) * factor;
        if (byte < 128) break;
      }
      return number;
    };
    while (at < bytes.length) {
      const key = varint();
      const [number, kind] = [Math.floor(key / 8), key % 8];
      const isVarint = kind === 0;
      const length = kind === 2 ? varint() : { 1: 8, 5: 4 }[kind];
      if (!isVarint && length === undefined) return;
      const value = isVarint ? varint() : bytes.subarray(at, (at += length));
      if (!this.#fields.has(number)) this.#fields.set(number, []);
      this.#fields.get(number).push(value);
    }
  }

  all(number) {
    return this.#fields.get(number) ?? [];
  }

  bytes(number) {
    return this.all(number).filter((value) => typeof value !== "number");
  }

  messages(number) {
    return this.bytes(number).map((bytes) => new Message(bytes));
  }

  number(number) {
    return this.all(number).findLast((value) => typeof value === "number") ?? 0;
  }

  /** The numbers of a repeated field, packed or not. */
  numbers(number) {
    const all = this.all(number);
    if (all.length === 1 && typeof all[0] !== "number") return packed(all[0]);
    return all.flatMap((value) => (typeof value === "number" ? value : packed(value)));
  }
}

function packed(bytes) {
  const numbers = [];
  let [number, factor] = [0, 1];
  for (const byte of bytes) {
    number += (byte % 128) * factor;
    factor *= 128;
    if (byte >= 128) continue;
    numbers.push(number);
    [number, factor] = [0, 1];
  }
  return numbers;
}

/** A reader of strings by their position in the table. */
function stringsOf(tables, field) {
  const decoder = new TextDecoder();
  const table = tables.bytes(field);
  return (position) => decoder.decode(table[position]);
}

/** A function that returns the message of a table by id; without a field for it, the id is the position. */
function table(all, id) {
  const known = new Map(all.map((bytes, position) => [id ? new Message(bytes).number(id) : position, bytes]));
  return (wanted) => new Message(known.get(wanted));
}

/**
 * A function that returns the frames at a location, innermost first: `{name, image}`. A frame without a name has null.
 * `layout` has the numbers of the fields.
 */
function locationsOf(tables, layout, string) {
  const [functionAt, mappingAt, locationAt] = ["functions", "mappings", "locations"].map((name) =>
    table(tables.bytes(layout[name]), layout.id),
  );
  const read = (location) => {
    const path = string(mappingAt(location.number(layout.mapping)).number(layout.file));
    const image = path.split("/").pop();
    const lines = location.messages(layout.lines);
    const names = lines.map((line) => string(functionAt(line.number(1)).number(layout.name)));
    return (names.length > 0 ? names : [""]).map((name) => ({ name: name || null, image }));
  };
  const known = new Map();
  return (id) => {
    if (!known.has(id)) known.set(id, read(locationAt(id)));
    return known.get(id);
  };
}

/** Sample values are whole numbers with a sign, of 64 bits. A difference below nothing has no place in the graph. */
const weight = (value) => (value < 2 ** 63 ? value : 0);

const PPROF = { mappings: 3, locations: 4, functions: 5, id: 1, file: 5, mapping: 2, lines: 4, name: 2 };
const OTLP = { mappings: 1, locations: 2, functions: 3, id: null, file: 4, mapping: 1, lines: 3, name: 1 };

function pprof(bytes) {
  const profile = new Message(bytes);
  const string = stringsOf(profile, 6);
  const framesAt = locationsOf(profile, PPROF, string);
  const samples = profile.bytes(2).map((one) => {
    const sample = new Message(one);
    return [sample.numbers(1), sample.numbers(2)];
  });
  const kinds = profile.messages(1).map((type, at) => ({
    type: string(type.number(1)),
    unit: string(type.number(2)),
    framesAt,
    samples: samples.map(([stack, values]) => ({ stack, value: weight(values[at] ?? 0) })),
  }));
  // The last kind is shown first if the profile does not choose one, as pprof does.
  const chosen = string(profile.number(14)) || kinds.at(-1)?.type;
  return kinds.toSorted((one, other) => (other.type === chosen) - (one.type === chosen));
}

function otlp(bytes) {
  const data = new Message(bytes);
  const tables = data.messages(2).at(-1) ?? new Message();
  const string = stringsOf(tables, 5);
  const framesAt = locationsOf(tables, OTLP, string);
  const stacks = tables.messages(7).map((stack) => stack.numbers(1));
  const profiles = data.messages(1).flatMap((resource) => resource.messages(2).flatMap((scope) => scope.messages(2)));
  const kinds = new Map();
  for (const profile of profiles) {
    const type = profile.messages(1).at(-1) ?? new Message();
    const [name, unit] = [1, 2].map((field) => string(type.number(field)));
    const key = JSON.stringify([name, unit]);
    if (!kinds.has(key)) kinds.set(key, { type: name, unit, framesAt, samples: [] });
    for (const one of profile.bytes(2)) {
      const sample = new Message(one);
      const values = sample.numbers(4);
      // Without values, each time is a sample.
      const times = sample.bytes(5).reduce((sum, all) => sum + all.length / 8, 0);
      const value = values.length > 0 ? values.reduce((sum, one) => sum + weight(one), 0) : times;
      kinds.get(key).samples.push({ stack: stacks[sample.number(1)] ?? [], value });
    }
  }
  return [...kinds.values()];
}

/**
 * By the name of a format, what reads the samples of a profile: a list of `{type, unit, framesAt, samples}`. A sample is
 * `{stack, value}`, the locations of the stack from the innermost.
 */
export const READERS = { pprof, "otlp-profile": otlp };

/** The deepest stack that is shown. */
export const MAX_DEPTH = 400;

/** What a frame without a name is called. */
const nameless = (image) => `[${image || "no image"}]`;

/**
 * The tree of stacks, from the outermost frame: `{name, isNamed, value, children}`, and whether stacks are deeper. What
 * is deeper is left out.
 */
export function treeOf({ framesAt, samples }) {
  const node = (name, isNamed) => ({ name, isNamed, value: 0, children: [], byName: new Map() });
  const tree = node("All samples", true);
  let isCut = false;
  for (const { stack, value } of samples) {
    if (value === 0) continue;
    let at = tree;
    at.value += value;
    let depth = 0;
    for (let outer = stack.length - 1; outer >= 0; outer -= 1) {
      const frames = framesAt(stack[outer]);
      depth += frames.length;
      isCut ||= depth > MAX_DEPTH;
      if (depth > MAX_DEPTH) break;
      for (let inlined = frames.length - 1; inlined >= 0; inlined -= 1) {
        const { name, image } = frames[inlined];
        const shown = name ?? nameless(image);
        let child = at.byName.get(shown);
        if (!child) {
          child = node(shown, name !== null);
          at.byName.set(shown, child);
          at.children.push(child);
        }
        child.value += value;
        at = child;
      }
    }
  }
  return { tree, isCut };
}

/** How much of the samples has a frame without a name, by image: `[image, value]`, the largest first. */
export function missingOf({ framesAt, samples }) {
  const missing = new Map();
  // Samples share stacks.
  const known = new Map();
  const imagesOf = (stack) => {
    const frames = stack.flatMap((location) => framesAt(location));
    return new Set(frames.filter(({ name }) => name === null).map(({ image }) => image || "no image"));
  };
  for (const { stack, value } of samples) {
    const images = known.get(stack) ?? imagesOf(stack);
    known.set(stack, images);
    for (const image of images) missing.set(image, (missing.get(image) ?? 0) + value);
  }
  return [...missing].filter(([, value]) => value > 0).toSorted(([, one], [, other]) => other - one);
}
