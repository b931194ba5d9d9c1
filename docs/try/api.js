// The answers for reports, from indexes that were given to this page or built in it. The service's page asks a server.

import { start } from "./symdex/engine.js";
import { Index, SymdexError, buildIndexes, symbolicate } from "./symdex/symdex.js";
import module from "./symdex/module.js";

// The page listens for files while this compiles.
const started = WebAssembly.compile(Uint8Array.from(atob(module), (character) => character.charCodeAt(0))).then(start);

/** The open indexes, each once: by id and architecture. */
const indexes = new Map();

/** Opens an index. It replaces an earlier one of the same image. */
function add(bytes, options) {
  const index = Index.open(bytes, options);
  const { id, arch } = index.metadata;
  indexes.get(`${id} ${arch}`)?.close();
  indexes.set(`${id} ${arch}`, index);
  return index.metadata;
}

/** The bytes of a file, when the engine has started. */
async function bytesOf(file) {
  await started;
  return new Uint8Array(await file.arrayBuffer());
}

/** Opens the index in a file. Returns its metadata. */
export const addIndex = async (file) => add(await bytesOf(file), { name: file.name });

/** Builds the indexes of a debug file and opens them. Returns the bytes and the metadata of each, or an error. */
export async function addDebugFile(file) {
  const built = buildIndexes(await bytesOf(file), { name: file.name });
  return built.map((one) => (one instanceof SymdexError ? one : { bytes: one, metadata: add(one) }));
}

async function answered(blob, format, { matchByName = false, assume = [] } = {}) {
  const bytes = await bytesOf(blob);
  try {
    return symbolicate(bytes, indexes.values(), { format, matchByName, assume: Object.fromEntries(assume) });
  } catch (error) {
    if (error instanceof SymdexError && error.kind === "crashed") indexes.clear();
    throw error;
  }
}

/** A report as JSON (docs/schema/symbolicate.schema.json). */
export const symbolicated = async (blob, options) => ({ data: await answered(blob, "json", options) });

/** A report in its own format, as a blob. */
export const symbolicatedNative = async (blob, options) => new Blob([await answered(blob, "native", options)]);
