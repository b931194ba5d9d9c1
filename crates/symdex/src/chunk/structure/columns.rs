//! Columns of varints, one behind the other.

use crate::format::Cursor;

/// Columns of `len` varints each that together make up all of `bytes`.
pub(super) fn decode_columns<const N: usize>(bytes: &[u8], len: usize) -> Option<[Vec<u64>; N]> {
    let mut rest = bytes;
    let mut columns = [const { Vec::new() }; N];
    for column in &mut columns {
        rest = decode_column(rest, len, column)?;
    }
    rest.is_empty().then_some(columns)
}

/// Puts the first `len` varints into `column`; what is behind them, or `None` where there are fewer.
fn decode_column<'b>(mut rest: &'b [u8], len: usize, column: &mut Vec<u64>) -> Option<&'b [u8]> {
    const TOP_BITS: u64 = 0x8080_8080_8080_8080;
    // Each takes a byte, so that no number of them makes this allocate much.
    column.reserve_exact(len.min(rest.len()));
    while column.len() < len {
        // Nine in ten are a single byte, and most of those stand among others: eight at a time, where all eight are wanted.
        if let Some((eight, behind)) = rest.split_first_chunk::<8>()
            && u64::from_le_bytes(*eight) & TOP_BITS == 0
            && len - column.len() >= 8
        {
            column.extend(eight.map(u64::from));
            rest = behind;
            continue;
        }
        let mut cursor = Cursor::new(rest);
        for _ in 0..(len - column.len()).min(8) {
            column.push(cursor.varint()?);
        }
        rest = cursor.rest();
    }
    Some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::put_varint;

    #[test]
    fn columns_are_told_apart_wherever_they_meet() {
        let mut bytes = Vec::new();
        let values: Vec<u64> = (0..60).map(|n| if n % 13 < 11 { n } else { 1 << (n % 60) }).collect();
        values.iter().for_each(|value| put_varint(&mut bytes, *value));
        for len in [1, 2, 3, 4, 5, 6, 10, 12, 15, 20, 30] {
            let mut part = Vec::new();
            values[..2 * len].iter().for_each(|value| put_varint(&mut part, *value));
            let [first, second] = decode_columns(&part, len).expect("as written");
            assert_eq!((&first[..], &second[..]), (&values[..len], &values[len..2 * len]));
            assert_eq!(decode_columns::<2>(&part[..part.len() - 1], len), None, "cut");
            assert_eq!(decode_columns::<2>(&[&part[..], &[0]].concat(), len), None, "more behind them");
        }
        assert_eq!(decode_columns::<0>(&[], 7), Some([]));
        assert_eq!(decode_columns::<1>(&[0x80; 20], 1), None);
        assert_eq!(decode_columns::<1>(&[1; 20], usize::MAX), None);
    }
}
