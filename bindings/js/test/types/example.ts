// What users write, for the compiler: it is checked and not run.

import {
  type Frame,
  Index,
  type NeededImage,
  SymdexError,
  type SymbolicatedReport,
  buildIndexes,
  neededImages,
  symbolicate,
  symbolicateWith,
} from "symdex";

function describe(frames: Frame[] | null): string {
  return (frames ?? []).map(({ function: name, file, line }) => `${name ?? "??"} ${file ?? ""}:${line ?? 0}`).join("\n");
}

export function lookups(bytes: Uint8Array, load: bigint, stack: bigint[]): string[] {
  using index = Index.open(bytes, { name: "app.symdex" });
  const base: bigint = index.metadata.base;
  const offsets = stack.map((address) => index.imageOffset(address, load)).filter((offset) => offset !== null);
  const answers = index.lookupMany(offsets, { lines: "exact", demangle: false });
  const texts = answers.map((answer) => (answer instanceof SymdexError ? answer.message : describe(answer)));
  return [describe(index.lookup(0x10)), describe(index.lookup(16n)), base.toString(16), ...texts];
}

export function build(debugFile: Uint8Array): string[] {
  const built = buildIndexes(debugFile, { name: "App" });
  return built.map((one) => (one instanceof SymdexError ? one.kind : Index.open(one).id));
}

export function reports(report: ArrayBuffer, index: Index): [SymbolicatedReport, string, Uint8Array] {
  const json = symbolicate(report, [index], { matchByName: true, assume: { App: "6dcd4e9d" } });
  const missing: string[] = json.images.filter(({ status }) => status === "missing").map(({ name }) => name);
  const crashed = json.threads.find((thread) => thread.crashed)?.frames[0]?.functions[0]?.function ?? missing[0];
  const text: string = symbolicate(crashed ?? "", [index], { format: "text" });
  return [json, text, symbolicate(report, new Set([index]), { format: "native", inlines: false })];
}

export async function service(report: string, find: (id: string) => Promise<Uint8Array | null>): Promise<string> {
  const opened: Index[] = [];
  const open = async (image: NeededImage): Promise<Index | null> => {
    const bytes = image.id === null ? null : await find(image.id);
    if (!bytes) return null;
    const index = Index.open(bytes);
    opened.push(index);
    return index;
  };
  try {
    const names: string[] = neededImages(report).map(({ name }) => name);
    return (await symbolicateWith(report, open, { format: "text" })) + names.join();
  } catch (error) {
    if (error instanceof SymdexError && error.kind === "unsupported") return error.message;
    throw error;
  } finally {
    opened.forEach((index) => index.close());
  }
}

// @ts-expect-error an index is opened with Index.open
new Index();
// @ts-expect-error a format that there is not
symbolicate("", [], { format: "xml" });
// @ts-expect-error an offset is a number
Index.open(new Uint8Array()).lookup("0x10");
