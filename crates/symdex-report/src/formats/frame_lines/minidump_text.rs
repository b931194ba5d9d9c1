//! The text of minidump-stackwalk: ` 1  App + 0x41ff`, with registers and `Found by:` below. There are no ids, so
//! an index is found by the name of the module only.

use memchr::memmem::{find, rfind};

use super::list::INLINED;
use super::{Dialect, FrameLine, ImageReference, Location, existing_symbols, has_frame, parse, with_symbols};
use crate::engine::function::Function;
use crate::engine::symbolicate::Resolution;
use crate::formats::format::{Edits, Format};
use crate::report::AddressKind;
use crate::text::{Cursor, lossy};

/// The format of minidump-stackwalk's text.
pub(crate) const FORMAT: Format = Format {
    name: "minidump-stackwalk-text",
    description: "The text of minidump-stackwalk, with `--match-by-name`",
    example: " 1  libfoo.so + 0x41ff",
    marks: &["Crash reason:", "Crash address:", "Loaded modules:"],
    recognises: |text| has_frame(text, &DIALECT),
    parse: |text| Ok(parse(text, &DIALECT)),
    existing_symbols: Some(|report| existing_symbols(report, &DIALECT)),
    edits: Edits::Frames(|text, site, resolution| {
        with_symbols(text, site, resolution, &DIALECT, |resolved, _, _| {
            Some((symbol(resolved, resolution)?, None))
        })
    }),
    ..Format::TEXT
};

const DIALECT: Dialect = Dialect { frame, title, ..Dialect::PLAIN };

/// Reads ` 1  App + 0x41ff`, ` 1  App!main + 0x12` or ` 1  App!main [main.c : 12 + 0x4]`.
fn frame(line: &[u8]) -> Option<FrameLine<'_>> {
    let mut cursor = Cursor::new(line);
    cursor.take(b" ").or_else(|| line.first()?.is_ascii_digit().then_some(()))?;
    let number = cursor.decimal()?;
    cursor.take(b"  ")?;
    let (start, text) = (cursor.at(), cursor.rest());
    let text = text.strip_suffix(INLINED).unwrap_or(text);
    let frame = if let Some(mark) = memchr::memchr(b'!', text).filter(|mark| !text[..*mark].contains(&b' ')) {
        let (name, location) = location(&text[mark + 1..])?;
        let (head, from) = (start + mark, start + mark + 1);
        FrameLine::of_symbol(
            line,
            (number, 0),
            ImageReference::Address,
            head,
            Some(from..from + name.len()),
            location,
        )
    } else {
        let plus = find(text, b" + 0x")?;
        let mut offset = Cursor::at_byte(text, plus + b" + ".len());
        let address = offset.hexadecimal().filter(|_| offset.rest().is_empty())?;
        let path = &text[..plus];
        let is_name = !path.is_empty() && !path.starts_with(b"0x") && find(path, b" 0x").is_none();
        let image = is_name.then_some(ImageReference::Loaded { path, load_address: 0, id: None })?;
        FrameLine::of_symbol(line, (number, address), image, start + plus, None, None)
    };
    // The tool has moved return addresses back into the call already.
    Some(FrameLine { kind: AddressKind::ProgramCounter, ..frame })
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

/// The text after the module of a frame: `!main [/src/main.c : 12]`. `None` without a function.
fn symbol(resolved: &Function, resolution: &Resolution<'_>) -> Option<String> {
    let name = resolved.readable()?;
    let place = match resolved.line {
        Some(line) => format!("[{} : {line}]", resolved.file_path()),
        None => format!("+ {:#x}", resolution.function_offset(resolved).unwrap_or_default()),
    };
    Some(format!("!{name} {place}"))
}
