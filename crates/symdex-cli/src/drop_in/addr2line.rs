//! `symdex addr2line`: answers addresses as GNU's addr2line does.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::ArgAction;
use symdex_build::Section;

use super::each_lines;
use super::modules::{Frame, ModuleInfo, ModuleName, Modules, SourceArgs};
use super::names::{Demangling, Functions, Naming};
use super::request::{ModulePlace, gnu_place};
use crate::failure::{Cause, CommandError, CommandResult, Failure, complain};

/// Answer addresses as GNU's addr2line does, from an index or a debug file
///
/// The options and the output are those of addr2line of binutils. symdex also runs this command if it is called by the
/// name addr2line, with or without a target before it. Addresses are hexadecimal, with or without 0x, or symbols:
/// `NAME` or `NAME+OFFSET`. Without any, each line of standard input is answered at once.
///
/// The file is answered from its index, if a folder of --index or a store has one with its id, and otherwise from the
/// file itself and the debug files it refers to. Discriminators are not printed. An argument @FILE stands for the
/// arguments in FILE. docs/DROP-IN.md compares all answers with those of addr2line.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, args_override_self = true, version, disable_version_flag = true)]
pub(crate) struct Args {
    /// The file: ELF, Mach-O, a dSYM bundle, or an index
    #[arg(short = 'e', long = "exe", value_name = "FILE", default_value = "a.out")]
    file: PathBuf,
    /// Print the address before each answer
    #[arg(short, long)]
    addresses: bool,
    /// Print the names of functions
    #[arg(short, long)]
    functions: bool,
    /// Print inlined functions, too
    #[arg(short, long)]
    inlines: bool,
    /// Print each frame in one line
    #[arg(short, long)]
    pretty_print: bool,
    /// Print only the last part of the paths of source files
    #[arg(short = 's', long)]
    basenames: bool,
    /// Addresses are offsets from the start of this section, such as .text
    #[arg(short = 'j', long, value_name = "NAME")]
    section: Option<String>,
    /// Demangle names. The style of the names is found out; a given one is ignored
    #[arg(
        short = 'C',
        long,
        value_name = "STYLE",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "auto"
    )]
    demangle: Option<String>,
    /// The architecture of a file that has several
    #[arg(long, value_name = "ARCH")]
    arch: Option<String>,
    #[command(flatten)]
    sources: SourceArgs,
    /// Accepted without effect: the format of the file is found out
    #[arg(short = 'b', long = "target", value_name = "FORMAT")]
    _format: Option<String>,
    /// Accepted without effect: demangling is always bounded
    #[arg(short = 'R', long = "recurse-limit", alias = "recursion-limit")]
    _recurse_limit: bool,
    /// Accepted without effect: demangling is always bounded
    #[arg(short = 'r', long = "no-recurse-limit", alias = "no-recursion-limit")]
    _no_recurse_limit: bool,
    /// Print the version
    #[arg(short = 'v', short_alias = 'V', long, action = ArgAction::Version)]
    version: (),
    /// Addresses. Without any, standard input is answered
    #[arg(value_name = "ADDRESS")]
    given: Vec<String>,
}

const EXAMPLES: &str = "\
Examples:
  symdex addr2line -e libfoo.so -fiC 0x1139
  symdex addr2line -e MyApp.app.dSYM --arch arm64 -apfi 0x100005ed8 0x100005f10
  symdex addr2line -e libfoo.so -j .text -f 0x40
  addr2line -e libfoo.so < addresses.txt       if addr2line is a link to symdex

Exit codes:
  0  the file could be read, even if no address has an answer
  2  wrong usage
  4  the index or debug file is damaged
  1, 3, 5, 6  the file cannot be read; `symdex --help` explains the codes";

