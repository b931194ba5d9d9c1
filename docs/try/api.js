// The answers for reports, from the indexes that were given to this page. The page of the service asks a server instead.

import { start } from "./symdex/engine.js";
import { Index, SymdexError, symbolicate } from "./symdex/symdex.js";
import module from "./symdex/module.js";

start(await WebAssembly.compile(Uint8Array.from(atob(module), (character) => character.charCodeAt(0))));

/** The open indexes, each once: by id and architecture. */
const indexes = new Map();

/** Opens the index in a file. It replaces an earlier one of the same image. */
export async function addIndex(file) {
  const bytes = new Uint8Array(await file.arrayBuffer());
  const index = Index.open(bytes, { name: file.name });
  const { id, arch } = index.metadata;
  indexes.get(`${id} ${arch}`)?.close();
  indexes.set(`${id} ${arch}`, index);
  return index.metadata;
}

async function answered(blob, format, { matchByName = false, assume = [] } = {}) {
  const bytes = new Uint8Array(await blob.arrayBuffer());
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
