//! The chores that need symdex itself or other large dependencies. `cargo xtask` starts this program.

use std::process::ExitCode;

mod audit;
mod corpus;
mod host;
mod installed;
mod instructions;
mod testdata;
mod tools;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["audit", words @ ..] if let Some(arguments) = audit::Arguments::parse(words) => {
            audit::run(&arguments)
        }
        ["corpus", words @ ..] if let Some(arguments) = corpus::Arguments::parse(words) => {
            corpus::run(&arguments)
        }
        ["instructions", words @ ..] if let Some(arguments) = instructions::Arguments::parse(words) => {
            instructions::run(&arguments)
        }
        ["testdata"] => testdata::make(),
        ["testdata", "--check"] => testdata::check(),
        _ => {
            eprint!("{}", include_str!("usage.txt"));
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
