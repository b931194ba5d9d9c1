//! Stacks of runtimes and crash servers that have an address and the name of its image in each line:
//!
//! * `0x104a343d0(App + 0x000003d0)` of Google's crash server, `104a343d0 (App+3d0) - main` of Godot;
//! * `pc 0x104a343d0 fp 0x16fd7fab0 /opt/App+0x3d0` of the Dart VM;
//! * `0x104a343d0 - /opt/App : main` of Mono and .NET, `0x104a343d0 App!main() [/src/main.cpp:5]` of Unreal. They do not
//!   state where the image was loaded.
//!
//! There are no ids, so an index is found by the name of the file only.

use super::{APPENDED, Dialect, FrameLine, ImageReference, has_frame, list, parse};
use crate::formats::format::Format;
use crate::formats::rules::is_nameless;
use crate::report::{AddressKind, SymbolDetail};
use crate::text::{Cursor, split_once};

/// The format of these stacks.
pub(crate) const FORMAT: Format = Format {
    name: "runtime-stack",
    description: "Stacks of the Dart VM, Godot and Google's crash server, with `--match-by-name`; of Mono, .NET, Unreal",
    example: "0x104a343d0(App + 0x000003d0)",
    marks: &["Native stacktrace:", "=== Crash occurred", "LogMac: Error:"],
    recognises: |text| has_frame(text, &DIALECT),
    parse: |text| Ok(parse(text, &DIALECT)),
    stated_image: |line| frame(line)?.stated_image(),
    edits: APPENDED,
    ..Format::TEXT
};

const DIALECT: Dialect = Dialect { frame, begins_with_instruction: |_| true, ..Dialect::PLAIN };

fn frame(line: &[u8]) -> Option<FrameLine<'_>> {
    let mut cursor = Cursor::new(line);
    cursor.space();
    let is_dart = cursor.take(b"pc ").is_some();
    let is_marked = cursor.rest().starts_with(b"0x");
    let address = number(&mut cursor)?;
    let rest = cursor.rest();
    let (image, name) = if is_dart {
        let (_, text) = split_once(rest.strip_prefix(b" fp 0x")?, b" ")?;
        match with_offset(text.split(|byte| *byte == b' ').next()?, address) {
            Some(image) => (image, &b""[..]),
            None => (ImageReference::Address, text),
        }
    } else if let Some(inside) = rest.trim_ascii_start().strip_prefix(b"(") {
        let (inside, after) = split_once(inside, b")")?;
        // Lines of glibc have the address there.
        (!after.starts_with(b" [")).then_some(())?;
        (with_offset(inside, address)?, after.strip_prefix(b" - ").unwrap_or_default())
    } else if rest.starts_with(b" - Unknown") {
        (ImageReference::Address, &b""[..])
    } else if let Some(path) = rest.strip_prefix(b" - ").filter(|path| path.starts_with(b"/")) {
        let (path, name) = split_once(path, b" :")?;
        (ImageReference::Name(path), name.trim_ascii())
    } else {
        let (image, symbol) =
            split_once(rest.strip_prefix(b" ")?, b"!").filter(|(image, _)| !image.contains(&b' '))?;
        let (name, _) = split_once(symbol, b"(").or_else(|| split_once(symbol, b" ["))?;
        (ImageReference::Name(image), name)
    };
    // Only lines with an offset may lack the `0x`.
    (is_marked && address != 0 || matches!(image, ImageReference::Loaded { .. })).then_some(())?;
    let mut frame = FrameLine::of_address(line, None, address, AddressKind::ReturnAddress, image);
    if !is_nameless(name) && !name.starts_with(b"Unknown") {
        frame.detail = frame.detail.max(SymbolDetail::Function);
    }
    Some(frame)
}

/// Reads a hexadecimal number with `0x`, `0X` or neither.
fn number(cursor: &mut Cursor<'_>) -> Option<u64> {
    let _ = cursor.take(b"0x").or_else(|| cursor.take(b"0X"));
    cursor.hexadecimal_digits()
}

/// Reads the image of `address` and its offset there: `App + 0x3d0`, `App+3d0`.
fn with_offset(text: &[u8], address: u64) -> Option<ImageReference<'_>> {
    let plus = memchr::memrchr(b'+', text)?;
    let path = text[..plus].trim_ascii_end();
    let mut cursor = Cursor::at_byte(text, plus + 1);
    cursor.space();
    let offset = number(&mut cursor).filter(|_| cursor.rest().is_empty())?;
    let load_address =
        address.checked_sub(offset).filter(|load| *load != 0 && list::is_load_address(*load, address))?;
    (!path.is_empty()).then_some(ImageReference::Loaded { path, load_address, id: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_state_the_offset_in_the_image_or_its_name_only() {
        let read = |line: &'static str| {
            let frame = frame(line.as_bytes())?;
            let (path, load_address) = match frame.image {
                ImageReference::Loaded { path, load_address, .. } => (path, load_address),
                ImageReference::Name(path) => (path, 0),
                _ => return None,
            };
            let is_named = frame.detail == SymbolDetail::Function;
            Some((std::str::from_utf8(path).expect("text"), frame.address, load_address, is_named))
        };
        let app = |path, load_address, is_named| Some((path, 0x1_04a3_43d0, load_address, is_named));
        let load = 0x1_04a3_4000;
        assert_eq!(read("0x0000000104a343d0(My App + 0x000003d0)"), app("My App", load, false));
        assert_eq!(read("0X0000000104A343D0\t(App + 0X000003D0)"), app("App", load, false));
        assert_eq!(read("104a343d0 (main+3d0) - f(int)"), app("main", load, true));
        assert_eq!(read("  pc 0x104a343d0 fp 0x885fef58 /opt/App+0x3d0"), app("/opt/App", load, false));
        let without_image = |line: &str| frame(line.as_bytes()).map(|frame| (frame.address, frame.detail));
        let named = Some((0x1_04a3_43d0, SymbolDetail::Function));
        assert_eq!(without_image("pc 0x104a343d0 fp 0x885fef58 dart::f(int)+12"), named);
        let bare = Some((0x1_04a3_43d0, SymbolDetail::AddressOnly));
        for line in ["pc 0x104a343d0 fp 0x885fef58 Unknown symbol", "\t0x104a343d0 - Unknown"] {
            assert_eq!(without_image(line), bare, "{line}");
        }
        assert_eq!(read("\t0x104a343d0 - /opt/My App : mono_f"), app("/opt/My App", 0, true));
        assert_eq!(read("\t0x104a343d0 - /opt/App : "), app("/opt/App", 0, false));
        assert_eq!(read("\t0x104a343d0 - /opt/App : <redacted>"), app("/opt/App", 0, false));
        assert_eq!(read("0x0000000104a343d0 App!Unknown() [UnknownFile:0]"), app("App", 0, false));
        assert_eq!(read("0x104a343d0 App!F::f(int, char) [/src/f.cpp:5]"), app("App", 0, true));
        assert_eq!(read("0x104a343d0 App!UnknownFunction(0x3d0)"), app("App", 0, false));
        for line in [
            "0x104a343d0(App + 0x3d1)",
            "0x104a343d0(+0x3d0)",
            "0x3d0(App + 0x3d0)",
            "dead3d0(App+0x3d0) [0x55d0c0de1234]",
            "104a34000-104a3c000 r-xp 00000000 fe:01 12 /opt/App",
            "0x104a34000 - 0x104a3ffff +App arm64 /opt/App",
            "0x104a343d0 - App",
            "0x104a343d0 a text with a call!f() [1]",
        ] {
            assert_eq!(read(line), None, "{line}");
        }
    }
}
