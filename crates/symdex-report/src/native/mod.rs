//! Reports of native code as text: Android's tombstones and what logcat has of them, HarmonyOS's cppcrash logs, and what sanitizers print,
//! with whatever a log puts before its lines.
//!
//! A frame is a line with its number, the image's path, and the address in the image's file, of the call itself; many have the build id.
//! One report has frames of several writers, a tombstone those of a sanitizer in its message, so all are read and written alike.

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

/// Native stacks, told by their first frame.
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
        // Apple's reports have what a sanitizer found in their message.
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
            if let Some((file, line)) = frame::place_behind(report.text, &frame.site) {
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
