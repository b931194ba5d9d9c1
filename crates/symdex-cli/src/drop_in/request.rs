//! What a line of input asks for.

use std::path::Path;

use symdex::Arch;
use symdex_store::IdPrefix;

use super::modules::ModuleName;

/// What an address is looked up as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Code,
    Data,
}

/// The place in a module that a request names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ModulePlace {
    Address(u64),
    /// The byte `offset` bytes after the start of a symbol.
    Symbol {
        name: String,
        offset: u64,
    },
}

impl ModulePlace {
    /// The address, unless this is a symbol.
    pub(super) fn address(&self) -> Option<u64> {
        match self {
            Self::Address(address) => Some(*address),
            Self::Symbol { .. } => None,
        }
    }
}

/// A line of input, or an address of the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) kind: Kind,
    pub(super) module: ModuleName,
    /// The name of the module as given.
    pub(super) module_text: String,
    pub(super) place: ModulePlace,
}

/// A line that is not a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Malformed {
    /// The name of the module, as far as it was read.
    pub(super) module_text: String,
    /// What is wrong. `None` for an empty line, with which clients check that the program responds.
    pub(super) message: Option<&'static str>,
}

/// What the command line says about all requests.
#[derive(Clone, Debug, Default)]
pub(super) struct Defaults {
    /// The module of requests that name none, and its name as given.
    pub(super) module: Option<(ModuleName, String)>,
    /// The architecture of files with several.
    pub(super) arch: Option<String>,
}

/// Reads `[CODE|DATA] [FILE:|BUILDID:][MODULE] ADDRESS|SYMBOL[+OFFSET]`. What follows the address is ignored.
pub(super) fn parse(line: &str, defaults: &Defaults) -> Result<Request, Malformed> {
    let given = defaults.module.as_ref().map_or("", |(_, text)| text.as_str());
    let mut module_text = String::new();
    if line.is_empty() {
        return Err(Malformed { module_text, message: None });
    }
    let kinds = [("CODE ", Kind::Code), ("DATA ", Kind::Data)];
    let kind = kinds.into_iter().find_map(|(prefix, kind)| Some((kind, line.strip_prefix(prefix)?)));
    let (kind, rest) = kind.unwrap_or((Kind::Code, line));
    let mut rest = rest.trim_start_matches(' ');
    module_text.push_str(given);
    let malformed = |module_text: &str, message| Malformed {
        module_text: module_text.to_owned(),
        message: Some(message),
    };
    let module = if let Some(after) = rest.strip_prefix("BUILDID:") {
        let (word, after) = word(after);
        rest = after;
        let Ok(id) = word.parse::<IdPrefix>() else {
            return Err(malformed(&module_text, "BUILDID: must be followed by a build id"));
        };
        module_text = word.to_ascii_uppercase();
        ModuleName::BuildId(id)
    } else if let Some(after) = rest.strip_prefix("FILE:") {
        let (word, after) = word(after);
        rest = after;
        if word.is_empty() {
            return Err(malformed(&module_text, "FILE: must be followed by a file"));
        }
        word.clone_into(&mut module_text);
        file(word, defaults.arch.as_deref())
    } else if let Some((module, _)) = &defaults.module {
        module.clone()
    } else {
        let (word, after) = word(rest);
        rest = after;
        if word.is_empty() {
            return Err(malformed(&module_text, "no input file has been named"));
        }
        word.clone_into(&mut module_text);
        file(word, defaults.arch.as_deref())
    };
    let Some(place) = rest.split([' ', '\t', '\r', '\n']).find(|word| !word.is_empty()) else {
        return Err(malformed(&module_text, "no address has been named"));
    };
    let Some(place) = self::place(place, number(place)) else {
        return Err(malformed(&module_text, "expected a number as address"));
    };
    Ok(Request { kind, module, module_text, place })
}

