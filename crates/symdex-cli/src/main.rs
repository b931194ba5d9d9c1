//! The command `symdex`.

#[cfg(all(feature = "jemalloc", any(target_os = "linux", target_os = "macos")))]
mod allocator;
mod archive;
mod atos;
mod build;
mod config;
mod debug_sources;
#[cfg(feature = "drop-in")]
mod drop_in;
#[cfg(feature = "symbol-files")]
mod export;
mod failure;
mod ids;
mod image_lookup;
#[cfg(feature = "symbol-files")]
mod import;
mod inspect;
mod interrupt;
mod lookup;
#[cfg(feature = "minidump")]
mod minidump;
mod number;
mod open;
mod output;
mod progress;
mod put_args;
#[cfg(feature = "serve")]
mod serve;
mod shell;
mod source;
mod store;
mod stores;
mod symbolicate;
mod text;
mod unwind;
#[cfg(feature = "stores")]
mod upload;
mod url_password;
mod verify;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue};
use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use crate::config::Config;
#[cfg(feature = "serve")]
use crate::failure::Failure;
use crate::failure::{Cause, CommandError, complain};

/// Builds small indexes from debug files, and answers crash addresses from them.
///
/// `build` builds an index for each image of a debug file, once. `symbolicate` adds functions, files and lines to
/// crash reports, and `lookup` and `atos` answer single addresses. They read the index, without the debug file, and
/// answer within milliseconds.
#[derive(Parser)]
#[command(name = "symdex", version, max_term_width = 110, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// The configuration file. By default, symdex looks for symdex.toml in the working folder and its parent folders
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Do not read a configuration file
    #[arg(long, global = true)]
    no_config: bool,
}

const EXAMPLES: &str = "\
Examples:
  symdex build MyApp.app.dSYM -o indexes            one index for each architecture
  symdex symbolicate MyApp.ips --index indexes      the report with functions, files and lines
  symdex lookup indexes --id 0c37c502-aba0-3641-a08f-84c794684f36 0x5ed8
  symdex atos -o MyApp.app.dSYM -arch arm64 -l 0x102bc4000 0x102bc9ed8

Exit codes:
  0  everything was answered
  1  another error
  2  wrong usage
  3  something was not found
  4  a file is damaged
  5  a file is missing
  6  a file is of a kind or version that symdex does not read
If several apply, the first of 4, 6, 5, 1, 2, 3 counts.";

#[derive(Subcommand)]
enum Command {
    Build(build::Args),
    Lookup(lookup::Args),
    Atos(atos::Args),
    #[cfg(feature = "drop-in")]
    LlvmSymbolizer(Box<drop_in::llvm::Args>),
    #[cfg(feature = "drop-in")]
    #[command(name = "addr2line", infer_long_args = true)]
    Addr2Line(Box<drop_in::addr2line::Args>),
    Symbolicate(symbolicate::Args),
    #[cfg(feature = "minidump")]
    Minidump(minidump::Args),
    Ids(ids::Args),
    Inspect(inspect::Args),
    #[cfg(feature = "symbol-files")]
    Export(export::Args),
    #[cfg(feature = "symbol-files")]
    Import(Box<import::Args>),
    Verify(verify::Args),
    #[cfg(feature = "stores")]
    Upload(Box<upload::Args>),
    Store(store::Args),
    #[cfg(feature = "serve")]
    Serve(Box<serve::Args>),
    Config(config::Args),
    Completions(shell::CompletionsArgs),
    Man(shell::ManArgs),
}

fn main() -> ExitCode {
    // A child reads no configuration: its parent has read it.
    if let Some(code) = symdex_pipeline::run_child() {
        return code;
    }
    match run() {
        Ok(code) => code,
        Err(CommandError::Failure(failure)) => {
            complain(&failure.message);
            failure::exit_code(failure.cause).into()
        }
        // `symdex ... | head` closes the pipe early. That is not a failure.
        Err(CommandError::PipeClosed) => ExitCode::SUCCESS,
    }
}

fn run() -> Result<ExitCode, CommandError> {
    let arguments = std::env::args_os();
    #[cfg(feature = "drop-in")]
    let arguments = drop_in::with_verb(arguments)?;
    let arguments = atos::with_double_dashes(arguments);
    let config = Config::load(&arguments)?;
    stores::configure(&config);
    debug_sources::configure(&config);
    #[cfg(feature = "stores")]
    upload::configure(&config);
    let mut commands = config.apply(Cli::command());
    let parsed = commands.try_get_matches_from_mut(arguments);
    let cli = match parsed.and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => cli,
        Err(mut error) => {
            without_trailing_tip(&mut error);
            // Prints help and versions on standard output, and errors on standard error.
            error.print()?;
            return Ok(exit_code(error.use_stderr().then_some(Cause::Usage)));
        }
    };
    let gravest = match cli.command {
        Command::Build(args) => build::run(&args),
        Command::Lookup(args) => lookup::run(&args),
        Command::Atos(args) => atos::run(&args),
        #[cfg(feature = "drop-in")]
        Command::LlvmSymbolizer(args) => drop_in::llvm::run(&args),
        #[cfg(feature = "drop-in")]
        Command::Addr2Line(args) => drop_in::addr2line::run(&args),
        Command::Symbolicate(args) => symbolicate::run(&args),
        #[cfg(feature = "minidump")]
        Command::Minidump(args) => minidump::run(&args),
        Command::Ids(args) => ids::run(&args),
        Command::Inspect(args) => inspect::run(&args),
        #[cfg(feature = "symbol-files")]
        Command::Export(args) => export::run(&args),
        #[cfg(feature = "symbol-files")]
        Command::Import(args) => import::run(&args),
        Command::Verify(args) => verify::run(&args),
        #[cfg(feature = "stores")]
        Command::Upload(args) => upload::run(&args),
        Command::Store(args) => store::run(&args),
        #[cfg(feature = "serve")]
        Command::Serve(args) => serve::run(&args, serve_args_again),
        Command::Config(args) => config::run(&args, &config, &commands),
        Command::Completions(args) => shell::completions(&args, Cli::command()),
        Command::Man(args) => shell::man(&args, Cli::command()),
    };
    gravest.map(exit_code)
}

/// Removes the tip to pass an unknown option as a value: no file begins with a dash.
fn without_trailing_tip(error: &mut clap::Error) {
    if let Some(ContextValue::StyledStrs(mut tips)) = error.remove(ContextKind::Suggested) {
        tips.retain(|tip| !tip.to_string().starts_with("to pass "));
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
    }
}

/// The options of `symdex serve`, with what the configuration file has now.
#[cfg(feature = "serve")]
fn serve_args_again() -> Result<Box<serve::Args>, Failure> {
    let arguments = atos::with_double_dashes(std::env::args_os());
    let commands = Config::load(&arguments)?.apply(Cli::command());
    let parsed = commands.try_get_matches_from(arguments).and_then(|matches| Cli::from_arg_matches(&matches));
    match parsed.map(|cli| cli.command) {
        Ok(Command::Serve(args)) => Ok(args),
        Ok(_) => Err(Failure::new(Cause::Usage, "this is another command".to_owned())),
        Err(error) => Err(Failure::new(Cause::Usage, error.to_string())),
    }
}

/// The exit code for the gravest failure, if there was one.
fn exit_code(gravest: Option<Cause>) -> ExitCode {
    gravest.map_or(0, failure::exit_code).into()
}
