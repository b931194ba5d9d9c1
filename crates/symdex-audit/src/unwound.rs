//! The starts of functions without symbols, from unwind information and `LC_FUNCTION_STARTS`.

use gimli::{BaseAddresses, CieOrFde, EhFrame, LittleEndian, UnwindSection as _};
use object::{File, Object as _, ObjectSection as _};

/// Image offsets of a function: its start, and its end if that is known.
pub(crate) type Bounds = (u64, Option<u64>);

/// The functions in `.eh_frame` and `.ARM.exidx` of an ELF file.
pub(crate) fn unwound(file: &File<'_>, base: u64) -> Vec<Bounds> {
    let (File::Elf32(_) | File::Elf64(_)) = file else { return Vec::new() };
    let mut bounds = eh_frame(file, base);
    bounds.extend(exidx(file).filter_map(|start| Some((start.checked_sub(base)?, None))));
    bounds
}

fn eh_frame(file: &File<'_>, base: u64) -> Vec<Bounds> {
    let Some(section) = file.section_by_name(".eh_frame") else { return Vec::new() };
    let mut frames = EhFrame::new(section.data().unwrap_or_default(), LittleEndian);
    frames.set_address_size(if file.is_64() { 8 } else { 4 });
    let text = file.section_by_name(".text").map_or(0, |section| section.address());
    let bases = BaseAddresses::default().set_eh_frame(section.address()).set_text(text);
    let mut bounds = Vec::new();
    let mut entries = frames.entries(&bases);
    while let Ok(Some(entry)) = entries.next() {
        let CieOrFde::Fde(entry) = entry else { continue };
        // This parses the shared CIE again for each FDE.
        let Ok(entry) = entry.parse(EhFrame::cie_from_offset) else { continue };
        let start = entry.initial_address().checked_sub(base);
        bounds.extend(start.map(|start| (start, start.checked_add(entry.len()))));
    }
    bounds
}

/// The SVMAs in `.ARM.exidx`: the first of each two words, a signed 31-bit offset from the word's own address.
fn exidx(file: &File<'_>) -> impl Iterator<Item = u64> {
    let section = file.section_by_name(".ARM.exidx");
    let address = section.as_ref().map_or(0, |section| section.address());
    let bytes = section.and_then(|section| section.data().ok()).unwrap_or_default();
    let words =
        bytes.chunks_exact(8).map(|entry| u32::from_le_bytes([entry[0], entry[1], entry[2], entry[3]]));
    (0u64..).zip(words).map(move |(number, word)| {
        let word = u64::from(word & 0x7fff_ffff);
        let at = address.wrapping_add(8 * number).wrapping_add(word);
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
