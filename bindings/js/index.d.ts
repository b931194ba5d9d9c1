/**
 * Reads and builds symdex indexes, and symbolicates crash reports.
 *
 * The package is WebAssembly, compiled from the Rust reader and report engine. It has no dependencies, reads no files
 * and makes no requests; in browsers, it fetches its own module once, when it is imported.
 *
 * **Addresses and offsets.** A runtime address has 64 bits and is a `bigint`, or a `number` up to 2^53 - 1. An image
 * offset counts bytes from the start of an image, which are always fewer than 2^53, so it is a `number`. In the JSON of
 * reports, addresses are hexadecimal text.
 *
 * **Names of members.** Options are in camelCase. Results have the members that the JSON of the command and of the
 * service has.
 */

/** A runtime address. A `number` must be whole and at most 2^53 - 1. */
export type Address = bigint | number;

/** What is wrong: see {@link SymdexError.kind}. */
export type ErrorKind =
  /** The index, the debug file or the report is damaged. Build or copy it again. */
  | "damaged"
  /** The bytes are no index, debug file or report, or one of a version or kind that the package does not read. */
  | "unsupported"
  /** The debug file does not have what is needed, such as functions. */
  | "not_found"
  /** An option has a value that it cannot have. */
  | "usage"
  /** The index is closed, or was opened before the module crashed. */
  | "closed"
  /** WebAssembly has no memory for the bytes, or for a build, or a limit is exceeded. */
  | "limit"
  /** The module has ended, most likely for lack of memory. Indexes that were open must be opened again. */
  | "crashed";

/** An error of this package. */
export class SymdexError extends Error {
  constructor(kind: ErrorKind, message: string);
  readonly name: "SymdexError";
  /** What is wrong, for code. `message` says what was found and what helps, for people. */
  readonly kind: ErrorKind;
}

/** Bytes of an index, of a debug file or of a report. */
export type Bytes = ArrayBuffer | SharedArrayBuffer | ArrayBufferView;

/** The table of an index that a frame comes from: debug information, or the symbol table, which has no lines. */
export type Table = "dwarf" | "symbol_table";

/** One function at an offset. */
export interface Frame {
  /** The readable name. Swift names are readable only if the index stores readable names. `null` if it is unknown. */
  function: string | null;
  /** The linkage name, without Mach-O's leading `_`. */
  name: string | null;
  /** The path of the source file. */
  file: string | null;
  /** The line, 1-based; 0 for code that the compiler generated. `null` if there is none. */
  line: number | null;
  /** Whether the function is inlined into the next one. */
  inlined: boolean;
  table: Table;
  /** Where the concrete function starts, as an image offset; that of an inlined function is the function it is in. */
  function_start: number | null;
  /** How many bytes the offset is after the start of the concrete function. In reports, `null` if it is inlined. */
  function_offset: number | null;
}

/** The options of lookups. */
export interface LookupOptions {
  /**
   * Which line answers for code with line 0 or without a line: that of the last statement before it in the same inlined
   * call (`"statement"`, the default), or its own (`"exact"`, as atos and llvm-symbolizer print it).
   */
  lines?: "statement" | "exact";
  /** Whether `function` is a readable name. The default is `true`; `false` is faster and leaves the linkage name. */
  demangle?: boolean;
}

/** What an index states about its image and its build. */
export interface Metadata {
  /** `LC_UUID` or the build id, in lower-case digits. */
  readonly id: string;
  /** The file name of the image. */
  readonly name: string;
  /** The architecture, as Apple names it: `arm64`, `x86_64`. */
  readonly arch: string;
  /** The type of its CPU in Mach-O. */
  readonly cputype: number;
  /** The subtype of its CPU in Mach-O. */
  readonly cpusubtype: number;
  /** The address in the debug file that image offsets count from. */
  readonly base: bigint;
  /** Bytes from the base to the end of the last executable section. */
  readonly image_size: number;
  /** The executable sections, as half-open ranges of image offsets. */
  readonly executable: readonly (readonly [start: number, end: number])[];
  /** The address of `__TEXT_EXEC` in the debug file of a kernel image. */
  readonly text_exec_base: bigint | null;
  /** The executable segments of an ELF file. Empty if built of a debug file without code; `null` if of no ELF file. */
  readonly segments: readonly (readonly [fileOffset: bigint, address: bigint, size: bigint])[] | null;
  /** The most that the index answers: names, files and lines; names; where functions start and end; or nothing. */
  readonly grade: "lines" | "names" | "bounds" | "nothing";
  readonly counts: {
    readonly units: number;
    readonly functions: number;
    readonly ranges: number;
    readonly symbols: number;
    readonly names: number;
    readonly files: number;
    /** What the builder found in the debug file. */
    readonly seen: {
      readonly functions: number;
      readonly inlined: number;
      readonly rows: number;
      readonly symbols: number;
      readonly functions_outside: number;
      readonly symbols_outside: number;
    };
  };
  /** What could not be indexed, and how often. Empty for a whole index. */
  readonly partial: readonly { readonly reason: string; readonly count: number }[];
  /** The version of symdex that wrote the index. */
  readonly builder: string;
  /** How many bytes of the image a chunk covers. */
  readonly chunk_span: number;
  /** XXH3-128 of the input of the build. */
  readonly input_digest: string | null;
}