/// The place that a word names: an address, if the word is a `number` to the program; otherwise `NAME` or
/// `NAME+OFFSET`. Returns `None` for a word that begins with a digit and is no number.
fn place(word: &str, number: Option<u64>) -> Option<ModulePlace> {
    match number {
        Some(address) => Some(ModulePlace::Address(address)),
        None if word.starts_with(|c: char| c.is_ascii_digit()) => None,
        None => Some(symbol(word)),
    }
}

/// The place that addr2line reads at the beginning of `text`. A word of hexadecimal digits is an address, even if it
/// could be a name. GNU's program reads the rest of a word that begins with a digit as far as it is a number.
pub(super) fn gnu_place(text: &str) -> ModulePlace {
    let word = text.split_ascii_whitespace().next().unwrap_or_default();
    let digits = word.strip_prefix("0x").or_else(|| word.strip_prefix("0X")).unwrap_or(word);
    let is_number = digits.chars().all(|digit| digit.is_ascii_hexdigit());
    let address = leading_hexadecimal(word);
    place(word, is_number.then_some(address)).unwrap_or(ModulePlace::Address(address))
}

/// The place `NAME+OFFSET` or `NAME`.
fn symbol(text: &str) -> ModulePlace {
    let parts = text.rsplit_once('+').filter(|(name, _)| !name.is_empty());
    let (name, offset) = parts.and_then(|(name, offset)| Some((name, number(offset)?))).unwrap_or((text, 0));
    ModulePlace::Symbol { name: name.to_owned(), offset }
}

/// The module of the file at `path`, which may end with a colon and an architecture.
pub(super) fn file(path: &str, arch: Option<&str>) -> ModuleName {
    let with_arch = path.rsplit_once(':').filter(|(_, arch)| Arch::from_name(arch).is_some());
    let (path, arch) = with_arch.map_or((path, arch), |(path, arch)| (path, Some(arch)));
    ModuleName::File { path: Path::new(path).to_owned(), arch: arch.map(str::to_owned) }
}

/// The first word of `text`, which may be in quotes, and what follows it.
fn word(text: &str) -> (&str, &str) {
    let text = text.trim_start_matches([' ', '\r', '\n']);
    for quote in ['"', '\''] {
        if let Some(quoted) = text.strip_prefix(quote) {
            return quoted.split_once(quote).unwrap_or(("", ""));
        }
    }
    text.split_at(text.find([' ', '\r', '\n']).unwrap_or(text.len()))
}

/// A number as llvm-symbolizer reads it: hexadecimal after `0x`, binary after `0b`, octal after `0o` or `0`.
pub(super) fn number(text: &str) -> Option<u64> {
    let radixes = [("0x", 16), ("0X", 16), ("0b", 2), ("0B", 2), ("0o", 8)];
    let prefixed = radixes.iter().find_map(|(prefix, radix)| Some((text.strip_prefix(prefix)?, *radix)));
    let (digits, radix) = prefixed.unwrap_or(match text.strip_prefix('0') {
        Some(digits) if digits.starts_with(|c: char| c.is_ascii_digit()) => (digits, 8),
        _ => (text, 10),
    });
    // The standard library accepts a sign.
    if digits.starts_with('+') { None } else { u64::from_str_radix(digits, radix).ok() }
}

