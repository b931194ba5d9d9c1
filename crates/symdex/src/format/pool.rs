//! A block of a string pool: names or file paths, numbered from 0 in the order in which the image's code first needs them.
//!
//! Every block but the last holds the same number of strings (the metadata says how many), so that a string's
//! block is its id divided by that number. A block's payload:
//!
//! ```text
//! n varints: the strings' sizes in bytes
//! the strings, one behind the other
//! ```

use super::Cursor;
use super::limits::MAX_STRING;
#[cfg(test)]
use super::put_varint;

/// The payload of a block of these strings; blocks are only in version 1.
#[cfg(test)]
pub(crate) fn encode_block<'s>(strings: impl Iterator<Item = &'s [u8]> + Clone) -> Vec<u8> {
    let mut out = Vec::new();
    strings.clone().for_each(|string| put_varint(&mut out, string.len() as u64));
    strings.for_each(|string| out.extend_from_slice(string));
    out
}

/// A decoded block.
#[derive(Debug)]
pub(crate) struct Block {
    payload: Vec<u8>,
    /// Where each string ends in the payload; the first begins at `first`.
    ends: Vec<u32>,
    first: u32,
}

impl Block {
    /// The block of `len` strings with this payload; `None` where it is not one.
    pub(crate) fn decode(payload: Vec<u8>, len: usize) -> Option<Self> {
        if len > payload.len() {
            return None;
        }
        let mut cursor = Cursor::new(&payload);
        let mut sizes = Vec::with_capacity(len);
        let mut total = 0u32;
        for _ in 0..len {
            let size = cursor.count(MAX_STRING)?;
            total = total.checked_add(u32::try_from(size).ok()?)?;
            sizes.push(total);
        }
        let first = u32::try_from(payload.len()).ok()?.checked_sub(total)?;
        cursor.bytes(total as usize)?;
        if !cursor.is_empty() {
            return None;
        }
        sizes.iter_mut().for_each(|end| *end += first);
        Some(Self { payload, ends: sizes, first })
    }

    /// String `index` of the block.
    pub(crate) fn get(&self, index: usize) -> Option<&[u8]> {
        let start = match index.checked_sub(1) {
            Some(before) => *self.ends.get(before)?,
            None => self.first,
        };
        self.payload.get(start as usize..*self.ends.get(index)? as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_round_trip_whatever_their_bytes() {
        let strings: [&[u8]; 4] = [b"main", b"", "na\u{ef}ve".as_bytes(), b"\xff\xfe not utf-8"];
        let payload = encode_block(strings.into_iter());
        let block = Block::decode(payload.clone(), 4).expect("as written");
        for (index, string) in strings.into_iter().enumerate() {
            assert_eq!(block.get(index), Some(string));
        }
        assert_eq!(block.get(4), None);
        assert!(Block::decode(payload.clone(), 3).is_none(), "left-over bytes");
        assert!(Block::decode(payload[..payload.len() - 1].to_vec(), 4).is_none(), "cut");
        assert!(Block::decode(payload, usize::MAX).is_none(), "a count nothing could hold");
    }

    #[test]
    fn a_string_that_is_too_long_is_refused() {
        let too_long = encode_block([vec![b'z'; MAX_STRING + 1].as_slice()].into_iter());
        assert!(Block::decode(too_long, 1).is_none());
    }
}
