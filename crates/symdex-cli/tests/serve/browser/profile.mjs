// A profile of pprof: locations in DemoKit, and in an image that nobody knows.

export const ATTACK = `<img/src=x/onerror=window.ran=1>`;
const KIT = "4c4c442755553144a19dbd913be790e0";
const START = 0x1_0498_c000;
/** An address with inlined functions, and the calls that lead to it. */
export const ABORT = 0x4158;
const [FAIL, MISMATCH] = [0x4133, 0x4117];

const varint = (number) => {
  const bytes = [];
  for (; number >= 128; number = Math.floor(number / 128)) bytes.push((number % 128) + 128);
  return [...bytes, number];
};
/** A field: of a number, of a string, or of a message, which is a list of fields. */
export const field = (number, value) => {
  if (typeof value === "number") return [...varint(number * 8), ...varint(value)];
  const bytes = typeof value === "string" ? [...Buffer.from(value)] : value.flat();
  return [...varint(number * 8 + 2), ...varint(bytes.length), ...bytes];
};

/** Strings by position, with the empty one first. */
export const STRINGS = ["", "wall", "nanoseconds", "cpu", "/DemoKit", KIT, `/${ATTACK}`, "known", `${ATTACK}::run`];
export const string = (text) => STRINGS.indexOf(text);
/** Locations: image and address. The last one has a name of the profiler. */
const LOCATIONS = [
  [1, START + ABORT],
  [1, START + FAIL],
  [1, START + MISMATCH],
  [2, 0x2_0000_1000],
  [2, 0x2_0000_2000],
];
/** Stacks, innermost first, with two values. */
const SAMPLES = [
  [[1, 2, 3, 5], 100, 6],
  [[2, 3, 5], 100, 1],
  [[4, 5], 100, 3],
];

const mapping = (id, start, names) =>
  field(3, [field(1, id), field(2, start), field(3, start + 0x1_0000), ...names]);

/** The profile: kinds of samples, samples, mappings, locations, a function, strings. */
export const pprof = Buffer.from(
  [
    field(1, [field(1, string("wall")), field(2, string("nanoseconds"))]),
    field(1, [field(1, string("cpu")), field(2, string("nanoseconds"))]),
    ...SAMPLES.map(([stack, ...values]) => field(2, [field(1, stack.map(varint)), field(2, values.map(varint))])),
    mapping(1, START, [field(5, string("/DemoKit")), field(6, string(KIT))]),
    mapping(2, 0x2_0000_0000, [field(5, string(`/${ATTACK}`))]),
    ...LOCATIONS.map(([image, address], at) =>
      field(4, [field(1, at + 1), field(2, image), field(3, address), at === 4 ? field(4, [field(1, 1)]) : []]),
    ),
    field(5, [field(1, 1), field(2, string(`${ATTACK}::run`))]),
    ...STRINGS.map((text) => field(6, text)),
  ].flat(),
);
