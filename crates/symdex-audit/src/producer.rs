//! The compiler and the language of a unit.

use std::fmt;

use gimli::{AttributeValue, DwLang, UnitRef};

use crate::image::Reader;

/// A compiler with the part of its version that says which debug information it writes, and a language.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Producer {
    /// `clang 22`, `Swift 6.3`; `hidden` if a bitcode build hid it. Empty if the unit states none.
    pub compiler: String,
    /// `C++`. Versions of a language are not distinguished. Empty if the unit states none, or one that has no name
    /// here.
    pub language: &'static str,
}

/// What stands before the version in DW_AT_producer, the name of the compiler, and how many numbers of the version
/// count. The first that is found counts: rustc and Swift state the version of their LLVM, too.
const COMPILERS: [(&str, &str, usize); 8] = [
    ("rustc version ", "rustc", 2),
    ("Swift version ", "Swift", 2),
    ("Apple clang version ", "Apple clang", 1),
    ("Apple LLVM version ", "Apple clang", 1),
    ("clang version ", "clang", 1),
    ("GNU AS ", "GNU as", 2),
    ("GNU C", "GCC", 1),
    ("GNU GIMPLE", "GCC", 1),
];

impl Producer {
    /// The producer that the root entry of `unit` states.
    pub(crate) fn of(unit: UnitRef<'_, Reader<'_>>) -> Self {
        let stated = || -> gimli::Result<Self> {
            let mut entries = unit.entries_raw(None)?;
            let Some(root) = entries.read_abbreviation()? else { return Ok(Self::default()) };
            let mut producer = Self::default();
            for spec in root.attributes() {
                let attribute = entries.read_attribute(*spec)?;
                match (attribute.name(), attribute.value()) {
                    (gimli::DW_AT_producer, value) => {
                        producer.compiler = compiler(&unit.attr_string(value)?.to_string_lossy());
                    }
                    (gimli::DW_AT_language, AttributeValue::Language(stated)) => {
                        producer.language = language(stated);
                    }
                    _ => {}
                }
            }
            Ok(producer)
        };
        stated().unwrap_or_default()
    }
}

impl fmt::Display for Producer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = |text: &str| if text.is_empty() { "not stated" } else { text }.to_owned();
        write!(f, "{}, {}", known(&self.compiler), known(self.language))
    }
}

/// The name of the compiler in `producer`, a DW_AT_producer, with its version. An unknown compiler keeps its text. A
/// bitcode build hides it.
fn compiler(producer: &str) -> String {
    if producer.starts_with("__hidden#") {
        return "hidden".to_owned();
    }
    let known = COMPILERS.iter().find_map(|(before, name, numbers)| {
        let (_, rest) = producer.split_once(before)?;
        // GCC states the version of the language before its own: `GNU C17 12.2.0 -O2`.
        let version = rest.split(' ').find(|word| word.contains('.'))?;
        let version = version.split(|c: char| !c.is_ascii_digit() && c != '.').next()?;
        Some(format!("{name} {}", version.split('.').take(*numbers).collect::<Vec<_>>().join(".")))
    });
    known.unwrap_or_else(|| producer.chars().take(40).collect())
}

fn language(language: DwLang) -> &'static str {
    match language {
        gimli::DW_LANG_C
        | gimli::DW_LANG_C89
        | gimli::DW_LANG_C99
        | gimli::DW_LANG_C11
        | gimli::DW_LANG_C17 => "C",
        gimli::DW_LANG_C_plus_plus
        | gimli::DW_LANG_C_plus_plus_03
        | gimli::DW_LANG_C_plus_plus_11
        | gimli::DW_LANG_C_plus_plus_14
        | gimli::DW_LANG_C_plus_plus_17
        | gimli::DW_LANG_C_plus_plus_20 => "C++",
        gimli::DW_LANG_ObjC | gimli::DW_LANG_ObjC_plus_plus => "Objective-C",
        gimli::DW_LANG_Swift => "Swift",
        gimli::DW_LANG_Rust => "Rust",
        gimli::DW_LANG_Mips_Assembler => "assembler",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_producer_has_the_name_and_the_version_of_its_compiler() {
        let compilers = [
            ("Debian clang version 19.1.7 (3~deb12u1)", "clang 19"),
            ("clang version 22.1.8", "clang 22"),
            ("Apple clang version 14.0.3 (clang-1403.0.22.14.1)", "Apple clang 14"),
            ("Apple LLVM version 8.0.0 (clang-800.0.42.1)", "Apple clang 8"),
            ("clang LLVM (rustc version 1.95.0 (59807616e 2026-04-14))", "rustc 1.95"),
            ("Apple Swift version 6.3.2 (swiftlang-6.3.2 clang-1800)", "Swift 6.3"),
            ("GNU C++17 12.2.0 -mtune=generic -g -O2", "GCC 12"),
            ("GNU GIMPLE 12.2.0 -mtune=generic -fltrans", "GCC 12"),
            ("GNU AS 2.40", "GNU as 2.40"),
            ("__hidden#12627_", "hidden"),
            ("a compiler of one's own", "a compiler of one's own"),
        ];
        for (producer, expected) in compilers {
            assert_eq!(compiler(producer), expected);
        }
    }
}
