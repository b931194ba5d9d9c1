//! What gdb prints for `bt`, with the memory map that it prints for `info proc mappings`:
//! `#1  0x0000555555555390 in ?? () from /opt/app.so`. There are no ids, so an index is found by the name of
//! the file only.

use super::list::INLINED;
use super::{Dialect, FrameLine, ImageReference, has_frame, memory_map, parse};
use crate::engine::function::Function;
use crate::engine::symbolicate::Resolution;
use crate::formats::existing::ExistingSymbol;
use crate::formats::format::{Edits, Format};
use crate::report::{AddressKind, Report, Span, SymbolDetail};
use crate::text::{Cursor, line_end, lossy, opening_bracket};

/// The format of gdb's backtraces.
pub(crate) const FORMAT: Format = Format {
    name: "gdb",
    description: "gdb's `bt`, with the answer of `info proc mappings`, with `--match-by-name`",
    example: "#1  0x0000555555555390 in ?? () from /opt/app.so",
    marks: &["(gdb)", " in ?? ()", "#0  "],
    recognises: |text| has_frame(text, &DIALECT),
    parse: |text| Ok(parse(text, &DIALECT)),
    existing_symbols: Some(existing_symbols),
    edits: Edits::Frames(replacement),
    ..Format::TEXT
};

const DIALECT: Dialect = Dialect {
    frame: |line| Some(Line::of(line)?.frame(line)),
    images: memory_map::images,
    title,
    ..Dialect::PLAIN
};

/// The placeholder for an unknown function.
const NO_NAME: &[u8] = b"??";

/// The parts of a line with a frame. Positions count from the start of the line.
struct Line<'l> {
    number: u64,
    address: u64,
    /// The end of the address.
    address_end: usize,
    symbol: Symbol<'l>,
}

/// The text after an address: ` in main (argc=1) at main.c:5`.
pub(crate) struct Symbol<'l> {
    name: &'l [u8],
    /// The parentheses with the arguments.
    arguments: &'l [u8],
    /// The file and the line number.
    location: Option<(String, u32)>,
    /// The text after the arguments: ` from /opt/app.so`.
    rest: &'l [u8],
}

impl<'l> Line<'l> {
    fn of(line: &'l [u8]) -> Option<Self> {
        let mut cursor = Cursor::new(line);
        cursor.space();
        cursor.take(b"#")?;
        let number = cursor.decimal()?;
        cursor.space().then_some(())?;
        let address = cursor.hexadecimal()?;
        let address_end = cursor.at();
        let symbol = Symbol::of(line.strip_suffix(INLINED).unwrap_or(line).get(address_end..)?)?;
        Some(Self { number, address, address_end, symbol })
    }

    fn frame(self, line: &[u8]) -> FrameLine<'l> {
        let is_named = self.symbol.name != NO_NAME;
        let detail = match &self.symbol.location {
            Some(_) if is_named => SymbolDetail::Line,
            _ if is_named => SymbolDetail::Function,
            _ => SymbolDetail::AddressOnly,
        };
        let start = self.address_end + IN.len();
        FrameLine {
            number: Some(self.number),
            address: self.address,
            kind: if self.number == 0 { AddressKind::ProgramCounter } else { AddressKind::ReturnAddress },
            image: ImageReference::Address,
            detail,
            function: is_named.then(|| start..start + self.symbol.name.len()),
            inlined: line.ends_with(INLINED),
        }
    }
}

const IN: &[u8] = b" in ";

