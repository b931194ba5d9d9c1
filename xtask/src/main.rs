//! Chores of the repository: `cargo xtask <chore>`.

use std::process::ExitCode;

mod demo;
mod testdata;

const USAGE: &str = "\
usage: cargo xtask <chore>

chores:
    demo                  build the demo app's indexes and answer its crash from them
    testdata [--check]    make testdata/dsyms and testdata/demo from testdata/src;
                          --check: make them elsewhere and compare with what is committed
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
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
