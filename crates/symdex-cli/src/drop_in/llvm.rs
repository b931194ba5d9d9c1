//! `symdex llvm-symbolizer`: answers addresses as LLVM's llvm-symbolizer does.

use std::ops::Range;
use std::path::PathBuf;

use clap::ArgAction;
use symdex_store::IdPrefix;

use super::each_lines;
use super::modules::{Data, Frame, ModuleInfo, ModuleName, Modules, SourceArgs};
use super::names::{Demangling, Functions, Naming};
use super::plain::Plain;
use super::printer::{Form, Printer};
use super::request::{self, Defaults, Kind, Malformed, ModulePlace, Request};
use crate::failure::{Cause, CommandError, CommandResult, complain};

/// Answer addresses as llvm-symbolizer does, from indexes or debug files
///
/// The options, the input and the output are those of llvm-symbolizer 19. symdex also runs this command if it is called
/// by the name llvm-symbolizer, so a link of this name takes the place of that program. Each line of standard input is
/// answered at once: `[CODE|DATA] [MODULE] ADDRESS`. MODULE is a path, in quotes if it has spaces, or FILE:PATH
/// or BUILDID:ID, and is left out if --obj or --build-id names it.
///
/// A module is answered from its index, if a folder of --index or a store has one with its id, and otherwise from the
/// file itself and the debug files it refers to, or, with --output-style=GNU, from the index that the file carries.
/// Discriminators, the lines at which functions start, and columns of an index are 0. DATA is answered from the file
/// itself, and so is a symbol, `NAME` or `NAME+OFFSET`, in the place of an address. --no-inlines prints the function
/// that contains the address, with the line in it. docs/DROP-IN.md compares all answers with those of llvm-symbolizer.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, args_override_self = true, version, disable_version_flag = true)]
pub(crate) struct Args {
    /// The module of requests that name none: an ELF or Mach-O file, a dSYM bundle, or an index
    #[arg(short = 'e', long = "obj", alias = "exe", value_name = "FILE")]
    object: Option<String>,
    /// The build id of the module, which has an index
    #[arg(long, value_name = "ID", conflicts_with = "object")]
    build_id: Option<IdPrefix>,
    /// The architecture of files that have several. FILE:ARCH chooses another one for FILE
    #[arg(long, value_name = "ARCH")]
    default_arch: Option<String>,
    /// Which names of functions to print
    #[arg(
        short,
        long,
        value_enum,
        value_name = "KIND",
        num_args = 0..=1,
        require_equals = true,
        default_value = "linkage",
        default_missing_value = "linkage"
    )]
    functions: Functions,
    /// Print inlined functions, too. This is the default
    #[arg(
        short,
        long,
        alias = "inlining",
        num_args = 0..=1,
        require_equals = true,
        hide_possible_values = true,
        value_name = "BOOL",
        default_value = "true",
        hide_default_value = true,
        default_missing_value = "true",
        action = ArgAction::Set
    )]
    inlines: bool,
    /// Print only the function that contains the address
    #[arg(long, overrides_with = "inlines")]
    no_inlines: bool,
    /// Demangle names. This is the default
    #[arg(
        short = 'C',
        long,
        num_args = 0..=1,
        require_equals = true,
        hide_possible_values = true,
        value_name = "BOOL",
        default_value = "true",
        hide_default_value = true,
        default_missing_value = "true",
        action = ArgAction::Set
    )]
    demangle: bool,
    /// Print linkage names
    #[arg(long, overrides_with = "demangle")]
    no_demangle: bool,
    /// Print only the last part of the paths of source files
    #[arg(short = 's', long)]
    basenames: bool,
    /// Print each frame in one line; with JSON, each member
    #[arg(short, long)]
    pretty_print: bool,
    /// Print the address before each answer
    #[arg(short = 'a', long, visible_alias = "addresses")]
    print_address: bool,
    /// Print each part of a location in a line of its own
    #[arg(long)]
    verbose: bool,
    /// The style of the output
    #[arg(long, value_enum, value_name = "STYLE", ignore_case = true, default_value = "LLVM")]
    output_style: Style,
    /// The number that was added to the addresses of the file
    #[arg(long, value_name = "OFFSET", value_parser = number, default_value = "0", hide_default_value = true)]
    adjust_vma: u64,
    /// Addresses are offsets from the start of the image
    #[arg(long)]
    relative_address: bool,
    #[command(flatten)]
    sources: SourceArgs,
    #[command(flatten)]
    ignored: Ignored,
    /// Print the version
    #[arg(short = 'v', long, action = ArgAction::Version)]
    version: (),
    /// Addresses. Without any, standard input is answered
    #[arg(value_name = "ADDRESS")]
    addresses: Vec<String>,
}

