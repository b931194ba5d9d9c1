//! Index files with correct checksums: open, verify, walks and lookups of all kinds.

use crate::{checks, input, seal};

pub fn run(data: &[u8]) {
    // Without correct checksums only the header is read.
    if let Some(sealed) = seal::sealed(data) {
        checks::index(&sealed);
    }
}

#[must_use]
pub fn seeds() -> Vec<Vec<u8>> {
    input::indexes()
}
