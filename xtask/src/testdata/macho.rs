//! Small edits of thin 64-bit Mach-O files. llvm-objcopy 19 destroys debug files, because their `__TEXT` has file
//! offset 0 and no contents.

use std::path::Path;

use anyhow::{Context, Result, bail, ensure};

const MAGIC_64: u32 = 0xfeed_facf;
const HEADER_SIZE: usize = 32;
const SEGMENT_SIZE: usize = 72;
const SECTION_SIZE: usize = 80;
const LC_SEGMENT_64: u32 = 0x19;

/// Changes the bytes of a file with `change`.
///
/// # Errors
/// The file cannot be read or written, or `change` fails.
pub(crate) fn edit(path: &Path, change: impl FnOnce(&mut [u8]) -> Result<()>) -> Result<()> {
    let mut bytes = std::fs::read(path)?;
    change(&mut bytes).with_context(|| format!("cannot edit {}", path.display()))?;
    Ok(std::fs::write(path, bytes)?)
}

/// Sets the CPU subtype, which ld64.lld sets to "all".
///
/// # Errors
/// The file is not a thin 64-bit Mach-O file.
pub(crate) fn set_subtype(bytes: &mut [u8], subtype: u32) -> Result<()> {
    ensure!(get(bytes, 0)? == MAGIC_64, "not a thin 64-bit Mach-O file");
    put(bytes, 8, subtype)
}

/// Removes the header of a section. The section's contents stay in the file without a reference.
///
/// # Errors
/// The file is not a thin 64-bit Mach-O file, or has no such section.
pub(crate) fn drop_section(bytes: &mut [u8], name: &str) -> Result<()> {
    ensure!(get(bytes, 0)? == MAGIC_64, "not a thin 64-bit Mach-O file");
    let command_count = get(bytes, 16)?;
    let commands_size = get(bytes, 20)?;
    let commands_end = HEADER_SIZE + commands_size as usize;
    let mut at = HEADER_SIZE;
    for _ in 0..command_count {
        let (kind, size) = (get(bytes, at)?, get(bytes, at + 4)?);
        let section_count = if kind == LC_SEGMENT_64 { get(bytes, at + 64)? } else { 0 };
        let mut headers = (0..section_count as usize).map(|i| at + SEGMENT_SIZE + SECTION_SIZE * i);
        if let Some(header) = headers.find(|header| section_name(bytes, *header) == name.as_bytes()) {
            bytes.copy_within(header + SECTION_SIZE..commands_end, header);
            bytes[commands_end - SECTION_SIZE..commands_end].fill(0);
            let removed = u32::try_from(SECTION_SIZE)?;
            put(bytes, at + 4, size - removed)?;
            put(bytes, at + 64, section_count - 1)?;
            return put(bytes, 20, commands_size - removed);
        }
        at += size as usize;
    }
    bail!("no section {name}")
}

fn section_name(bytes: &[u8], header: usize) -> &[u8] {
    let field = bytes.get(header..header + 16).unwrap_or_default();
    field.split(|byte| *byte == 0).next().unwrap_or_default()
}

fn get(bytes: &[u8], at: usize) -> Result<u32> {
    let word = bytes.get(at..at + 4).with_context(|| format!("cut off at byte {at}"))?;
    Ok(u32::from_le_bytes(word.try_into()?))
}

fn put(bytes: &mut [u8], at: usize, word: u32) -> Result<()> {
    let place = bytes.get_mut(at..at + 4).with_context(|| format!("cut off at byte {at}"))?;
    place.copy_from_slice(&word.to_le_bytes());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file with one `LC_SEGMENT_64` of two sections, and a byte after it that must stay.
    fn file() -> Vec<u8> {
        let mut bytes = vec![0; HEADER_SIZE + SEGMENT_SIZE + 2 * SECTION_SIZE + 1];
        let size = u32::try_from(SEGMENT_SIZE + 2 * SECTION_SIZE).unwrap();
        for (at, word) in [(0, MAGIC_64), (16, 1), (20, size), (32, LC_SEGMENT_64), (36, size), (96, 2)] {
            put(&mut bytes, at, word).unwrap();
        }
        bytes[104..109].copy_from_slice(b"__one");
        bytes[184..189].copy_from_slice(b"__two");
        *bytes.last_mut().unwrap() = 0xaa;
        bytes
    }

    #[test]
    fn removing_a_section_updates_counts_and_sizes() {
        let mut bytes = file();
        let len = bytes.len();
        drop_section(&mut bytes, "__one").unwrap();
        assert_eq!(section_name(&bytes, 104), b"__two");
        assert_eq!([20, 36, 96].map(|at| get(&bytes, at).unwrap()), [152, 152, 1]);
        assert_eq!((bytes.len(), bytes.last()), (len, Some(&0xaa)));
        assert_eq!(drop_section(&mut bytes, "__one").unwrap_err().to_string(), "no section __one");
    }

    #[test]
    fn other_files_are_refused() {
        assert!(drop_section(&mut [0; 64], "__one").is_err());
        assert!(set_subtype(&mut [0xcf, 0xfa], 2).is_err());
    }
}
