//! Chores of the repository: `cargo xtask <chore>`.

use std::process::ExitCode;

mod audit;
mod bench;
mod corpus;
mod demo;
mod testdata;
mod tools;

const USAGE: &str = "\
usage: cargo xtask <chore>

chores:
    audit [OPTIONS] DEBUGFILE...
                          build the index of every slice and compare each answer with addr2line and llvm-symbolizer
                          --sample N: N random addresses in addition, for each slice
                          --every K: only every Kth run of addresses; --no-llvm: addr2line alone
                          --debug-dir DIR: look for debug files in DIR, too
                          --json, --markdown: print JSON, or the tables of docs/AUDIT.md
    bench [--corpus NAME|FILE]... [--runs N] [-o FOLDER]
                          measure symdex and its peers side by side and write a dated report to docs/bench
    corpus [-o FOLDER] [--from DSYM] android | debian | wheels | scatter | size SIZE ...
                          make files to audit and measure on, each part in a folder of its name below FOLDER
                          (target/corpora)
                          android: our sources for four ABIs, stripped, compressed, split and taken apart
                          debian: this machine's programs and libraries, and packages with debug files
                          wheels: libraries out of Python packages for macOS
                          scatter: a dSYM linked with an order file, so that the functions of all units lie among each other
                          size SIZE: a dSYM of about SIZE (300MB, 1GB, 4500MB) made of copies of DSYM, a 64-bit one of one slice with
                          DWARF 2 to 4; each copy has addresses and names of its own
    demo                  build the demo app's indexes and answer its crash from them
    testdata [--check]    make testdata/dsyms and testdata/demo from testdata/src;
                          --check: make them elsewhere and compare with what is committed
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["audit", words @ ..] if let Some(arguments) = audit::Arguments::parse(words) => {
            audit::run(&arguments)
        }
        ["bench", words @ ..] => bench::run(words),
        ["corpus", words @ ..] if let Some(arguments) = corpus::Arguments::parse(words) => {
            corpus::run(&arguments)
        }
        ["demo"] => demo::run(),
        ["testdata"] => testdata::make(),
        ["testdata", "--check"] => testdata::check(),
        _ => {
            eprint!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
