//! The symbols of a file that may name a function, with their ranks by the rules.

use object::{File, Object as _, ObjectSection as _, ObjectSymbol as _, SymbolFlags, SymbolSection};
use object::{elf, macho};
use symdex_build::Image;

/// Evidence for the start of a function. The best of several at one address sorts first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Entry<'d> {
    pub(crate) start: u64,
    /// Whether it is unwind information, which is worse than any symbol.
    pub(crate) is_nameless: bool,
    /// The rank among the symbols at one address; the smallest is the best.
    pub(crate) badness: (u8, u8, bool),
    pub(crate) name: &'d [u8],
    pub(crate) end: Option<u64>,
    /// What it is inside of a symbol with a size.
    pub(crate) kind: Kind,
}

/// What a symbol without a size is inside of one with a size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// A function inside of what is no function. With a size, it contains no others.
    Function,
    /// A function inside of what is no function.
    Global,
    /// A label.
    Label,
}

/// The symbols of one of the image's files that name code.
pub(crate) fn symbols<'d>(image: &Image<'d>, file: &File<'d>) -> Vec<Entry<'d>> {
    // In ascending order.
    let is_code: Vec<usize> =
        file.sections().filter(is_macho_code).map(|section| section.index().0).collect();
    let mut entries = Vec::new();
    for symbol in file.symbols().chain(file.dynamic_symbols()) {
        let Ok(name) = symbol.name_bytes() else { continue };
        let entry = match (symbol.flags(), symbol.section()) {
            (SymbolFlags::Elf { .. }, SymbolSection::Undefined | SymbolSection::Absolute) => None,
            (SymbolFlags::Elf { st_info, .. }, _) => {
                elf_symbol(name, st_info.st_type(), st_info.st_bind(), &symbol, image)
            }
            (SymbolFlags::MachO { n_type, n_desc }, SymbolSection::Section(section)) => {
                let alternative = n_desc.0 & macho::N_ALT_ENTRY.0 != 0;
                let external = n_type.0 & macho::N_EXT.0 != 0;
                let named = is_code.binary_search(&section.0).is_ok() && !alternative;
                named.then(|| macho_symbol(name, external, symbol.address())).flatten()
            }
            _ => None,
        };
        let Some(mut entry) = entry else { continue };
        let Some(start) = entry.start.checked_sub(image.info().base) else { continue };
        entry.start = start;
        entry.end = Some(symbol.size()).filter(|size| *size != 0).map(|size| start.saturating_add(size));
        entries.push(entry);
    }
    entries
}

/// Whether the flags of a Mach-O section say that it contains instructions.
fn is_macho_code(section: &object::Section<'_, '_>) -> bool {
    let code = macho::S_ATTR_PURE_INSTRUCTIONS.0 | macho::S_ATTR_SOME_INSTRUCTIONS.0;
    matches!(section.flags(), object::SectionFlags::MachO { flags, .. } if flags.0 & code != 0)
}

/// A symbol of ELF. It ranks by its type and size, then global before weak before local, then without a leading `__`
/// first.
fn elf_symbol<'d>(
    name: &'d [u8],
    kind: elf::SymbolType,
    binding: elf::SymbolBind,
    symbol: &object::Symbol<'_, '_>,
    image: &Image<'_>,
) -> Option<Entry<'d>> {
    // From the best to the worst. Both kinds of resolvers are equal.
    let order = [
        (elf::STT_FUNC, true),
        (elf::STT_NOTYPE, true),
        (elf::STT_FUNC, false),
        (elf::STT_GNU_IFUNC, true),
        (elf::STT_OBJECT, true),
        (elf::STT_NOTYPE, false),
    ];
    let has_size = symbol.size() != 0 || kind == elf::STT_GNU_IFUNC;
    let place = order.iter().position(|of| *of == (kind, has_size))?;
    if name.is_empty() || is_mapping_symbol(name) || name.starts_with(b".L") {
        return None;
    }
    let is_function = [elf::STT_FUNC, elf::STT_GNU_IFUNC].contains(&kind);
    let address = without_tag(image, symbol.address());
    let thumb = image.info().arch.is_arm32() && is_function && address % 2 == 1;
    let is_local = binding == elf::STB_LOCAL;
    let binding = [elf::STB_WEAK, elf::STB_LOCAL].iter().position(|of| *of == binding).map_or(0, |at| at + 1);
    let [place, binding] = [place, binding].map(|number| u8::try_from(number).unwrap_or(u8::MAX));
    Some(Entry {
        start: address - u64::from(thumb),
        is_nameless: false,
        badness: (place, binding, name.starts_with(b"__")),
        name,
        end: None,
        kind: match is_function {
            true => Kind::Function,
            false if is_local => Kind::Label,
            false => Kind::Global,
        },
    })
}

/// `value` without the tag in the top byte that it may have on AArch64: bit 55 says what that byte of the address is.
fn without_tag(image: &Image<'_>, value: u64) -> u64 {
    const TOP: u64 = 0xff << 56;
    match (image.info().arch.name.as_str(), value >> 55 & 1) {
        ("arm64", 1) => value | TOP,
        ("arm64", _) => value & !TOP,
        _ => value,
    }
}

/// Whether `name` is `$a`, `$t`, `$d` or `$x`, alone or before a dot, or begins with `$xrv`.
fn is_mapping_symbol(name: &[u8]) -> bool {
    let first = name.split(|byte| *byte == b'.').next().unwrap_or_default();
    [&b"$a"[..], b"$t", b"$d", b"$x"].contains(&first) || name.starts_with(b"$xrv")
}

/// A symbol of Mach-O. External symbols rank first, temporary ones of the assembler last.
fn macho_symbol(name: &[u8], external: bool, start: u64) -> Option<Entry<'_>> {
    if name.starts_with(b"__mh_") && name.ends_with(b"_header") {
        return None;
    }
    let kind = match name.first() {
        Some(b'l' | b'L') => 2,
        _ => u8::from(!external),
    };
    let name = without_underscore(name);
    let badness = (0, kind, false);
    Some(Entry { start, is_nameless: false, badness, name, end: None, kind: Kind::Function })
}

/// `name` without the underscore of Mach-O.
pub(crate) fn without_underscore(name: &[u8]) -> &[u8] {
    let hidden = name.starts_with(b"__hidden#");
    name.strip_prefix(b"_").filter(|_| !hidden).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mapping_symbols_are_told_from_names() {
        let mapping = |name: &&str| is_mapping_symbol(name.as_bytes());
        assert!(["$a", "$t.1", "$d.", "$x", "$xrv64"].iter().all(mapping));
        assert!(!["$", "$da", "a", "", ".$a"].iter().any(mapping));
    }
}
