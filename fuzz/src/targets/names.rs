//! The grammar of names: as bytes in an index, and as written for a list of names.

use symdex::Index;
use symdex::write::EncodedStrings;
use symdex_testkit::images::Image;

use crate::{checks, input, seal};

pub fn run(data: &[u8]) {
    let mut image = Image::random(3);
    let (kind, data) = input::choice(data);
    if kind % 2 == 0 {
        let names = data.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).cycle();
        image.names = names.take(image.names.len()).collect();
        let encoded = EncodedStrings::new(&image.names).is_ok();
        return if encoded {
            checks::index(&image.index())
        };
    }
    let bytes = image.index();
    let index = Index::open(&bytes[..]).expect("just written");
    let names = index.sections()[3];
    let start = usize::try_from(names.offset).expect("small");
    // The header states the size of each section; the checksums after them are recomputed.
    let mut changed = [&bytes[..start], data].concat();
    changed[96..104].copy_from_slice(&(data.len() as u64).to_le_bytes());
    seal::sealed(&changed).iter().for_each(|sealed| checks::index(sealed));
}

#[must_use]
pub fn seeds() -> Vec<Vec<u8>> {
    let index = Image::random(3).index();
    let names = Index::open(&index[..]).expect("just written").sections()[3];
    let names = usize::try_from(names.offset).expect("small")
        ..usize::try_from(names.offset + names.size).expect("small");
    let texts =
        ["0main\n_ZN3app5Shape4drawEv\n_ZN3app5Shape4moveEv\n", "0aaaaaaaaaaaa\n\naaaaaa\nabababab\nabab"];
    [vec![[b"1", &index[names]].concat()], texts.map(Vec::from).to_vec()].concat()
}