pub(crate) fn run(args: &Args) -> CommandResult {
    let mut modules = Modules::new(&args.sources, false)?;
    let module = ModuleName::File { path: args.file.clone(), arch: args.arch.clone() };
    let info = modules.info(&module)?;
    // Without --section, addresses are those of the file. No code has the last one.
    let section = match &args.section {
        Some(name) => section(&args.file, &modules.sections(&module)?, name)?,
        None => Section { name: String::new(), start: 0, size: u64::MAX },
    };
    let functions = if args.functions { Functions::Linkage } else { Functions::None };
    let demangling = if args.demangle.is_some() { Demangling::Gnu } else { Demangling::None };
    let naming = Naming { functions, demangling, basenames: args.basenames };
    let printer = Printer { args, naming, info };
    // Of several symbols of a name, the first one counts. A name that the file does not have is address 0.
    let svma = |line: &str, modules: &mut Modules| -> Result<u64, Failure> {
        Ok(match gnu_place(line) {
            ModulePlace::Address(address) => address.wrapping_add(section.start),
            ModulePlace::Symbol { name, offset } => {
                let first = modules.symbol(&module, &name)?.first().map(|symbol| symbol.start);
                first.map_or(section.start, |start| start.wrapping_add(offset))
            }
        })
    };
    let mut out = BufWriter::new(io::stdout().lock());
    let mut gravest = None;
    let mut answer = |lines: &[String]| -> Result<(), CommandError> {
        let svmas: Vec<_> = lines.iter().map(|line| svma(line, &mut modules)).collect::<Result<_, _>>()?;
        modules.code(&module, &svmas, |svma, frames| {
            let address = svma.wrapping_sub(section.start);
            let frames = if address < section.size { frames } else { Ok(Vec::new()) };
            let frames = frames.unwrap_or_else(|failure| {
                complain(&failure.message);
                gravest = gravest.max(Some(failure.cause));
                Vec::new()
            });
            Ok(printer.print(address, &frames, &mut out)?)
        })?;
        Ok(out.flush()?)
    };
    if args.given.is_empty() {
        each_lines(answer)?;
    } else {
        answer(&args.given)?;
    }
    Ok::<Option<Cause>, _>(gravest)
}

/// The section `wanted` of `all` sections of the file at `path`. Mach-O's sections may be named without their segments.
fn section(path: &Path, all: &[Section], wanted: &str) -> Result<Section, Failure> {
    let found = all.iter().find(|Section { name, .. }| {
        name == wanted || name.split_once(',').is_some_and(|(_, name)| name == wanted)
    });
    found.cloned().ok_or_else(|| {
        let names: Vec<_> = all.iter().map(|section| section.name.as_str()).collect();
        let names =
            if all.is_empty() { "none; name an ELF or Mach-O file".to_owned() } else { names.join(", ") };
        let message = format!("{}: it has no section {wanted}. Its sections are: {names}", path.display());
        Failure::new(Cause::NotFound, message)
    })
}

struct Printer<'a> {
    args: &'a Args,
    naming: Naming,
    info: ModuleInfo,
}

impl Printer<'_> {
    fn print(&self, address: u64, frames: &[Frame], out: &mut impl Write) -> io::Result<()> {
        let Args { pretty_print, .. } = *self.args;
        if self.args.addresses {
            let width = if self.info.is_64 { 18 } else { 10 };
            write!(out, "{address:#0width$x}{}", if pretty_print { ": " } else { "\n" })?;
        }
        let shown = if self.args.inlines { frames } else { &frames[..frames.len().min(1)] };
        for (number, frame) in shown.iter().enumerate() {
            if pretty_print && number > 0 {
                write!(out, " (inlined by) ")?;
            }
            if self.args.functions {
                let name = self.naming.function(frame);
                let after = if pretty_print { " at " } else { "\n" };
                write!(out, "{}{after}", name.as_deref().unwrap_or("??"))?;
            }
            write!(out, "{}:", self.naming.file(frame).as_deref().unwrap_or("??"))?;
            match frame.line {
                None | Some(0) => writeln!(out, "?")?,
                Some(line) => writeln!(out, "{line}")?,
            }
        }
        if shown.is_empty() {
            let name = if self.args.functions { "??" } else { "" };
            let after = match (self.args.functions, pretty_print) {
                (false, _) => "",
                (true, true) => " ",
                (true, false) => "\n",
            };
            writeln!(out, "{name}{after}??:0")?;
        }
        Ok(())
    }
}
