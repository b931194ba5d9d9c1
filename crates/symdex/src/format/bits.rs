//! Readers of stored numbers: bits, the highest of each byte first, and bytes, among them LEB128 numbers.

use super::PageReader;
use crate::error::Error;

/// Reads bits from any position on. Bits past the end of the bytes read as zeros.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BitReader<'a> {
    bytes: &'a [u8],
    /// The next bits, the first one in the highest place.
    window: u64,
    /// How many bits the window has.
    left: u32,
    /// The position of the first bit after the window.
    end: usize,
}

impl<'a> BitReader<'a> {
    /// Reads `bytes` from bit `at` on.
    #[inline(always)]
    pub(crate) fn new(bytes: &'a [u8], at: usize) -> Self {
        Self { bytes, window: 0, left: 0, end: at }
    }

    pub(crate) fn position(&self) -> usize {
        self.end - self.left as usize
    }

    /// The next bits, the first one in the highest place. At least `count` of them are valid. `count` is at most 57.
    #[inline(always)]
    pub(crate) fn peek(&mut self, count: u32) -> u64 {
        if self.left < count {
            self.fill();
        }
        self.window
    }

    /// Makes the next 57 bits valid. Peeks at fewer bits then have no branch that the processor mispredicts.
    #[inline(always)]
    pub(crate) fn fill(&mut self) {
        let at = self.position();
        let first = at / 8;
        let word = match self.bytes.get(first..first + 8).and_then(<[u8]>::first_chunk) {
            Some(bytes) => u64::from_be_bytes(*bytes),
            None => last_bytes(self.bytes, first),
        };
        let skipped = low_bits(at);
        self.window = word << skipped;
        self.left = u64::BITS - skipped;
        self.end = at + self.left as usize;
    }

    /// Skips `count` bits that were peeked at.
    #[inline(always)]
    pub(crate) fn skip(&mut self, count: u32) {
        self.window <<= count;
        self.left -= count;
    }

    /// The next `count` bits, at most 57.
    #[inline(always)]
    pub(crate) fn bits(&mut self, count: u32) -> u64 {
        // In two steps, because a shift by 64 overflows.
        let bits = self.peek(count) >> 1 >> (63 - count);
        self.skip(count);
        bits
    }
}

/// The last bytes of `bytes`, from `first` on, then zeros. There are fewer than eight bytes from `first` on.
#[cold]
fn last_bytes(bytes: &[u8], first: usize) -> u64 {
    let mut word = [0; 8];
    // Without a byte from `first` on, all are zeros.
    let rest = bytes.get(first..).unwrap_or_default();
    word.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
    u64::from_be_bytes(word)
}

/// The position of bit `at` within its byte.
#[inline(always)]
fn low_bits(at: usize) -> u32 {
    u32::from(at.to_le_bytes()[0] % 8)
}

/// The widest column of rows, because one read gives at most 57 bits.
const MAX_WIDTH: u8 = 57;

/// Where rows of `N` numbers lie in a section. Each column has a width of its own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rows<const N: usize> {
    /// The first byte of the first row.
    pub(crate) at: usize,
    /// Bits of each column, at most [`MAX_WIDTH`].
    pub(crate) widths: [u8; N],
}

impl<const N: usize> Rows<N> {
    /// How many bytes `rows` rows of these widths take. Returns `None` on overflow and for an invalid width.
    pub(crate) fn size(widths: [u8; N], rows: usize) -> Option<usize> {
        let valid = widths.iter().all(|width| *width <= MAX_WIDTH);
        valid.then(|| Some(rows.checked_mul(row_bits(widths))?.div_ceil(8)))?
    }

    /// Row `index` of `rows`, and the next one if there is one.
    #[inline]
    pub(crate) fn get(
        &self,
        pages: &PageReader<'_>,
        rows: usize,
        index: usize,
    ) -> Result<([u64; N], Option<[u64; N]>), Error> {
        let has_next = index.saturating_add(1) < rows;
        let bits = row_bits(self.widths);
        let mut reader = self.reader(pages, index, if has_next { 2 * bits } else { bits })?;
        let row = self.row(&mut reader);
        Ok((row, has_next.then(|| self.row(&mut reader))))
    }

    #[inline(always)]
    fn row(&self, reader: &mut BitReader<'_>) -> [u64; N] {
        let mut row = [0; N];
        row.iter_mut().zip(self.widths).for_each(|(number, width)| *number = reader.bits(width.into()));
        row
    }

    /// The index of the last of `rows` rows whose first number is at most `number`, or 0 if there is none. The first
    /// numbers must ascend from row to row.
    #[inline]
    pub(crate) fn search(&self, pages: &PageReader<'_>, rows: usize, number: u64) -> Result<usize, Error> {
        let bits = row_bits(self.widths);
        let all = self.at..self.at.saturating_add(rows.saturating_mul(bits).div_ceil(8));
        pages.check_range(all)?;
        let width = self.widths.first().ok_or_else(|| pages.malformed(self.at, "rows without columns"))?;
        let (mut low, mut high) = (0, rows);
        while high - low > 1 {
            let middle = low.midpoint(high);
            let first = BitReader::new(pages.section, self.at * 8 + middle * bits).bits((*width).into());
            if first <= number { low = middle } else { high = middle }
        }
        Ok(low)
    }

    /// A reader at the start of row `index`. The pages of the next `bits` bits are checked first.
    #[inline]
    fn reader<'a>(&self, pages: &PageReader<'a>, index: usize, bits: usize) -> Result<BitReader<'a>, Error> {
        let first = index.saturating_mul(row_bits(self.widths));
        let start = self.at.saturating_add(first / 8);
        pages.check_range(start..start.saturating_add((first % 8 + bits).div_ceil(8)))?;
        Ok(BitReader::new(pages.section, start.saturating_mul(8).saturating_add(first % 8)))
    }
}

