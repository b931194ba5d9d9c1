//! The modules that requests name: each is found once, and answers until others push it out.

use std::cell::OnceCell;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use symdex::{ImageOffset, LinePolicy, Metadata, Scratch, Table};
use symdex_build::debug_files::{DebugFile, ImageFiles};
use symdex_build::{
    Companions, DataSymbol, Declaration, FileSymbols, Image, Section, Variables, sections, split_column,
};
use symdex_store::{IdPrefix, ReaderOptions, StoreReader, open_indexes};

use super::sources::{OpenModule, Sources};
use crate::failure::{Cause, CommandError, Failure, complain};
use crate::image_lookup::ImageLookup;
use crate::open::AccessOption;
use crate::source::Warnings;
use crate::stores::StoreArgs;

/// How many modules stay open. Each may have a mapped file and 64 MiB of units.
const MAX_OPEN: usize = 32;

/// Where indexes and debug files are searched, besides the files that requests name.
#[derive(clap::Args)]
pub(super) struct SourceArgs {
    /// An index, or a folder of indexes, which is searched recursively. May be repeated. A file whose id has an index
    /// there is not read itself
    #[arg(long, value_name = "DIR", help_heading = "Sources")]
    index: Vec<PathBuf>,
    /// A folder to search for files to which a debug file refers. May be repeated
    #[arg(
        long,
        value_name = "DIR",
        alias = "debug-file-directory",
        default_value = "/usr/lib/debug",
        help_heading = "Sources"
    )]
    debug_dir: Vec<PathBuf>,
    /// A package of split units, for the modules that refer to its units. One beside a module or in a debug folder is
    /// found without this option
    #[arg(long, value_name = "FILE", help_heading = "Sources")]
    dwp: Option<PathBuf>,
    #[command(flatten, next_help_heading = "Sources")]
    stores: StoreArgs,
    #[command(flatten, next_help_heading = "Sources")]
    access: AccessOption,
}

/// What a request calls its module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ModuleName {
    /// A path, and the architecture to use if the file has several.
    File {
        path: PathBuf,
        arch: Option<String>,
    },
    BuildId(IdPrefix),
}

/// What every module has.
#[derive(Clone, Copy)]
pub(super) struct ModuleInfo {
    /// The address in the file that image offsets count from.
    pub(super) base: u64,
    /// Whether addresses have 64 bits.
    pub(super) is_64: bool,
}

impl From<&Metadata> for ModuleInfo {
    fn from(metadata: &Metadata) -> Self {
        Self { base: metadata.base, is_64: metadata.arch.is_64_bit() }
    }
}

/// A frame, as [`symdex::Frame`] has it, and its column.
pub(super) struct Frame {
    pub(super) name: Option<Vec<u8>>,
    pub(super) file: Option<Vec<u8>>,
    pub(super) line: Option<u32>,
    /// 0 if it is unknown. Indexes have none.
    pub(super) column: u32,
    pub(super) inlined: bool,
    pub(super) function_start: Option<ImageOffset>,
    pub(super) table: Table,
}

impl From<symdex::Frame<'_>> for Frame {
    fn from(frame: symdex::Frame<'_>) -> Self {
        let symdex::Frame { name, file, line, inlined, function_start, table, .. } = frame;
        let (file, column) = file.map(split_column).unzip();
        let [name, file] = [name, file].map(|text| text.map(<[u8]>::to_vec));
        Self { name, file, line, column: column.unwrap_or(0), inlined, function_start, table }
    }
}

/// The frames at one address, innermost first. Empty where nothing is known.
pub(super) type Frames = Result<Vec<Frame>, Failure>;

/// What a module is asked.
enum Question {
    /// Addresses as the file states them.
    Code(Vec<u64>),
    Data(u64),
    /// The symbols with this name.
    Symbol(String),
    Sections,
}

/// The data symbol at an address, and where the variable there is declared. Literals are variables without symbols.
#[derive(Default)]
pub(super) struct Data {
    pub(super) symbol: Option<DataSymbol>,
    pub(super) declaration: Option<Declaration>,
}

/// The answer of a module for one address.
enum ModuleAnswer {
    Code(Frames),
    Data(Data),
    Symbol(Vec<Range<u64>>),
    Sections(Vec<Section>),
}

