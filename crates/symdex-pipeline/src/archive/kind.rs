//! The kind of a file, told by its first bytes.

use crate::archive::compression::Compression;

/// How many bytes of a file tell its kind: the first block of a tar archive.
pub(crate) const HEAD: usize = 512;

/// A kind of archive or of compression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Zip,
    Tar,
    Compressed(Compression),
}

impl Kind {
    /// The kind of a file that begins with `head`; `None` if it is not an archive.
    pub(crate) fn of(head: &[u8]) -> Option<Self> {
        // An empty zip archive begins with its end.
        const ZIP: [&[u8]; 2] = [b"PK\x03\x04", b"PK\x05\x06"];
        match head {
            _ if ZIP.iter().any(|magic| head.starts_with(magic)) => Some(Self::Zip),
            _ if head.get(257..262) == Some(b"ustar") => Some(Self::Tar),
            _ => Compression::of(head).map(Self::Compressed),
        }
    }
}

/// Whether a file that begins with `head` is an archive or a compressed file that this crate reads. 512 bytes are
/// enough.
#[must_use]
pub fn is_archive(head: &[u8]) -> bool {
    Kind::of(head).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_told_by_content() {
        let mut tar = [0; HEAD];
        tar[257..262].copy_from_slice(b"ustar");
        assert_eq!(Kind::of(&tar), Some(Kind::Tar));
        assert_eq!(Kind::of(b"PK\x03\x04rest"), Some(Kind::Zip));
        assert_eq!(Kind::of(b"\x1f\x8b\x08"), Some(Kind::Compressed(Compression::Gzip)));
        for zstd in [b"\x28\xb5\x2f\xfd", b"\x50\x2a\x4d\x18", b"\x5f\x2a\x4d\x18"] {
            assert_eq!(Kind::of(zstd), Some(Kind::Compressed(Compression::Zstd)));
        }
        for other in [&b"PK"[..], b"", b"\x7fELF", b"\xca\xfe\xba\xbe", &tar[..260]] {
            assert!(!is_archive(other), "{other:?}");
        }
    }
}
