//! Functions of an image as the symbol file of another tool states them.
//!
//! Such a file has functions with their inlined calls and lines, under one line policy, and no more of the debug
//! information. The crate `symdex-symbol-files` reads the formats: it fills [`Contents`] with the places of all
//! functions, and implements [`Records`], which reads one function. [`BuildOptions::build_symbol_file_into`] reads them
//! in the order of their addresses, on several threads, and merges them as it merges the units of a debug file.
//!
//! [`BuildOptions::build_symbol_file_into`]: crate::BuildOptions::build_symbol_file_into

mod function;
mod import;
mod unit;

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use symdex::write::{EncodedUnwindRows, ImageInfo, UnwindTable};
use symdex::{Arch, ImageId};

use self::function::TextsLeft;
pub use self::function::{Function, InlinedCall, Line};
pub(crate) use self::import::Batch;
use crate::error::Error;
use crate::image::MAX_OFFSET;
use crate::limits::NAME;
pub use crate::report::Problems;
use crate::symbols::{FunctionSymbols, Inside, Start};

/// The last symbol that has no end reaches to the end of its page.
const PAGE: u64 = 4096;

/// The reason that counts parts of a file some of whose names are left out.
const NAMES_LEFT_OUT: &str = "parts of the symbol file with names left out: they overlap too much";

/// How a format states its functions.
pub trait Records<'d>: Sync {
    /// Reads the records of a function, at this place in the file. `function` is empty but for its range.
    fn function(&self, records: Range<usize>, function: &mut Function<'d>, problems: &mut Problems);

    /// The name of an inlined function, by the number that [`InlinedCall::name`] has.
    fn name(&self, number: u64) -> Option<&'d [u8]>;

    /// The path of a file, by the number that calls and lines have.
    fn file(&self, number: u64) -> Option<Cow<'d, [u8]>>;

    /// The number of the file of an inlined function, by the number of its name, if the format states it.
    fn file_of_name(&self, _number: u64) -> Option<u64> {
        None
    }

    /// The unwind rows of an image of this architecture. `check` fails once rows of this number with these rules exceed
    /// the memory of the build, or its time is over. Call it regularly.
    ///
    /// # Errors
    ///
    /// Those of `check`, and [`Error::Index`] if the rows cannot be encoded.
    fn unwind_rows(
        &self,
        _arch: &Arch,
        _check: &dyn Fn(usize, &UnwindTable) -> Result<(), Error>,
        _problems: &mut Problems,
    ) -> Result<Option<EncodedUnwindRows>, Error> {
        Ok(None)
    }

    /// About how many bytes of memory it takes, without the bytes of the file.
    fn memory(&self) -> usize;

    /// How many bytes of memory a byte of the records of a function may take while it is merged; at least 1.
    fn memory_of_byte(&self) -> usize;
}

/// The image of a symbol file, and where its functions are.
#[non_exhaustive]
pub struct Contents<'d> {
    /// The id that the file states.
    pub id: Option<ImageId>,
    /// The architecture.
    pub arch: Arch,
    /// The name of the image; empty if the file does not state it.
    pub image_name: String,
    /// The address that image offset 0 was linked at.
    pub base: u64,
    /// What is odd about the id.
    pub warnings: Vec<String>,
    /// What cannot be read.
    pub problems: Problems,
    functions: Vec<Place>,
    symbols: Vec<Start<'d>>,
    texts: TextsLeft,
    size: u64,
}

/// Where a function is: its code, as image offsets, and its records in the file.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) at: usize,
    pub(crate) size: usize,
}

impl<'d> Contents<'d> {
    /// Of a file of `size` bytes, which states nothing so far.
    #[must_use]
    pub fn new(size: usize) -> Self {
        Self {
            id: None,
            arch: Arch { name: "unknown".to_owned(), cputype: 0, cpusubtype: 0 },
            image_name: String::new(),
            base: 0,
            warnings: Vec::new(),
            problems: Problems::default(),
            functions: Vec::new(),
            symbols: Vec::new(),
            texts: TextsLeft::of_records(size as u64),
            size: size as u64,
        }
    }

