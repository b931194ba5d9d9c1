//! Symbol files of other tools: Breakpad's and LLVM's GSYM.
//!
//! Both have functions with their inlined calls and lines, under one line policy, and no more of the debug information.
//! [`SymbolFile::read`] finds where the functions are. [`crate::BuildOptions::build_symbol_file_into`] reads them in
//! the order of their addresses, on several threads, and merges them as it merges the units of a debug file.

mod breakpad;
mod function;
mod gsym;
mod import;
mod stack_cfi;
mod unit;

use std::borrow::Cow;
use std::fmt;

use symdex::write::ImageInfo;
use symdex::{Arch, ImageId, debug_id};

use self::breakpad::{BreakpadStrings, Module};
use self::function::Function;
use self::gsym::GsymStrings;
use crate::error::Error;
use crate::image::MAX_OFFSET;
use crate::report::Problems;
use crate::slice::describe;
use crate::symbols::{FunctionSymbols, Start};

/// The last symbol that has no end reaches to the end of its page.
const PAGE: u64 = 4096;

/// The reason that counts parts of a file some of whose names are left out.
const NAMES_LEFT_OUT: &str = "parts of the symbol file with names left out: they overlap too much";

/// A symbol file of Breakpad or GSYM. It borrows the bytes of the file.
///
/// ```
/// use symdex::{ImageOffset, Index, LinePolicy, Scratch};
/// use symdex_build::{BuildOptions, SymbolFile};
///
/// let text = b"MODULE mac arm64 4C4C442D55553144A16F02B9D32D2CE10 Demo\nFILE 0 a.c\nFUNC 100 20 0 f\n100 20 7 0\n";
/// let file = SymbolFile::read(text)?.named("Demo.sym");
/// let index = Index::open(BuildOptions::new().build_symbol_file_into(&file, Vec::new())?.bytes)?;
/// assert_eq!(index.id().to_string(), "4c4c442d55553144a16f02b9d32d2ce1");
/// let mut scratch = Scratch::default();
/// let frames = index.lookup(ImageOffset(0x110), LinePolicy::Statement, &mut scratch)?.ok_or("nothing there")?;
/// assert_eq!(frames.iter().next().and_then(|frame| frame.line), Some(7));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct SymbolFile<'d> {
    bytes: &'d [u8],
    id: Option<ImageId>,
    info: ImageInfo,
    /// Functions with lines or inlined calls, in address order.
    functions: Vec<Place>,
    /// The others.
    symbols: FunctionSymbols<'d>,
    /// Records `STACK CFI`, in address order.
    unwind: Vec<Place>,
    strings: Strings<'d>,
    problems: Problems,
    warnings: Vec<String>,
}

/// The strings of a symbol file, by the numbers that its functions use.
enum Strings<'d> {
    Breakpad(BreakpadStrings<'d>),
    Gsym(GsymStrings<'d>),
}

/// Where a function is: its code, as image offsets, and its records in the file.
#[derive(Clone, Copy, Debug)]
struct Place {
    start: u64,
    end: u64,
    at: usize,
    size: usize,
}

/// What functions a file has.
#[derive(Debug, Default)]
struct Contents<'d> {
    /// Those with lines or inlined calls.
    functions: Vec<Place>,
    symbols: Vec<Start<'d>>,
    unwind: Vec<Place>,
    problems: Problems,
}

impl<'d> SymbolFile<'d> {
    /// Finds the functions of a symbol file. `bytes` is the whole file. Its content says which format it has.
    ///
    /// # Errors
    ///
    /// [`Error::NotASymbolFile`] if it is neither Breakpad's nor GSYM, [`Error::Unsupported`] for another version of
    /// GSYM, [`Error::Truncated`] and [`Error::Malformed`] if the header of GSYM does not describe the file.
    pub fn read(bytes: &'d [u8]) -> Result<Self, Error> {
        let mut warnings = Vec::new();
        let (id, arch, name, base, strings, contents) = if bytes.starts_with(breakpad::BEGIN) {
            let (module, strings, contents) = breakpad::read(bytes);
            let text = |text: &[u8]| String::from_utf8_lossy(text).into_owned();
            let id = id_of_module(&module, &mut warnings);
            (
                id,
                arch_of_module(&text(module.arch)),
                text(module.name),
                0,
                Strings::Breakpad(strings),
                contents,
            )
        } else if gsym::MAGIC.iter().any(|magic| bytes.starts_with(magic)) {
            let (id, base, strings, contents) = gsym::read(bytes)?;
            let unknown = Arch { name: "unknown".to_owned(), cputype: 0, cpusubtype: 0 };
            (ImageId::new(id), unknown, String::new(), base, Strings::Gsym(strings), contents)
        } else {
            return Err(Error::NotASymbolFile { found: describe(bytes) });
        };
        let Contents { mut functions, mut symbols, mut unwind, mut problems } = contents;
        unwind.retain(|place| place.start < place.end);
        unwind.sort_by_key(|place| place.start);
        within_limits(&mut functions, &mut symbols, &mut problems);
        let executable = executable(&functions, &symbols);
        end_before_functions(&mut symbols, &functions);
        let symbols = FunctionSymbols::new(symbols, executable.as_slice());
        // What has no id gets one from the caller.
        let mut info = ImageInfo::new(id.clone().unwrap_or(ImageId::of_hash(0)), name, arch);
        (info.base, info.image_size) = (base, executable.map_or(0, |(_, end)| end));
        info.executable = executable.into_iter().collect();
        Ok(Self { bytes, id, info, functions, symbols, unwind, strings, problems, warnings })
    }

