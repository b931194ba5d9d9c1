//! The starts of functions without symbols, from unwind information and `LC_FUNCTION_STARTS`.

use gimli::{BaseAddresses, CieOrFde, EhFrame, LittleEndian, UnwindSection as _};
use rustc_hash::FxHashMap;
use symdex_build::audit_access::{Deadline, Section, UnwindSections, unwind_sections};
use symdex_build::{Error, Image};

/// Image offsets of a function: its start, and its end if that is known.
pub(crate) type Bounds = (u64, Option<u64>);

/// The functions in `.eh_frame` and `.ARM.exidx` of the ELF files of the image.
///
/// # Errors
///
/// [`Error::TooSlow`] after the deadline.
pub(crate) fn unwound(image: &Image<'_>, deadline: Deadline) -> Result<Vec<Bounds>, Error> {
    let mut bounds = Vec::new();
    if !image.files().iter().any(|file| file.starts_with(b"\x7fELF")) {
        return Ok(bounds);
    }
    let base = image.info().base;
    for tables in unwind_sections(image) {
        eh_frame(tables, image, deadline, &mut bounds)?;
        bounds.extend(exidx(tables.arm_index).filter_map(|start| Some((start.checked_sub(base)?, None))));
        deadline.check()?;
    }
    Ok(bounds)
}

/// Appends the functions of `.eh_frame`. Each CIE is parsed once: all entries may share one, as long as the section.
fn eh_frame(
    tables: UnwindSections<'_>,
    image: &Image<'_>,
    deadline: Deadline,
    bounds: &mut Vec<Bounds>,
) -> Result<(), Error> {
    let info = image.info();
    let mut frames = EhFrame::new(tables.eh_frame.bytes, LittleEndian);
    frames.set_address_size(if info.arch.is_64_bit() { 8 } else { 4 });
    let bases = BaseAddresses::default().set_eh_frame(tables.eh_frame.address).set_text(tables.text);
    let mut entries = frames.entries(&bases);
    let mut commons = FxHashMap::default();
    while let Ok(Some(entry)) = entries.next() {
        deadline.check()?;
        let CieOrFde::Fde(entry) = entry else { continue };
        let entry = entry.parse(|frames, bases, offset| {
            let read = || frames.cie_from_offset(bases, offset);
            commons.entry(offset.0).or_insert_with(read).clone()
        });
        let Ok(entry) = entry else { continue };
        let start = entry.initial_address().checked_sub(info.base);
        bounds.extend(start.map(|start| (start, start.checked_add(entry.len()))));
    }
    Ok(())
}

/// The SVMAs in `.ARM.exidx`: the first of each two words, a signed 31-bit offset from the word's own address.
fn exidx(section: Section<'_>) -> impl Iterator<Item = u64> {
    let words = section
        .bytes
        .chunks_exact(8)
        .map(|entry| u32::from_le_bytes([entry[0], entry[1], entry[2], entry[3]]));
    (0u64..).zip(words).map(move |(number, word)| {
        let word = u64::from(word & 0x7fff_ffff);
        let at = section.address.wrapping_add(8 * number).wrapping_add(word);
        // Bit 30 is the sign.
        if word < 0x4000_0000 { at } else { at.wrapping_sub(0x8000_0000) }
    })
}

/// The image offsets in `LC_FUNCTION_STARTS` of a Mach-O file. With `thumb`, bit 0 is cleared.
pub(crate) fn function_starts(bytes: &[u8], thumb: bool) -> Vec<u64> {
    const LC_FUNCTION_STARTS: u32 = 0x26;
    let word = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?));
    let header_size = match word(0) {
        Some(0xfeed_face) => 28,
        Some(0xfeed_facf) => 32,
        _ => return Vec::new(),
    };
    let mut at = header_size;
    for _ in 0..word(16).unwrap_or(0) {
        let (Some(kind), Some(size)) = (word(at), word(at + 4)) else { break };
        if kind == LC_FUNCTION_STARTS {
            let range = word(at + 8).zip(word(at + 12)).map(|(start, size)| (start as usize, size as usize));
            let data = range.and_then(|(start, size)| bytes.get(start..start.checked_add(size)?));
            return distances(data.unwrap_or_default(), thumb);
        }
        at += (size as usize).max(8);
    }
    Vec::new()
}

/// The running sums of the ULEB128 numbers in `data`, up to a 0.
fn distances(data: &[u8], thumb: bool) -> Vec<u64> {
    let mut starts = Vec::new();
    let (mut address, mut number, mut shift) = (0u64, 0u64, 0);
    for byte in data {
        if shift < 64 {
            number |= u64::from(byte & 0x7f) << shift;
        }
        shift += 7;
        if byte & 0x80 != 0 {
            continue;
        }
        if number == 0 {
            break;
        }
        address = address.wrapping_add(number);
        starts.push(if thumb { address & !1 } else { address });
        (number, shift) = (0, 0);
    }
    starts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn function_starts_add_up_to_a_zero() {
        assert_eq!(distances(&[0x80, 0x20, 0x10, 0x01, 0, 7], false), [0x1000, 0x1010, 0x1011]);
        assert_eq!(distances(&[0x81, 0x20, 0x10], true), [0x1000, 0x1010]);
    }
}
