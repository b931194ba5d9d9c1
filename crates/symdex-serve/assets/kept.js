// Open reports as text of one line: for the storage of this tab, so that they survive a reload, and for links.

const KEY = "symdex-reports";

/** How many characters of reports this tab keeps. Browsers give an origin about five million. */
const MAX_KEPT = 1_500_000;

/** The longest fragment of a link. Longer ones are cut by some programs that send them. */
const MAX_LINK = 32_000;

/** How large a report of a link or of the storage may be. A small link could expand to any size. */
const MAX_UNPACKED = 16_000_000;

/** How many bytes are converted at a time. Each becomes an argument of a function. */
const PIECE = 0x8000;

async function packed(blob) {
  const stream = blob.stream().pipeThrough(new CompressionStream("gzip"));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  let text = "";
  for (let at = 0; at < bytes.length; at += PIECE) {
    text += String.fromCharCode(...bytes.subarray(at, at + PIECE));
  }
  return btoa(text).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

async function unpacked(text) {
  const binary = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  const bytes = Uint8Array.from(binary, (character) => character.charCodeAt(0));
  const reader = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip")).getReader();
  const parts = [];
  for (let size = 0; ; ) {
    const { done, value } = await reader.read();
    if (done) return new Blob(parts);
    size += value.length;
    if (size > MAX_UNPACKED) {
      await reader.cancel();
      throw new RangeError("the report is too large");
    }
    parts.push(value);
  }
}

/** The packed form of a report's blob, or null if it cannot be read or is too large. It is made once. */
function packedOf(report) {
  const isLarge = report.blob.size > MAX_UNPACKED;
  report.packed ??= isLarge ? Promise.resolve(null) : packed(report.blob).catch(() => null);
  return report.packed;
}

let saving = Promise.resolve();

/** Keeps `reports` for a reload of the page, the first ones first, as far as there is room. */
export function keep(reports) {
  saving = saving.then(async () => {
    const entries = [];
    let size = 0;
    for (const report of [...reports]) {
      const text = await packedOf(report);
      report.isKept = text !== null && size + text.length <= MAX_KEPT;
      if (!report.isKept) continue;
      size += text.length;
      entries.push({ name: report.name, packed: text, options: report.options });
    }
    try {
      if (entries.length > 0) sessionStorage.setItem(KEY, JSON.stringify(entries));
      else sessionStorage.removeItem(KEY);
    } catch {
      sessionStorage.removeItem(KEY);
      for (const report of reports) report.isKept = false;
    }
  });
  return saving;
}

/** The reports that were kept before the page was loaded again: `{name, blob, options}`. */
export async function keptReports() {
  try {
    const entries = JSON.parse(sessionStorage.getItem(KEY)) ?? [];
    const read = async ({ name, packed: text, options }) => ({ name, options, blob: await unpacked(text) });
    return await Promise.all(entries.map(read));
  } catch {
    return [];
  }
}

/** A link to this page that has the report in its fragment, which browsers never send. Null if it would be too long. */
export async function linkTo(report) {
  const text = await packedOf(report);
  if (text === null) return null;
  const fragment = new URLSearchParams({ name: report.name, report: text });
  const link = new URL(location.href);
  link.hash = fragment;
  return link.hash.length > MAX_LINK ? null : link.href;
}

/** The report in the parameters of a link. */
export async function fromLink(parameters) {
  const blob = await unpacked(parameters.get("report"));
  return { name: parameters.get("name") || "report of a link", blob };
}
