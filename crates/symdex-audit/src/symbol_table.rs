//! The functions of the symbol table by the rules. They are read independently of the builder, with the readers of the
//! crate object.

use object::{File, Object as _, ObjectSection as _, ObjectSymbol as _, SymbolFlags, SymbolSection};
use object::{elf, macho};
use symdex_build::{FunctionSymbol, Image};

use crate::image::section_end;
use crate::stubs::{self, Stub};
use crate::unwound::{function_starts, unwound};

/// A function of the symbol table or the unwind information.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TableFunction<'d> {
    /// Its first image offset.
    pub(crate) start: u64,
    /// The end of its range, exclusive, as an image offset.
    pub(crate) end: u64,
    pub(crate) name: Option<&'d [u8]>,
    /// Whether it has no other name.
    pub(crate) is_only_name: bool,
}

/// Evidence for the start of a function. The best of several at one address sorts first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Entry<'d> {
    pub(crate) start: u64,
    /// Whether it is unwind information, which is worse than any symbol.
    is_nameless: bool,
    /// The rank among the symbols at one address; the smallest is the best.
    badness: (bool, bool, u8, bool),
    pub(crate) name: &'d [u8],
    end: Option<u64>,
}

/// The functions, sorted by address, one for each.
pub(crate) fn read<'d>(image: &Image<'d>) -> Vec<TableFunction<'d>> {
    if image.files().is_empty() {
        // There is no second reader for the symbols of a shared cache.
        return builders(image);
    }
    let files: Vec<File<'d>> = image.files().iter().filter_map(|bytes| File::parse(*bytes).ok()).collect();
    let mut entries: Vec<Entry<'d>> = files.iter().flat_map(|file| symbols(image, file)).collect();
    let nameless =
        image.files().iter().flat_map(|bytes| function_starts(bytes, image.info().arch.is_arm32()));
    let unwound = files.iter().flat_map(|file| unwound(file, image.info().base));
    let nameless = nameless.map(|start| (start, None)).chain(unwound);
    entries.extend(nameless.map(|(start, end)| Entry {
        start,
        is_nameless: true,
        badness: (true, true, u8::MAX, true),
        name: b"",
        end,
    }));
    let stubs = files.iter().flat_map(|file| stubs::read(image, file));
    entries.extend(stubs.map(|Stub { start, end, name }| Entry {
        start,
        is_nameless: false,
        // Any symbol is better.
        badness: (true, true, u8::MAX, false),
        name: builders_name(image, start, &name),
        end: Some(end),
    }));
    entries.sort_unstable();
    let mut functions = Vec::new();
    // The greatest end that symbols, and unwind information, at lower addresses state.
    let (mut symbols_reach, mut unwound_reach) = (0, 0);
    for (number, group) in grouped(&entries) {
        let start = group[0].start;
        let Some(section_end) = section_end(image, start) else { continue };
        let next = entries.get(number + group.len()).map_or(section_end, |next| next.start);
        let stated = |nameless: bool| {
            let ends =
                group.iter().filter(|entry| entry.is_nameless == nameless).filter_map(|entry| entry.end);
            ends.max().filter(|end| *end > start).map(|end| end.min(section_end))
        };
        let (symbol_end, unwound_end) = (stated(false), stated(true));
        unwound_reach = unwound_reach.max(unwound_end.unwrap_or(0));
        let end = match symbol_end {
            Some(end) => end,
            // A label inside another function.
            None if start < symbols_reach => continue,
            None if start < unwound_reach => next.min(unwound_reach),
            None => next.min(section_end),
        };
        symbols_reach = symbols_reach.max(symbol_end.unwrap_or(0));
        let best = group[0];
        let names = group.iter().filter(|entry| !entry.is_nameless && !entry.name.is_empty());
        let name = Some(best.name).filter(|_| !best.is_nameless).filter(|name| !name.is_empty());
        functions.push(TableFunction {
            start,
            end,
            name: name.map(|name| image.symbol_map().map_or(name, |map| map.resolve_symbol(name))),
            is_only_name: name.is_some() && names.into_iter().all(|entry| Some(entry.name) == name),
        });
    }
    functions
}

/// The name of the builder at `start` that equals `name`, which is in no file; "another name" if it has none.
fn builders_name<'d>(image: &Image<'d>, start: u64, name: &[u8]) -> &'d [u8] {
    let symbols = image.symbols();
    let symbol = symbols.binary_search_by_key(&start, |symbol| symbol.start).ok().map(|at| &symbols[at]);
    let names = symbol.into_iter().flat_map(|symbol| symbol.name.iter().chain(&symbol.aliases));
    names.copied().find(|builders| *builders == name).unwrap_or(b"another name")
}

/// The functions that the builder has read.
fn builders<'d>(image: &Image<'d>) -> Vec<TableFunction<'d>> {
    let function = |symbol: &FunctionSymbol<'d>| TableFunction {
        start: symbol.start,
        end: symbol.end,
        name: symbol.name,
        is_only_name: symbol.name.is_some() && symbol.aliases.is_empty(),
    };
    image.symbols().iter().map(function).collect()
}

/// The first difference between the builder's functions and `table`, as text.
pub(crate) fn difference(image: &Image<'_>, table: &[TableFunction<'_>]) -> Option<String> {
    let builders = builders(image);
    let differ = builders.iter().zip(table).position(|(ours, rules)| ours != rules);
    let longer = (builders.len() != table.len()).then(|| builders.len().min(table.len()));
    let at = differ.or(longer)?;
    let text = |function: Option<&TableFunction<'_>>| match function {
        Some(TableFunction { start, end, name, is_only_name }) => {
            // A name in a hostile file can be as long as the file.
            let name = name.unwrap_or(b"-");
            let name = String::from_utf8_lossy(&name[..name.len().min(400)]);
            let others = if *is_only_name { "" } else { " and others" };
            format!("{name}{others} [{start:#x}, {end:#x})")
        }
        None => "nothing".to_owned(),
    };
    Some(format!("{}, by the rules {}", text(builders.get(at)), text(table.get(at))))
}

/// The entries of each address, with the index of the first.
fn grouped<'e, 'd>(entries: &'e [Entry<'d>]) -> impl Iterator<Item = (usize, &'e [Entry<'d>])> {
    let groups = entries.chunk_by(|a, b| a.start == b.start);
    groups.scan(0, |number, group| {
        let first = *number;
        *number += group.len();
        Some((first, group))
    })
}

/// The symbols of one of the image's files that name code.
fn symbols<'d>(image: &Image<'d>, file: &File<'d>) -> Vec<Entry<'d>> {
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
                let named = is_code.contains(&section.0) && !alternative;
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

/// The symbols of an ELF file that are resolvers, sorted: of several at one address the best is the first. They start at
/// SVMAs.
pub(crate) fn resolvers<'d>(image: &Image<'d>, file: &File<'d>) -> Vec<Entry<'d>> {
    let mut entries = Vec::new();
    for symbol in file.symbols().chain(file.dynamic_symbols()) {
        let SymbolFlags::Elf { st_info, .. } = symbol.flags() else { continue };
        let is_here = !matches!(symbol.section(), SymbolSection::Undefined | SymbolSection::Absolute);
        let name = symbol.name_bytes().ok().filter(|_| is_here && st_info.st_type() == elf::STT_GNU_IFUNC);
        entries.extend(
            name.and_then(|name| elf_symbol(name, st_info.st_type(), st_info.st_bind(), &symbol, image)),
        );
    }
    entries.sort_unstable();
    entries
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
