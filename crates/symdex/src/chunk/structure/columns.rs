//! Columns of varints, one behind the other.

use crate::format::Cursor;

/// Columns of `len` varints each that together make up all of `bytes`.
pub(super) fn split_columns<const N: usize>(bytes: &[u8], len: usize) -> Option<[Cursor<'_>; N]> {
    let mut rest = bytes;
    let mut columns = [const { Cursor::new(&[]) }; N];
    for column in &mut columns {
        let (taken, left) = rest.split_at_checked(size_of_varints(rest, len)?)?;
        *column = Cursor::new(taken);
        rest = left;
    }
    rest.is_empty().then_some(columns)
}

/// How many bytes the first `len` varints take; `None` where there are fewer.
fn size_of_varints(bytes: &[u8], len: usize) -> Option<usize> {
    const TOP_BITS: u64 = 0x8080_8080_8080_8080;
    let mut left = len;
    let mut size = 0;
    // The last byte of a varint is the one whose top bit is clear: eight bytes at a time, as long as all of them are wanted.
    for word in bytes.as_chunks::<8>().0 {
        let ends = (!u64::from_le_bytes(*word) & TOP_BITS).count_ones() as usize;
        if ends >= left {
            break;
        }
        left -= ends;
        size += 8;
    }
    while left != 0 {
        left -= usize::from(*bytes.get(size)? < 0x80);
        size += 1;
    }
    Some(size)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::put_varint;

    #[test]
    fn varints_are_counted_over_any_boundary() {
        let mut bytes = Vec::new();
        let mut sizes = vec![0];
        for value in (0..40).map(|n| 1u64 << (n % 30)) {
            put_varint(&mut bytes, value);
            sizes.push(bytes.len());
        }
        for (len, size) in sizes.iter().enumerate() {
            assert_eq!(size_of_varints(&bytes, len), Some(*size));
        }
        assert_eq!(size_of_varints(&bytes, 41), None);
        assert_eq!(size_of_varints(&[], 0), Some(0));
        assert_eq!(size_of_varints(&[0x80; 20], 1), None);
    }
}
