//! The symbol table as llvm-symbolizer reads it.

use object::{Object as _, ObjectSection as _, ObjectSymbol as _};

/// An entry of the symbol table, whatever it stands for.
pub(super) struct Symbol<'d> {
    pub(super) svma: u64,
    /// How far llvm-symbolizer extends it: to the symbol behind it or, for the last of a section, to the end of the section behind
    /// that, because it counts sections from 1 in one place and from 0 in another. 0 stands for no end.
    pub(super) size: u64,
    /// Without Mach-O's underscore.
    pub(super) name: &'d [u8],
}

/// The symbols of `bytes`, a Mach-O file, sorted by address; none where it cannot be read.
pub(super) fn read(bytes: &[u8]) -> Vec<Symbol<'_>> {
    let Ok(file) = object::File::parse(bytes) else { return Vec::new() };
    let file_size = bytes.len() as u64;
    // Number of the section, address, and the name of a symbol.
    let mut entries: Vec<(usize, u64, Option<&[u8]>)> = Vec::new();
    for symbol in file.symbols() {
        if let (Some(section), Ok(name)) = (symbol.section_index(), symbol.name_bytes()) {
            entries.push((section.0, symbol.address(), Some(name.strip_prefix(b"_").unwrap_or(name))));
        }
    }
    for section in file.sections() {
        // It lets no section reach further than the file does, though those of a dSYM are not in it.
        let in_file = section.file_range().map_or(u64::MAX, |(offset, _)| file_size.saturating_sub(offset));
        let end = section.address().wrapping_add(section.size().min(in_file));
        entries.push((section.index().0 - 1, end, None));
    }
    entries.sort_by_key(|entry| (entry.0, entry.1));
    let mut symbols = Vec::with_capacity(entries.len());
    let mut next = 0;
    for (number, (_, svma, name)) in entries.iter().enumerate() {
        next = next.max(number);
        while next + 1 < entries.len() && entries[next].1 == *svma {
            next += 1;
        }
        if let Some(name) = name {
            symbols.push(Symbol { svma: *svma, size: entries[next].1.wrapping_sub(*svma), name });
        }
    }
    symbols.sort_by_key(|symbol| symbol.svma);
    symbols
}

/// The symbols that llvm-symbolizer may take for `svma`: the last ones up to it.
pub(super) fn symbols_at<'s, 'd>(
    symbols: &'s [Symbol<'d>],
    svma: u64,
) -> impl Iterator<Item = &'s Symbol<'d>> {
    let before = &symbols[..symbols.partition_point(|symbol| symbol.svma <= svma)];
    let last = before.last().map(|symbol| symbol.svma);
    let at_last = before.iter().rev().take_while(move |symbol| Some(symbol.svma) == last);
    at_last.filter(move |symbol| symbol.size == 0 || svma - symbol.svma < symbol.size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_symbols_up_to_an_address_name_it() {
        let symbol =
            |(svma, size, name): (u64, u64, &'static str)| Symbol { svma, size, name: name.as_bytes() };
        let symbols: Vec<_> = [(16, 8, "f"), (24, 8, "g"), (24, 8, "h"), (40, 0, "i")].map(symbol).into();
        let names = |svma| {
            symbols_at(&symbols, svma)
                .map(|symbol| String::from_utf8_lossy(symbol.name))
                .collect::<Vec<_>>()
                .join(" ")
        };
        assert_eq!(
            [15, 16, 23, 24, 31, 32, 39, 40, 99].map(names),
            ["", "f", "f", "h g", "h g", "", "", "i", "i"]
        );
    }
}