fn row_bits<const N: usize>(widths: [u8; N]) -> usize {
    widths.iter().map(|width| usize::from(*width)).sum()
}

/// The signed number that was folded: 0, 1, 2, 3 stand for 0, -1, 1, -2.
pub(crate) fn unzigzag(value: u64) -> i64 {
    (value >> 1).cast_signed() ^ -(value & 1).cast_signed()
}

/// Reads from the front of a byte slice. A read returns `None` if the bytes end or the number overflows.
#[derive(Clone, Debug)]
pub(crate) struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// How many bytes were read so far. `all` is the slice that the cursor began with.
    pub(crate) fn position(&self, all: &[u8]) -> usize {
        all.len() - self.rest.len()
    }

    pub(crate) fn bytes(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        Some(taken)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.rest.split_first_chunk::<N>()?;
        self.rest = rest;
        Some(*taken)
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// One LEB128 number of at most ten bytes. Nine in ten numbers have one byte, for which there is a fast path.
    #[inline]
    pub(crate) fn varint(&mut self) -> Option<u64> {
        let (&first, rest) = self.rest.split_first()?;
        if first < 0x80 {
            self.rest = rest;
            return Some(u64::from(first));
        }
        self.long_varint()
    }

    fn long_varint(&mut self) -> Option<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = self.rest.split_first()?;
            self.rest = rest;
            let bits = u64::from(byte & 0x7f);
            if (bits << shift) >> shift != bits {
                return None;
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    /// A varint that must fit 32 bits.
    #[inline]
    pub(crate) fn varint32(&mut self) -> Option<u32> {
        u32::try_from(self.varint()?).ok()
    }

    /// A varint that counts items or bytes. Returns `None` if it is above `at_most`, for example because the input has
    /// no more bytes.
    pub(crate) fn count(&mut self, at_most: usize) -> Option<usize> {
        usize::try_from(self.varint()?).ok().filter(|count| *count <= at_most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{Checksums, PageChecks, SectionKind};
    use crate::image::ImageId;
    use crate::write::bits::{BitWriter, encode_rows, put_varint, zigzag};
    use crate::write::page_sums::PageSums;

    #[test]
    fn what_was_put_is_read() {
        let numbers: Vec<(u64, u32)> =
            (0..500u32).map(|n| (u64::from(n).wrapping_mul(0x9e37_79b9_7f4a_7c15), n % 58)).collect();
        let masked = |(number, count): &(u64, u32)| number & ((1 << count) - 1);
        let mut writer = BitWriter::default();
        numbers.iter().for_each(|number| writer.put(masked(number), number.1));
        let bits = writer.position();
        let bytes = writer.finish();
        assert_eq!(bytes.len() as u64, bits.div_ceil(8));
        let mut reader = BitReader::new(&bytes, 0);
        for number in &numbers {
            assert_eq!(reader.bits(number.1), masked(number));
        }
        assert_eq!(reader.position() as u64, bits);
        reader.skip(7);
        assert_eq!(reader.bits(57), 0);
    }

    #[test]
    fn rows_are_read_from_anywhere() {
        let rows: Vec<[u64; 3]> = (0..1000).map(|n| [n * n, 0, (1 << 57) - 1 - n]).collect();
        let (widths, bytes) = encode_rows(&rows);
        assert_eq!(widths, [20, 0, 57]);
        assert_eq!(Rows::size(widths, rows.len()), Some(bytes.len()));
        let section = [b"before", &bytes[..]].concat();
        let id = ImageId::new(&[7]).expect("one byte is an id");
        let kind = SectionKind::ChunkPage;
        let checksums = PageSums::of(&id, kind, &section);
        let checked = PageChecks::new(section.len() as u64);
        let sums = Checksums::new(&id, kind);
        let pages = PageReader { kind, section: &section, sums, checksums: &checksums, checked: &checked };
        let read = Rows { at: 6, widths };
        for (index, row) in rows.iter().enumerate().rev() {
            let next = rows.get(index + 1).copied();
            assert_eq!(read.get(&pages, rows.len(), index).expect("intact"), (*row, next));
            assert_eq!(read.search(&pages, rows.len(), row[0]).expect("intact"), index);
        }
        assert!(read.get(&pages, 2001, 2000).is_err() && read.get(&pages, 1, usize::MAX).is_err());
        assert_eq!(Rows::size([58, 0], 1), None);
        assert_eq!(Rows::size([57], usize::MAX), None);
    }

    #[test]
    fn varints_round_trip() {
        for value in [0, 1, 127, 128, 300, 16_383, 16_384, u64::from(u32::MAX), u64::MAX - 1, u64::MAX] {
            let mut out = Vec::new();
            put_varint(&mut out, value);
            let mut cursor = Cursor::new(&out);
            assert_eq!(cursor.varint(), Some(value));
            assert!(cursor.is_empty());
            assert_eq!(Cursor::new(&out[..out.len() - 1]).varint(), None, "a cut number is no number");
        }
    }

    #[test]
    fn zigzag_round_trips() {
        for value in [0, -1, 1, -2, 2, i64::MIN, i64::MAX] {
            assert_eq!(unzigzag(zigzag(value)), value);
        }
    }

    #[test]
    fn a_number_of_more_than_64_bits_is_refused() {
        assert_eq!(Cursor::new(&[0xff; 11]).varint(), None);
        let mut eleven_bits_too_many = vec![0xff; 9];
        eleven_bits_too_many.push(0x7f);
        assert_eq!(Cursor::new(&eleven_bits_too_many).varint(), None);
        assert_eq!(Cursor::new(&[0x80, 0x80, 0x80, 0x80, 0x10]).varint32(), None);
    }
}