/// Options that clients give, and that symdex does not need.
#[derive(clap::Args)]
#[command(next_help_heading = "Accepted without effect")]
struct Ignored {
    /// Debug files are fetched by symdex symbolicate and serve only
    #[arg(long)]
    _debuginfod: bool,
    /// Nothing is fetched
    #[arg(long)]
    _no_debuginfod: bool,
    /// A .dSYM beside a binary is found without it
    #[arg(long, value_name = "DIR")]
    _dsym_hint: Vec<PathBuf>,
    /// See --debug-dir
    #[arg(long, value_name = "DIR")]
    _fallback_debug_path: Vec<PathBuf>,
    /// Addresses are looked up unchanged
    #[arg(long)]
    _no_untag_addresses: bool,
    /// Source files are not read
    #[arg(long, value_name = "LINES")]
    _print_source_context_lines: Option<u64>,
    /// Indexes have whole paths
    #[arg(long)]
    _relativenames: bool,
}

/// The style of the output.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Style {
    #[value(name = "LLVM")]
    Llvm,
    #[value(name = "GNU")]
    Gnu,
    #[value(name = "JSON")]
    Json,
}

const EXAMPLES: &str = "\
Examples:
  symdex llvm-symbolizer --obj=MyApp.app.dSYM --default-arch=arm64 0x100005ed8
  symdex llvm-symbolizer --obj=libfoo.so --output-style=JSON < addresses.txt
  echo 'CODE \"/opt/my app/bin/app\" 0x1139' | symdex llvm-symbolizer --index indexes
  ln -s \"$(command -v symdex)\" llvm-symbolizer
  ASAN_SYMBOLIZER_PATH=$PWD/llvm-symbolizer ./program

Exit codes:
  0  the module of --obj or --build-id could be read, if one is given
  2  wrong usage
  4  an index or debug file is damaged
  1, 3, 5, 6  the module of --obj or --build-id cannot be read; `symdex --help` explains the codes";

fn number(text: &str) -> Result<u64, String> {
    request::number(text).ok_or_else(|| "expected a number, hexadecimal after 0x".to_owned())
}

pub(crate) fn run(args: &Args) -> CommandResult {
    let is_list = !args.addresses.is_empty();
    let form = match args.output_style {
        Style::Json if is_list => Form::JsonList,
        Style::Json => Form::Json,
        Style::Llvm | Style::Gnu => Form::Plain,
    };
    let naming = Naming {
        functions: args.functions,
        demangling: if args.demangle && !args.no_demangle { Demangling::Llvm } else { Demangling::None },
        basenames: args.basenames,
    };
    let plain = Plain {
        naming,
        is_llvm: args.output_style == Style::Llvm,
        addresses: args.print_address,
        pretty: args.pretty_print,
        verbose: args.verbose,
    };
    let module = match (&args.object, &args.build_id) {
        (Some(path), _) => Some((request::file(path, args.default_arch.as_deref()), path.clone())),
        (None, Some(id)) => Some((ModuleName::BuildId(id.clone()), String::new())),
        (None, None) => None,
    };
    let mut printer = Printer::new(plain, form);
    let mut modules = Modules::new(&args.sources, args.output_style != Style::Gnu || args.verbose)?;
    if let Some((module, text)) = &module
        && let Err(failure) = modules.info(module)
    {
        printer.no_module(text, Some(0), &failure)?;
        printer.finish()?;
        return Err(failure.into());
    }
    let defaults = Defaults { module, arch: args.default_arch.clone() };
    let mut symbolizer = Symbolizer { args, modules, defaults, printer, gravest: None };
    if is_list {
        symbolizer.answer(&args.addresses)?;
    } else {
        each_lines(|lines| {
            symbolizer.answer(lines)?;
            Ok(symbolizer.printer.flush()?)
        })?;
    }
    symbolizer.printer.finish()?;
    Ok(symbolizer.gravest)
}

struct Symbolizer<'a> {
    args: &'a Args,
    modules: Modules,
    defaults: Defaults,
    printer: Printer,
    gravest: Option<Cause>,
}

