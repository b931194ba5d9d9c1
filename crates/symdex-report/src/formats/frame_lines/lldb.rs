//! What lldb prints for `bt`, with the images that it prints for `image list`:
//! ``frame #1: 0x0000000104a343d0 App`main + 24 at main.c:5:3`` and
//! `[  0] 6DCD4E9D-... 0x0000000104a34000 /opt/App`.

use memchr::memmem;

use super::list::INLINED;
use super::{
    Dialect, FrameLine, ImageReference, Location, existing_symbols, has_frame, images_in_lines, parse,
    with_symbols,
};
use crate::engine::function::Function;
use crate::engine::symbolicate::Resolution;
use crate::formats::format::{Edits, Format};
use crate::formats::rules::is_nameless;
use crate::report::ReportImage;
use crate::text::{Cursor, lossy, lossy_text};

/// The format of lldb's backtraces.
pub(crate) const FORMAT: Format = Format {
    name: "lldb",
    description: "lldb's `bt`, with the answer of `image list`",
    example: "  * frame #0: 0x0000000104a343d0 App`___lldb_unnamed_symbol12 + 20",
    marks: &["* thread #", "frame #", "stop reason ="],
    recognises: |text| has_frame(text, &DIALECT),
    parse: |text| Ok(parse(text, &DIALECT)),
    existing_symbols: Some(|report| existing_symbols(report, &DIALECT)),
    stated_image: |line| frame(line)?.stated_image(),
    image_list: "the answer of `image list`",
    edits: Edits::Frames(|text, site, resolution| {
        with_symbols(text, site, resolution, &DIALECT, |resolved, line, frame| {
            // A function that the answer does not name keeps its name.
            let old = frame.function.clone().map_or(NO_NAME.as_bytes(), |name| &line[name]);
            Some((symbol(resolved, old, resolution), None))
        })
    }),
    ..Format::TEXT
};

const DIALECT: Dialect =
    Dialect { frame, images: |text, limit| images_in_lines(text, limit, image), title, ..Dialect::PLAIN };

/// The placeholder for an unknown function.
const NO_NAME: &str = "??";

/// Reads ``frame #1: 0x0000000104a343d0 App`main + 24 at main.c:5:3``.
fn frame(line: &[u8]) -> Option<FrameLine<'_>> {
    const FRAME: &[u8] = b"frame #";
    let mut cursor = Cursor::at_byte(line, memmem::find(line, FRAME)? + FRAME.len());
    let number = cursor.decimal()?;
    cursor.take(b": ")?;
    let address = cursor.hexadecimal()?;
    cursor.space();
    let rest = cursor.rest();
    let len = memchr::memchr(b'`', rest).unwrap_or(rest.len());
    let head = cursor.at() + len;
    let symbol = rest.get(len + 1..).unwrap_or_default();
    let (name, location) = location(symbol.strip_suffix(INLINED).unwrap_or(symbol));
    let (name, offset) = distance(name);
    let function = (!is_nameless(name)).then(|| head + 1..head + 1 + name.len());
    let image = ImageReference::Name(&rest[..len]);
    Some(FrameLine {
        offset,
        ..FrameLine::of_symbol(line, (number, address), image, head, function, location)
    })
}

/// Splits `main + 24 at main.c:5:3` before ` at `, and reads the file and the line.
fn location(symbol: &[u8]) -> (&[u8], Option<Location>) {
    let Some(at) = memmem::rfind(symbol, b" at ") else { return (symbol, None) };
    let text = lossy(&symbol[at + b" at ".len()..]);
    let mut parts = text.splitn(3, ':');
    let location = parts.next().zip(parts.next().and_then(|line| line.parse().ok()));
    match location {
        Some((file, line)) => (&symbol[..at], Some((file.to_owned(), line))),
        None => (symbol, None),
    }
}

/// Splits `main + 24`.
fn distance(symbol: &[u8]) -> (&[u8], Option<u64>) {
    let plus = memmem::rfind(symbol, b" + ");
    let offset = plus.and_then(|plus| lossy(&symbol[plus + 3..]).parse().ok());
    (plus.filter(|_| offset.is_some()).map_or(symbol, |plus| &symbol[..plus]), offset)
}

