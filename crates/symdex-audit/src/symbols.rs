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
    pub(crate) badness: (bool, bool, u8, bool),
    pub(crate) name: &'d [u8],
    pub(crate) end: Option<u64>,
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

/// A symbol of ELF. It ranks by these properties, in this order: a size, a function, global, no leading `__`.
fn elf_symbol<'d>(
    name: &'d [u8],
    kind: elf::SymbolType,
    binding: elf::SymbolBind,
    symbol: &object::Symbol<'_, '_>,
    image: &Image<'_>,
) -> Option<Entry<'d>> {
    let is_function = [elf::STT_FUNC, elf::STT_GNU_IFUNC].contains(&kind);
    if name.is_empty() || !is_function && kind != elf::STT_NOTYPE || is_mapping_symbol(name) {
        return None;
    }
    let thumb = image.info().arch.is_arm32() && is_function && symbol.address() % 2 == 1;
    let binding = [elf::STB_WEAK, elf::STB_LOCAL].iter().position(|of| *of == binding).map_or(0, |at| at + 1);
    Some(Entry {
        start: symbol.address() - u64::from(thumb),
        is_nameless: false,
        badness: (
            symbol.size() == 0,
            !is_function,
            u8::try_from(binding).unwrap_or(u8::MAX),
            name.starts_with(b"__"),
        ),
        name,
        end: None,
    })
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
    Some(Entry { start, is_nameless: false, badness: (false, false, kind, false), name, end: None })
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
