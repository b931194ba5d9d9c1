//! The stubs of Mach-O files, from the load commands word by word.

use object::{File, Object as _, ObjectSymbol as _, SymbolFlags, SymbolIndex};
use symdex_build::Image;

use super::{Stub, word};
use crate::symbols::without_underscore;

const LC_SEGMENT: u32 = 1;
const LC_DYSYMTAB: u32 = 0xb;
const LC_SEGMENT_64: u32 = 0x19;
const MH_DSYM: u32 = 10;
const S_SYMBOL_STUBS: u32 = 8;

/// A section of stubs.
struct Section {
    svma: u64,
    size: u64,
    first: usize,
    stub_size: u64,
}

pub(super) fn stubs(image: &Image<'_>, file: &File<'_>, bytes: &[u8]) -> Vec<Stub> {
    let Some((sections, indirect)) = sections(bytes) else { return Vec::new() };
    let mut stubs = Vec::new();
    let mut left = indirect.len();
    for Section { svma, size, first, stub_size } in sections {
        let Some(count) = size.checked_div(stub_size).and_then(|count| usize::try_from(count).ok()) else {
            continue;
        };
        let end = first.saturating_add(count);
        let of_section = indirect.get(first..end).unwrap_or_default();
        let of_section = &of_section[..count.min(left).min(of_section.len())];
        left -= of_section.len();
        let Some(start) = svma.checked_sub(image.info().base) else { continue };
        for (number, symbol) in (0..).zip(of_section) {
            let Some(start) = stub_size.checked_mul(number).and_then(|before| start.checked_add(before))
            else {
                break;
            };
            let name = name(file, *symbol).map(|name| [b"DYLD-STUB$$", without_underscore(name)].concat());
            stubs.extend(name.map(|name| Stub { start, end: start.saturating_add(stub_size), name }));
        }
    }
    stubs
}

/// The name of the symbol with this number, if it has one more byte than the underscore.
fn name<'d>(file: &File<'d>, number: u32) -> Option<&'d [u8]> {
    if number >= 0x4000_0000 {
        return None;
    }
    let symbol = file.symbol_by_index(SymbolIndex(number as usize)).ok()?;
    let SymbolFlags::MachO { n_type, .. } = symbol.flags() else { return None };
    let name = symbol.name_bytes().ok()?;
    (n_type.0 & 0xe0 == 0 && !without_underscore(name).is_empty()).then_some(name)
}

/// The sections of stubs, and the table of indirect symbols. `None` for dSYMs and without a table.
fn sections(bytes: &[u8]) -> Option<(Vec<Section>, Vec<u32>)> {
    let word = |at: usize| word(bytes, at);
    let is_64_bit = word(0)? == 0xfeed_facf;
    let (mut at, mut sections, mut table) = (if is_64_bit { 32 } else { 28 }, Vec::new(), None);
    for _ in 0..word(16)? {
        let (kind, size) = (word(at)?, word(at + 4)? as usize);
        let (header, section_size) = if is_64_bit { (72, 80) } else { (56, 68) };
        match kind {
            LC_SEGMENT | LC_SEGMENT_64 => {
                let count = word(at + header - 8)? as usize;
                let starts = (0..count).map(|number| at + header + number * section_size);
                let starts = starts.take_while(|start| start + section_size <= at + size);
                sections.extend(starts.filter_map(|start| section(bytes, start, is_64_bit)));
            }
            LC_DYSYMTAB => table = Some((word(at + 56)? as usize, word(at + 60)? as usize)),
            _ => {}
        }
        at = at.checked_add(size.max(8))?;
    }
    let (start, count) = table.filter(|_| word(12) != Some(MH_DSYM))?;
    let table = bytes.get(start..start.checked_add(count.checked_mul(4)?)?)?;
    let symbols =
        table.chunks_exact(4).map(|number| u32::from_le_bytes([number[0], number[1], number[2], number[3]]));
    Some((sections, symbols.collect()))
}

/// The section whose header is at `at`, if it has stubs.
fn section(bytes: &[u8], at: usize, is_64_bit: bool) -> Option<Section> {
    let word = |offset: usize| word(bytes, at + offset);
    let wide = |offset: usize| Some(u64::from(word(offset)?) | u64::from(word(offset + 4)?) << 32);
    let (svma, size, flags) = match is_64_bit {
        true => (wide(32)?, wide(40)?, 64),
        false => (word(32)?.into(), word(36)?.into(), 56),
    };
    (word(flags)? & 0xff == S_SYMBOL_STUBS).then_some(())?;
    Some(Section { svma, size, first: word(flags + 4)? as usize, stub_size: word(flags + 8)?.into() })
}
