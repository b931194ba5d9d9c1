//! Symbol files of Breakpad.

use symdex::LinePolicy;

use crate::{checks, input};

pub fn run(data: &[u8]) {
    checks::symbol_file(&[b"MODULE ", data].concat());
}

#[must_use]
pub fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = input::exported(|index, out| {
        symdex_symbol_files::write_breakpad(index, LinePolicy::Exact, &|name| name.to_vec(), "Linux", out)
    });
    seeds.iter_mut().for_each(|seed| drop(seed.drain(..b"MODULE ".len())));
    let public = "Linux arm 33221100554477668899AABBCCDDEEFF0 a\nPUBLIC m 10 0 p\nSTACK CFI INIT 10 8 x\nFUNC m 20 4 0 f\n";
    seeds.push(public.into());
    seeds
}
