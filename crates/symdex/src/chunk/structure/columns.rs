//! Columns of varints, one behind the other.

use crate::format::Cursor;

/// Columns of `len` varints each that together make up all of `bytes`.
pub(super) fn decode_columns<const N: usize>(bytes: &[u8], len: usize) -> Option<[Vec<u64>; N]> {
    let mut cursor = Cursor::new(bytes);
    let mut columns = [const { Vec::new() }; N];
    for column in &mut columns {
        *column = cursor.varints(len)?;
    }
    cursor.is_empty().then_some(columns)
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
