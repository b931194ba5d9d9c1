//! `cargo xtask bench --framehop`: compares unwind rows with the crate framehop, which samply and other profilers
//! unwind with. Both unwind the same made-up frame at each address, and the caller's registers are compared.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result, ensure};
use symdex::Index;
use symdex_build::{BuildOptions, Companions, Image};

mod compare;
mod frame;
mod peer;

use compare::{Class, Tally};
use peer::Peer;

const USAGE: &str = "\
usage: cargo xtask bench --framehop FILE...

    FILE   a program or a library (Mach-O or ELF) for x86_64 or ARM64 that has unwind tables, or a folder of these
";

/// How many random addresses of each image are compared.
const RANDOM: usize = 100_000;

fn main() -> ExitCode {
    let files: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    if files.is_empty() || files.iter().any(|file| file.to_string_lossy().starts_with('-')) {
        eprint!("{USAGE}");
        return ExitCode::from(2);
    }
    match run(&files) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[PathBuf]) -> Result<()> {
    print!("| image | arch | addresses |");
    Class::ALL.iter().for_each(|class| print!(" {} |", class.title()));
    println!("\n| --- | --- | --- |{}", " --- |".repeat(Class::ALL.len()));
    let mut total = Tally::default();
    for argument in arguments {
        for file in symdex_build::find(argument) {
            let file = file?;
            total.add(of_file(&file).with_context(|| file.display().to_string())?);
        }
    }
    println!("| **all** | {}", total.row());
    total.examples().iter().for_each(|example| println!("    {example}"));
    ensure!(total.count(Class::Other) == 0, "framehop finds other callers, for no known reason");
    Ok(())
}

/// Compares the images of a file, and prints a row for each that has unwind rows.
fn of_file(file: &PathBuf) -> Result<Tally> {
    let bytes = symdex::map_file(file)?;
    let companions = Companions::new(Vec::new());
    let mut total = Tally::default();
    for slice in symdex_build::slices(&bytes)? {
        let image = Image::load(&slice, file, &companions)?;
        let Some(mut peer) = Peer::new(&image, slice.bytes()?)? else { continue };
        let index = Index::open(BuildOptions::new().build_unwind_rows(&image)?)?;
        let tally = compare::compare(&index, &mut peer, RANDOM)?;
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        println!("| {name} | {} {}", image.info().arch.name, tally.row());
        total.add(tally);
    }
    Ok(total)
}
