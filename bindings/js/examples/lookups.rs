//! The Rust side of `npm run bench`: how long the reader takes for the offsets on standard input.
//!
//! Arguments: an index file. Input: offsets, one per line. Output: nanoseconds of CPU time per lookup of the first time each
//! offset is asked for, of the second time, and the same with readable names. Linux states the CPU time of a thread.

use std::hint::black_box;
use std::io::Read as _;

use symdex::{Frames, ImageOffset, Index, LinePolicy, Scratch};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("no index")?;
    let bytes = std::fs::read(path)?;
    let mut input = String::new();
    std::io::stdin().read_to_string(&mut input)?;
    let offsets = input.lines().map(|line| line.parse().map(ImageOffset)).collect::<Result<Vec<_>, _>>()?;
    for demangle in [false, true] {
        let index = Index::open(&bytes)?;
        let mut scratch = Scratch::default();
        for _ in 0..2 {
            let begun = cpu_time()?;
            for offset in &offsets {
                let frames = index.lookup(*offset, LinePolicy::Statement, &mut scratch)?;
                for frame in frames.iter().flat_map(Frames::iter) {
                    match frame.name {
                        Some(name) if demangle => drop(black_box(symdex_demangle::demangle(name))),
                        _ => _ = black_box(frame),
                    }
                }
            }
            println!("{}", (cpu_time()? - begun) / offsets.len().max(1) as u64);
        }
    }
    Ok(())
}

/// Nanoseconds that this thread has run.
fn cpu_time() -> Result<u64, Box<dyn std::error::Error>> {
    let stated = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    Ok(stated.split(' ').next().unwrap_or_default().parse()?)
}
