//! The stubs of an ELF image: its procedure linkage table.
//!
//! A stub jumps to the address in a slot of the global offset table. The relocation of that slot names the target, so
//! that the order of stubs and relocations does not matter.

mod code;

use object::read::elf::{FileHeader, Rel as _, Rela as _, SectionHeader, Sym};
use object::{LittleEndian as Little, SymbolIndex, elf};

use self::code::{Code, Jump};
use super::elf::{ENDIAN, resolvers};
use super::stubs::Stub;
use super::{Start, name_at};
use crate::error::Error;
use crate::image::ElfFile;
use crate::keyed::KeyedMap;
use crate::limits;

/// The sections of stubs: of functions that are bound lazily, their second parts with indirect branch tracking or MPX,
/// functions whose address is also taken, and functions of resolvers in static executables.
const SECTIONS: [&str; 5] = [".plt", ".plt.sec", ".plt.bnd", ".plt.got", ".iplt"];
/// The sections of slots. The first one there is begins at `_GLOBAL_OFFSET_TABLE_`.
const SLOTS: [&str; 2] = [".got.plt", ".got"];

/// What fills a slot.
#[derive(Clone, Copy, Debug)]
enum Target<'d> {
    Symbol(&'d [u8]),
    /// The function that returns the address, as an SVMA.
    Resolver(u64),
}

/// The stubs of `file` whose targets have names.
///
/// # Errors
///
/// [`Error::Malformed`] if a symbol table cannot be read.
pub(crate) fn stubs<'d, Header: FileHeader<Endian = Little>>(
    file: &ElfFile<'d, Header>,
    base: u64,
    thumb: bool,
) -> Result<Vec<Stub<'d>>, Error> {
    let Some(code) = Code::of(file.machine) else { return Ok(Vec::new()) };
    let jumps = jumps(file, code);
    let targets = targets(file, code, &jumps)?;
    let has_resolvers = targets.values().any(|target| matches!(target, Some(Target::Resolver(_))));
    let mut resolvers = if has_resolvers { resolvers(file, base, thumb)? } else { Vec::new() };
    resolvers.sort_unstable();
    let name = |target: Target<'d>| match target {
        Target::Symbol(name) => Some(name),
        Target::Resolver(address) => {
            let start = address.checked_sub(base)? & if thumb { !1 } else { !0 };
            let first = resolvers.partition_point(|resolver: &Start<'_>| resolver.start < start);
            resolvers.get(first).filter(|resolver| resolver.start == start)?.name
        }
    };
    let stub = |(address, jump): &(u64, Jump)| {
        let target = name(targets.get(&jump.slot).copied().flatten()?)?;
        Some(Stub { start: address.checked_sub(base)?, size: jump.size as u64, target })
    };
    Ok(jumps.iter().filter_map(stub).collect())
}

/// The stubs in all sections, each with its address.
fn jumps<Header: FileHeader<Endian = Little>>(file: &ElfFile<'_, Header>, code: Code) -> Vec<(u64, Jump)> {
    let got = SLOTS.iter().find_map(|name| file.section(name)).map(|section| section.sh_addr(ENDIAN).into());
    let mut jumps = Vec::new();
    for section in SECTIONS.iter().filter_map(|name| file.section(name)) {
        let (mut address, mut rest) =
            (section.sh_addr(ENDIAN).into(), file.data(section).unwrap_or_default());
        while !rest.is_empty() && jumps.len() < limits::STUBS {
            let jump = code.jump(rest, address, got);
            jumps.extend(jump.map(|jump| (address, jump)));
            let size = jump.map_or(code.alignment(), |jump| jump.size).min(rest.len());
            rest = &rest[size..];
            let Some(next) = address.checked_add(size as u64) else { break };
            address = next;
        }
    }
    jumps
}

/// What fills the slots of `jumps`, as the dynamic relocations state. Of several relocations of a slot the first
/// counts.
fn targets<'d, Header: FileHeader<Endian = Little>>(
    file: &ElfFile<'d, Header>,
    code: Code,
    jumps: &[(u64, Jump)],
) -> Result<KeyedMap<u64, Option<Target<'d>>>, Error> {
    let mut targets: KeyedMap<_, _> = jumps.iter().map(|(_, jump)| (jump.slot, None)).collect();
    if targets.is_empty() {
        return Ok(targets);
    }
    let (symbols, strings) = file.symbols(elf::SHT_DYNSYM)?;
    let slots = SLOTS.map(|name| {
        let section = file.section(name)?;
        Some((section.sh_addr(ENDIAN).into(), file.data(section).ok()?))
    });
    let name = |index: u32| {
        let symbol = symbols.symbol(SymbolIndex(index as usize)).ok()?;
        let name = name_at(strings, symbol.st_name(ENDIAN) as usize)?;
        (index != 0 && !name.is_empty()).then_some(Target::Symbol(name))
    };
    let mut fill = |slot: u64, kind: elf::RelocationType, symbol: Option<u32>, addend: Option<u64>| {
        let is_resolver = kind == code.by_resolver();
        if !is_resolver && !code.by_symbol().contains(&kind) {
            return;
        }
        if let Some(target @ None) = targets.get_mut(&slot) {
            *target = if is_resolver {
                addend
                    .or_else(|| slots.iter().flatten().find_map(|slots| stored(*slots, slot)))
                    .map(Target::Resolver)
            } else {
                symbol.and_then(name)
            };
        }
    };
    for section in file.sections.iter() {
        let is_linked = |link| symbols.section() == link;
        if let Ok(Some((entries, link))) = section.rela(ENDIAN, file.bytes) {
            for entry in entries {
                let symbol = is_linked(link).then(|| entry.r_sym(ENDIAN, false));
                let addend: i64 = entry.r_addend(ENDIAN).into();
                let (slot, kind) = (entry.r_offset(ENDIAN).into(), entry.r_type(ENDIAN, false));
                fill(slot, kind, symbol, Some(addend.cast_unsigned()));
            }
        } else if let Ok(Some((entries, link))) = section.rel(ENDIAN, file.bytes) {
            for entry in entries {
                let symbol = is_linked(link).then(|| entry.r_sym(ENDIAN));
                fill(entry.r_offset(ENDIAN).into(), entry.r_type(ENDIAN), symbol, None);
            }
        }
    }
    Ok(targets)
}

/// The 32 bits at `address` in a section with this address and these bytes. Relocations without an addend keep it in
/// their slot.
fn stored((start, bytes): (u64, &[u8]), address: u64) -> Option<u64> {
    let offset = usize::try_from(address.checked_sub(start)?).ok()?;
    bytes.get(offset..)?.first_chunk::<4>().map(|bytes| u32::from_le_bytes(*bytes).into())
}