/// A number as GNU's addr2line reads it: hexadecimal digits with or without `0x`, as far as there are any. A number of
/// more than 64 bits keeps the lowest ones.
fn leading_hexadecimal(text: &str) -> u64 {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")).unwrap_or(text);
    let digits = digits.chars().map_while(|digit| digit.to_digit(16));
    digits.fold(0, |number: u64, digit| number << 4 | u64::from(digit))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str, module: Option<&str>) -> Result<(Kind, String, ModulePlace), (String, bool)> {
        let module = module.map(|path| (file(path, None), path.to_owned()));
        let defaults = Defaults { module, arch: Some("arm64".to_owned()) };
        match parse(line, &defaults) {
            Ok(request) => Ok((request.kind, request.module_text, request.place)),
            Err(malformed) => Err((malformed.module_text, malformed.message.is_some())),
        }
    }

    #[test]
    fn lines_name_a_kind_a_module_and_an_address() {
        let address =
            |kind, module: &str, address| Ok((kind, module.to_owned(), ModulePlace::Address(address)));
        assert_eq!(read("a.so 0x10", None), address(Kind::Code, "a.so", 16));
        assert_eq!(read("CODE \"a b.so\" 0x10", None), address(Kind::Code, "a b.so", 16));
        assert_eq!(read("DATA 'a b.so' 12\r", None), address(Kind::Data, "a b.so", 12));
        assert_eq!(read("DATA FILE:b.so 010 more", Some("a.so")), address(Kind::Data, "b.so", 8));
        assert_eq!(read("0x10", Some("a.so")), address(Kind::Code, "a.so", 16));
        assert_eq!(read("BUILDID:abcd 0x10", Some("a.so")), address(Kind::Code, "ABCD", 16));
        let symbol = |name: &str, offset| {
            Ok((Kind::Code, "a.so".to_owned(), ModulePlace::Symbol { name: name.to_owned(), offset }))
        };
        assert_eq!(read("a.so main", None), symbol("main", 0));
        assert_eq!(read("a.so a+b+0x10", None), symbol("a+b", 16));
        assert_eq!(read("a.so +5", None), symbol("+5", 0));
        assert_eq!(read("a.so main+", None), symbol("main+", 0));
    }

    #[test]
    fn a_line_that_is_no_request_says_why_unless_it_is_empty() {
        assert_eq!(read("", Some("a.so")), Err((String::new(), false)));
        assert_eq!(read("a.so", None), Err(("a.so".to_owned(), true)));
        assert_eq!(read("\"a.so", None), Err((String::new(), true)));
        assert_eq!(read("0x12zz", Some("a.so")), Err(("a.so".to_owned(), true)));
        assert_eq!(read("BUILDID:xyz 1", None), Err((String::new(), true)));
    }

    #[test]
    fn a_file_may_end_with_its_architecture() {
        let named = |text| match file(text, Some("arm64")) {
            ModuleName::File { path, arch } => (path.display().to_string(), arch),
            ModuleName::BuildId(_) => unreachable!(),
        };
        assert_eq!(named("a:x86_64"), ("a".to_owned(), Some("x86_64".to_owned())));
        assert_eq!(named("a:b"), ("a:b".to_owned(), Some("arm64".to_owned())));
    }

    #[test]
    fn addr2line_reads_names_and_hexadecimal_numbers() {
        let symbol = |name: &str, offset| ModulePlace::Symbol { name: name.to_owned(), offset };
        for (text, expected) in [
            ("main", symbol("main", 0)),
            (" main+0x10 more", symbol("main", 16)),
            ("frame_dummy", symbol("frame_dummy", 0)),
            ("add+4", symbol("add", 4)),
            ("add", ModulePlace::Address(0xadd)),
            ("0x10", ModulePlace::Address(16)),
            ("10foo", ModulePlace::Address(0x10f)),
            ("1+4", ModulePlace::Address(1)),
            ("", ModulePlace::Address(0)),
        ] {
            assert_eq!(gnu_place(text), expected, "{text}");
        }
    }

    #[test]
    fn numbers_are_read_as_each_program_does() {
        let read = ["10", "0x1F", "010", "0b11", "0", "09", "+1", "", "18446744073709551616"].map(number);
        assert_eq!(read, [Some(10), Some(31), Some(8), Some(3), Some(0), None, None, None, None]);
        let read = ["1160foo", "0x10", ",", "", "zz", "123456789abcdef01"].map(leading_hexadecimal);
        assert_eq!(read, [0x1160f, 16, 0, 0, 0, 0x2345_6789_abcd_ef01]);
    }
}