    /// The image's id: the one that the file states, or the one of [`Self::with_id`]. `None` if the file states none.
    #[must_use]
    pub fn id(&self) -> Option<&ImageId> {
        self.id.as_ref()
    }

    /// The image's architecture. Its name is `unknown` in GSYM, which does not state it.
    #[must_use]
    pub fn arch(&self) -> &Arch {
        &self.info.arch
    }

    /// Whether the file has lines or inlined calls.
    #[must_use]
    pub fn has_lines(&self) -> bool {
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
        let strings = match &self.strings {
            Strings::Breakpad(strings) => strings.memory(),
            Strings::Gsym(_) => 0,
        };
        let places = size_of_val(&self.functions[..]) + size_of_val(&self.unwind[..]);
        places + self.symbols.memory() + strings
    }

    /// Reads the function at a place.
    fn function(&self, place: &Place, function: &mut Function<'d>, problems: &mut Problems) {
        function.clear();
        let records = self.bytes.get(place.at..place.at + place.size).unwrap_or_default();
        let range = place.start..place.end;
        match &self.strings {
            Strings::Breakpad(_) => breakpad::function(records, range, function, problems),
            Strings::Gsym(strings) => strings.function(records, range, function, problems),
        }
    }
}

impl fmt::Debug for SymbolFile<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SymbolFile").field("info", &self.info).finish_non_exhaustive()
    }
}

impl<'d> Strings<'d> {
    fn name(&self, number: u64) -> Option<&'d [u8]> {
        match self {
            Self::Breakpad(strings) => strings.name(number),
            Self::Gsym(strings) => strings.name(number),
        }
    }

    fn file(&self, number: u64) -> Option<Cow<'d, [u8]>> {
        match self {
            Self::Breakpad(strings) => strings.file(number).map(Cow::Borrowed),
            Self::Gsym(strings) => strings.file(number),
        }
    }
}

/// The id of a module: the UUID of Mach-O, the GUID of Windows, and else the build id or its first 16 bytes.
fn id_of_module(module: &Module<'_>, warnings: &mut Vec<String>) -> Option<ImageId> {
    let stated = String::from_utf8_lossy(module.debug_id);
    // Breakpad's own tools write `mac`, and Mozilla's `Mac`.
    if matches!(&module.os.to_ascii_lowercase()[..], b"mac" | b"ios" | b"windows") {
        return debug_id::uuid(&stated).filter(is_not_zero);
    }
    let start = debug_id::build_id_start(&stated).filter(is_not_zero);
    let whole = std::str::from_utf8(module.code_id).ok().and_then(|id| id.parse::<ImageId>().ok());
    let is_same = |whole: &ImageId| {
        let start = start.as_ref().map_or(&[][..], ImageId::as_bytes);
        whole.as_bytes().iter().zip(start).all(|(a, b)| a == b)
    };
    if let Some(whole) = whole.filter(is_same) {
        return Some(whole);
    }
    if start.is_some() {
        let what = "only the first 16 bytes of the build id are known: the file has no INFO CODE_ID that begins with them";
        warnings.push(what.to_owned());
    }
    start
}

/// Whether the id is one: files of images without an id have zeros.
fn is_not_zero(id: &ImageId) -> bool {
    id.as_bytes().iter().any(|byte| *byte != 0)
}

/// The architecture by Breakpad's name, which differs from Apple's and LLVM's for some.
fn arch_of_module(name: &str) -> Arch {
    let known = match name {
        "x86" => Arch::from_name("i386"),
        "amd64" => Arch::from_name("x86_64"),
        "aarch64" => Arch::from_name("arm64"),
        name => Arch::from_name(name),
    };
    known.unwrap_or_else(|| Arch { name: name.to_owned(), cputype: 0, cpusubtype: 0 })
}

/// Sorts the functions, and leaves out what lies beyond the greatest image.
fn within_limits(functions: &mut Vec<Place>, symbols: &mut Vec<Start<'_>>, problems: &mut Problems) {
    let before = functions.len() + symbols.len();
    functions.retain(|place| place.start < place.end && place.end <= MAX_OFFSET);
    symbols.retain(|symbol| symbol.start < MAX_OFFSET && symbol.end.is_none_or(|end| end <= MAX_OFFSET));
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
