//! The stubs of ELF files. The relocated slots come first; then each instruction in the sections of stubs that jumps
//! through one of them makes a stub, which reaches back to the instructions that prepare the jump.

use std::collections::BTreeMap;
use std::ops::Range;

use object::read::elf::{ElfFile, FileHeader, Rel as _, Rela as _, SectionHeader as _};
use object::{Architecture, Endianness, File, Object as _, ObjectSection as _, ObjectSymbol as _};
use object::{ObjectSymbolTable as _, SymbolIndex};
use symdex_build::Image;

use super::{Stub, word};
use crate::symbols::resolvers;

const SECTIONS: [&str; 5] = [".plt", ".plt.sec", ".plt.bnd", ".plt.got", ".iplt"];

pub(super) fn stubs<Header: FileHeader<Endian = Endianness>>(
    image: &Image<'_>,
    file: &File<'_>,
    elf: &ElfFile<'_, Header>,
) -> Vec<Stub> {
    let targets = targets(image, file, elf);
    let got = [".got.plt", ".got"].iter().find_map(|name| file.section_by_name(name));
    let got = got.map(|section| section.address());
    let mut stubs = Vec::new();
    for section in SECTIONS.iter().filter_map(|name| file.section_by_name(name)) {
        let (svma, code) = (section.address(), section.data().unwrap_or_default());
        for at in 0..code.len() {
            let jump = match file.architecture() {
                Architecture::X86_64 | Architecture::I386 | Architecture::X86_64_X32 => {
                    x86(code, at, svma, got.filter(|_| file.architecture() == Architecture::I386))
                }
                Architecture::Aarch64 if at % 4 == 0 => arm64(code, at, svma),
                Architecture::Arm if at % 4 == 0 => arm(code, at, svma),
                _ => None,
            };
            let Some((slot, place)) = jump else { continue };
            let place = [place.start, place.end].map(|at| svma.checked_add(at as u64));
            let [Some(start), end] = place.map(|at| at?.checked_sub(image.info().base)) else { continue };
            let name = targets.get(&slot).map(|target| [target, &b"@plt"[..]].concat());
            stubs.extend(name.map(|name| Stub { start, end: end.unwrap_or(u64::MAX), name }));
        }
    }
    stubs
}

/// The targets of the slots, by SVMA: the first relocation of each that is of one of three types.
fn targets<'d, Header: FileHeader<Endian = Endianness>>(
    image: &Image<'_>,
    file: &File<'_>,
    elf: &ElfFile<'d, Header>,
) -> BTreeMap<u64, Vec<u8>> {
    let [slot, data, resolver] = match file.architecture() {
        Architecture::X86_64 | Architecture::X86_64_X32 => [7, 6, 37],
        Architecture::I386 => [7, 6, 42],
        Architecture::Aarch64 => [1026, 1025, 1032],
        Architecture::Arm => [22, 21, 160],
        _ => return BTreeMap::new(),
    };
    let resolvers = resolvers(image, file);
    let symbols = elf.elf_dynamic_symbol_table();
    let name = |number: u32, link: object::SectionIndex| {
        let symbol = elf.dynamic_symbol_table()?.symbol_by_index(SymbolIndex(number as usize)).ok()?;
        let name = symbol.name_bytes().ok()?;
        (number != 0 && link == symbols.section() && !name.is_empty()).then(|| name.to_vec())
    };
    let resolved = |address: u64| {
        let address = address & if file.architecture() == Architecture::Arm { !1 } else { !0 };
        let found = resolvers.iter().find(|entry| entry.start == address);
        found.map(|entry| entry.name.to_vec())
    };
    let endian = Endianness::Little;
    let mut targets = BTreeMap::new();
    let mut add = |kind: u32, at: u64, target: Option<Vec<u8>>| {
        if [slot, data, resolver].contains(&kind) && !targets.contains_key(&at) {
            targets.extend(target.map(|target| (at, target)));
        }
    };
    for section in elf.elf_section_table().iter() {
        if let Ok(Some((entries, link))) = section.rela(endian, elf.data()) {
            for entry in entries {
                let kind = entry.r_type(endian, false).0;
                let addend: i64 = entry.r_addend(endian).into();
                let target = match kind == resolver {
                    true => resolved(addend.cast_unsigned()),
                    false => name(entry.r_sym(endian, false), link),
                };
                add(kind, entry.r_offset(endian).into(), target);
            }
        } else if let Ok(Some((entries, link))) = section.rel(endian, elf.data()) {
            for entry in entries {
                let (kind, at) = (entry.r_type(endian).0, entry.r_offset(endian).into());
                let target = match kind == resolver {
                    true => stored(file, at).and_then(|address| resolved(address.into())),
                    false => name(entry.r_sym(endian), link),
                };
                add(kind, at, target);
            }
        }
    }
    targets
}

