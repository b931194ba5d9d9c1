//! The limits of an archive. A small archive can state any number of entries and unpack to any number of bytes.

/// How many entries an archive may have, those of the archives in it included.
pub(crate) const ENTRIES: u64 = 100_000;
/// How many bytes an archive may unpack to, those of the archives in it included.
pub(crate) const UNPACKED: u64 = 64_000_000_000;
/// How many bytes an entry may have.
pub(crate) const ENTRY_SIZE: u64 = 16_000_000_000;
/// How many bytes may be unpacked for each compressed byte, beside [`RATIO_FREE`]. Debug files shrink to a third or a
/// fifth; long runs of zeros shrink more.
pub(crate) const RATIO: u64 = 200;
/// How many bytes may be unpacked whatever the compressed size.
pub(crate) const RATIO_FREE: u64 = 16 << 20;
/// How deep archives in archives are read.
pub(crate) const NESTING: u32 = 1;
/// How many bytes the headers between two entries of a tar archive may have. They are read into memory.
pub(crate) const HEADER_BYTES: u64 = 1 << 20;
/// How many bytes the name of an entry may have.
pub(crate) const NAME_BYTES: usize = 4096;

/// What one archive may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How many entries it may have.
    pub entries: u64,
    /// How many bytes it may unpack to.
    pub unpacked: u64,
    /// How many bytes an entry may have.
    pub entry_size: u64,
    /// How many bytes may be unpacked for each compressed byte.
    pub ratio: u64,
    /// How deep archives in archives are read.
    pub nesting: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { entries: ENTRIES, unpacked: UNPACKED, entry_size: ENTRY_SIZE, ratio: RATIO, nesting: NESTING }
    }
}

impl Limits {
    /// How many bytes may be unpacked from `compressed` bytes.
    pub(crate) fn expanded(&self, compressed: u64) -> u64 {
        self.ratio.saturating_mul(compressed).saturating_add(RATIO_FREE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_the_document_has_these_limits() {
        let limits = [
            ("ENTRIES", ENTRIES),
            ("UNPACKED", UNPACKED),
            ("ENTRY_SIZE", ENTRY_SIZE),
            ("RATIO", RATIO),
            ("RATIO_FREE", RATIO_FREE),
            ("NESTING", u64::from(NESTING)),
            ("HEADER_BYTES", HEADER_BYTES),
            ("NAME_BYTES", NAME_BYTES as u64),
        ];
        symdex_testkit::limits::are_documented(&limits, include_str!("limits.rs"));
    }
}
