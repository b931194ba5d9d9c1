//! Text reports of native code: Android's tombstones, also from logcat, HarmonyOS's cppcrash logs, and the output of
//! sanitizers. A log prefix may stand before each line.
//!
//! A frame is a line with its number, the path of the image, and the address of the call in the image's file. Many have
//! the build id. One report can have frames of several writers: a tombstone can contain the output of a sanitizer. All
//! frames are therefore read and written in the same way.

mod frame;
mod header;
mod info;
mod pc;
mod reader;
mod sanitizer;

use crate::engine::symbolicate::Resolution;
use crate::error::Error;
use crate::formats::existing::ExistingSymbol;
use crate::formats::format::{Edits, Format};
use crate::report::{Parsed, Report, Span, SymbolDetail};
use crate::text::{has, lines};
use frame::Writer;
use reader::Reader;

/// The format of Android's stacks.
pub(crate) const ANDROID: Format = Format {
    name: "android",
    description: "Android's tombstones, ANR traces and logcat",
    example: "#01 pc 00000000000a1b2c  /data/app/libfoo.so (offset 0x1000) (do_action+764) (BuildId: 0a1b2c3d4e5f6071)",
    marks: &["*** ***", "Build fingerprint:", "backtrace:", " pc "],
    recognises: |text| {
        is_written_by(text, |writer| matches!(writer, Writer::Android { .. }))
            || is_tombstone_without_frames(text)
    },
    ..NATIVE
};

/// The format of HarmonyOS's stacks.
pub(crate) const HARMONY_OS: Format = Format {
    name: "harmonyos",
    description: "HarmonyOS's cppcrash logs",
    example: "#01 pc 00000000000a1b2c /data/storage/libfoo.so(do_action+764)(42521ecd5a913b6984e2ff754dc45cf0)",
    marks: &["Module name:", "Fault thread info:", "Reason:Signal"],
    recognises: |text| is_written_by(text, |writer| matches!(writer, Writer::HarmonyOs { .. })),
    // Its addresses count from address 0 of the file, as Android's do since release 11.
    parse: |text| parse_from(text, Some(Reader::SINCE_FILE_ADDRESSES)),
    ..NATIVE
};

/// The format of the sanitizers' stacks.
pub(crate) const SANITIZER: Format = Format {
    name: "sanitizer",
    description: "Sanitizers of LLVM and GCC without a symbolizer",
    example: "#1 0x55d0c0de1234 in main (/opt/app+0x1234) (BuildId: 0a1b2c3d4e5f6071)",
    marks: &["Sanitizer: ", "==ERROR: ", "    #0 0x"],
    recognises: |text| is_written_by(text, |writer| matches!(writer, Writer::Sanitizer { .. })),
    ..NATIVE
};

/// The common part of the formats of native stacks.
const NATIVE: Format = Format {
    parse: |text| parse_from(text, None),
    existing_symbols: Some(existing_symbols),
    edits: Edits::Frames(replacement),
    ..Format::TEXT
};

/// Whether the first native frame in `text` has this writer.
fn is_written_by(text: &[u8], is_writer: fn(Writer) -> bool) -> bool {
    // Apple's reports can contain the output of a sanitizer.
    let is_apples = || memchr::memmem::find(text, b"\nBinary Images:").is_some();
    // A frame in no image does not tell the writer.
    let in_image = |line| frame::frame(line).filter(|frame| frame.path != Some(b"Not mapped"));
    let first = lines(text).find_map(|(_, line)| in_image(line));
    first.is_some_and(|frame| is_writer(frame.writer)) && !is_apples()
}

/// Whether `text` is a tombstone that says that the process could not be unwound.
fn is_tombstone_without_frames(text: &[u8]) -> bool {
    let has_frames = || lines(text).any(|(_, line)| frame::frame(line).is_some());
    has(text, "Failed to unwind") && has(text, "pid: ") && has(text, "  >>> ") && !has_frames()
}

/// Parses a report of this release of Android, unless the text states another one.
fn parse_from(text: &[u8], release: Option<u64>) -> Result<Parsed, Error> {
    let mut reader = Reader::new(text.len(), release);
    for (span, line) in lines(text) {
        reader.line(line, span);
    }
    Ok(reader.finish())
}

fn existing_symbols(report: &Report<'_>) -> Vec<Vec<ExistingSymbol>> {
    let mut symbols = report.symbols_in_text();
    let frames = report
        .threads
        .iter()
        .zip(&mut symbols)
        .flat_map(|(thread, symbols)| thread.frames.iter().zip(symbols));
    for (frame, symbol) in
        frames.filter(|(frame, symbol)| frame.detail == SymbolDetail::Line && symbol.line.is_none())
    {
        if let Some((file, line)) = frame::location_after(report.text(), &frame.site.span()) {
            (symbol.file, symbol.line) = (Some(file), Some(line));
        }
    }
    symbols
}

fn replacement(text: &[u8], site: &Span, resolution: &Resolution<'_>) -> Option<Vec<u8>> {
    let frame = frame::frame(text.get(site.clone())?)?;
    match frame.writer {
        Writer::Android { .. } | Writer::HarmonyOs { .. } => pc::replacement(text, site, &frame, resolution),
        Writer::Sanitizer { .. } => sanitizer::replacement(text, site, &frame, resolution),
    }
}
