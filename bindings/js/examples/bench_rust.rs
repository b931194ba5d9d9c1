//! The Rust side of `npm run bench`: how long the reader takes for the offsets on standard input.
//!
//! Arguments: an index file. Input: offsets, one per line. Output: nanoseconds of CPU time per lookup of the first time
//! each offset is asked for, of later times, and the same with readable names. Linux states the CPU time of a thread.

use std::hint::black_box;
use std::io::Read as _;

use symdex::{Frames, ImageOffset, Index, LinePolicy, Scratch};

/// How often each offset is asked for the first time, and then again; as in `scripts/bench.mjs`.
const OPENED: u64 = 4;
const REPEATS: u64 = 20;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("no index")?;
    let bytes = std::fs::read(path)?;
    let mut input = String::new();
    std::io::stdin().read_to_string(&mut input)?;
    let offsets = input.lines().map(|line| line.parse().map(ImageOffset)).collect::<Result<Vec<_>, _>>()?;
    for demangle in [false, true] {
        let [mut first, mut again] = [0, 0];
        for opened in 1..=OPENED {
            let index = Index::open(&bytes)?;
            let mut scratch = Scratch::default();
            first += time(&index, &offsets, demangle, &mut scratch)?;
            if opened == OPENED {
                for _ in 0..REPEATS {
                    again += time(&index, &offsets, demangle, &mut scratch)?;
                }
            }
        }
        let lookups = offsets.len().max(1) as u64;
        println!("{}\n{}", first / OPENED / lookups, again / REPEATS / lookups);
    }
    Ok(())
}

/// Nanoseconds of CPU time of a lookup of each of these offsets.
fn time(
    index: &Index<&Vec<u8>>,
    offsets: &[ImageOffset],
    demangle: bool,
    scratch: &mut Scratch,
) -> Result<u64, Box<dyn std::error::Error>> {
    let begun = cpu_time()?;
    for offset in offsets {
        let frames = index.lookup(*offset, LinePolicy::Statement, scratch)?;
        for frame in frames.iter().flat_map(Frames::iter) {
            match frame.name {
                Some(name) if demangle => drop(black_box(symdex_demangle::demangle(name))),
                _ => _ = black_box(frame),
            }
        }
    }
    Ok(cpu_time()? - begun)
}

/// Nanoseconds that this thread has run.
fn cpu_time() -> Result<u64, Box<dyn std::error::Error>> {
    let stated = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    Ok(stated.split(' ').next().unwrap_or_default().parse()?)
}