impl Symbolizer<'_> {
    /// Answers each of these lines. Addresses of one module that follow each other are asked together.
    fn answer(&mut self, lines: &[String]) -> Result<(), CommandError> {
        let requests: Vec<_> = lines.iter().map(|line| request::parse(line, &self.defaults)).collect();
        let mut left = &requests[..];
        while let Some((first, rest)) = left.split_first() {
            left = rest;
            match first {
                Ok(request @ Request { kind: Kind::Code, place: ModulePlace::Address(_), .. }) => {
                    let more = rest.iter().map_while(|next| next.as_ref().ok()?.code_in(&request.module));
                    let addresses: Vec<_> =
                        request.code_in(&request.module).into_iter().chain(more).collect();
                    left = &rest[addresses.len() - 1..];
                    self.code(request, &addresses)?;
                }
                Ok(request) => self.other(request)?,
                Err(Malformed { module_text, message }) => {
                    if let Some(message) = message {
                        let line = &lines[requests.len() - rest.len() - 1];
                        complain(&format!("{line:?}: {message}"));
                    }
                    self.printer.frames(module_text, None, &[], None)?;
                }
            }
        }
        Ok(())
    }

    /// Answers `addresses`, as they were given, in the module of `request`.
    fn code(&mut self, request: &Request, addresses: &[u64]) -> Result<(), CommandError> {
        let info = match self.modules.info(&request.module) {
            Ok(info) => info,
            Err(failure) => {
                complain(&failure.message);
                // If --obj names a module, a build id that llvm-symbolizer does not find makes the request malformed.
                let is_malformed =
                    matches!(request.module, ModuleName::BuildId(_)) && self.defaults.module.is_some();
                for address in addresses {
                    self.printer.failed(request, Some(*address).filter(|_| !is_malformed), &failure)?;
                }
                return Ok(());
            }
        };
        let to_svma = self.svma(0, info);
        let svmas: Vec<_> = addresses.iter().map(|address| address.wrapping_add(to_svma)).collect();
        let Self { args, modules, printer, gravest, .. } = self;
        modules.code(&request.module, &svmas, |svma, frames| {
            let address = Some(svma.wrapping_sub(to_svma));
            match frames {
                Ok(frames) => {
                    let shown = args.shown(&frames);
                    printer.frames(&request.module_text, address, shown, Some(info))?;
                }
                Err(failure) => {
                    complain(&failure.message);
                    *gravest = (*gravest).max(Some(failure.cause));
                    printer.failed(request, address, &failure)?;
                }
            }
            Ok(())
        })
    }

    /// The address in the file that is meant by the address `given`.
    fn svma(&self, given: u64, info: ModuleInfo) -> u64 {
        let base = if self.args.relative_address { info.base } else { 0 };
        given.wrapping_add(base).wrapping_sub(self.args.adjust_vma)
    }

    /// Answers a request that is not for the code at an address.
    fn other(&mut self, request: &Request) -> Result<(), CommandError> {
        let info = match self.modules.info(&request.module) {
            Ok(info) => info,
            Err(failure) => {
                complain(&failure.message);
                return Ok(self.printer.failed(request, request.place.address(), &failure)?);
            }
        };
        let svma = request.place.address().map(|given| self.svma(given, info));
        match (request.kind, &request.place) {
            (Kind::Code, ModulePlace::Symbol { name, offset }) => self.symbol(request, name, *offset, info),
            (Kind::Code | Kind::Data, _) => {
                let data =
                    svma.map_or(Ok(Data::default()), |svma| self.modules.data(&request.module, svma))?;
                Ok(self.printer.data(request, &data)?)
            }
        }
    }

    /// Answers a request for the code of the symbols `name`. The answer has this name, and the line in the function
    /// that contains the code, as with `--no-inlines`. Code without a file is no answer.
    fn symbol(
        &mut self,
        request: &Request,
        name: &str,
        offset: u64,
        info: ModuleInfo,
    ) -> Result<(), CommandError> {
        // A symbol of fewer bytes answers for its start.
        let address = |symbol: &Range<u64>| match symbol.start.checked_add(offset) {
            Some(address) if symbol.contains(&address) => address,
            _ => symbol.start,
        };
        let addresses: Vec<_> = self.modules.symbol(&request.module, name)?.iter().map(address).collect();
        let mut locations = Vec::new();
        let Self { args, modules, gravest, .. } = self;
        modules.code(&request.module, &addresses, |_, frames| {
            match frames {
                Ok(mut frames) => {
                    if let Some(mut frame) = frames.pop().filter(|frame| frame.file.is_some()) {
                        if args.functions == Functions::Linkage {
                            frame.name = Some(name.as_bytes().into());
                        }
                        locations.push(frame);
                    }
                }
                Err(failure) => {
                    complain(&failure.message);
                    *gravest = (*gravest).max(Some(failure.cause));
                }
            }
            Ok(())
        })?;
        Ok(self.printer.locations(request, &locations, info)?)
    }
}

impl Request {
    /// The address, if this is a request for code in `module`.
    fn code_in(&self, module: &ModuleName) -> Option<u64> {
        match self.place {
            ModulePlace::Address(address) if self.kind == Kind::Code && self.module == *module => {
                Some(address)
            }
            _ => None,
        }
    }
}

impl Args {
    /// The frames to print. Without inlined functions, the style GNU has the innermost one, as addr2line does, and the
    /// others have the function that contains the code.
    fn shown<'f>(&self, frames: &'f [Frame]) -> &'f [Frame] {
        match (self.inlines && !self.no_inlines, self.output_style) {
            (true, _) => frames,
            (false, Style::Gnu) => &frames[..frames.len().min(1)],
            (false, _) => &frames[frames.len().saturating_sub(1)..],
        }
    }
}
