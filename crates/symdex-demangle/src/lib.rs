//! Mangled names as people read them, with bounded cost: names may come from untrusted files.
//!
//! | language | names begin with | text |
//! | --- | --- | --- |
//! | C++ | `_Z`, `__Z`, `___Z`, `____Z` | as LLVM and atos print it: `ns::Widget::draw(int) const` |
//! | Swift | `$s`, `$S`, `$e`, `_$s`, `_T0` | as atos prints it, without modules and types: `Widget.draw(at:)` |
//! | Rust | `_R`, `__R`, or `_ZN`, `__ZN` with a hash as the last identifier | without hashes: `core::fmt::write` |
//! | others | | the name itself: C, Objective-C, assembler |
//!
//! The name of a stub is that of the function it calls between a fixed text: `DYLD-STUB$$_ZdlPv`, `_ZdlPv@plt`. The
//! name inside is demangled, as atos and disassemblers do: `DYLD-STUB$$operator delete(void*)`.
//!
//! Swift names of before Swift 4 (`_TF...`, until September 2017) are returned unchanged.
//!
//! The demangler for C++ is written for this crate: it reads a name once from left to right and counts its steps. Swift
//! and Rust names are demangled by symbolic-demangle and rustc-demangle within limits. All limits are in [`limits`].
//!
//! The text of C++ names is compared with llvm-cxxfilt 19. This crate reads some names that llvm-cxxfilt does not read:
//! `operator->*`, calls in parentheses (`cp`), `std::bfloat16_t`, vectors of no elements (`Dv0_`), and template
//! parameters in the signatures of functions with a local name. Names of GCC that LLVM's grammar does not cover are
//! read as libiberty reads them, and printed in the style of LLVM: conversions to templates (`operator
//! std::list<int>()`), members of dependent types (`std::is_same<T, U>::value`), inherited constructors, old argument
//! packs, and clones for transactional memory. llvm-cxxfilt has no [`limits`].
//!
//! # Features
//!
//! `swift`, on by default: Swift names. Their demangler is written in C++. Without it, they are returned unchanged, and
//! the crate needs no C++ compiler.

#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing,
        clippy::cast_possible_truncation
    )
)]

mod cpp;
pub mod limits;
#[cfg(all(test, feature = "swift"))]
mod lists;
mod rust;
mod stack;
#[cfg(feature = "swift")]
mod swift;
#[cfg(feature = "swift")]
mod swift_cost;

use std::borrow::Cow;
use std::ops::Range;

use limits::MAX_TEXT;

/// The end of a truncated text.
const CUT: &str = "…";

/// The text of a mangled name.
///
/// A name that no demangler reads is returned unchanged. Bytes that are not UTF-8 are replaced. A text that exceeds one
/// of the [`limits`] is truncated and ends with `…`.
///
/// ```
/// assert_eq!(symdex_demangle::demangle(b"_ZN3foo3barEi"), "foo::bar(int)");
/// # #[cfg(feature = "swift")]
/// assert_eq!(symdex_demangle::demangle(b"$s4Demo6widget4sizeySi_tF"), "widget(size:)");
/// assert_eq!(symdex_demangle::demangle(b"-[Widget draw:]"), "-[Widget draw:]");
/// ```
#[must_use]
pub fn demangle(name: &[u8]) -> Cow<'_, str> {
    let raw = String::from_utf8_lossy(name);
    if raw.len() > MAX_TEXT {
        let mut text = raw.into_owned();
        mark_as_cut(&mut text);
        return Cow::Owned(text);
    }
    let target = target(raw.as_bytes());
    let (before, rest) = raw.split_at(target.start);
    let (target, after) = rest.split_at(target.len());
    let demangled = match language(target.as_bytes()) {
        #[cfg(feature = "swift")]
        Some(Language::Swift) => swift::simplified(target),
        #[cfg(not(feature = "swift"))]
        Some(Language::Swift) => None,
        Some(Language::Rust) => rust::demangled(target),
        Some(Language::Cpp) => cpp::demangled(target),
        Some(Language::ObjC) | None => None,
    };
    let Some(mut text) = demangled else { return raw };
    text.insert_str(0, before);
    text.push_str(after);
    if text.len() > MAX_TEXT {
        mark_as_cut(&mut text);
    }
    Cow::Owned(text)
}

/// Where the name of the called function is in the name of a stub; in another name, all of it.
fn target(name: &[u8]) -> Range<usize> {
    // In Mach-O and in ELF.
    const AROUND: [(&[u8], &[u8]); 2] = [(b"DYLD-STUB$$", b""), (b"", b"@plt")];
    let in_stub = AROUND.iter().find_map(|(before, after)| {
        let target = name.strip_prefix(*before)?.strip_suffix(*after)?;
        Some(before.len()..before.len() + target.len())
    });
    in_stub.unwrap_or(0..name.len())
}

/// The language of a name.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// C++.
    Cpp,
    /// Objective-C.
    ObjC,
    /// Rust.
    Rust,
    /// Swift.
    Swift,
}

