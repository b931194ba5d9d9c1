//! Where the frames of a table or a pool lie: blocks of 32 entries, each block with a checksum of its own.
//!
//! ```text
//!   0    8  offset of the block's first frame in its section
//!   8  128  32 sizes of frame A (u32), 0 where there is no such chunk
//! 136  128  32 sizes of frame B (u32), 0 in pools
//! 264    8  XXH3-64 of: image id padded to 32 bytes | section number (u32) | block number (u64) | bytes 0 to 263
//! ```
//!
//! Frames lie in the order of their entries, A before B, without gaps: a frame's offset is the block's offset plus the
//! sizes before it. The last block is filled up with zeros.

use super::{Cursor, FrameKey, SectionKind};
use crate::error::Error;
use crate::image::ImageId;

/// Entries of one block.
const BLOCK_LEN: usize = 32;
/// Bytes of one block, checksum included.
pub(crate) const BLOCK_SIZE: usize = 8 + 2 * 4 * BLOCK_LEN + 8;

/// The sizes of one entry's frames in bytes, checksums included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) a_size: u32,
    pub(crate) b_size: u32,
}

/// Appends the directory of `entries`, whose first frame lies at `offset` in its section; only version 1 has such directories.
#[cfg(test)]
pub(crate) fn encode_directory(
    out: &mut Vec<u8>,
    id: &ImageId,
    section: SectionKind,
    mut offset: u64,
    entries: &[Entry],
) {
    for (index, block) in (0..).zip(entries.chunks(BLOCK_LEN)) {
        let mut bytes = Vec::with_capacity(BLOCK_SIZE);
        bytes.extend_from_slice(&offset.to_le_bytes());
        let padded = || block.iter().copied().chain(std::iter::repeat(Entry::default())).take(BLOCK_LEN);
        padded().for_each(|entry| bytes.extend_from_slice(&entry.a_size.to_le_bytes()));
        padded().for_each(|entry| bytes.extend_from_slice(&entry.b_size.to_le_bytes()));
        let checksum = FrameKey { id, section, index }.checksum(&bytes);
        out.extend_from_slice(&bytes);
        out.extend_from_slice(&checksum.to_le_bytes());
        offset += block.iter().map(|entry| u64::from(entry.a_size) + u64::from(entry.b_size)).sum::<u64>();
    }
}

/// The directory of one table or pool, over the bytes of its blocks.
#[derive(Clone, Copy)]
pub(crate) struct Directory<'a> {
    pub(crate) id: &'a ImageId,
    pub(crate) section: SectionKind,
    pub(crate) blocks: &'a [u8],
}

impl<'a> Directory<'a> {
    /// Bytes of a directory of `len` entries; `None` on overflow.
    pub(crate) fn size_of(len: u64) -> Option<u64> {
        len.div_ceil(BLOCK_LEN as u64).checked_mul(BLOCK_SIZE as u64)
    }

    /// The frames A and B of entry `index`, taken from the bytes of their section; both empty where there is no such
    /// chunk. Only the block that holds the entry is read.
    pub(crate) fn frames(&self, section: &'a [u8], index: u64) -> Result<(&'a [u8], &'a [u8]), Error> {
        let (key, block) = self.block(index / BLOCK_LEN as u64)?;
        let entry = usize::try_from(index % BLOCK_LEN as u64).unwrap_or_default();
        let (offset, entry) = locate(block, entry).ok_or_else(|| key.malformed("not in the directory"))?;
        slice(section, offset, entry).ok_or_else(|| key.malformed("a frame lies outside its section"))
    }

    /// Block `index` without its checksum, which is checked.
    fn block(&self, index: u64) -> Result<(FrameKey<'a>, &'a [u8]), Error> {
        let key = FrameKey { id: self.id, section: self.section, index };
        let at = usize::try_from(index).ok().and_then(|index| index.checked_mul(BLOCK_SIZE));
        let block = at.and_then(|at| self.blocks.get(at..)?.get(..BLOCK_SIZE)?.split_last_chunk::<8>());
        let (checked, stored) = block.ok_or_else(|| key.malformed("not in the directory"))?;
        if u64::from_le_bytes(*stored) != key.checksum(checked) {
            return Err(Error::Checksum { place: key.place() });
        }
        Ok((key, checked))
    }

