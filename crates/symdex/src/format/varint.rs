//! Numbers of variable size (LEB128) and a cursor that reads them from bytes it does not trust.

/// The signed number that was folded: 0, 1, 2, 3 stand for 0, -1, 1, -2.
pub(crate) fn unzigzag(value: u64) -> i64 {
    (value >> 1).cast_signed() ^ -(value & 1).cast_signed()
}

/// Reads from the front of a byte slice; every read says with `None` that the bytes ran out or overflow.
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

    /// How many bytes of `all`, which the cursor began with, were read.
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

    /// One LEB128 number of at most ten bytes; nine in ten are a single byte, which is read on its own.
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

    /// A varint that counts items or bytes held in this very input, so that no larger number is sensible.
    pub(crate) fn count(&mut self, at_most: usize) -> Option<usize> {
        usize::try_from(self.varint()?).ok().filter(|count| *count <= at_most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::write::bits::{put_varint, zigzag};

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
