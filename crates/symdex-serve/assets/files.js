// Files that are dropped, chosen or pasted: which are reports, and which are debug files.

/** The first bytes of debug files and of archives. */
const DEBUG_FILES = [
  [0xcf, 0xfa, 0xed, 0xfe],
  [0xce, 0xfa, 0xed, 0xfe],
  [0xfe, 0xed, 0xfa, 0xcf],
  [0xfe, 0xed, 0xfa, 0xce],
  [0xca, 0xfe, 0xba, 0xbe],
  [0xca, 0xfe, 0xba, 0xbf],
  [0x7f, 0x45, 0x4c, 0x46],
  [0x50, 0x4b, 0x03, 0x04],
  [0xfd, 0x37, 0x7a, 0x58],
  [0x28, 0xb5, 0x2f, 0xfd],
  [0x42, 0x5a, 0x68],
];
const GZIP = [0x1f, 0x8b];
const TAR = [0x75, 0x73, 0x74, 0x61, 0x72];
const TAR_OFFSET = 257;

/** No dSYM has more files than this; a folder that has is something else. */
const MAX_ENTRIES = 20000;

const beginsWith = (bytes, magic, at = 0) => magic.every((byte, index) => bytes[at + index] === byte);
const isDebugFile = (bytes) =>
  DEBUG_FILES.some((magic) => beginsWith(bytes, magic)) || beginsWith(bytes, TAR, TAR_OFFSET);

async function firstBytes(blob) {
  return new Uint8Array(await blob.slice(0, 512).arrayBuffer());
}

/** The first bytes of what is compressed. */
async function firstUnpackedBytes(blob) {
  const reader = blob.stream().pipeThrough(new DecompressionStream("gzip")).getReader();
  const { value } = await reader.read();
  await reader.cancel();
  return value ?? new Uint8Array();
}

/** `report`, `debug-file`, or `other` for what is in a bundle beside the debug file. */
async function kindOf({ file, path }) {
  const bytes = await firstBytes(file);
  if (isDebugFile(bytes)) return "debug-file";
  if (beginsWith(bytes, GZIP)) {
    const unpacked = await firstUnpackedBytes(file).catch(() => new Uint8Array());
    return isDebugFile(unpacked) ? "debug-file" : "report";
  }
  return path.includes(".dSYM/") || file.name.startsWith("._") ? "other" : "report";
}

/** Reports that are compressed are sent as they were before. */
async function report({ file }) {
  const name = file.name;
  if (!beginsWith(await firstBytes(file), GZIP)) return { name, blob: file };
  const unpacked = new Response(file.stream().pipeThrough(new DecompressionStream("gzip")));
  return { name: name.replace(/\.gz$/i, ""), blob: await unpacked.blob() };
}

/** Splits files into reports and debug files. */
export async function sorted(files) {
  const reports = [];
  const debugFiles = [];
  for (const entry of files) {
    const kind = await kindOf(entry);
    if (kind === "debug-file") debugFiles.push({ name: entry.path, file: entry.file });
    if (kind === "report") reports.push(await report(entry));
  }
  return { reports, debugFiles };
}

/** The files of an input element. */
export function chosen(input) {
  const files = [...input.files].map((file) => ({ file, path: file.webkitRelativePath || file.name }));
  input.value = "";
  return files;
}

/** The files of a drop, with those in folders. The transfer is readable only during its event. */
export async function dropped(transfer) {
  const entries = [...transfer.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
  if (entries.length === 0) return [...transfer.files].map((file) => ({ file, path: file.name }));
  const files = [];
  const waiting = entries.map((entry) => ({ entry, path: entry.name }));
  for (let seen = 0; waiting.length > 0 && seen < MAX_ENTRIES; seen += 1) {
    const { entry, path } = waiting.shift();
    if (entry.isFile) {
      files.push({ file: await new Promise((resolve, reject) => entry.file(resolve, reject)), path });
    } else {
      const inside = await entriesOf(entry);
      waiting.push(...inside.map((one) => ({ entry: one, path: `${path}/${one.name}` })));
    }
  }
  return files;
}

/** A folder gives its entries in parts. */
async function entriesOf(folder) {
  const reader = folder.createReader();
  const entries = [];
  while (entries.length < MAX_ENTRIES) {
    const part = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
    if (part.length === 0) break;
    entries.push(...part);
  }
  return entries;
}
