//! Indexes that are split into the values of a key-value store, each of which is an index.

use symdex::write::split;
use symdex::{ImageOffset, Index, LinePolicy, Scratch};

use crate::{input, seal};

pub fn run(data: &[u8]) {
    let Some(index) = seal::sealed(data).and_then(|sealed| Index::open(sealed).ok()) else { return };
    let is_whole = index.verify().is_ok();
    let (mut of_index, mut of_value) = (Scratch::default(), Scratch::default());
    for value in split(&index).take(64) {
        let Ok(value) = value else { return assert!(!is_whole, "a whole index is not split") };
        let part = Index::open(value.bytes).expect("just written");
        part.verify().expect("just written");
        let size = 4 * u64::from(index.metadata().chunk_span);
        for offset in (0..size).step_by(usize::try_from(size / 16).unwrap_or(1).max(1)) {
            let offset = ImageOffset(value.number.saturating_mul(size).saturating_add(offset));
            let found = part.lookup(offset, LinePolicy::Exact, &mut of_value).expect("verified");
            let expected = index.lookup(offset, LinePolicy::Exact, &mut of_index);
            let expected = expected.map(|frames| frames.map(|frames| frames.to_vec()));
            assert!(!is_whole || expected.is_ok_and(|frames| frames == found.map(|frames| frames.to_vec())));
        }
    }
}

#[must_use]
pub fn seeds() -> Vec<Vec<u8>> {
    input::indexes()
}
