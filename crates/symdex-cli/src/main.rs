//! The command `symdex`.

mod answers;
mod atos;
mod build;
mod failure;
mod ids;
mod in_order;
mod inspect;
mod lookup;
mod number;
mod open;
mod progress;
mod source;
mod symbolicate;
mod text;
mod verify;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::failure::{Stop, complain};

/// Turns debug files into small indexes once, and answers crash addresses from them.
///
/// `build` makes an index when a debug file arrives; `symbolicate` puts names, files and lines into whole crash reports from it, `lookup`
/// and `atos` answer addresses, all without the debug file and within milliseconds.
#[derive(Parser)]
#[command(name = "symdex", version, max_term_width = 110, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  symdex build MyApp.app.dSYM -o indexes            one index for each architecture in it
  symdex symbolicate MyApp.ips --index indexes      the report with its frames named
  symdex lookup indexes --id 0c37c502-aba0-3641-a08f-84c794684f36 0x5ed8
  symdex atos -o MyApp.app.dSYM -arch arm64 -l 0x102bc4000 0x102bc9ed8

Exit codes: 0 all answered, 1 other errors, 2 wrong usage, 3 something was not found, 4 something is damaged,
5 a file is missing, 6 unsupported input. Where several apply, the first of 4, 6, 5, 1, 2, 3.";

#[derive(Subcommand)]
enum Command {
    Build(build::Args),
    Lookup(lookup::Args),
    Atos(atos::Args),
    Symbolicate(symbolicate::Args),
    Ids(ids::Args),
    Inspect(inspect::Args),
    Verify(verify::Args),
}

fn main() -> ExitCode {
    let result = match Cli::parse_from(atos::with_double_dashes(std::env::args_os())).command {
        Command::Build(args) => build::run(&args),
        Command::Lookup(args) => lookup::run(&args),
        Command::Atos(args) => atos::run(&args),
        Command::Symbolicate(args) => symbolicate::run(&args),
        Command::Ids(args) => ids::run(&args),
        Command::Inspect(args) => inspect::run(&args),
        Command::Verify(args) => verify::run(&args),
    };
    match result {
        Ok(gravest) => gravest.map_or(0, failure::Kind::exit_code).into(),
        Err(Stop::Failure(failure)) => {
            complain(&failure.message);
            failure.kind.exit_code().into()
        }
        // As `symdex ... | head` ends: whoever read the answers has enough of them.
        Err(Stop::ReaderLeft) => ExitCode::SUCCESS,
    }
}
