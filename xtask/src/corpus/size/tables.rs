//! Copies `.debug_ranges` and `.debug_aranges`.

use anyhow::{Context, Result, ensure};
use gimli::{EndianSlice, LittleEndian, Reader};

use super::original::Section;
use super::shift::Shift;

/// The size of a pair of addresses.
const PAIR: usize = 16;

/// Copies `.debug_ranges`. Only base address entries change: other entries are relative to the lowest address of a
/// unit.
///
/// # Errors
/// A pair is cut.
pub(super) fn copy_ranges(shift: &Shift<'_>) -> Result<Vec<u8>> {
    let mut bytes = shift.original.bytes(Section::Ranges).to_vec();
    for pair in bytes.chunks_mut(PAIR) {
        if pair.starts_with(&u64::MAX.to_le_bytes()) {
            shift.patch_address(pair, size_of::<u64>())?;
        }
    }
    Ok(bytes)
}

/// Copies `.debug_aranges`: for each unit its offset, and pairs of an address and a length.
///
/// # Errors
/// A set is cut, or its addresses do not have 64 bits.
pub(super) fn copy_aranges(shift: &Shift<'_>) -> Result<Vec<u8>> {
    let section = shift.original.bytes(Section::Aranges);
    let mut bytes = section.to_vec();
    let mut start = 0;
    while start < section.len() {
        let mut header = EndianSlice::new(&section[start..], LittleEndian);
        let end = start + 4 + header.read_u32()? as usize;
        let (_version, _unit) = (header.read_u16()?, header.read_u32()?);
        ensure!((header.read_u8()?, header.read_u8()?) == (8, 0), "a set of other than 64-bit addresses");
        shift.patch_offset(&mut bytes, start + 6, Section::Info)?;
        let first = start + (12_usize).next_multiple_of(PAIR);
        let pairs = bytes.get_mut(first..end).context("a set of address ranges is cut")?;
        for pair in pairs.chunks_mut(PAIR).filter(|pair| pair.iter().any(|&byte| byte != 0)) {
            shift.patch_address(pair, 0)?;
        }
        start = end;
    }
    Ok(bytes)
}
