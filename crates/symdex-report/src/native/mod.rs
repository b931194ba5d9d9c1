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

use crate::error::Error;
use crate::existing::ExistingSymbol;
use crate::format::{Edit, Format, frame_edits};
use crate::report::{Parsed, Report, Span, SymbolDetail};
use crate::symbolicate::{Resolution, Symbolicated};
use crate::text::lines;
use frame::Writer;
use reader::Reader;

/// A format of native stacks. The first frame tells the format.
pub(crate) struct Native {
    name: &'static str,
    is_writer: fn(Writer) -> bool,
}

pub(crate) const ANDROID: Native =
    Native { name: "android", is_writer: |writer| matches!(writer, Writer::Android { .. }) };
pub(crate) const HARMONY_OS: Native =
    Native { name: "harmonyos", is_writer: |writer| matches!(writer, Writer::HarmonyOs { .. }) };
pub(crate) const SANITIZER: Native =
    Native { name: "sanitizer", is_writer: |writer| matches!(writer, Writer::Sanitizer { .. }) };

impl Format for Native {
    fn name(&self) -> &'static str {
        self.name
    }

    fn recognises(&self, text: &[u8]) -> bool {
        // Apple's reports can contain the output of a sanitizer.
        let is_apples = || memchr::memmem::find(text, b"\nBinary Images:").is_some();
        let first = lines(text).find_map(|(_, line)| frame::frame(line));
        first.is_some_and(|frame| (self.is_writer)(frame.writer)) && !is_apples()
    }

    fn parse(&self, text: &[u8]) -> Result<Parsed, Error> {
        let mut reader = Reader::default();
        for (span, line) in lines(text) {
            reader.line(line, span);
        }
        Ok(reader.finish())
    }

    fn existing_symbols(&self, report: &Report<'_>) -> Vec<Vec<ExistingSymbol>> {
        let mut symbols = report.symbols_in_text();
        let frames = report
            .threads
            .iter()
            .zip(&mut symbols)
            .flat_map(|(thread, symbols)| thread.frames.iter().zip(symbols));
        for (frame, symbol) in
            frames.filter(|(frame, symbol)| frame.detail == SymbolDetail::Line && symbol.line.is_none())
        {
            if let Some((file, line)) = frame::location_after(report.text, &frame.site) {
                (symbol.file, symbol.line) = (Some(file), Some(line));
            }
        }
        symbols
    }

    fn edits(&self, symbolicated: &Symbolicated<'_, '_>) -> Vec<Edit> {
        frame_edits(symbolicated, replacement)
    }
}

fn replacement(text: &[u8], site: &Span, resolution: &Resolution<'_>) -> Option<Vec<u8>> {
    let frame = frame::frame(text.get(site.clone())?)?;
    match frame.writer {
        Writer::Android { .. } | Writer::HarmonyOs { .. } => pc::replacement(text, site, &frame, resolution),
        Writer::Sanitizer { .. } => sanitizer::replacement(text, site, &frame, resolution),
    }
}
