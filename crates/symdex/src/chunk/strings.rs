//! Frame B of a chunk: what frame A's numbers of names and files mean.
//!
//! ```text
//! byte     0: pool ids (the chunk lies in an index file); 1: strings (the chunk is a value of a store)
//! names, then files, each:
//!   varint  n, how many numbers there are
//!   varint  base, how many ids the chunks before this one used; 0 with strings
//!   n varints, one for each number:
//!     pool ids   0: none; k: the id is base + z, where z is k - 1 with its sign unfolded (0, -1, 1, -2, ... for
//!                0, 1, 2, 3, ...); base is then the id plus one, so that ids in a row are ones
//!     strings    0: none; s: a string of s - 1 bytes
//!   strings only: the strings, one behind the other
//! ```

use crate::format::{Cursor, put_varint, unzigzag};
use crate::id32::Id32;

const POOL_IDS: u8 = 0;
const STRINGS: u8 = 1;

/// What a chunk's numbers mean: names and files by their number in the chunk.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum LocalStrings {
    /// Ids of the index's pools.
    PoolIds { names: Vec<Option<Id32>>, files: Vec<Option<Id32>> },
    /// The strings themselves.
    Strings { names: Vec<Option<Box<[u8]>>>, files: Vec<Option<Box<[u8]>>> },
}

/// Frame B for a store.
pub(crate) fn encode_strings(names: &[Option<Vec<u8>>], files: &[Option<Vec<u8>>]) -> Vec<u8> {
    let mut out = vec![STRINGS];
    for strings in [names, files] {
        put_varint(&mut out, strings.len() as u64);
        put_varint(&mut out, 0);
        for string in strings {
            put_varint(&mut out, string.as_ref().map_or(0, |string| string.len() as u64 + 1));
        }
        strings.iter().flatten().for_each(|string| out.extend_from_slice(string));
    }
    out
}

impl LocalStrings {
    /// Frame B's payload, decoded; `None` where it is not one.
    pub(crate) fn decode(payload: &[u8]) -> Option<Self> {
        let mut cursor = Cursor::new(payload);
        let at_most = payload.len();
        let strings = match cursor.array::<1>()? {
            [POOL_IDS] => {
                let names = decode_ids(&mut cursor, at_most)?;
                Self::PoolIds { names, files: decode_ids(&mut cursor, at_most)? }
            }
            [STRINGS] => {
                let names = decode_own(&mut cursor, at_most)?;
                Self::Strings { names, files: decode_own(&mut cursor, at_most)? }
            }
            _ => return None,
        };
        cursor.is_empty().then_some(strings)
    }

    /// How many names and how many files there are.
    pub(crate) fn lens(&self) -> (usize, usize) {
        match self {
            Self::PoolIds { names, files } => (names.len(), files.len()),
            Self::Strings { names, files } => (names.len(), files.len()),
        }
    }
}

fn decode_ids(cursor: &mut Cursor<'_>, at_most: usize) -> Option<Vec<Option<Id32>>> {
    let len = cursor.count(at_most)?;
    let mut base = i64::from(cursor.varint32()?);
    let mut ids = vec![None; len];
    for id in &mut ids {
        let Some(step) = cursor.varint()?.checked_sub(1) else { continue };
        let number = base.wrapping_add(unzigzag(step));
        *id = Some(Id32::new(u64::try_from(number).ok()?)?);
        base = number + 1;
    }
    Some(ids)
}

fn decode_own(cursor: &mut Cursor<'_>, at_most: usize) -> Option<Vec<Option<Box<[u8]>>>> {
    let len = cursor.count(at_most)?;
    if cursor.varint()? != 0 {
        return None;
    }
    let sizes: Vec<u64> = (0..len).map(|_| cursor.varint()).collect::<Option<_>>()?;
    let mut string = |size: u64| match size.checked_sub(1) {
        None => Some(None),
        Some(size) => Some(Some(Box::from(cursor.bytes(usize::try_from(size).ok()?)?))),
    };
    sizes.into_iter().map(&mut string).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pool_ids_are_read() {
        let id = Id32::new;
        let names = [id(7), None, id(3), id(8), id(7), id(9), id(0)];
        // Each counts from the one before it plus one.
        let payload = [0, 7, 7, 1, 0, 10, 9, 4, 3, 20, 2, 0, 1, 1];
        let LocalStrings::PoolIds { names: read, files } =
            LocalStrings::decode(&payload).expect("as written")
        else {
            panic!("pool ids were written");
        };
        assert_eq!(read, names);
        assert_eq!(files, [id(0), id(1)]);
        for len in 0..payload.len() {
            assert!(LocalStrings::decode(&payload[..len]).is_none());
        }
    }

    #[test]
    fn strings_round_trip() {
        let names = [Some(b"main".to_vec()), None, Some(Vec::new())];
        let payload = encode_strings(&names, &[Some(b"/src/a.c".to_vec())]);
        let strings = LocalStrings::decode(&payload).expect("as written");
        assert_eq!(strings.lens(), (3, 1));
        let LocalStrings::Strings { names: read, .. } = strings else { panic!("strings were written") };
        assert_eq!(read.into_iter().map(|name| name.map(Vec::from)).collect::<Vec<_>>(), names);
        for len in 0..payload.len() {
            assert!(LocalStrings::decode(&payload[..len]).is_none());
        }
    }

    #[test]
    fn bytes_at_random_decode_to_no_more_than_they_have_room_for() {
        let mut random = crate::generator::Random::new(2);
        let mut decoded = 0;
        for _ in 0..20_000 {
            let kind = [random.below(3).to_le_bytes()[0]];
            let rest = (0..random.below(12)).map(|_| random.pick(&[0, 1, 2, 3, 0x7f, 0xff]));
            let payload: Vec<u8> = kind.into_iter().chain(rest).collect();
            let Some(strings) = LocalStrings::decode(&payload) else { continue };
            let (names, files) = strings.lens();
            assert!(names + files < payload.len(), "{payload:?}");
            decoded += 1;
        }
        assert!(decoded > 100, "{decoded} of 20000 decode");
    }

    #[test]
    fn an_id_below_zero_is_refused() {
        assert!(LocalStrings::decode(&[0, 1, 0, 2, 0, 0]).is_none());
    }
}