impl Language {
    /// The language in lower case, as Sentry writes it: `cpp`, `objc`, `rust`, `swift`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Cpp => "cpp",
            Self::ObjC => "objc",
            Self::Rust => "rust",
            Self::Swift => "swift",
        }
    }
}

/// The language of a mangled name or an Objective-C method, by its prefix. `None` for other names: those of C, for
/// example.
///
/// The language of a unit says little about its names once LTO has merged units.
///
/// ```
/// use symdex_demangle::{Language, language};
///
/// assert_eq!(language(b"_ZN3foo3barEi"), Some(Language::Cpp));
/// assert_eq!(language(b"-[Widget draw:]"), Some(Language::ObjC));
/// assert_eq!(language(b"main"), None);
/// ```
#[must_use]
pub fn language(name: &[u8]) -> Option<Language> {
    match name.get(target(name)).unwrap_or(name) {
        [b'$', b's' | b'S' | b'e', ..] | [b'_', b'$', b's' | b'S' | b'e', ..] | [b'_', b'T', ..] => {
            Some(Language::Swift)
        }
        name @ [b'_', ..] if rust::is_v0(name) || rust::is_legacy(name) => Some(Language::Rust),
        name @ [b'_', ..] if is_cpp(name) => Some(Language::Cpp),
        [b'-' | b'+', b'[', ..] => Some(Language::ObjC),
        _ => None,
    }
}

/// Whether `name` begins as C++ names and Objective-C blocks in C++ functions do, with Mach-O's underscore or without
/// it.
fn is_cpp(name: &[u8]) -> bool {
    let underscores = name.iter().take_while(|byte| **byte == b'_').count();
    (1..=4).contains(&underscores) && name.get(underscores) == Some(&b'Z')
}

