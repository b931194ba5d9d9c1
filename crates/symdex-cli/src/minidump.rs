//! `symdex minidump`: the stacks of minidumps.

use std::path::PathBuf;

use symdex_report::OutputFormat;

use crate::failure;
use crate::symbolicate::{Layout, NameArgs, QuietOption, SourceArgs, StackwalkFormat, Work};

/// Walk the stacks of minidumps, and print functions, files and lines, with every inlined function
///
/// A minidump has the registers of each thread and a part of its memory: Crashpad, Breakpad, Sentry, Electron, Unity
/// and Windows write it when a program crashes. `symdex symbolicate` reads minidumps, too, beside other reports.
///
/// MICRODUMPS. Chrome and WebView write the registers, the stack and the modules of the thread that crashed to
/// Android's log: lines of `google-breakpad`. The log is read as a minidump, with or without the prefixes of logcat. Of
/// several microdumps in it, the first one is read, and the others are counted.
///
/// STACKS. The caller of each frame is found by the unwind information of its function, if a source has an index with
/// unwind rows of the image (`symdex build --unwind`); otherwise by the frame pointer; otherwise by a search of the
/// stack for addresses of code, which can find frames that are not there. Each frame says how it was found. The walker
/// is that of rust-minidump.
///
/// SOURCES. They are those of `symdex symbolicate`; see its help. Modules are matched by id: the build id of ELF, the
/// UUID of Mach-O. Modules of Windows need an index that `symdex import` has made of a symbol file.
///
/// LIMITS. The stacks of a minidump may have 16384 frames, 4096 in a thread, and 8192 threads. What is past a limit is
/// left out and counted; the command then exits with code 3. A minidump with more than 8192 modules is damaged.
/// docs/SECURITY.md lists all limits.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Minidumps, logs with a microdump, folders or zip archives of these. They may be compressed (.gz, .zst). `-`, or
    /// no minidump, stands for standard input
    #[arg(value_name = "MINIDUMP")]
    minidumps: Vec<PathBuf>,
    #[command(flatten)]
    sources: SourceArgs,
    /// The output file, or for several minidumps the output folder
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// The format of the output
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "stackwalk")]
    format: Format,
    /// The same as --format json
    #[arg(long, conflicts_with = "format")]
    json: bool,
    #[command(flatten)]
    names: NameArgs,
    #[command(flatten)]
    quiet: QuietOption,
}

/// The formats of the output.
#[derive(Clone, Copy, clap::ValueEnum)]
enum Format {
    /// The text of minidump-stackwalk, with the registers of each frame
    Stackwalk,
    /// The JSON of minidump-stackwalk
    StackwalkJson,
    /// The layout of Apple's .crash
    Text,
    /// The JSON of `symdex symbolicate`, with the threads, their registers, and how each frame was found
    Json,
}

const EXAMPLES: &str = "\
Examples:
  symdex minidump crash.dmp --index indexes
  symdex minidump crash.dmp --dsym build/libgame.so --format text
  symdex minidump dumps/ --store s3://bucket/indexes --format stackwalk-json -o walked
  symdex minidump crash.dmp --index indexes --json | jq '.threads[] | select(.crashed).frames[].found_by'

The exit codes are those of `symdex symbolicate`:
  0  every frame of the app is answered
  3  some are not, or are left out
  4  a minidump, an index or a debug file is damaged
  5  a file is missing
  6  a file is not a minidump, or of a processor that is not supported
  1  another error";

pub(crate) fn run(args: &Args) -> failure::CommandResult {
    let layout = match args.format {
        _ if args.json => Layout::Report(OutputFormat::Json),
        Format::Stackwalk => Layout::Stackwalk(StackwalkFormat::Text),
        Format::StackwalkJson => Layout::Stackwalk(StackwalkFormat::Json),
        Format::Text => Layout::Report(OutputFormat::Text),
        Format::Json => Layout::Report(OutputFormat::Json),
    };
    let work = Work {
        reports: &args.minidumps,
        sources: &args.sources,
        options: &args.names.options(),
        layout,
        output: args.output.as_deref(),
        needs: false,
        is_quiet: args.quiet.quiet,
    };
    work.run()
}
