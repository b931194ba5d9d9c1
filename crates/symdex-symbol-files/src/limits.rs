//! What bounds the reading and the writing of untrusted files.

/// How many bytes of records the functions of a symbol file may have, for each byte of the file. Functions may share
/// records.
pub(crate) const SHARED_RECORDS: usize = 2;
/// How many bytes of names, paths and inlined calls an index may make when it is written as text, beside
/// [`EXPORT_BYTES_RATIO`].
pub(crate) const EXPORT_BYTES: u64 = 64 << 20;
/// How many further such bytes it may make for each of its bytes. Names share their parts, and lines share paths: a
/// small hostile index can have gigabytes of both.
pub(crate) const EXPORT_BYTES_RATIO: u64 = 1 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_the_document_has_these_limits() {
        let limits = [
            ("SHARED_RECORDS", SHARED_RECORDS as u64),
            ("EXPORT_BYTES", EXPORT_BYTES),
            ("EXPORT_BYTES_RATIO", EXPORT_BYTES_RATIO),
        ];
        symdex_testkit::limits::are_documented(&limits, include_str!("limits.rs"));
    }
}
