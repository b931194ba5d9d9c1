//! Archives: zip, tar and compressed files, in archives too.

use std::io::Write as _;

use symdex_pipeline::archive::{Limits, Unpacker};
use symdex_testkit::images::archive::{ZipEntry, gzip, tar_of, zip, zip_of};

const LIMITS: Limits = Limits { entries: 64, unpacked: 1 << 20, entry_size: 1 << 18, ratio: 100, nesting: 1 };

pub fn run(data: &[u8]) {
    let mut archive = tempfile::NamedTempFile::new().expect("a file");
    archive.write_all(data).expect("written");
    let mut unpacker = Unpacker::new(LIMITS).expect("a folder");
    let file = archive.reopen().expect("the same file");
    let unpacked = unpacker.unpack(file, "fuzzed", &|_, _| true, &|_| Ok(()));
    assert!(unpacked.entries <= LIMITS.entries + 1, "{} entries", unpacked.entries);
    let sizes = unpacked.files.iter().map(|file| {
        assert!(file.size <= LIMITS.entry_size, "{file:?}");
        assert!(
            !file.entry.split('/').any(|part| part == "..") && !file.entry.contains(char::is_control),
            "{file:?}"
        );
        assert_eq!(std::fs::metadata(&file.path).expect("unpacked").len(), file.size, "{file:?}");
        file.size
    });
    assert!(sizes.sum::<u64>() <= LIMITS.unpacked, "more bytes than the limit");
}

#[must_use]
pub fn seeds() -> Vec<Vec<u8>> {
    let files: [(&str, &[u8]); 2] = [("a.dSYM/Contents/a", b"a debug file"), ("dir/b", &[7; 600])];
    let tar = tar_of(&files);
    let deflated = zip(&[ZipEntry::deflated("a", &[1; 5000]), ZipEntry::stored("../b", b"b")]);
    vec![
        zip_of(&files),
        zip_of(&[("in.zip", &deflated), ("in.tar.gz", &gzip(&tar))]),
        gzip(&tar),
        gzip(b"alone"),
        deflated,
        tar,
    ]
}
