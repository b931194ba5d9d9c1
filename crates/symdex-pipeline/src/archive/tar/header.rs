//! Headers of tar archives.

use std::io::{self, Read};

/// Headers and the data of entries begin at multiples of this.
pub(super) const BLOCK: usize = 512;

/// A header.
pub(super) struct Header([u8; BLOCK]);

impl Header {
    /// Reads the next header; `None` at the end of the archive, which is a block of zeros or the end of the file.
    pub(super) fn read(data: &mut impl Read) -> io::Result<Option<Self>> {
        match block(data)? {
            None => Ok(None),
            Some(block) if block == [0; BLOCK] => Ok(None),
            Some(block) => {
                let header = Self(block);
                header.check()?;
                Ok(Some(header))
            }
        }
    }

    /// Compares the checksum. Some archivers sum bytes with signs.
    fn check(&self) -> io::Result<()> {
        let stated = 148..156;
        let bytes = || {
            let byte = |(at, byte): (usize, &u8)| if stated.contains(&at) { b' ' } else { *byte };
            self.0.iter().enumerate().map(byte)
        };
        let unsigned: i64 = bytes().map(i64::from).sum();
        let signed: i64 = bytes().map(|byte| i64::from(byte.cast_signed())).sum();
        let stated = i64::try_from(number(&self.0[stated.clone()])?).unwrap_or(-1);
        if stated == unsigned || stated == signed {
            return Ok(());
        }
        Err(damaged("the checksum of a header is wrong"))
    }

    /// The letter that states the kind of the entry.
    pub(super) fn kind(&self) -> u8 {
        self.0[156]
    }

    /// The size of the data in the archive.
    pub(super) fn size(&self) -> io::Result<u64> {
        // Hard links state the size of the file, and have no data.
        if self.kind() == b'1' { Ok(0) } else { number(&self.0[124..136]) }
    }

    /// The name, as far as it fits the header.
    pub(super) fn name(&self) -> Vec<u8> {
        let name = text(&self.0[..100]);
        match text(&self.0[345..500]) {
            // Headers of GNU have other fields there.
            prefix if self.0[257..263] == *b"ustar\0" && !prefix.is_empty() => [prefix, b"/", name].concat(),
            _ => name.to_vec(),
        }
    }

    /// The regions of a sparse file of GNU's old format, and whether a block with more of them follows.
    pub(super) fn sparse_regions(&self) -> io::Result<(Vec<(u64, u64)>, bool)> {
        regions(&self.0[386..483])
    }

    /// The size of such a file.
    pub(super) fn sparse_size(&self) -> io::Result<u64> {
        number(&self.0[483..495])
    }
}

/// The regions that a block after such a header lists, and whether another block follows.
pub(super) fn more_regions(data: &mut impl Read) -> io::Result<(Vec<(u64, u64)>, bool)> {
    let block = block(data)?.ok_or_else(cut)?;
    regions(&block[..505])
}

/// Regions, each an offset and a length of 12 bytes, and a byte that says whether more of them follow.
fn regions(bytes: &[u8]) -> io::Result<(Vec<(u64, u64)>, bool)> {
    let pairs = bytes.chunks_exact(24).filter(|pair| pair[0] != 0);
    let pairs = pairs.map(|pair| Ok((number(&pair[..12])?, number(&pair[12..])?)));
    Ok((pairs.collect::<io::Result<_>>()?, bytes.last().is_some_and(|more| *more != 0)))
}

/// Reads a block; `None` at the end of the file.
pub(super) fn block(data: &mut impl Read) -> io::Result<Option<[u8; BLOCK]>> {
    let mut block = Vec::with_capacity(BLOCK);
    data.take(BLOCK as u64).read_to_end(&mut block)?;
    match <[u8; BLOCK]>::try_from(block) {
        Ok(block) => Ok(Some(block)),
        Err(block) if block.is_empty() => Ok(None),
        Err(_) => Err(cut()),
    }
}

pub(super) fn cut() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "a header is not complete")
}

/// The headers between two entries exceed [`HEADER_BYTES`](crate::archive::limits::HEADER_BYTES).
pub(super) fn too_large() -> io::Error {
    damaged("headers of more than a megabyte")
}

pub(super) fn damaged(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// The text of a field that zeros end.
pub(super) fn text(field: &[u8]) -> &[u8] {
    field.split(|byte| *byte == 0).next().unwrap_or_default()
}

/// The number in a field: octal digits, or bits after a first one.
fn number(field: &[u8]) -> io::Result<u64> {
    let wrong = || damaged("a header has a field that is no number");
    if let Some((first @ 0x80.., rest)) = field.split_first() {
        let digit = |number: u64, byte: &u8| number.checked_mul(256)?.checked_add(u64::from(*byte));
        return rest.iter().try_fold(u64::from(first & 0x7f), digit).ok_or_else(wrong);
    }
    let field = text(field.trim_ascii_start());
    let digits = field.split(u8::is_ascii_whitespace).next().unwrap_or_default();
    let digit = |number: u64, byte: &u8| match byte {
        b'0'..=b'7' => number.checked_mul(8)?.checked_add(u64::from(byte - b'0')),
        _ => None,
    };
    digits.iter().try_fold(0, digit).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_octal_or_binary() {
        for (field, expected) in [
            (&b"0000644\0"[..], Some(0o644)),
            (b"   17 \0", Some(0o17)),
            (b"77777777777", Some(0o77_777_777_777)),
            (b"\0\0\0", Some(0)),
            (b"\x80\0\0\0\0\0\0\x02\0\0\0\0", Some(0x2_0000_0000)),
            (b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", None),
            (b"19", None),
            (b"-1", None),
        ] {
            assert_eq!(number(field).ok(), expected, "{field:?}");
        }
    }
}
