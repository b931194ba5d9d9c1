//! `symdex export`: an index in the format of another tool.

use std::io::{self, BufWriter, Seek as _, Write};
use std::path::{Path, PathBuf};

use symdex::{Index, LinePolicy};
use symdex_store::{Durability, IdPrefix, IndexBytes, StoredImage, replace_file};
use symdex_symbol_files as symbol_files;

use crate::failure::{Cause, CommandError, CommandResult, Failure};
use crate::open;
use crate::stores::StoreArgs;

/// Write an index in the format of another tool: Breakpad's symbol files, LLVM's GSYM, or JSON
///
/// The output has the functions, inlined functions and lines of one line policy. Code without debug information has the
/// name that the symbol table gives it. The other names of a function are left out.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// An index file, or a folder of indexes (with --id)
    #[arg(value_name = "INDEX", required_unless_present = "urls", conflicts_with = "urls")]
    index: Option<PathBuf>,
    #[command(flatten)]
    stores: StoreArgs,
    /// The image to use, if INDEX is a folder, or in a store: its UUID, with or without dashes, its build id, or the
    /// first digits of one, at least four
    #[arg(long, value_name = "ID")]
    id: Option<IdPrefix>,
    #[command(flatten)]
    access: open::AccessOption,
    /// The format of the output
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: ExportFormat,
    /// Write to this file. Without it, or with -, write to standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Which rows of the line table answer for code with line 0, which the compiler generated or merged
    #[arg(long, value_enum, value_name = "POLICY", default_value = "statement")]
    lines: LinePolicy,
    /// Write mangled names. By default, names are readable in Breakpad's format, and mangled in the others
    #[arg(long, conflicts_with = "demangle")]
    no_demangle: bool,
    /// Write readable names
    #[arg(long)]
    demangle: bool,
    /// The operating system in Breakpad's format, which decides how the id is written: as the UUID of Mach-O, or as the
    /// start of a build id. By default, an id of 16 bytes is a UUID (mac), and others are build ids (Linux)
    #[arg(long, value_enum, value_name = "OS", ignore_case = true)]
    os: Option<Os>,
}

const EXAMPLES: &str = "\
Examples:
  symdex export indexes --id 4c4c4427 --format breakpad -o DemoKit.sym
  symdex export libapp.symdex --format breakpad --os android -o libapp.so.sym
  symdex export app.symdex --format gsym -o app.gsym
  symdex export app.symdex --format json | jq -c 'select(.name == \"main\")'

Formats:
  breakpad   for minidump-stackwalk and other tools of Breakpad and Crashpad. Addresses are offsets in
             the image. A function whose code is not in one piece has a FUNC record for each piece. Unwind
             rows are records STACK CFI INIT
  gsym       for llvm-gsymutil and LLDB. Addresses are those that the image was linked at. Code
             without a line has no inlined functions
  json       JSON Lines, as in docs/schema/export.schema.json: the image, then each function, with
             offsets in the image

Exit codes:
  0  the index was written
  3  no such index
  4  the index is damaged
  5  the index is missing
  6  the index is kept as values (Redis), was made by a newer symdex, or makes too much text
  1  the output cannot be written";

#[derive(Clone, Copy, PartialEq, clap::ValueEnum)]
enum ExportFormat {
    Breakpad,
    Gsym,
    Json,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Os {
    Mac,
    Ios,
    Linux,
    Android,
}

pub(crate) fn run(args: &Args) -> CommandResult {
    let image = open::image(args.index.as_deref(), &args.stores, args.id.as_ref(), args.access)?;
    let location = image.location();
    match image.image() {
        StoredImage::Index(index) => write(args, index, location.as_ref()),
        StoredImage::Values(_) => {
            let message =
                format!("{location}: kept as values, not as an index; export the index of another store");
            Err(Failure::new(Cause::Unsupported, message).into())
        }
    }
}

/// Writes the index to the output, whole or not at all if that is a file.
fn write(args: &Args, index: &Index<IndexBytes>, path: &Path) -> CommandResult {
    let output = args.output.as_deref().filter(|output| *output != Path::new("-"));
    let Some(output) = output else {
        let mut out = BufWriter::new(io::stdout().lock());
        export(args, index, &mut out).map_err(|error| failure(path, error))?;
        out.flush()?;
        return Ok(None);
    };
    let failed = |error| {
        let message = format!("{}: cannot write a temporary file: {error}", output.display());
        Failure::new(Cause::Other, message)
    };
    let mut temporary = BufWriter::new(tempfile::tempfile().map_err(failed)?);
    export(args, index, &mut temporary).map_err(|error| match error {
        symbol_files::Error::Output(error) => failed(error).into(),
        error => failure(path, error),
    })?;
    let mut file = temporary.into_inner().map_err(|error| failed(error.into_error()))?;
    file.rewind().map_err(failed)?;
    replace_file(output, file, Durability::Synced).map_err(Failure::from)?;
    Ok(None)
}

fn export(args: &Args, index: &Index<IndexBytes>, out: &mut impl Write) -> Result<(), symbol_files::Error> {
    let readable = args.demangle || args.format == ExportFormat::Breakpad && !args.no_demangle;
    let demangler: symbol_files::Demangler<'_> = if readable {
        &|name| symdex_demangle::demangle(name).into_owned().into_bytes()
    } else {
        &|name| name.to_vec()
    };
    match args.format {
        ExportFormat::Breakpad => {
            symbol_files::write_breakpad(index, args.lines, demangler, args.os(index), out)
        }
        ExportFormat::Gsym => symbol_files::write_gsym(index, args.lines, demangler, out),
        ExportFormat::Json => symbol_files::write_json(index, args.lines, demangler, out),
    }
}

impl Args {
    /// The operating system, as Breakpad writes it.
    fn os(&self, index: &Index<IndexBytes>) -> &'static str {
        match self.os {
            Some(Os::Mac) => "mac",
            Some(Os::Ios) => "ios",
            Some(Os::Linux) => "Linux",
            Some(Os::Android) => "Android",
            None if index.id().as_bytes().len() == 16 => "mac",
            None => "Linux",
        }
    }
}

fn failure(path: &Path, error: symbol_files::Error) -> CommandError {
    match error {
        symbol_files::Error::Output(error) => error.into(),
        error => Failure::of_file(path, error.cause(), &error.to_string()).into(),
    }
}