    /// Adds a function with lines or inlined calls: its code, as image offsets, and the place of its records.
    pub fn add_function(&mut self, code: Range<u64>, records: Range<usize>) {
        let (at, size) = (records.start, records.len());
        self.functions.push(Place { start: code.start, end: code.end, at, size });
    }

    /// Adds a function without lines, as image offsets. It reaches to the next one if its end is not stated. `name` is
    /// not called if the names so far are too large. Of several at one address, those with an end come first.
    pub fn add_symbol(&mut self, start: u64, end: Option<u64>, name: impl FnOnce() -> Option<&'d [u8]>) {
        let name = self.texts.take(|| Some(cut(name()?, NAME))).filter(|name| is_known(name));
        self.symbols.push(Start { start, rank: end.is_none().into(), name, inside: Inside::Function, end });
    }

    /// Adds the code of a function of which nothing else is known.
    pub fn add_code(&mut self, code: Range<u64>) {
        self.symbols.push(Start { end: Some(code.end), ..Start::nameless(code.start) });
    }
}

impl fmt::Debug for Contents<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Contents").field("id", &self.id).field("arch", &self.arch).finish_non_exhaustive()
    }
}

/// Functions with lines or inlined calls.
#[derive(Clone, Copy)]
pub(crate) struct Functions<'f, 'd> {
    /// In address order.
    pub(crate) places: &'f [Place],
    pub(crate) records: &'f dyn Records<'d>,
}

/// A symbol file of another tool, ready to be indexed.
pub struct SymbolFile<'d> {
    id: Option<ImageId>,
    info: ImageInfo,
    /// Functions with lines or inlined calls, in address order.
    functions: Vec<Place>,
    /// The others.
    symbols: FunctionSymbols<'d>,
    records: Box<dyn Records<'d> + 'd>,
    problems: Problems,
    warnings: Vec<String>,
    size: u64,
}

impl<'d> SymbolFile<'d> {
    /// The file with these contents, whose functions `records` reads.
    #[must_use]
    pub fn new(contents: Contents<'d>, records: Box<dyn Records<'d> + 'd>) -> Self {
        let Contents { id, arch, image_name, base, warnings, mut problems, .. } = contents;
        let Contents { mut functions, mut symbols, texts, size, .. } = contents;
        problems.limit(NAMES_LEFT_OUT, texts.is_used_up().into());
        within_limits(&mut functions, &mut symbols, &mut problems);
        let executable = executable(&functions, &symbols);
        end_before_functions(&mut symbols, &functions);
        let symbols = FunctionSymbols::new(symbols, executable.as_slice());
        // What has no id gets one from the caller.
        let mut info = ImageInfo::new(id.clone().unwrap_or(ImageId::of_hash(0)), image_name, arch);
        (info.base, info.image_size) = (base, executable.map_or(0, |(_, end)| end));
        info.executable = executable.into_iter().collect();
        Self { id, info, functions, symbols, records, problems, warnings, size }
    }

    /// The image's id: the one that the file states, or the one of [`Self::with_id`]. `None` if the file states none.
    #[must_use]
    pub fn id(&self) -> Option<&ImageId> {
        self.id.as_ref()
    }

    /// The image's architecture. Its name is `unknown` if the format does not state it.
    #[must_use]
    pub fn arch(&self) -> &Arch {
        &self.info.arch
    }

    /// The size of the file in bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Whether the file has lines or inlined calls.
    fn has_lines(&self) -> bool {
        !self.functions.is_empty()
    }

    /// The file, of the image with this id.
    #[must_use]
    pub fn with_id(mut self, id: ImageId) -> Self {
        self.info.id = id.clone();
        self.id = Some(id);
        // What it says of its own id does not count.
        self.warnings.clear();
        self
    }