/// `text` on one line: control characters, which untrusted names may contain, are escaped.
#[must_use]
pub fn printable(text: Cow<'_, str>) -> Cow<'_, str> {
    // All control characters of ASCII are below the space, but for one. Almost all names are ASCII.
    // Without an early end, the compiler compares many bytes at once.
    let is_special = |byte: u8| !matches!(byte, b' '..=b'~');
    let has_special = text.bytes().fold(false, |found, byte| found | is_special(byte));
    if !has_special || !text.contains(char::is_control) {
        return text;
    }
    let escape = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
    Cow::Owned(text.chars().map(escape).collect())
}

/// Truncates `text` to [`MAX_TEXT`] bytes, including the mark at its end.
fn mark_as_cut(text: &mut String) {
    text.truncate(text.floor_char_boundary(MAX_TEXT - CUT.len()));
    text.push_str(CUT);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_demangled(names: &[(&str, &str)]) {
        for (mangled, expected) in names {
            assert_eq!(demangle(mangled.as_bytes()), *expected, "{mangled}");
        }
    }

    #[cfg(feature = "swift")]
    #[test]
    fn swift_names_have_labels_for_parameters() {
        assert_demangled(&[
            ("$s4Demo6WidgetC4drawyyF", "Widget.draw()"),
            ("$s4Demo6WidgetC4drawyyFTo", "@objc Widget.draw()"),
            ("$s4Demo6WidgetC4moveyySiF", "Widget.move(_:)"),
            ("$s4Demo6WidgetC4size5scaleACSi_SdtcfC", "Widget.__allocating_init(size:scale:)"),
            ("$s4Demo6WidgetV2eeoiySbAC_ACtFZ", "static Widget.== infix(_:_:)"),
            ("$s4Demo3map_2byq_x_q_xXEtr0_lF", "map<A, B>(_:by:)"),
            ("$s4Demo4loadyySSYaKFTY0_", "load(_:)"),
            ("$s4Demo5outeryyF5innerL_2atySi_tF", "inner #1 (at:) in outer()"),
            ("$s4Demo8callbackySi_S2itcSgvg", "callback.getter"),
            ("$s4Demo5TableV3rowSSSi_tcip", "Table.subscript(row:)"),
            ("$s4Demo5TableV3rowSSSi_tcig", "Table.subscript.getter"),
        ]);
    }

    #[cfg(feature = "swift")]
    #[test]
    fn swift_closures_and_thunks_keep_what_tells_them_apart() {
        assert_demangled(&[
            ("$s4Demo3run4withyyyXE_tFySi_SStcfU_", "closure #1 in run(with:)"),
            ("$s4Demo3run4withyyyXE_tFyycfU_SiycfU0_", "closure #2 in closure #1 in run(with:)"),
            ("$s4Demo6WidgetC4drawyyFSiyXEfU_TA", "partial apply for closure #1 in Widget.draw()"),
            ("$s4Demo6WidgetC5cellsSaySiGvpfi", "variable initialization expression of Widget.cells"),
            ("$sSSIegn_SSIegg_TR", "thunk for @escaping @callee_guaranteed (@in_guaranteed String) -> ()"),
        ]);
    }

    #[cfg(feature = "swift")]
    #[test]
    fn parts_and_copies_of_swift_functions_have_their_names() {
        assert_demangled(&[
            // The simplified form does not say that a function is resumed, or merged with others.
            ("$s4Demo4loadyyYaFTQ0_", "load()"),
            ("$s4Demo4loadyyYaFTY1_", "load()"),
            ("$s4Demo6WidgetC4moveyySiFTm", "Widget.move(_:)"),
            ("$s4Demo6WidgetVWOh", "outlined destroy of Widget"),
        ]);
    }

    /// Each parameter is a pair of the previous one, so the text doubles with each few bytes of the name.
    #[test]
    fn names_that_stand_for_too_much_text_are_cut_where_it_shows() {
        let pairs = (0..40).map(|number| {
            let digits = |n: u32| char::from_digit(n, 36).map(|digit| digit.to_ascii_uppercase());
            let last = [number / 36, number % 36].map(|n| digits(n).unwrap_or_default());
            let last = if number < 36 { last[1].to_string() } else { last.iter().collect() };
            format!("S_IS{last}_S{last}_E")
        });
        let name = format!("_Z1f4pairIiiE{}", pairs.collect::<String>());
        let text = demangle(name.as_bytes());
        assert!(
            name.len() < 600 && text.starts_with("f(pair<int, int>, pair<pair<int, int>, pair<int, int>"),
            "{text}"
        );
        assert!(text.len() <= MAX_TEXT && text.ends_with(CUT), "{} bytes", text.len());
        // A name that is too long itself is truncated.
        let long = "a".repeat(MAX_TEXT + 1);
        let text = demangle(long.as_bytes());
        assert!(text.len() <= MAX_TEXT && text.ends_with(CUT), "{} bytes", text.len());
    }

    #[test]
    fn rust_names_of_both_manglings() {
        assert_demangled(&[
            ("_ZN4core3fmt5write17h0123456789abcdefE", "core::fmt::write"),
            ("_ZN4core3fmt5write17h0123456789abcdefE.llvm.42", "core::fmt::write"),
            ("_ZN4core3fmt5write17h0123456789abcdefE.cold.1", "core::fmt::write.cold.1"),
            ("__ZN4core3fmt5write17h0123456789abcdefE", "core::fmt::write"),
            (
                "_ZN54_$LT$I$u20$as$u20$core..iter..traits..IntoIterator$GT$9into_iter17h8581507801fb8615E",
                "<I as core::iter::traits::IntoIterator>::into_iter",
            ),
            (
                "_ZN44_$LT$a..b..C$u20$as$u20$core..ops..Deref$GT$5deref17hf299b860dc5a831cE.llvm.5",
                "<a::b::C as core::ops::Deref>::deref",
            ),
            // The name of a generic class in C++, which no hash ends.
            ("_ZN3foo3barIiEEvv", "void foo::bar<int>()"),
            ("_ZN3foo17h012345678ghijkLMEv", "foo::h012345678ghijkLM()"),
            ("__RNvC6_123foo3bar", "123foo::bar"),
            ("_RNvC6_123foo3bar", "123foo::bar"),
            ("_RINvNtC3std3mem8align_ofjE", "std::mem::align_of::<usize>"),
        ]);
    }

    #[test]
    fn the_names_in_the_names_of_stubs_are_demangled() {
        assert_demangled(&[
            ("DYLD-STUB$$_Znwm", "DYLD-STUB$$operator new(unsigned long)"),
            ("DYLD-STUB$$_ZNSt3__15mutex4lockEv", "DYLD-STUB$$std::__1::mutex::lock()"),
            #[cfg(feature = "swift")]
            ("DYLD-STUB$$$s4Demo6WidgetC4drawyyF", "DYLD-STUB$$Widget.draw()"),
            ("DYLD-STUB$$_Block_object_dispose", "DYLD-STUB$$_Block_object_dispose"),
            ("_ZdlPv@plt", "operator delete(void*)@plt"),
            ("_ZN4core3fmt5write17h0123456789abcdefE@plt", "core::fmt::write@plt"),
            ("memcpy@plt", "memcpy@plt"),
            ("_Zgarbage@plt", "_Zgarbage@plt"),
            ("DYLD-STUB$$", "DYLD-STUB$$"),
            ("@plt", "@plt"),
        ]);
        assert_eq!(language(b"DYLD-STUB$$_Znwm"), Some(Language::Cpp));
        assert_eq!(language(b"_ZN4core3fmt5write17h0123456789abcdefE@plt"), Some(Language::Rust));
        // Text that fits without the texts around it.
        let long = format!("_Z{}{}v@plt", MAX_TEXT - 16, "a".repeat(MAX_TEXT - 16));
        let text = demangle(long.as_bytes());
        assert!(text.len() <= MAX_TEXT, "{} bytes", text.len());
    }

    #[test]
    fn other_names_are_left_alone() {
        for name in [
            "main",
            "-[Widget draw:]",
            "_OUTLINED_FUNCTION_0",
            "_Zgarbage",
            "_Rgarbage",
            "$sgarbage",
            // The mangling of before Swift 4.
            "_TFC4Demo6Widget4movefT2toSi5aboutSS_T_",
            "L_0$pb",
            "",
        ] {
            assert_eq!(demangle(name.as_bytes()), name);
        }
        assert_eq!(demangle(b"\xff\xfe"), "\u{fffd}\u{fffd}");
    }
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
