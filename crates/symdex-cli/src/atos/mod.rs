//! `symdex atos`: answers addresses as Apple's atos does.

mod line;
mod options;

use std::io::{self, BufRead, BufWriter, Write};
use std::path::PathBuf;

use crate::archive;
use crate::failure::{self, CommandError, Failure};
use crate::image_lookup::ImageLookup;
use crate::lookup::stdin_failed;
use crate::number;
use crate::open::AccessOption;
use crate::source;
use crate::stores::StoreArgs;
use line::AtosPrinter;
pub(crate) use options::with_double_dashes;
use symdex_store::IdPrefix;

/// Answer addresses as Apple's atos does, from a debug file or from an index
///
/// The options are those of atos, with one dash or two: -arch, -fullPath, -inlineFrames, and so on. Addresses are
/// looked up unchanged, and the output is that of atos. Without addresses, standard input is answered line by line.
/// As in atos, the exit code is 0 if the image could be read, even if no address has an answer.
///
/// From a debug file, only the compile units that have code at the addresses are read, and no index is built.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, args_override_self = true)]
pub(crate) struct Args {
    /// A dSYM bundle, the DWARF file in it, a binary, an archive of these, an index, or a folder of indexes (with --id)
    #[arg(short, value_name = "FILE", required_unless_present = "urls")]
    object: Option<PathBuf>,
    #[command(flatten)]
    stores: StoreArgs,
    /// -arch: the architecture to use, if the file has several
    #[arg(long, value_name = "ARCH")]
    arch: Option<String>,
    /// A folder to search for files to which a debug file refers, such as /usr/lib/debug. May be repeated
    #[arg(long, value_name = "DIR")]
    debug_dir: Vec<PathBuf>,
    /// The image to use, if FILE is a folder, or in a store: its UUID, with or without dashes, its build id, or the
    /// first digits of one, at least four
    #[arg(long, value_name = "ID")]
    id: Option<IdPrefix>,
    #[command(flatten)]
    access: AccessOption,
    #[command(flatten)]
    basis: Basis,
    /// -fullPath: print the whole paths of source files, not only their last part
    #[arg(long = "fullPath")]
    full_path: bool,
    /// -inlineFrames: print inlined functions too, innermost first, and an empty line after each address
    #[arg(short, long = "inlineFrames")]
    inline_frames: bool,
    /// With -i, the text between the functions of an address. The default is a new line
    #[arg(
        short,
        long,
        value_name = "DELIMITER",
        default_value = "\n",
        hide_default_value = true,
        allow_hyphen_values = true
    )]
    delimiter: String,
    /// -printHeader: has no effect. atos prints a header only for processes, not for files
    #[arg(long = "printHeader")]
    _print_header: bool,
    /// -dedup: print every name of a function that the linker folded with equal functions, one line for each name. The
    /// first line is the one that is printed without this option
    #[arg(long = "dedup")]
    dedup: bool,
    /// A file with addresses, separated by white space
    #[arg(short = 'f', value_name = "ADDRESSES")]
    address_file: Option<PathBuf>,
    /// Addresses: hexadecimal if they begin with 0x, otherwise decimal. Without any, they
    /// are read from standard input
    #[arg(value_name = "ADDRESS")]
    addresses: Vec<String>,
}

const EXAMPLES: &str = "\
Examples:
  symdex atos -o MyApp.app.dSYM -arch arm64 -l 0x102bc4000 0x102bc9ed8
  symdex atos -o indexes --id 0c37c502-aba0-3641-a08f-84c794684f36 -i -fullPath -offset 0x5ed8
  symdex atos -o MyApp.app.dSYM -s 0x2bc4000 -f addresses.txt";

/// The origin of the addresses. By default they are the addresses that the debug file states.
#[derive(clap::Args)]
#[group(multiple = false)]
struct Basis {
    /// The address at which the image was loaded, hexadecimal with or without 0x
    #[arg(short, value_name = "ADDRESS", value_parser = number::parse_load_address)]
    load: Option<u64>,
    /// The slide: the load address minus the address that the debug file states. Hexadecimal after 0x, otherwise
    /// decimal
    #[arg(short, value_name = "SLIDE", value_parser = number::parse_atos_address)]
    slide: Option<u64>,
    /// -offset: addresses are offsets from the start of the image
    #[arg(long)]
    offset: bool,
    /// -textExecAddress: the address at which the __TEXT_EXEC segment of a kernel image was loaded, hexadecimal
    #[arg(long = "textExecAddress", value_name = "ADDRESS", value_parser = number::parse_hexadecimal)]
    text_exec_address: Option<u64>,
}

pub(crate) fn run(args: &Args) -> failure::CommandResult {
    let file = args.object.as_deref();
    archive::check_addresses(file, !args.addresses.is_empty() || args.address_file.is_some())?;
    let source = source::open(file, &args.stores, args.arch.as_deref(), args.id.as_ref(), args.access)?;
    source.answer(&args.debug_dir, source::Warnings::All, |answers| answer_all(args, answers))
}

fn answer_all(args: &Args, answers: &mut ImageLookup<'_, '_>) -> failure::CommandResult {
    let mut printer = AtosPrinter::new(args, answers)?;
    let mut out = BufWriter::new(io::stdout().lock());
    printer.answer(args.addresses.iter().map(String::as_str), &mut out)?;
    if let Some(path) = &args.address_file {
        let addresses = std::fs::read(path).map_err(|error| Failure::unreadable(path, &error))?;
        printer.answer(String::from_utf8_lossy(&addresses).split_whitespace(), &mut out)?;
    } else if args.addresses.is_empty() {
        answer_stdin(&mut printer, &mut out)?;
    }
    out.flush()?;
    Ok(printer.gravest())
}

/// Answers standard input line by line, because the writer may wait for each answer before it writes the next address.
fn answer_stdin(printer: &mut AtosPrinter<'_, '_, '_>, out: &mut impl Write) -> Result<(), CommandError> {
    let mut input = io::stdin().lock();
    let mut line = Vec::new();
    while input.read_until(b'\n', &mut line).map_err(|error| stdin_failed(&error))? != 0 {
        printer.answer(String::from_utf8_lossy(&line).split_whitespace(), out)?;
        out.flush()?;
        line.clear();
    }
    Ok(())
}
