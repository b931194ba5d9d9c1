//! What Rust's standard library prints for a panic with `RUST_BACKTRACE=full`, and for a `Backtrace` with `{:#}`:
//! `  10:     0x55d83ae2dae0 - <unknown>`, and below a frame that has a line `at src/main.rs:2:37`.
//!
//! The report states no images. A memory map in the same text does, and the index is then found by the name of the
//! file. Without one, an answer is right only for an executable that is not position-independent.

use super::list::INLINED;
use super::{
    Dialect, FrameLine, Location, existing_symbols, has_frame, mapped, mapped_or_executable, parse,
    with_symbols,
};
use crate::engine::function::Function;
use crate::formats::existing::file_and_line;
use crate::formats::format::{Edits, Format};
use crate::formats::rules::is_nameless;
use crate::report::AddressKind;
use crate::text::{Cursor, lossy};

/// The format of Rust's backtraces.
pub(crate) const FORMAT: Format = Format {
    name: "rust-backtrace",
    description: "Rust's backtraces with addresses (`RUST_BACKTRACE=full`), with `--assume executable=FILE`",
    example: "  10:     0x55d83ae2dae0 - <unknown>",
    marks: &["stack backtrace:", "panicked at", "RUST_BACKTRACE"],
    recognises: |text| has_frame(text, &DIALECT),
    parse: |text| Ok(parse(text, &DIALECT)),
    existing_symbols: Some(|report| existing_symbols(report, &DIALECT)),
    edits: Edits::Frames(|text, site, resolution| with_symbols(text, site, resolution, &DIALECT, symbol)),
    ..Format::TEXT
};

const DIALECT: Dialect = Dialect { frame, images: mapped_or_executable, title, location, ..Dialect::PLAIN };

/// Reads `  10:     0x55d83ae2dae0 - <unknown>`.
fn frame(line: &[u8]) -> Option<FrameLine<'_>> {
    let mut cursor = Cursor::new(line);
    cursor.space();
    let number = cursor.decimal()?;
    cursor.take(b":")?;
    cursor.space();
    let address = cursor.hexadecimal()?;
    cursor.take(b" - ")?;
    let head = cursor.at();
    let name = name(line, head);
    // With line numbers, a list of images has such lines: `15:0x1000 - 0x1fff App`.
    (!name.is_empty() && !name.starts_with(b"0x")).then_some(())?;
    let function = (!is_nameless(name)).then(|| head..head + name.len());
    let frame = FrameLine::of_symbol(line, (number, address), mapped(address), head, function, None);
    // The innermost function called the unwinder.
    Some(FrameLine { kind: AddressKind::ReturnAddress, ..frame })
}

/// The name in `line` after the first `head` bytes.
fn name(line: &[u8], head: usize) -> &[u8] {
    let name = line.get(head..).unwrap_or_default();
    name.strip_suffix(INLINED).unwrap_or(name)
}

/// Reads `thread 'main' (42) panicked at src/main.rs:2:37:`.
fn title(line: &[u8]) -> Option<(String, bool)> {
    let panicked = memchr::memmem::find(line, b" panicked at ")?;
    Some((lossy(&line[memchr::memmem::find(&line[..panicked], b"thread '")?..panicked]), true))
}

/// Reads `    at src/main.rs:2:37` in the line below a frame.
fn location(line: &[u8]) -> Option<Location> {
    file_and_line(std::str::from_utf8(line.trim_ascii_start().strip_prefix(b"at ")?).ok()?)
}

/// The white space before `at` in a 64-bit process.
const INDENT: &str = "                               ";

/// The function, and the line below it with the file and line.
fn symbol(resolved: &Function, line: &[u8], frame: &FrameLine<'_>) -> Option<(String, Option<String>)> {
    let function = resolved.readable().map_or_else(|| lossy(name(line, frame.head)), str::to_owned);
    let at = |number| format!("{INDENT}at {}:{number}", resolved.file_path());
    Some((function, resolved.line.map(at)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Base, Report, SymbolDetail};

    /// From a program of rustc 1.95.
    const PANIC: &[u8] = b"
thread 'main' (17606) panicked at p.rs:2:37:
too large
stack backtrace:
   0:     0x55d83ae5810a - <unknown>
  10:     0x55d83ae2dae0 - p::mid::hdf15578916149e32
                               at /src/p.rs:4:25
  11:     0x55d83ae2e27e - main
  21:                0x0 - <unknown>
";

    #[test]
    fn the_line_below_a_frame_has_its_file_and_line() {
        let report = Report::parse(PANIC).expect("a report");
        let frames = &report.threads()[0].frames;
        let read: Vec<_> = frames.iter().map(|frame| (frame.address, frame.detail, frame.image())).collect();
        assert_eq!(
            read,
            [
                (0x55d8_3ae5_810a, SymbolDetail::AddressOnly, Some(0)),
                (0x55d8_3ae2_dae0, SymbolDetail::Line, Some(0)),
                (0x55d8_3ae2_e27e, SymbolDetail::Function, Some(0)),
                (0, SymbolDetail::AddressOnly, None),
            ]
        );
        assert_eq!(report.threads()[0].name, "thread 'main' (17606)");
        let known = &report.existing_symbols()[0];
        assert_eq!((known[1].file.as_deref(), known[1].line), (Some("/src/p.rs"), Some(4)));
        assert_eq!((known[2].function.as_deref(), known[2].line), (Some("main"), None));
    }

    #[test]
    fn lines_of_images_and_registers_with_line_numbers_are_no_frames() {
        for line in ["15:0x1000 - 0x1fff +App arm64 /App", "12:    x0: 0x1    x1: 0x2"] {
            assert!(frame(line.as_bytes()).is_none(), "{line}");
        }
        let images = b"Binary Images:\n1: 0x1000 - a\n\n2: 0x2000 - b\n";
        let report = Report::parse(images).map(|report| report.threads().len());
        assert!(report.is_ok_and(|stacks| stacks == 0), "a list of images has no frames");
    }

    #[test]
    fn without_a_memory_map_addresses_are_those_of_the_file() {
        let report = Report::parse(PANIC).expect("a report");
        assert_eq!((report.images()[0].name.as_str(), report.images()[0].base), ("executable", Base::File));
        let map = b"55d83ae26000-55d83ae60000 r-xp 00000000 fe:01 12 /opt/p\n";
        let text = [PANIC, map].concat();
        let report = Report::parse(&text).expect("a report");
        assert_eq!(
            (report.images()[0].name.as_str(), report.images()[0].load_address),
            ("p", 0x55d8_3ae2_6000)
        );
    }
}