    /// Checks that the frames of the directory's `len` entries lie one behind the other from `offset` on; where the last ends.
    pub(crate) fn verify(&self, len: u64, mut offset: u64) -> Result<u64, Error> {
        for index in 0..len.div_ceil(BLOCK_LEN as u64) {
            let (key, block) = self.block(index)?;
            let mut entries = len - index * BLOCK_LEN as u64;
            for number in 0..BLOCK_LEN {
                let (at, entry) =
                    locate(block, number).ok_or_else(|| key.malformed("sizes that overflow"))?;
                if at != offset {
                    return Err(key.malformed("frames do not follow each other"));
                }
                if (entries == 0 || entry.a_size == 0) && entry != Entry::default() {
                    return Err(key.malformed("a frame that belongs to no entry"));
                }
                entries = entries.saturating_sub(1);
                offset = at.saturating_add(u64::from(entry.a_size) + u64::from(entry.b_size));
            }
        }
        Ok(offset)
    }
}

/// The offset and sizes of entry `index` of a block.
fn locate(block: &[u8], index: usize) -> Option<(u64, Entry)> {
    let mut cursor = Cursor::new(block);
    let mut offset = cursor.u64()?;
    let mut b_sizes = Cursor::new(block.get(8 + 4 * BLOCK_LEN..)?);
    for _ in 0..index {
        offset = offset.checked_add(u64::from(cursor.u32()?) + u64::from(b_sizes.u32()?))?;
    }
    Some((offset, Entry { a_size: cursor.u32()?, b_size: b_sizes.u32()? }))
}

fn slice(section: &[u8], offset: u64, entry: Entry) -> Option<(&[u8], &[u8])> {
    let rest = section.get(usize::try_from(offset).ok()?..)?;
    let (a, rest) = rest.split_at_checked(usize::try_from(entry.a_size).ok()?)?;
    Some((a, rest.get(..usize::try_from(entry.b_size).ok()?)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_found_where_their_sizes_put_them() {
        let id = ImageId::new(&[1; 16]).expect("16 bytes are an id");
        let entries: Vec<Entry> =
            (0..70).map(|n| Entry { a_size: n % 5, b_size: (n % 5).min(n % 3) }).collect();
        let size = entries.iter().map(|e| e.a_size + e.b_size).sum::<u32>();
        let section: Vec<u8> = (0..10 + size).map(|n| n.to_le_bytes()[0]).collect();
        let mut blocks = Vec::new();
        encode_directory(&mut blocks, &id, SectionKind::DwarfDirectory, 10, &entries);
        assert_eq!(Directory::size_of(70), Some(blocks.len() as u64));
        let directory = Directory { id: &id, section: SectionKind::DwarfDirectory, blocks: &blocks };
        let mut at = 10;
        for (index, entry) in (0..).zip(&entries) {
            let (a, b) = directory.frames(&section, index).expect("in the directory");
            assert_eq!((a.len(), b.len()), (entry.a_size as usize, entry.b_size as usize));
            assert_eq!(a, &section[at..at + a.len()]);
            at += a.len() + b.len();
        }
        assert_eq!(directory.verify(70, 10).expect("as written"), section.len() as u64);
        assert!(directory.verify(70, 11).is_err(), "frames elsewhere");
        assert!(directory.verify(69, 10).is_err(), "an entry too many");
        assert!(directory.verify(97, 10).is_err(), "a block too few");
        assert!(directory.frames(&section, 96).is_err());
        assert!(directory.frames(&section[..size as usize - 1], 69).is_err());
    }

    #[test]
    fn a_changed_byte_fails_its_own_block() {
        let id = ImageId::new(&[1; 16]).expect("16 bytes are an id");
        let mut blocks = Vec::new();
        encode_directory(
            &mut blocks,
            &id,
            SectionKind::NamesDirectory,
            0,
            &[Entry { a_size: 1, b_size: 0 }; 40],
        );
        for at in 0..blocks.len() {
            let mut changed = blocks.clone();
            changed[at] ^= 0x10;
            let directory = Directory { id: &id, section: SectionKind::NamesDirectory, blocks: &changed };
            let (hit, other) = if at < BLOCK_SIZE { (0, 39) } else { (39, 0) };
            assert!(directory.frames(&[0; 40], hit).is_err_and(|error| error.is_damage()));
            assert!(directory.frames(&[0; 40], other).is_ok());
        }
    }
}
