//! From a mangled name to what a person reads, with bounds: names come from uploads, and demanglers are written for compilers.

use std::borrow::Cow;

use symbolic_common::{Language, Name, NameMangling};
use symbolic_demangle::{Demangle, DemangleOptions};

/// The longest name that is demangled and the longest text that comes out, in bytes. (symbolic-demangle itself gives up on
/// C++ and Swift beyond 4 kB of text; 215 bytes of C++ can stand for 69 MB.)
const MAX_SIZE: usize = 64 << 10;

/// What a text that was cut ends with.
const CUT: &str = "…";

/// The name as a person reads it: C++, Rust and Swift demangled, everything else as it is.
///
/// Swift names are simplified, much as Apple's atos prints them: without module, return type and suffixes. C++ names have
/// their parameters. A name that no demangler takes comes back as it is; bytes that are no UTF-8 are replaced. A text of more
/// than 64 KiB is cut and ends with `…`.
///
/// ```
/// assert_eq!(symdex::demangle(b"_ZN3foo3barEi"), "foo::bar(int)");
/// assert_eq!(symdex::demangle(b"$s4Demo6widgetyyF"), "widget()");
/// assert_eq!(symdex::demangle(b"-[Widget draw:]"), "-[Widget draw:]");
/// ```
#[must_use]
pub fn demangle(name: &[u8]) -> Cow<'_, str> {
    if name.len() > MAX_SIZE {
        return cut(String::from_utf8_lossy(name));
    }
    let raw = String::from_utf8_lossy(name);
    // By prefix: the language of a unit says little about its names once LTO has merged units.
    let options = match name {
        [b'$', b's' | b'S' | b'e', ..] | [b'_', b'T', ..] => DemangleOptions::name_only().parameters(true),
        [b'_', b'Z' | b'R', ..] | [b'_', b'_', b'Z', ..] => DemangleOptions::complete(),
        _ => return raw,
    };
    let demangled = Name::new(raw.as_ref(), NameMangling::Mangled, Language::Unknown).demangle(options);
    demangled.map_or(raw, |text| cut(Cow::Owned(text)))
}

/// `text`, shortened to [`MAX_SIZE`] where it is longer.
fn cut(text: Cow<'_, str>) -> Cow<'_, str> {
    if text.len() <= MAX_SIZE {
        return text;
    }
    let keep = text.floor_char_boundary(MAX_SIZE - CUT.len());
    let mut text = text.into_owned();
    text.truncate(keep);
    text.push_str(CUT);
    Cow::Owned(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_language_reads_well() {
        for (mangled, expected) in [
            ("_ZN3foo3barEi", "foo::bar(int)"),
            ("_ZN4core3fmt5write17h0123456789abcdefE", "core::fmt::write"),
            ("_RNvC6_123foo3bar", "123foo::bar"),
            ("$s4Demo6WidgetC4drawyyFTo", "@objc Widget.draw()"),
            ("main", "main"),
            ("_OUTLINED_FUNCTION_0", "_OUTLINED_FUNCTION_0"),
            ("_Zgarbage", "_Zgarbage"),
        ] {
            assert_eq!(demangle(mangled.as_bytes()), expected);
        }
    }

    #[test]
    fn names_that_kill_demanglers_come_back_raw_or_cut() {
        assert_eq!(demangle(b"$sRvs"), "$sRvs");
        // Each T_ doubles what the one before it stands for.
        let bomb = format!("_Z1fILi0E{}", "1AIS_S_E".repeat(200));
        assert_eq!(demangle(bomb.as_bytes()), bomb);
        let huge = vec![b'x'; 1 << 20];
        let text = demangle(&huge);
        assert!(text.len() <= MAX_SIZE && text.ends_with(CUT));
        assert_eq!(demangle(b"\xff\xfe"), "\u{fffd}\u{fffd}");
    }
}