/// An open module. It answers on a thread, which owns the file and what was read of it.
struct Module {
    name: ModuleName,
    info: Result<ModuleInfo, Failure>,
    questions: SyncSender<Question>,
    answers: Receiver<ModuleAnswer>,
}

/// All modules of a run of the command.
pub(super) struct Modules {
    sources: Arc<Sources>,
    /// The module that was asked last is the last one.
    open: Vec<Module>,
}

impl Modules {
    /// `columns` says whether they are printed.
    ///
    /// # Errors
    ///
    /// If a store cannot be opened.
    pub(super) fn new(args: &SourceArgs, columns: bool) -> Result<Self, Failure> {
        let options = args.stores.options(args.access);
        let mut stores: Vec<_> = args.index.iter().map(|path| open_indexes(path, &options)).collect();
        stores.extend(args.stores.open_with(&options)?);
        let stores = StoreReader::new(stores, &ReaderOptions::of_one_run());
        if let Some(dwp) = args.dwp.as_ref().filter(|dwp| !dwp.is_file()) {
            complain(&format!("warning: {}: no such package of split units", dwp.display()));
        }
        let packages = args.dwp.iter().map(DebugFile::on_disk).collect();
        let (indexes, debug_dirs) = (args.index.len(), args.debug_dir.clone());
        let sources = Sources { stores, indexes, debug_dirs, packages, access: args.access, columns };
        Ok(Self { sources: Arc::new(sources), open: Vec::new() })
    }

    /// Opens the module `name`.
    ///
    /// # Errors
    ///
    /// If it cannot be found or read. The failure is remembered while the module is.
    pub(super) fn info(&mut self, name: &ModuleName) -> Result<ModuleInfo, Failure> {
        self.module(name).info.clone()
    }

    /// Calls `each` with the frames at each of `addresses`, in their order.
    ///
    /// # Errors
    ///
    /// If the module cannot be opened, or if `each` fails.
    pub(super) fn code(
        &mut self,
        name: &ModuleName,
        addresses: &[u64],
        mut each: impl FnMut(u64, Frames) -> Result<(), CommandError>,
    ) -> Result<(), CommandError> {
        let module = self.module(name);
        module.info.clone()?;
        let asked = module.questions.send(Question::Code(addresses.to_vec()));
        for address in addresses {
            let answer = match (&asked, module.answers.recv()) {
                (Ok(()), Ok(ModuleAnswer::Code(frames))) => frames,
                _ => Err(stopped(name)),
            };
            each(*address, answer)?;
        }
        Ok(())
    }

    /// The data at `address`.
    ///
    /// # Errors
    ///
    /// If the module cannot be opened.
    pub(super) fn data(&mut self, name: &ModuleName, address: u64) -> Result<Data, Failure> {
        match self.ask(name, Question::Data(address))? {
            ModuleAnswer::Data(data) => Ok(data),
            _ => Err(stopped(name)),
        }
    }

    /// The addresses of each symbol `symbol`, in ascending order.
    ///
    /// # Errors
    ///
    /// If the module cannot be opened.
    pub(super) fn symbol(&mut self, name: &ModuleName, symbol: &str) -> Result<Vec<Range<u64>>, Failure> {
        match self.ask(name, Question::Symbol(symbol.to_owned()))? {
            ModuleAnswer::Symbol(addresses) => Ok(addresses),
            _ => Err(stopped(name)),
        }
    }

    /// The loaded sections of the module's file. Empty for an index.
    ///
    /// # Errors
    ///
    /// If the module cannot be opened.
    pub(super) fn sections(&mut self, name: &ModuleName) -> Result<Vec<Section>, Failure> {
        match self.ask(name, Question::Sections)? {
            ModuleAnswer::Sections(sections) => Ok(sections),
            _ => Err(stopped(name)),
        }
    }

    /// Asks a question that has one answer.
    fn ask(&mut self, name: &ModuleName, question: Question) -> Result<ModuleAnswer, Failure> {
        let module = self.module(name);
        module.info.clone()?;
        let asked = module.questions.send(question).ok();
        asked.and_then(|()| module.answers.recv().ok()).ok_or_else(|| stopped(name))
    }

    fn module(&mut self, name: &ModuleName) -> &Module {
        match self.open.iter().position(|module| module.name == *name) {
            Some(at) => self.open[at..].rotate_left(1),
            None => {
                if self.open.len() == MAX_OPEN {
                    // Its thread ends when its questions do.
                    self.open.remove(0);
                }
                self.open.push(Module::start(name.clone(), Arc::clone(&self.sources)));
            }
        }
        &self.open[self.open.len() - 1]
    }
}