/**
 * An open index. It holds a copy of the bytes in the memory of WebAssembly, until it is closed: by {@link close}, by
 * `using`, or after it has become unreachable.
 */
export class Index {
  private constructor();

  /**
   * Opens an index. This does not depend on its size, apart from copying it.
   *
   * @param options.name what messages and reports call the index; by default, its id with the extension `.symdex`
   * @throws {SymdexError} `unsupported`, `damaged` or `limit`
   */
  static open(bytes: Bytes, options?: { name?: string }): Index;

  /** What the index states about its image. */
  readonly metadata: Metadata;

  /** The id of the image. */
  readonly id: string;

  /**
   * The frames at an offset, the innermost inlined function first. `null` if the index has no code there.
   *
   * @throws {SymdexError} `damaged` if a part that the lookup reads is damaged
   * @throws {RangeError} if the offset is not a whole number from 0 to 2^53 - 1
   */
  lookup(offset: Address, options?: LookupOptions): Frame[] | null;

  /**
   * The answers at many offsets, in their order. One call is faster than a call for each. A damaged part of the index
   * yields an error in place of an answer, so that the other answers are not lost.
   */
  lookupMany(offsets: Iterable<Address>, options?: LookupOptions): (Frame[] | null | SymdexError)[];

  /**
   * The offset at which to look up a runtime address, for an image that is loaded at `loadAddress`. `null` if the
   * address is below the image.
   *
   * @param options.returnAddress whether the address is that of the next instruction after a call (`true`, the default,
   *   for all frames but the innermost one) or that of the current instruction
   */
  imageOffset(
    address: Address,
    loadAddress: Address,
    options?: { returnAddress?: boolean },
  ): number | null;

  /** Releases the memory of the index. It can be called again. */
  close(): void;
  [Symbol.dispose](): void;
}

/**
 * Builds the indexes of a debug file: a Mach-O file such as the one in a dSYM, or an ELF file. Each is the file that
 * `symdex build` writes. The result has the index of each architecture, in the order of the file, as bytes for
 * {@link Index.open}. An architecture that cannot be read yields an error in its place.
 *
 * Files to which the debug file refers, such as split DWARF, are not read. The index then states in `partial` what it
 * lacks. The call does not return before the build is done, which takes about a second for 100 MB.
 *
 * @param options.name the file name, which becomes the name of the image
 * @throws {SymdexError} `unsupported`, `damaged`, `not_found` or `limit`
 */
export function buildIndexes(debugFile: Bytes, options?: { name?: string }): (Uint8Array | SymdexError)[];

/** How reports are answered. */
export interface ReportOptions extends Pick<LookupOptions, "lines" | "demangle"> {
  /** One byte before a return address, in the call (`"adjusted"`, the default), or at it, as atos does. */
  addresses?: "adjusted" | "as-given";
  /** Whether inlined functions have frames of their own. The default is `true`. */
  inlines?: boolean;
  /** Whether frames that have a name stay as they are. The default is `false`. */
  onlyMissing?: boolean;
  /** Whether an image whose id the report does not state is matched by its name. The default is `false`. */
  matchByName?: boolean;
  /** For names of images, the id of the index that answers, whatever the report says. */
  assume?: Readonly<Record<string, string>>;
}

/** The format of the result. */
export type OutputFormat = "json" | "text" | "native";

/**
 * Answers a report from open indexes, with the engine of `symdex symbolicate`.
 *
 * The default format is `"json"`. With `"native"`, the result is the report in its own format, as bytes, and only its
 * frames are changed. `"text"` is text for people.
 *
 * @throws {SymdexError} `unsupported`, `damaged`, `closed` or `limit`
 */
export function symbolicate(
  report: Bytes | string,
  indexes: Iterable<Index>,
  options?: ReportOptions & { format?: "json" },
): SymbolicatedReport;
export function symbolicate(
  report: Bytes | string,
  indexes: Iterable<Index>,
  options: ReportOptions & { format: "text" },
): string;
export function symbolicate(
  report: Bytes | string,
  indexes: Iterable<Index>,
  options: ReportOptions & { format: "native" },
): Uint8Array;

