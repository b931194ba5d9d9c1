//! GSYM of LLVM, in both byte orders.

use symdex::LinePolicy;

use crate::{checks, input};

pub fn run(data: &[u8]) {
    let (order, data) = input::choice(data);
    let magic = if order % 2 == 0 { b"MYSG" } else { b"GSYM" };
    checks::symbol_file(&[&magic[..], data].concat());
}

#[must_use]
pub fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = input::exported(|index, out| {
        symdex_symbol_files::write_gsym(index, LinePolicy::Exact, &|name| name.to_vec(), out)
    });
    // The byte that chooses the order replaces the magic number.
    seeds.iter_mut().for_each(|seed| drop(seed.splice(..4, [0])));
    seeds
}