/// The failure of a module whose thread has ended early, which only a defect can cause.
fn stopped(name: &ModuleName) -> Failure {
    Failure::new(Cause::Other, format!("{name:?}: reading it failed"))
}

impl Module {
    fn start(name: ModuleName, sources: Arc<Sources>) -> Self {
        let (questions, asked) = sync_channel(1);
        let (answered, answers) = sync_channel(1);
        let (opened, info) = sync_channel(1);
        let wanted = name.clone();
        std::thread::spawn(move || {
            let run = sources.open(&wanted).and_then(|OpenModule { source, image, _owner }| {
                let answer = |lookup: &mut ImageLookup<'_, '_>| {
                    // The receiver waits for it.
                    _ = opened.send(Ok(ModuleInfo::from(lookup.metadata())));
                    answer_all(lookup, &sources, image.as_ref(), &asked, &answered);
                    Ok(None)
                };
                match source.answer(&sources.debug_dirs, Warnings::Avoidable, answer) {
                    Err(CommandError::Failure(failure)) => Err(failure),
                    _ => Ok(()),
                }
            });
            if let Err(failure) = run {
                // Fails if the module was opened before, so that nobody waits for this.
                _ = opened.send(Err(failure));
            }
        });
        let info = info.recv().unwrap_or_else(|_| Err(stopped(&name)));
        Self { name, info, questions, answers }
    }
}

/// Answers the questions about one module until there are no more. `image` has its files, if it is no index.
fn answer_all(
    lookup: &mut ImageLookup<'_, '_>,
    sources: &Sources,
    image: Option<&ImageFiles>,
    asked: &Receiver<Question>,
    answered: &SyncSender<ModuleAnswer>,
) {
    let mut scratch = Scratch::default();
    lookup.state_columns();
    // Loaded when data, symbols or sections are first asked for. Indexes do not have them.
    let (loaded, symbols, variables) = (OnceCell::new(), OnceCell::new(), OnceCell::new());
    let companions = Companions::new(sources.debug_dirs.clone()).files(&sources.packages);
    let loaded = || -> Option<&Image<'_>> {
        loaded.get_or_init(|| image.and_then(|files| Some(files.load(&companions).ok()?.0))).as_ref()
    };
    let files = || loaded().map_or(&[][..], Image::files);
    let symbols = || {
        symbols.get_or_init(|| {
            files().iter().filter_map(|file| FileSymbols::read(file, None)).collect::<Vec<_>>()
        })
    };
    let declaration = |address| {
        let variables: &Option<Variables<'_, '_>> = variables.get_or_init(|| Variables::of(loaded()?).ok());
        variables.as_ref()?.declaration(address)
    };
    for question in asked {
        let sent = match question {
            Question::Code(addresses) => {
                let base = lookup.metadata().base;
                let offsets: Vec<_> =
                    addresses.iter().map(|address| ImageOffset(address.wrapping_sub(base))).collect();
                let prepared = lookup.prepare(&offsets);
                let answer = |offset: ImageOffset| {
                    prepared.clone()?;
                    // Both programs use every line row.
                    let found = lookup.lookup(offset, LinePolicy::Exact, &mut scratch)?;
                    Ok(found.map_or_else(Vec::new, |frames| frames.iter().map(Frame::from).collect()))
                };
                let mut answers = offsets.iter().copied().map(answer);
                answers.try_for_each(|frames| answered.send(ModuleAnswer::Code(frames)))
            }
            Question::Data(address) => {
                let symbol = symbols().iter().find_map(|file| file.data(address));
                answered.send(ModuleAnswer::Data(Data { symbol, declaration: declaration(address) }))
            }
            Question::Symbol(symbol) => {
                let mut found = symbols().iter().map(|file| file.named(symbol.as_bytes()));
                answered.send(ModuleAnswer::Symbol(found.find(|found| !found.is_empty()).unwrap_or_default()))
            }
            Question::Sections => {
                let found = files().first().and_then(|file| sections(file, None));
                answered.send(ModuleAnswer::Sections(found.unwrap_or_default()))
            }
        };
        if sent.is_err() {
            return;
        }
    }
}
