//! Ids, prefixes of ids, names of architectures and assumptions, as users type them.

use symdex::{Arch, ImageId};
use symdex_answer::Assumption;
use symdex_store::IdPrefix;

pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(id) = text.parse::<ImageId>() {
        assert_eq!(id.to_string().parse::<ImageId>().as_ref(), Ok(&id), "an id is read as it is printed");
        // A prefix has at least two bytes.
        let is_prefix = text.parse::<IdPrefix>().is_ok_and(|prefix| prefix.matches(&id));
        assert!(is_prefix || id.as_bytes().len() < 2, "an id is its own prefix");
    }
    if let Some(arch) = Arch::from_name(text) {
        assert_eq!(Arch::from_name(&arch.name), Some(arch));
    }
    _ = text.parse::<Assumption>();
}

#[must_use]
pub fn seeds() -> Vec<Vec<u8>> {
    let texts = [
        "6dcd4e9d-d3b1-3a0e-8dff-6a5a4be1b1b0",
        "0c37c502aba03641a08f84c794684f36",
        "0C37",
        "arm64e",
        "x86_64h",
        "App=/tmp/x",
        "App=0c37",
    ];
    texts.map(Vec::from).to_vec()
}
