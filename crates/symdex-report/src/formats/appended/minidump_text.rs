//! The text of minidump-stackwalk: ` 1  App + 0x41ff`, with registers and `Found by:` below. There are no ids, so
//! an index is found by the name of the module only.

use memchr::memmem::{find, rfind};

use super::list::INLINED;
use super::{Dialect, FrameLine, ImageReference, has_frame, parse};
use crate::engine::function::Function;
use crate::engine::symbolicate::Resolution;
use crate::formats::existing::ExistingSymbol;
use crate::formats::format::{Edits, Format};
use crate::report::{AddressKind, Report, Span, SymbolDetail};
use crate::text::{Cursor, line_end, lossy};

/// The format of minidump-stackwalk's text.
pub(crate) const FORMAT: Format = Format {
    name: "minidump-stackwalk-text",
    description: "The text of minidump-stackwalk, with `--match-by-name`",
    example: " 1  libfoo.so + 0x41ff",
    marks: &["Crash reason:", "Crash address:", "Loaded modules:"],
    recognises: |text| has_frame(text, &DIALECT),
    parse: |text| Ok(parse(text, &DIALECT)),
    existing_symbols: Some(existing_symbols),
    edits: Edits::Frames(replacement),
    ..Format::TEXT
};

const DIALECT: Dialect = Dialect { frame: |line| Some(Line::of(line)?.frame(line)), title, ..Dialect::PLAIN };

/// A file and a line number.
type Location = (String, u32);

/// The parts of a line with a frame. Positions count from the start of the line.
struct Line<'l> {
    number: u64,
    module: &'l [u8],
    module_end: usize,
    /// The offset in the module. `None` if the line has a function in place of it.
    offset: Option<u64>,
    function: Option<Span>,
    location: Option<Location>,
}

impl<'l> Line<'l> {
    /// Reads ` 1  App + 0x41ff`, ` 1  App!main + 0x12` or ` 1  App!main [main.c : 12 + 0x4]`.
    fn of(line: &'l [u8]) -> Option<Self> {
        let mut cursor = Cursor::new(line);
        cursor.take(b" ").or_else(|| line.first()?.is_ascii_digit().then_some(()))?;
        let number = cursor.decimal()?;
        cursor.take(b"  ")?;
        let (start, text) = (cursor.at(), cursor.rest());
        let text = text.strip_suffix(INLINED).unwrap_or(text);
        if let Some(mark) = memchr::memchr(b'!', text).filter(|mark| !text[..*mark].contains(&b' ')) {
            let (name, location) = location(&text[mark + 1..])?;
            let name_start = start + mark + 1;
            let function = Some(name_start..name_start + name.len());
            let (module, module_end) = (&text[..mark], start + mark);
            return Some(Self { number, module, module_end, offset: None, function, location });
        }
        let plus = find(text, b" + 0x")?;
        let mut offset = Cursor::at_byte(text, plus + b" + ".len());
        let offset = offset.hexadecimal().filter(|_| offset.rest().is_empty())?;
        let module = &text[..plus];
        let is_name = !module.is_empty() && !module.starts_with(b"0x") && find(module, b" 0x").is_none();
        let (module_end, offset) = (start + plus, Some(offset));
        is_name.then_some(Self { number, module, module_end, offset, function: None, location: None })
    }

    fn frame(self, line: &[u8]) -> FrameLine<'l> {
        let detail = match (&self.function, &self.location) {
            (Some(_), Some(_)) => SymbolDetail::Line,
            (Some(_), None) => SymbolDetail::Function,
            (None, _) => SymbolDetail::AddressOnly,
        };
        FrameLine {
            number: Some(self.number),
            address: self.offset.unwrap_or_default(),
            // The tool has moved return addresses back into the call already.
            kind: AddressKind::ProgramCounter,
            image: match self.offset {
                Some(_) => ImageReference::Loaded { path: self.module, load_address: 0, id: None },
                None => ImageReference::Address,
            },
            detail,
            function: self.function,
            inlined: line.ends_with(INLINED),
        }
    }
}

/// Splits `main [main.c : 12 + 0x4]` or `main + 0x12` into the function, and the file and line.
fn location(symbol: &[u8]) -> Option<(&[u8], Option<Location>)> {
    if let Some(open) = rfind(symbol, b" [").filter(|_| symbol.ends_with(b"]")) {
        let inside = lossy(&symbol[open + 2..symbol.len() - 1]);
        let (file, line) = inside.rsplit_once(" : ")?;
        let line = line.split_once(" + ").map_or(line, |(line, _)| line);
        return Some((&symbol[..open], Some((file.to_owned(), line.parse().ok()?))));
    }
    let plus = rfind(symbol, b" + 0x")?;
    Some((&symbol[..plus], None))
}

/// Reads `Thread 0  (crashed) - tid: 1304`.
fn title(line: &[u8]) -> Option<(String, bool)> {
    let number = Cursor::new(line.strip_prefix(b"Thread ")?).decimal()?;
    Some((format!("Thread {number}"), find(line, b"(crashed)").is_some()))
}

fn existing_symbols(report: &Report<'_>) -> Vec<Vec<ExistingSymbol>> {
    report.map_frames(|frame| {
        let (Some(name), Some(line)) = (frame.function, Line::of(report.at(frame.site))) else {
            return ExistingSymbol::default();
        };
        let (file, number) = line.location.unzip();
        ExistingSymbol { function: Some(lossy(report.at(name))), file, line: number, offset: None }
    })
}

/// A line for each function, with the number and the module of the frame. `None` without a function.
fn replacement(text: &[u8], site: &Span, resolution: &Resolution<'_>) -> Option<Vec<u8>> {
    let text_line = text.get(site.clone())?;
    let head = &text_line[..Line::of(text_line)?.module_end];
    let answer = |resolved: &Function| {
        let name = resolved.readable()?;
        let place = match resolved.line {
            Some(line) => format!("[{} : {line}]", resolved.file_path()),
            None => format!("+ {:#x}", resolution.function_offset(resolved).unwrap_or_default()),
        };
        let mark = if resolved.inlined { " [inlined]" } else { "" };
        let symbol = format!("!{name} {place}{mark}");
        Some([head, symdex_demangle::printable(symbol.into()).as_bytes()].concat())
    };
    let lines: Option<Vec<_>> = resolution.frames.iter().map(answer).collect();
    Some(lines?.join(line_end(text, site.end)))
}