/** What a finder may return: the index of the image, several, or none. */
export type Found = Index | readonly Index[] | null | undefined;

/**
 * Answers a report from the indexes that `find` returns. It is called once for each image that a frame needs. The
 * caller closes the indexes.
 *
 * @throws {SymdexError} as {@link symbolicate}, and whatever `find` throws
 */
export function symbolicateWith(
  report: Bytes | string,
  find: (image: NeededImage) => Found | Promise<Found>,
  options?: ReportOptions & { format?: "json" },
): Promise<SymbolicatedReport>;
export function symbolicateWith(
  report: Bytes | string,
  find: (image: NeededImage) => Found | Promise<Found>,
  options: ReportOptions & { format: "text" },
): Promise<string>;
export function symbolicateWith(
  report: Bytes | string,
  find: (image: NeededImage) => Found | Promise<Found>,
  options: ReportOptions & { format: "native" },
): Promise<Uint8Array>;

/** The images in which frames of a report lie that need an answer. */
export function neededImages(report: Bytes | string, options?: ReportOptions): NeededImage[];

/** An image that a report needs an index of. */
export interface NeededImage {
  name: string;
  /** The path of its file. Empty if the report does not state it. */
  path: string;
  /** `LC_UUID` or the build id, in lower-case digits: the name of the file of its index. */
  id: string | null;
  /** Whether the id is only the first 16 bytes of the build id. */
  is_id_cut: boolean;
  arch: string | null;
  /** Whether it is code of the app, and not of the system. */
  is_app: boolean;
}

/** A report with its answers; docs/schema/symbolicate.schema.json describes every member. */
export interface SymbolicatedReport {
  /** The format of the report, such as `apple-crash`. */
  format: string;
  header: ReportHeader;
  /** In the order of the report. */
  images: ReportImage[];
  /** In the order of the report. */
  threads: ReportThread[];
  /** The parts of the report that are not read. Absent if all of it is read. */
  unread?: { frames: number; malformed_frames: number; bytes: number };
  /** How many frames there are, and how many are answered. */
  totals: {
    frames: number;
    unread?: number;
    symbolicated: number;
    kept: number;
    unresolved_app: number;
    unresolved_system: number;
  };
}

/** What a report says about the process. A member is `null` if the report does not state it. */
export interface ReportHeader {
  incident: string | null;
  process: string | null;
  pid: number | null;
  identifier: string | null;
  version: string | null;
  hardware_model: string | null;
  code_type: string | null;
  os: string | null;
  time: string | null;
  termination: string | null;
  exception: Record<string, string | null> | null;
  /** The position in `threads` of the thread that crashed. */
  crashed_thread: number | null;
  [other: string]: unknown;
}

export type ImageStatus =
  | "found"
  | "unused"
  | "missing"
  | "damaged"
  | "lost"
  | "unsupported"
  | "limit"
  | "unavailable"
  | "fetching"
  | "fetching_failed"
  | "other";

export interface ReportImage {
  name: string;
  path: string;
  arch: string | null;
  id: string | null;
  /** In hexadecimal. */
  load_address: string;
  size: number | null;
  is_app: boolean;
  /** `missing` if no index was given for it. */
  status: ImageStatus;
  /** Why there is no answer. */
  reason?: string;
  /** How the index was chosen that answers. */
  matched_by?: "id" | "name" | "assumed";
  /** The name of the index that answers. */
  source?: string;
  /** Given indexes that are similar to this missing image, the most similar first. */
  near?: { nearness: string; name: string; id: string; arch: string }[];
}

export interface ReportThread {
  name: string;
  id: number | null;
  label: string | null;
  queue: string | null;
  crashed: boolean;
  registers?: { name: string; value: string; description?: string }[];
  /** The innermost frame first. */
  frames: ReportFrame[];
}

export interface ReportFrame {
  /** In hexadecimal. */
  address: string;
  /** The position of its image in `images`. */
  image: number | null;
  status:
    | "symbolicated"
    | "missing"
    | "missing_symbol"
    | "unknown_image"
    | "damaged"
    | "lost"
    | "unavailable"
    | "limit";
  reason?: string;
  /** How the index was chosen, if not by the id of the image. */
  matched_by?: "name" | "assumed";
  /** The functions, innermost first; without an answer, the symbol that the report has. */
  functions: ReportFunction[];
  /** The symbol that the report has, if the functions come from an index. */
  reported?: {
    function: string | null;
    file: string | null;
    line: number | null;
    function_offset: number | null;
  };
}

export interface ReportFunction extends Omit<Frame, "table" | "function_start"> {
  /** `report` for a symbol that the report has. */
  table: Table | "report";
}
