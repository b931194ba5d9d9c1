//! Bits, the highest of each byte first.

/// Appends numbers of a few bits each.
#[derive(Default)]
pub(super) struct BitWriter {
    bytes: Vec<u8>,
    /// Bits that are not among the bytes yet, in the lowest places, and how many; above them are some that are.
    rest: u64,
    len: u32,
}

impl BitWriter {
    /// Appends the lowest `count` bits of `number`, which has no others.
    pub(super) fn put(&mut self, number: u64, count: u32) {
        match count.checked_sub(32) {
            None | Some(0) => self.extend([(number, count)]),
            Some(high) => self.extend([(number >> 32, high), (number & u64::from(u32::MAX), 32)]),
        }
    }

    /// Appends the lowest bits of numbers that have no others: each with how many those are, at most 32.
    #[inline]
    pub(super) fn extend(&mut self, numbers: impl IntoIterator<Item = (u64, u32)>) {
        // Apart, so that what waits stays in registers.
        let Self { mut bytes, mut rest, mut len } = std::mem::take(self);
        for (number, count) in numbers {
            // At most 31 bits wait, so that there is always room for 32 more.
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

    /// How many bits were put.
    pub(super) fn position(&self) -> u64 {
        self.bytes.len() as u64 * 8 + u64::from(self.len)
    }

    /// The bytes, the last one filled up with zeros.
    pub(super) fn finish(mut self) -> Vec<u8> {
        let bytes = self.len.div_ceil(8);
        let [_, _, _, _, full @ ..] = (self.rest << (32 - self.len)).to_be_bytes();
        self.bytes.extend(full.iter().take(bytes as usize));
        self.bytes
    }
}

/// Reads bits from any place on. What lies behind the end reads as zeros, and [`Self::overran`] tells.
#[derive(Clone, Copy, Debug)]
pub(super) struct BitReader<'a> {
    bytes: &'a [u8],
    /// In bits.
    at: usize,
}

impl<'a> BitReader<'a> {
    /// Reads `bytes` from bit `at` on.
    pub(super) fn new(bytes: &'a [u8], at: usize) -> Self {
        Self { bytes, at }
    }

    /// Whether more was read than there is.
    pub(super) fn overran(&self) -> bool {
        self.at > self.bytes.len() * 8
    }

    pub(super) fn position(&self) -> usize {
        self.at
    }

    /// The bits from here on, the next one in the highest place; 57 of them are good.
    #[inline(always)]
    pub(super) fn peek(&self) -> u64 {
        let word = match self.bytes.get(self.at / 8..).and_then(<[u8]>::first_chunk) {
            Some(bytes) => u64::from_be_bytes(*bytes),
            None => self.last_bytes(),
        };
        word << (self.at % 8)
    }

    #[cold]
    fn last_bytes(&self) -> u64 {
        let mut word = [0; 8];
        let rest = self.bytes.get(self.at / 8..).unwrap_or_default();
        word.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
        u64::from_be_bytes(word)
    }

    #[inline(always)]
    pub(super) fn skip(&mut self, count: u32) {
        self.at += count as usize;
    }

    /// The next `count` bits, at most 57.
    #[inline(always)]
    pub(super) fn bits(&mut self, count: u32) -> u64 {
        // In two steps, as no number is shifted by all of its bits.
        let bits = self.peek() >> 1 >> (63 - count);
        self.skip(count);
        bits
    }

    /// The next `count` bits, at most 64.
    #[inline]
    pub(super) fn wide(&mut self, count: u32) -> u64 {
        match count.checked_sub(32) {
            None => self.bits(count),
            Some(high) => self.bits(high) << 32 | self.bits(32),
        }
    }
}

/// The widest column of a table: what is read at once.
const MAX_WIDTH: u8 = 57;

/// Rows of `N` numbers, each column of a width of its own.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rows<'a, const N: usize> {
    pub(super) bytes: &'a [u8],
    /// Bits of each column, at most [`MAX_WIDTH`].
    pub(super) widths: [u8; N],
}

impl<const N: usize> Rows<'_, N> {
    /// The bytes that `rows` rows of these widths take; `None` on overflow, and where a width makes no sense.
    pub(super) fn size(widths: [u8; N], rows: usize) -> Option<usize> {
        let sensible = widths.iter().all(|width| *width <= MAX_WIDTH);
        sensible.then(|| Some(rows.checked_mul(row_bits(widths))?.div_ceil(8)))?
    }

    /// Row `index`; zeros behind the last.
    #[inline]
    pub(super) fn get(&self, index: usize) -> [u64; N] {
        let mut reader = BitReader::new(self.bytes, index.saturating_mul(row_bits(self.widths)));
        self.widths.map(|width| reader.bits(width.into()))
    }

    /// The first number of row `index`.
    #[inline]
    pub(super) fn first(&self, index: usize) -> u64 {
        let mut reader = BitReader::new(self.bytes, index.saturating_mul(row_bits(self.widths)));
        self.widths.first().map_or(0, |width| reader.bits((*width).into()))
    }
}

fn row_bits<const N: usize>(widths: [u8; N]) -> usize {
    widths.iter().map(|width| usize::from(*width)).sum()
}

/// The widths that `rows` need, and the rows in them.
pub(super) fn encode_rows<const N: usize>(rows: &[[u64; N]]) -> ([u8; N], Vec<u8>) {
    let mut all = [0u64; N];
    rows.iter().for_each(|row| all.iter_mut().zip(row).for_each(|(all, number)| *all |= number));
    let widths = all.map(|all| (64 - all.leading_zeros()).to_le_bytes()[0]);
    let mut out = BitWriter::default();
    rows.iter()
        .for_each(|row| row.iter().zip(widths).for_each(|(number, width)| out.put(*number, width.into())));
    (widths, out.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_put_is_read() {
        let numbers: Vec<(u64, u32)> =
            (0..500u32).map(|n| (u64::from(n).wrapping_mul(0x9e37_79b9_7f4a_7c15), n % 65)).collect();
        let masked =
            |(number, count): &(u64, u32)| number & 1u64.checked_shl(*count).map_or(u64::MAX, |bit| bit - 1);
        let mut writer = BitWriter::default();
        numbers.iter().for_each(|number| writer.put(masked(number), number.1));
        let bits = writer.position();
        let bytes = writer.finish();
        assert_eq!(bytes.len() as u64, bits.div_ceil(8));
        let mut reader = BitReader::new(&bytes, 0);
        for number in &numbers {
            assert_eq!(reader.wide(number.1), masked(number));
        }
        assert_eq!(reader.position() as u64, bits);
        assert!(!reader.overran());
        assert_eq!(reader.wide(64), 0);
        assert!(reader.overran());
    }

    #[test]
    fn rows_are_read_from_anywhere() {
        let rows: Vec<[u64; 3]> = (0..100).map(|n| [n * n, 0, (1 << 57) - 1 - n]).collect();
        let (widths, bytes) = encode_rows(&rows);
        assert_eq!(widths, [14, 0, 57]);
        assert_eq!(Rows::size(widths, rows.len()), Some(bytes.len()));
        let read = Rows { bytes: &bytes, widths };
        assert!(
            rows.iter()
                .enumerate()
                .rev()
                .all(|(index, row)| read.get(index) == *row && read.first(index) == row[0])
        );
        assert_eq!(read.get(1000), [0; 3]);
        assert_eq!(Rows::size([58, 0], 1), None);
        assert_eq!(Rows::size([57], usize::MAX), None);
    }
}
