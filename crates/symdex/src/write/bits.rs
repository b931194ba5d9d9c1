//! Numbers as bits and as bytes; [`crate::format`] reads them.

use crate::ranges::NonMaxU32;

/// Appends `value` as unsigned LEB128: seven bits per byte, low bits first, the top bit set on all but the last.
pub(crate) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    out.push(value.to_le_bytes()[0]);
}

impl NonMaxU32 {
    /// How an optional number is written: 0 for none, else the number plus one.
    pub(crate) fn stored(number: Option<Self>) -> u32 {
        number.map_or(0, |number| number.get() + 1)
    }
}

/// `value` with its sign folded into bit 0: 0, -1, 1, -2 become 0, 1, 2, 3.
pub(crate) fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)).cast_unsigned()
}

/// Appends numbers of a few bits each.
#[derive(Default)]
pub(crate) struct BitWriter {
    bytes: Vec<u8>,
    /// The last bits that were appended. The lowest `len` of them are not in the bytes yet.
    rest: u64,
    len: u32,
}

impl BitWriter {
    /// Appends `number` in `count` bits. The other bits of `number` are 0.
    pub(crate) fn put(&mut self, number: u64, count: u32) {
        match count.checked_sub(32) {
            None | Some(0) => self.extend([(number, count)]),
            Some(high) => self.extend([(number >> 32, high), (number & u64::from(u32::MAX), 32)]),
        }
    }

    /// Appends numbers, each with its count of bits, at most 32.
    #[inline]
    pub(crate) fn extend(&mut self, numbers: impl IntoIterator<Item = (u64, u32)>) {
        // Local copies stay in registers.
        let Self { mut bytes, mut rest, mut len } = std::mem::take(self);
        for (number, count) in numbers {
            // At most 31 bits are pending, so 32 more fit.
            rest = rest << count | number;
            len += count;
            if len >= 32 {
                len -= 32;
                let [_, _, _, _, full @ ..] = (rest >> len).to_be_bytes();
                bytes.extend_from_slice(&full);
            }
        }
        *self = Self { bytes, rest, len };
    }

    /// How many bits were appended.
    pub(crate) fn position(&self) -> u64 {
        self.bytes.len() as u64 * 8 + u64::from(self.len)
    }

    /// The bytes; the last one is padded with zeros.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        let bytes = self.len.div_ceil(8);
        let [_, _, _, _, full @ ..] = (self.rest << (32 - self.len)).to_be_bytes();
        self.bytes.extend(full.iter().take(bytes as usize));
        self.bytes
    }
}

/// The widths that `rows` need, and the rows in them.
pub(crate) fn encode_rows<const N: usize>(rows: &[[u64; N]]) -> ([u8; N], Vec<u8>) {
    let mut all = [0u64; N];
    rows.iter().for_each(|row| all.iter_mut().zip(row).for_each(|(all, number)| *all |= number));
    let widths = all.map(|all| (64 - all.leading_zeros()).to_le_bytes()[0]);
    let mut out = BitWriter::default();
    rows.iter()
        .for_each(|row| row.iter().zip(widths).for_each(|(number, width)| out.put(*number, width.into())));
    (widths, out.finish())
}