impl<'l> Symbol<'l> {
    /// Reads the text after an address. `None` if a sanitizer wrote it: only gdb has a space before the arguments.
    pub(crate) fn of(text: &'l [u8]) -> Option<Self> {
        let text = text.strip_prefix(IN)?;
        let cut = |word: &[u8]| memchr::memmem::rfind(text, word).map(|at| at + 1);
        let end = cut(b") at ").or_else(|| cut(b") from ")).unwrap_or(text.len());
        let (symbol, rest) = text.split_at(end);
        let open = opening_bracket(symbol)?;
        let (name, arguments) = symbol.split_at(open);
        let name = name.strip_suffix(b" ").filter(|name| !name.is_empty())?;
        // A sanitizer writes the image and the offset there.
        if memchr::memmem::find(arguments, b"+0x").is_some() || arguments.starts_with(b"(BuildId:") {
            return None;
        }
        let location = rest.strip_prefix(b" at ").and_then(|location| {
            let location = lossy(location);
            let (file, line) = location.rsplit_once(':')?;
            Some((file.to_owned(), line.parse().ok()?))
        });
        Some(Self { name, arguments, location, rest })
    }
}

/// Reads `Thread 1 (Thread 0x7ffff7d8a740 (LWP 42)):`.
fn title(line: &[u8]) -> Option<(String, bool)> {
    let name = line.strip_suffix(b":").filter(|name| name.starts_with(b"Thread "))?;
    Some((lossy(name), false))
}

fn existing_symbols(report: &Report<'_>) -> Vec<Vec<ExistingSymbol>> {
    report.map_frames(|frame| {
        let (Some(name), Some(line)) = (frame.function, Line::of(report.at(frame.site))) else {
            return ExistingSymbol::default();
        };
        let (file, number) = line.symbol.location.unzip();
        ExistingSymbol { function: Some(lossy(report.at(name))), file, line: number, offset: None }
    })
}

/// A line for each function, with the number and the address of the frame.
fn replacement(text: &[u8], site: &Span, resolution: &Resolution<'_>) -> Option<Vec<u8>> {
    let text_line = text.get(site.clone())?;
    let line = Line::of(text_line)?;
    let head = &text_line[..line.address_end];
    let answer = |resolved: &Function| {
        let name = resolved.readable().map_or_else(|| lossy(line.symbol.name), str::to_owned);
        let arguments = if resolved.inlined { "()".into() } else { lossy(line.symbol.arguments) };
        let rest = resolved.line.map_or_else(
            || lossy(line.symbol.rest),
            |number| format!(" at {}:{number}", resolved.file_path()),
        );
        let mark = if resolved.inlined { " [inlined]" } else { "" };
        let symbol = format!(" in {name} {arguments}{rest}{mark}");
        [head, symdex_demangle::printable(symbol.into()).as_bytes()].concat()
    };
    let lines: Vec<_> = resolution.frames.iter().map(answer).collect();
    Some(lines.join(line_end(text, site.end)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_space_before_the_arguments_tells_gdb_from_a_sanitizer() {
        let read = |line: &str| {
            let line = Line::of(line.as_bytes())?;
            Some((lossy(line.symbol.name), lossy(line.symbol.arguments), line.symbol.location))
        };
        let at = |file: &str, line| Some((file.to_owned(), line));
        let symbol =
            |name: &str, arguments: &str, location| Some((name.to_owned(), arguments.to_owned(), location));
        assert_eq!(read("#1  0x55d1 in ?? () from /lib/a.so"), symbol("??", "()", None));
        assert_eq!(read("#0  0x55d1 in f (p=0x0) at a b.c:12"), symbol("f", "(p=0x0)", at("a b.c", 12)));
        let closure = "#2  0x55d1 in g(int)::{lambda()#1}::operator()(int) const (this=0x1)";
        assert_eq!(read(closure), symbol("g(int)::{lambda()#1}::operator()(int) const", "(this=0x1)", None));
        for line in [
            "#1 0x55d1 in f(int) /src/a.c:5:3",
            "#1 0x55d1 in f(int) (/opt/app+0x1234)",
            "#1 0x55d1 in f (/opt/app+0x1234) (BuildId: 0a1b2c)",
            "#1 0x55d1  (/opt/app+0x1234)",
            "#1 main () at a.c:3",
        ] {
            assert_eq!(read(line), None, "{line}");
        }
    }
}
