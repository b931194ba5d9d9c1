//! The work whose instructions `cargo xtask instructions` counts. It is a program of its own, so that the compiler
//! inlines the same functions whatever the other chores do.

use std::hint::black_box;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use symdex::{ImageOffset, Index, LinePolicy, Scratch};
use symdex_build::{Companions, Image};

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["build", file, index] => build(Path::new(file), Path::new(index)),
        ["open", times, index] => open(times.parse()?, Path::new(index)),
        ["lookup", addresses, rounds, index] => {
            lookup(addresses.parse()?, rounds.parse()?, Scratch::default(), Path::new(index))
        }
        ["lookup-uncached", addresses, index] => {
            lookup(addresses.parse()?, 1, Scratch::with_capacity(0), Path::new(index))
        }
        _ => bail!("started by `cargo xtask instructions`"),
    }
}

/// Builds the index of the first slice of the debug file `file`, and writes it to `index`.
fn build(file: &Path, index: &Path) -> Result<()> {
    let file = symdex_build::find(file).into_iter().next().context("no debug file")??;
    let bytes = std::fs::read(&file)?;
    let slices = symdex_build::slices(&bytes)?;
    let companions = Companions::default();
    let image = Image::load(slices.first().context("no slice")?, &file, &companions)?;
    Ok(std::fs::write(index, symdex_build::build(&image)?.bytes)?)
}

fn open(times: u64, index: &Path) -> Result<()> {
    let bytes = std::fs::read(index)?;
    for _ in 0..times {
        black_box(Index::open(bytes.as_slice())?);
    }
    Ok(())
}

/// Looks up the same `addresses` in each of some rounds.
fn lookup(addresses: u64, rounds: u64, mut scratch: Scratch, index: &Path) -> Result<()> {
    let index = Index::open(std::fs::read(index)?)?;
    let executable = &index.metadata().executable;
    let (start, end) = executable.first().zip(executable.last()).context("the index has no code")?;
    let size = end.1 - start.0;
    for _ in 0..rounds {
        for number in 0..addresses {
            // Spread over the code by Fibonacci hashing.
            let offset = ImageOffset(start.0 + number.wrapping_mul(0x9e37_79b9_7f4a_7c15) % size);
            black_box(index.lookup(offset, LinePolicy::Statement, &mut scratch)?);
        }
    }
    Ok(())
}