/// The word at `svma` in the global offset table.
fn stored(file: &File<'_>, svma: u64) -> Option<u32> {
    let in_section = |name: &&str| {
        let section = file.section_by_name(name)?;
        word(section.data().ok()?, usize::try_from(svma.checked_sub(section.address())?).ok()?)
    };
    [".got.plt", ".got"].iter().find_map(in_section)
}

/// `jmp *slot` at `at`. Its stub begins and ends at multiples of 8; the two instructions after the jump, which push a
/// number and jump to the dynamic linker, are 8 bytes more.
fn x86(code: &[u8], at: usize, svma: u64, got: Option<u64>) -> Option<(u64, Range<usize>)> {
    let operand = word(code, at + 2)?;
    let slot = match (code[at], code[at + 1], got) {
        (0xff, 0x25, None) => {
            svma.checked_add(at as u64 + 6)?.checked_add_signed(i64::from(operand.cast_signed()))?
        }
        (0xff, 0x25, Some(_)) => operand.into(),
        (0xff, 0xa3, Some(got)) => got.checked_add_signed(i64::from(operand.cast_signed()))?,
        _ => return None,
    };
    let numbered = at >= 6 && code[at - 6..].starts_with(&[0x41, 0xbb]);
    let start = (at - if numbered { 6 } else { 0 }) / 8 * 8;
    let binds_lazily = start == at && code.get(at + 6) == Some(&0x68);
    let end = (at + 6).next_multiple_of(8) + if binds_lazily { 8 } else { 0 };
    Some((slot, start..end))
}

/// `br x17` at `at`, after `adrp x16`, `ldr x17` and `add x16`.
fn arm64(code: &[u8], at: usize, svma: u64) -> Option<(u64, Range<usize>)> {
    let back = |words: usize| word(code, at.checked_sub(4 * words)?);
    let is_signed = back(1)? == 0xd503_219f;
    let adrp_back = if is_signed { 4 } else { 3 };
    let (br, adrp, ldr, add) = (back(0)?, back(adrp_back)?, back(adrp_back - 1)?, back(adrp_back - 2)?);
    let is_it = br == 0xd61f_0220
        && adrp & 0x9f00_001f == 0x9000_0010
        && ldr >> 22 == 0x3e5
        && ldr & 0x3ff == 0x211
        && add >> 22 == 0x244
        && add & 0x3ff == 0x210;
    let offset = u64::from(ldr << 10 >> 20) * 8;
    if !is_it || offset != u64::from(add << 10 >> 20) {
        return None;
    }
    let adrp_at = at - 4 * adrp_back;
    let page = svma.checked_add(adrp_at as u64)? >> 12;
    let pages = i64::from(adrp >> 5 & 0x7_ffff) * 4 + i64::from(adrp >> 29 & 3);
    let pages = if pages < 1 << 20 { pages } else { pages - (1 << 21) };
    let page = i64::try_from(page).ok()?.checked_add(pages)?;
    let slot = (u64::try_from(page).ok()? << 12).checked_add(offset)?;
    let has_target = adrp_at >= 4 && word(code, adrp_at - 4) == Some(0xd503_245f);
    let start = adrp_at - if has_target { 4 } else { 0 };
    let size = if has_target || is_signed { 24 } else { 16 };
    Some((slot, start..start + size))
}

/// `ldr pc, [ip, #..]!` at `at` after additions to `ip`, the first of which adds to `pc`; or `ldr pc, [ip]` with the
/// distance in the next word.
fn arm(code: &[u8], at: usize, svma: u64) -> Option<(u64, Range<usize>)> {
    let jump = word(code, at)?;
    let back = |words: usize| word(code, at.checked_sub(4 * words)?);
    let (mut distance, first, mut end) = match jump & 0xffff_f000 {
        0xe5bc_f000 => (jump & 0xfff, None, at + 4),
        0xe59c_f000 if jump == 0xe59c_f000 && back(1)? == 0xe08c_c00f && back(2)? == 0xe59f_c004 => {
            (word(code, at + 4)?.wrapping_add(4), Some(at - 8), at + 8)
        }
        _ => return None,
    };
    let mut start = first;
    for words in 1..=3 {
        if start.is_some() {
            break;
        }
        let add = back(words)?;
        distance = distance.wrapping_add((add & 0xff).rotate_right((add >> 8 & 0xf) * 2));
        match add >> 12 {
            0xe_28cc => {}
            0xe_28fc if words > 1 => start = Some(at - 4 * words),
            _ => return None,
        }
        if words == 2 && start.is_some() && word(code, at + 4) == Some(0xd4d4_d4d4) {
            end += 4;
        }
    }
    let start = start?;
    let slot = u32::try_from(svma.checked_add(start as u64 + 8)?).ok()?.wrapping_add(distance);
    let switch = start.checked_sub(4).and_then(|before| word(code, before));
    let from_thumb = matches!(switch, Some(0x46c0_4778 | 0xe7fd_4778));
    Some((slot.into(), if from_thumb { start - 4 } else { start }..end))
}