/// Reads `[  0] 6DCD4E9D-D3B1-3A0E-8DFF-6A5A4BE1B1B0 0x0000000104a34000 /opt/App`. The options of `image list` decide
/// which of the parts there are, and their order.
fn image(line: &[u8]) -> Option<ReportImage> {
    let mut cursor = Cursor::new(line);
    cursor.space();
    cursor.take(b"[")?;
    cursor.space();
    cursor.decimal()?;
    cursor.take(b"]")?;
    let (mut id, mut load_address) = (None, None);
    loop {
        cursor.space();
        let mut word = cursor;
        if let Some(number) = word.hexadecimal() {
            load_address = Some(number);
        } else if let Some(number) = word.word().and_then(|word| lossy(word).parse().ok()) {
            id = Some(number);
        } else {
            break;
        }
        cursor = word;
    }
    let mut path = cursor.rest();
    // The load address of an ELF image follows its path once more. Without a space, the number before it is the slide.
    if let Some(open) = memmem::rfind(path, b"(0x") {
        let address = Cursor::at_byte(path, open + 1).hexadecimal();
        path = &path[..open];
        load_address = address.filter(|_| !path.ends_with(b" ")).or(load_address);
    }
    let image = ReportImage::of_file(lossy(path.trim_ascii()), &['/']);
    Some(ReportImage { id, load_address: load_address?, ..image })
}

/// Reads `* thread #1, queue = 'com.apple.main-thread', stop reason = signal SIGABRT`. The star marks the thread that
/// stopped.
fn title(line: &[u8]) -> Option<(String, bool)> {
    let line = line.trim_ascii_start();
    let marked = line.strip_prefix(b"* ");
    let name = marked.unwrap_or(line);
    name.starts_with(b"thread #").then(|| (lossy(name), marked.is_some()))
}

/// The function, its distance, and the file and line: `` `main + 24 at main.c:5 ``.
fn symbol(resolved: &Function, old: &[u8], resolution: &Resolution<'_>) -> String {
    let mut symbol = "`".to_owned() + resolved.readable().unwrap_or(&lossy_text(old));
    if let Some(offset) = resolution.function_offset(resolved) {
        symbol += &format!(" + {offset}");
    }
    if let Some(line) = resolved.line {
        symbol += &format!(" at {}:{line}", resolved.file_name());
    }
    symbol
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_have_what_the_options_of_image_list_ask_for() {
        let uuid = "6DCD4E9D-D3B1-3A0E-8DFF-6A5A4BE1B1B0";
        let read = |line: &str| {
            let image = image(line.as_bytes())?;
            Some((image.id.is_some(), image.load_address, image.path, image.name))
        };
        let app = |has_id| Some((has_id, 0x1_04a3_4000, "/opt/My App".to_owned(), "My App".to_owned()));
        assert_eq!(read(&format!("[  0] {uuid} 0x0000000104a34000 /opt/My App ")), app(true));
        assert_eq!(read(&format!("[  0] {uuid} 0x104a34000 /opt/My App (0x0000000104a34000)")), app(true));
        assert_eq!(read(&format!("[  0] {uuid} 0x4a34000 /opt/My App(0x0000000104a34000)")), app(true));
        assert_eq!(read(&format!("[  0] 0x4a34000 {uuid} /opt/My App(0x0000000104a34000)")), app(true));
        assert_eq!(read("[  0] 0x0000000004a34000 /opt/My App(0x0000000104a34000)"), app(false));
        assert_eq!(read("[  0] /opt/My App"), None);
    }

    #[test]
    fn the_module_alone_and_unnamed_symbols_are_no_names() {
        for symbol in
            ["App", "App`___lldb_unnamed_symbol12$$App + 72", "App`App.___lldb_unnamed_symbol15", "App`??"]
        {
            let line = format!("frame #1: 0x0000000104a343d0 {symbol}");
            assert!(frame(line.as_bytes()).is_some_and(|frame| frame.function.is_none()), "{line}");
        }
    }
}