    /// The file, of an image of this architecture.
    #[must_use]
    pub fn with_arch(mut self, arch: Arch) -> Self {
        self.info.arch = arch;
        self
    }

    /// The file, with the name of its image if it states none, as GSYM does: its own name without `.gsym`.
    #[must_use]
    pub fn named(mut self, file_name: &str) -> Self {
        if self.info.image_name.is_empty() {
            self.info.image_name = file_name.strip_suffix(".gsym").unwrap_or(file_name).to_owned();
        }
        self
    }

    /// About how many bytes of memory it takes, without the bytes of the file.
    fn memory(&self) -> usize {
        size_of_val(&self.functions[..]) + self.symbols.memory() + self.records.memory()
    }
}

impl fmt::Debug for SymbolFile<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SymbolFile").field("info", &self.info).finish_non_exhaustive()
    }
}

/// The first `limit` bytes.
fn cut(text: &[u8], limit: usize) -> &[u8] {
    &text[..text.len().min(limit)]
}

/// Whether a text is not the one for what is not known.
fn is_known(text: &[u8]) -> bool {
    !text.is_empty() && text != b"??"
}

/// Sorts the functions, and leaves out what lies beyond the greatest image.
fn within_limits(functions: &mut Vec<Place>, symbols: &mut Vec<Start<'_>>, problems: &mut Problems) {
    let before = functions.len() + symbols.len();
    functions.retain(|place| place.start < place.end && place.end <= MAX_OFFSET);
    let is_end = |start, end| (start..=MAX_OFFSET).contains(&end);
    symbols
        .retain(|Start { start, end, .. }| *start < MAX_OFFSET && end.is_none_or(|end| is_end(*start, end)));
    problems.dropped(
        "functions without code, or beyond 4 GiB",
        (before - functions.len() - symbols.len()) as u64,
    );
    functions.sort_by_key(|place| (place.start, place.end));
    // Unwind information says nothing of functions that are known.
    let is_function = |start| functions.binary_search_by_key(&start, |place| place.start).is_ok();
    symbols.retain(|symbol| symbol.rank != u8::MAX || !is_function(symbol.start));
    symbols.sort_unstable();
}

/// The code of the image, as far as a symbol file states it: from the first function to the end of the last one.
fn executable(functions: &[Place], symbols: &[Start<'_>]) -> Option<(u64, u64)> {
    let starts = functions
        .first()
        .map(|place| place.start)
        .into_iter()
        .chain(symbols.first().map(|symbol| symbol.start));
    let end = |symbol: &Start<'_>| symbol.end.unwrap_or(symbol.start + 1);
    let ends = functions.iter().map(|place| place.end).chain(symbols.iter().map(end));
    let (start, end) = (starts.min()?, ends.max()?);
    // Only the start of the last symbol may be known.
    let is_open = symbols.last().is_some_and(|symbol| symbol.end.is_none() && symbol.start + 1 == end);
    Some((start, if is_open { end.next_multiple_of(PAGE) } else { end }))
}

/// Ends symbols at the next function, or with the function that they are in. Other symbols end at the next symbol.
fn end_before_functions(symbols: &mut [Start<'_>], functions: &[Place]) {
    let mut next_start = u64::MAX;
    let mut after = u64::MAX;
    for symbol in symbols.iter_mut().rev() {
        if symbol.start != next_start {
            (after, next_start) = (next_start, symbol.start);
        }
        let place = functions.partition_point(|place| place.start <= symbol.start);
        let inside = functions[..place].last().map(|place| place.end).filter(|end| *end > symbol.start);
        let next = functions.get(place).map(|place| place.start);
        if let Some(end) =
            inside.into_iter().chain(next).min().filter(|end| *end < after && symbol.end.is_none())
        {
            symbol.end = Some(end);
        }
    }
}
