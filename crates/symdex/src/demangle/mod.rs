//! From a mangled name to what a person reads, with bounds: names come from uploads, and demanglers are written for compilers.

mod old_swift;
mod swift;

use std::borrow::Cow;
use std::fmt::{self, Write as _};

/// The longest name that is demangled and the longest text that comes out, in bytes. (215 bytes of C++ can stand for 69 MB.)
const MAX_SIZE: usize = 64 << 10;

/// What a text that was cut ends with.
const CUT: &str = "…";

/// The name as a person reads it: C++, Rust and Swift demangled, everything else as it is.
///
/// Swift names are simplified, as Apple's atos prints them: with labels for parameters, without modules, types and suffixes. C++ names
/// have their parameters. A name that no demangler takes comes back as it is; bytes that are no UTF-8 are replaced. A text of
/// more than 64 KiB is cut and ends with `…`.
///
/// ```
/// assert_eq!(symdex::demangle(b"_ZN3foo3barEi"), "foo::bar(int)");
/// assert_eq!(symdex::demangle(b"$s4Demo6widget4sizeySi_tF"), "widget(size:)");
/// assert_eq!(symdex::demangle(b"-[Widget draw:]"), "-[Widget draw:]");
/// ```
#[must_use]
pub fn demangle(name: &[u8]) -> Cow<'_, str> {
    let raw = String::from_utf8_lossy(name);
    if raw.len() > MAX_SIZE {
        let mut text = raw.into_owned();
        shorten(&mut text);
        return Cow::Owned(text);
    }
    // By prefix: the language of a unit says little about its names once LTO has merged units.
    let demangled = match name {
        [b'$', b's' | b'S' | b'e', ..] | [b'_', b'$', b's' | b'S' | b'e', ..] | [b'_', b'T', ..] => {
            swift::simplified(&raw)
        }
        [b'_', b'R', ..] => rust(&raw),
        [b'_', b'Z', ..] if is_legacy_rust(&raw) => rust(&raw),
        [b'_', b'Z', ..] | [b'_', b'_', b'Z', ..] | [b'_', b'_', b'_', b'Z', ..] => cpp(&raw),
        _ => None,
    };
    demangled.map_or(raw, Cow::Owned)
}

/// Whether a name that begins as C++ names do is one of Rust's: it has a hash at its end, `17h` and 16 digits. The compiler may have
/// put a suffix behind it.
fn is_legacy_rust(name: &str) -> bool {
    let name = name.split_once('.').map_or(name, |(name, _)| name);
    let hash = name.strip_suffix('E').and_then(|name| name.get(name.len().checked_sub(19)?..));
    hash.and_then(|hash| hash.strip_prefix("17h"))
        .is_some_and(|hash| hash.bytes().all(|digit| digit.is_ascii_hexdigit()))
}

/// Legacy names are C++ names but for the hash at their end: `17h`, 16 digits, `E`.
fn rust(name: &str) -> Option<String> {
    let demangled = rustc_demangle::try_demangle(name).ok()?;
    let mut text = Bounded::default();
    let written = write!(text, "{demangled:#}");
    text.finish(written)
}

fn cpp(name: &str) -> Option<String> {
    let options = cpp_demangle::ParseOptions::default().recursion_limit(160);
    let symbol = cpp_demangle::Symbol::new_with_options(name, &options).ok()?;
    let mut text = Bounded::default();
    let options = cpp_demangle::DemangleOptions::new().recursion_limit(192);
    let written = symbol.structured_demangle(&mut text, &options);
    text.finish(written)
}

/// A text that takes [`MAX_SIZE`] bytes, is cut there, and stops whoever writes more.
#[derive(Default)]
struct Bounded {
    text: String,
    is_cut: bool,
}

impl Bounded {
    /// The text, whole or cut; `None` where writing it failed otherwise.
    fn finish(self, written: fmt::Result) -> Option<String> {
        (written.is_ok() || self.is_cut).then_some(self.text)
    }
}

impl fmt::Write for Bounded {
    fn write_str(&mut self, piece: &str) -> fmt::Result {
        if self.is_cut {
            return Err(fmt::Error);
        }
        self.text.push_str(piece);
        if self.text.len() <= MAX_SIZE {
            return Ok(());
        }
        shorten(&mut self.text);
        self.is_cut = true;
        Err(fmt::Error)
    }
}

/// Cuts a text that is longer than [`MAX_SIZE`].
fn shorten(text: &mut String) {
    if text.len() > MAX_SIZE {
        text.truncate(text.floor_char_boundary(MAX_SIZE - CUT.len()));
        text.push_str(CUT);
    }
}
