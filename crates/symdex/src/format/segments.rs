//! The executable segments of ELF files.

use super::{MAX_SEGMENTS, Metadata};

/// An executable segment of an ELF file (`PT_LOAD`): its position in the file, its address, and its size in the file.
pub type Segment = [u64; 3];

impl Metadata {
    /// Returns `segments` in the order of their addresses, without empty ones. Returns an empty list if they overlap
    /// or are more than 64; an address of a report may be looked up in each of them.
    #[must_use]
    pub fn sorted_segments(mut segments: Vec<Segment>) -> Vec<Segment> {
        segments.retain(|[.., size]| *size != 0);
        segments.sort_unstable_by_key(|[file_offset, address, _]| (*address, *file_offset));
        let mut end = Some(0);
        let is_valid = segments.iter().all(|[file_offset, address, size]| {
            let is_after = end.is_some_and(|end| *address >= end);
            end = address.checked_add(*size).filter(|_| file_offset.checked_add(*size).is_some());
            is_after && end.is_some()
        });
        if is_valid && segments.len() <= MAX_SEGMENTS { segments } else { Vec::new() }
    }
}
