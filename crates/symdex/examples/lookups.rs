//! Prints how many addresses of an index are looked up in a second: new ones, and repeated ones. The programs
//! `bench` of the bindings to other languages ask for the same addresses.
//!
//! ```text
//! cargo run --release -p symdex --example lookups -- INDEX
//! ```

use std::hint::black_box;
use std::time::Instant;

use symdex::{Frames, ImageOffset, Index, LinePolicy, Scratch};

/// How many addresses are asked for. Their answers fit in a scratch of the default size.
const COUNT: u64 = 20_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args_os().nth(1).ok_or("usage: lookups INDEX")?;
    let index = Index::open(std::fs::read(path)?)?;
    let executable = &index.metadata().executable;
    let (start, _) = *executable.first().ok_or("the index has no code")?;
    let (_, end) = *executable.last().ok_or("the index has no code")?;
    // Spread over the code by Fibonacci hashing.
    let offset = |n: u64| ImageOffset(start + n.wrapping_mul(0x9e37_79b9_7f4a_7c15) % (end - start));
    let offsets: Vec<ImageOffset> = (0..COUNT).map(offset).collect();
    let mut scratch = Scratch::default();
    for round in ["new addresses", "repeated addresses"] {
        let (begun, mut frames) = (Instant::now(), 0);
        for offset in &offsets {
            let found = index.lookup(*offset, LinePolicy::Statement, &mut scratch)?;
            frames += black_box(found).as_ref().map_or(0, Frames::len);
        }
        let rate = COUNT as f64 / begun.elapsed().as_secs_f64();
        println!("{round}: {rate:.0} lookups a second, {frames} frames");
    }
    let (begun, mut frames, mut scratch) = (Instant::now(), 0, Scratch::default());
    index.lookup_many(&offsets, LinePolicy::Statement, &mut scratch, |_, found| {
        frames += black_box(found).ok().flatten().as_ref().map_or(0, Frames::len);
    });
    let rate = COUNT as f64 / begun.elapsed().as_secs_f64();
    println!("lookup_many, new address: {rate:.0} lookups a second, {frames} frames");
    Ok(())
}
