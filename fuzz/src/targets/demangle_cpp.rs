//! C++ names.

use crate::{checks, input};

pub fn run(data: &[u8]) {
    checks::demangled(&[b"_Z", data].concat());
}

#[must_use]
pub fn seeds() -> Vec<Vec<u8>> {
    let lists = input::files("crates/symdex-demangle/testdata/cpp", |path| path.ends_with("names.tsv"));
    let names = lists.iter().flat_map(|list| list.split(|byte| *byte == b'\n'));
    let names = names.filter_map(|line| line.split(|byte| *byte == b'\t').next()?.strip_prefix(b"_Z"));
    names.map(<[u8]>::to_vec).collect()
}
