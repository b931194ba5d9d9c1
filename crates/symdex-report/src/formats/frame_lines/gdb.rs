//! What gdb prints for `bt`, with the memory map that it prints for `info proc mappings`:
//! `#1  0x0000555555555390 in ?? () from /opt/app.so`. There are no ids, so an index is found by the name of
//! the file only.

use super::list::INLINED;
use super::{
    Dialect, FrameLine, ImageReference, Location, existing_symbols, has_frame, memory_map, parse,
    with_symbols,
};
use crate::engine::function::Function;
use crate::formats::format::{Edits, Format};
use crate::formats::rules::is_nameless;
use crate::text::{Cursor, lossy, lossy_text, opening_bracket};

/// The format of gdb's backtraces.
pub(crate) const FORMAT: Format = Format {
    name: "gdb",
    description: "gdb's `bt`, with the answer of `info proc mappings`, with `--match-by-name`",
    example: "#1  0x0000555555555390 in ?? () from /opt/app.so",
    marks: &["(gdb)", " in ?? ()", "#0  "],
    recognises: |text| has_frame(text, &DIALECT),
    parse: |text| Ok(parse(text, &DIALECT)),
    existing_symbols: Some(|report| existing_symbols(report, &DIALECT)),
    stated_image: |line| Some(lossy_text(&line[memchr::memmem::rfind(line, b") from ")? + 7..])),
    image_list: "the answer of `info proc mappings`",
    edits: Edits::Frames(|text, site, resolution| with_symbols(text, site, resolution, &DIALECT, symbol)),
    ..Format::TEXT
};

const DIALECT: Dialect = Dialect { frame, images: memory_map::images, title, ..Dialect::PLAIN };

/// The text after an address: ` in main (argc=1) at main.c:5`.
pub(crate) struct Symbol<'l> {
    name: &'l [u8],
    /// The parentheses with the arguments.
    arguments: &'l [u8],
    /// The file and the line number.
    location: Option<Location>,
    /// The text after the arguments: ` from /opt/app.so`.
    rest: &'l [u8],
}

/// Reads `#1  0x0000555555555390 in ?? () from /opt/app.so`.
fn frame(line: &[u8]) -> Option<FrameLine<'_>> {
    let mut cursor = Cursor::new(line);
    cursor.space();
    cursor.take(b"#")?;
    let number = cursor.decimal()?;
    cursor.space().then_some(())?;
    let address = cursor.hexadecimal()?;
    let Symbol { name, location, .. } = Symbol::of(cursor.rest())?;
    let (head, start) = (cursor.at(), cursor.at() + IN.len());
    let function = (!is_nameless(name)).then(|| start..start + name.len());
    Some(FrameLine::of_symbol(line, (number, address), ImageReference::Address, head, function, location))
}

const IN: &[u8] = b" in ";

impl<'l> Symbol<'l> {
    /// Reads the text after an address. `None` if a sanitizer wrote it: only gdb has a space before the arguments.
    pub(crate) fn of(text: &'l [u8]) -> Option<Self> {
        let text = text.strip_suffix(INLINED).unwrap_or(text).strip_prefix(IN)?;
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

/// The text after the address of a frame: ` in main (argc=1) at /src/main.c:5`.
fn symbol(resolved: &Function, line: &[u8], frame: &FrameLine<'_>) -> Option<(String, Option<String>)> {
    let Symbol { name, arguments, rest, .. } = Symbol::of(line.get(frame.head..)?)?;
    let name = resolved.readable().map_or_else(|| lossy(name), str::to_owned);
    let arguments = if resolved.inlined { "()".into() } else { lossy(arguments) };
    let at = |number| format!(" at {}:{number}", resolved.file_path());
    let rest = resolved.line.map_or_else(|| lossy(rest), at);
    Some((format!(" in {name} {arguments}{rest}"), None))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_space_before_the_arguments_tells_gdb_from_a_sanitizer() {
        let read = |line: &str| {
            let frame = frame(line.as_bytes())?;
            let symbol = Symbol::of(&line.as_bytes()[frame.head..])?;
            Some((lossy(symbol.name), lossy(symbol.arguments), symbol.location))
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
