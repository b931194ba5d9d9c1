//! Text backtraces of debuggers, runtimes and C libraries. Each frame is a line. An answer is appended to the line, or
//! replaces the function in it.
//!
//! The formats differ in their lines only. [`Dialect`] reads the lines of one format, and [`parse`] makes a report from
//! them.

pub(crate) mod dart;
pub(crate) mod gdb;
pub(crate) mod glibc;
pub(crate) mod go;
pub(crate) mod kernel;
pub(crate) mod list;
pub(crate) mod lldb;
mod memory_map;
pub(crate) mod minidump_text;
pub(crate) mod panic;
pub(crate) mod runtime;
pub(crate) mod rust;
pub(crate) mod swift;

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use symdex_demangle::printable;

use crate::engine::function::Function;
use crate::engine::limits::{FUNCTIONS, ReadLimit};
use crate::engine::symbolicate::Resolution;
use crate::formats::apple_text::Lists;
use crate::formats::existing::ExistingSymbol;
use crate::formats::format::Edits;
use crate::report::{
    AddressKind, Base, Frame, Number, Parsed, Report, ReportImage, Span, SymbolDetail, Thread,
};
use crate::text::{line_end, lines, lossy, lossy_text};

/// Reads the lines of one format.
struct Dialect {
    frame: for<'l> fn(&'l [u8]) -> Option<FrameLine<'l>>,
    /// Reads the lists of images in a report.
    images: fn(&[u8], &ReadLimit) -> Vec<ReportImage>,
    /// Reads the title of a stack, and whether it is the one that crashed.
    title: fn(&[u8]) -> Option<(String, bool)>,
    /// Whether only a title begins a stack. Other lines may then occur between frames without numbers.
    is_split_by_titles: bool,
    /// Whether the innermost frame of a stack with this title is an instruction, whatever its line says.
    begins_with_instruction: fn(&str) -> bool,
    /// Reads the file and the line of the function in the line before.
    location: fn(&[u8]) -> Option<Location>,
}

impl Dialect {
    /// Lines of frames, without lists of images and without titles.
    const PLAIN: Self = Self {
        frame: |_| None,
        images: |_, _| Vec::new(),
        title: |_| None,
        is_split_by_titles: false,
        begins_with_instruction: |_| false,
        location: |_| None,
    };
}

/// A file and a line number.
type Location = (String, u32);

/// A line with a frame.
struct FrameLine<'l> {
    /// The number of the frame in its stack; `None` if the format has none.
    number: Option<u64>,
    address: u64,
    kind: AddressKind,
    image: ImageReference<'l>,
    detail: SymbolDetail,
    /// The span of the function's name in the line.
    function: Option<Span>,
    inlined: bool,
    /// The length of the part before the function, if the line has room for one. An answer replaces what follows.
    head: usize,
    /// The file and the line number.
    location: Option<Location>,
    /// The distance from the start of the function.
    offset: Option<u64>,
}

/// How a frame states its image.
#[derive(Clone, Copy)]
enum ImageReference<'l> {
    /// By its address alone.
    Address,
    /// By the name of an image of the list. Several can have the name; the frame's address decides.
    Name(&'l [u8]),
    /// By the path and the load address. One line of each image can state its id.
    Loaded { path: &'l [u8], load_address: u64, id: Option<&'l [u8]> },
    /// By the path, and a function of it with its start address. Another line of the image can state the load address.
    Function { path: &'l [u8], function: &'l [u8], start: u64 },
}

/// What gdb prints for the frame that the kernel creates to call a signal handler.
const SIGNAL_HANDLER: &[u8] = b"<signal handler called>";

/// Whether `text` has a line with a frame.
fn has_frame(text: &[u8], dialect: &Dialect) -> bool {
    frame_lines(text, dialect).any(|(.., frame)| frame.is_some())
}

/// The lines of `text` with their spans, and the frames in them. Lists of images and of registers have none.
fn frame_lines<'t>(
    text: &'t [u8],
    dialect: &Dialect,
) -> impl Iterator<Item = (Span, &'t [u8], Option<FrameLine<'t>>)> {
    let mut lists = Lists::default();
    lines(text).map(move |(span, line)| {
        let frame = if lists.have(line) { None } else { (dialect.frame)(line) };
        (span, line, frame)
    })
}

/// Reads a report. Images may be listed after the stacks, so they are read first.
fn parse(text: &[u8], dialect: &Dialect) -> Parsed {
    let limit = ReadLimit::of(text.len());
    let mut images = Images::default();
    (dialect.images)(text, &limit).into_iter().for_each(|image| images.push(image));
    for (.., frame) in frame_lines(text, dialect) {
        if let Some(ImageReference::Loaded { path, load_address, id }) = frame.map(|frame| frame.image) {
            images.add(path, load_address, id, &limit);
        }
    }
    let mut threads: Vec<Thread> = Vec::new();
    let mut title = None;
    // Whether a signal interrupted the next frame.
    let mut is_interrupted = false;
    // The number and the address of the frame before.
    let mut previous: Option<(Option<u64>, u64)> = None;
    for (span, line, frame) in frame_lines(text, dialect) {
        let Some(mut frame) = frame else {
            is_interrupted |= memchr::memmem::find(line, SIGNAL_HANDLER).is_some();
            title = (dialect.title)(line).or(title);
            // Lines without numbers are one stack if they follow one another.
            previous = previous.filter(|(number, _)| number.is_some() || dialect.is_split_by_titles);
            if (dialect.location)(line).is_some() {
                let frame = threads.last_mut().and_then(|thread| thread.frames.last_mut());
                let is_named = |frame: &&mut Frame| frame.detail == SymbolDetail::Function;
                if let Some(frame) = frame.filter(is_named) {
                    frame.detail = SymbolDetail::Line;
                }
            }
            continue;
        };
        if !limit.take() {
            continue;
        }
        let is_next = previous.is_some_and(|(number, address)| {
            number < frame.number
                || (number == frame.number && (number.is_none() || address == frame.address))
        });
        previous = Some((frame.number, frame.address));
        if !is_next || title.is_some() {
            if let Some(thread) = threads.last_mut() {
                thread.frames.shrink_to_fit();
            }
            limit.take_stack();
            let (name, crashed) = title.take().unwrap_or_default();
            is_interrupted |= (dialect.begins_with_instruction)(&name);
            threads.push(Thread { name, crashed, ..Thread::default() });
        }
        if std::mem::take(&mut is_interrupted) {
            frame.kind = AddressKind::ProgramCounter;
        }
        let image = images.of(&frame, &limit);
        if let Some(thread) = threads.last_mut() {
            thread.frames.push(frame.placed(image, span));
        }
    }
    Parsed { images: images.images, threads, extent: limit.extent(0), ..Parsed::default() }
}

/// Reads each line of `text` with `image`.
fn images_in_lines(
    text: &[u8],
    limit: &ReadLimit,
    image: impl Fn(&[u8]) -> Option<ReportImage>,
) -> Vec<ReportImage> {
    lines(text).filter_map(|(_, line)| image(line)).take_while(|_| limit.take_image()).collect()
}

/// The name of the executable in reports that state no images, for `--assume executable=FILE`.
const EXECUTABLE: &str = "executable";

/// The images of the memory map in `text`. Without one, the only image is the executable. Its addresses are then read
/// as those of its file, which they are if it is not position-independent.
fn mapped_or_executable(text: &[u8], limit: &ReadLimit) -> Vec<ReportImage> {
    let mut images = memory_map::images(text, limit);
    if images.is_empty() {
        images.push(ReportImage { name: EXECUTABLE.to_owned(), base: Base::File, ..ReportImage::default() });
    }
    images
}

/// The image of a frame for [`mapped_or_executable`]. Address 0 stands for the end of the stack or for no address.
fn mapped(address: u64) -> ImageReference<'static> {
    match address {
        0 => ImageReference::Address,
        // With a memory map there is no image of this name, and the address decides.
        _ => ImageReference::Name(EXECUTABLE.as_bytes()),
    }
}

/// Appends an answer to each line.
const APPENDED: Edits = Edits::Frames(list::replacement);

impl<'l> FrameLine<'l> {
    /// A frame in `line` without a function in the report. The line may have an answer of an earlier run.
    fn of_address(
        line: &[u8],
        number: Option<u64>,
        address: u64,
        kind: AddressKind,
        image: ImageReference<'l>,
    ) -> Self {
        let detail = if list::has_line(line) { SymbolDetail::Line } else { SymbolDetail::AddressOnly };
        let (function, inlined, head) = (None, line.ends_with(list::INLINED), line.len());
        Self { number, address, kind, image, detail, function, inlined, head, location: None, offset: None }
    }

    /// A frame in `line` with room for a function after the first `head` bytes. The frame with number 0 is an
    /// instruction.
    fn of_symbol(
        line: &[u8],
        (number, address): (u64, u64),
        image: ImageReference<'l>,
        head: usize,
        function: Option<Span>,
        location: Option<Location>,
    ) -> Self {
        let detail = SymbolDetail::of(function.is_some(), location.is_some());
        let bare = Self::of_address(line, Some(number), address, AddressKind::of(number == 0), image);
        Self { detail, function, head, location, ..bare }
    }

    /// The name or the path of the image that the line names.
    fn stated_image(&self) -> Option<Cow<'l, str>> {
        match self.image {
            ImageReference::Name(path) | ImageReference::Loaded { path, .. } => Some(lossy_text(path)),
            ImageReference::Address | ImageReference::Function { .. } => None,
        }
    }

    fn placed(self, image: Option<usize>, line: Span) -> Frame {
        let function = self.function.map(|name| (line.start + name.start..line.start + name.end).into());
        Frame {
            address: self.address,
            image: image.map(Number::from),
            kind: self.kind,
            detail: self.detail,
            function,
            inlined: self.inlined,
            site: line.into(),
        }
    }
}

/// The symbols in the lines of a report.
fn existing_symbols(report: &Report<'_>, dialect: &Dialect) -> Vec<Vec<ExistingSymbol>> {
    report.map_frames(|frame| {
        let text = report.at(frame.site);
        let line = (dialect.frame)(text).filter(|_| frame.function.is_some());
        let Some(line) = line else { return ExistingSymbol::default() };
        let below = || lines(report.text().get(frame.site.start()..)?).nth(1);
        let location = line.location.or_else(|| (dialect.location)(below()?.1));
        let (file, number) = location.unzip();
        let function = line.function.and_then(|name| text.get(name)).map(lossy);
        ExistingSymbol { function, file, line: number, offset: line.offset }
    })
}

/// A line for each function at `site`, with the first bytes of the frame's line. `answer` returns the text after them,
/// and the text of a line below.
fn with_symbols(
    text: &[u8],
    site: &Span,
    resolution: &Resolution<'_>,
    dialect: &Dialect,
    answer: impl Fn(&Function, &[u8], &FrameLine<'_>) -> Option<(String, Option<String>)>,
) -> Option<Vec<u8>> {
    let line = text.get(site.clone())?;
    let frame = (dialect.frame)(line)?;
    let (head, end) = (line.get(..frame.head)?, line_end(text, site.end));
    let lines = resolution.frames.iter().map(|resolved| {
        let (symbol, below) = answer(resolved, line, &frame)?;
        let mark = if resolved.inlined { " [inlined]" } else { "" };
        let mut out = [head, printable((symbol + mark).into()).as_bytes()].concat();
        if let Some(below) = below {
            out.extend([end, printable(below.into()).as_bytes()].concat());
        }
        Some(out)
    });
    Some(lines.collect::<Option<Vec<_>>>()?.join(end))
}

/// The images of a report, with their positions by name and load address.
#[derive(Default)]
struct Images {
    images: Vec<ReportImage>,
    known: HashMap<String, BTreeMap<u64, usize>>,
    /// The positions of images that are stated by a function, by path, function and its start address.
    functions: HashMap<(String, String, u64), usize>,
}

impl Images {
    fn push(&mut self, image: ReportImage) {
        let by_address = self.known.entry(image.name.clone()).or_default();
        by_address.entry(image.load_address).or_insert(self.images.len());
        self.images.push(image);
    }

    /// Adds the image if it is new, and its id if that is new. Its name is the path.
    fn add(&mut self, path: &[u8], load_address: u64, id: Option<&[u8]>, limit: &ReadLimit) {
        let name = lossy(path);
        let id = || list::id(id?);
        let known = self.known.get(&name).and_then(|known| known.get(&load_address));
        if let Some(number) = known {
            let known = &mut self.images[*number];
            known.id = known.id.take().or_else(id);
        } else if limit.take_image_of_frame() {
            self.push(ReportImage {
                path: name.clone(),
                name,
                id: id(),
                load_address,
                ..ReportImage::default()
            });
        }
    }

    /// Returns the position of the image of `frame`. `None` if the report states neither its load address nor one of
    /// its functions.
    fn of(&mut self, frame: &FrameLine<'_>, limit: &ReadLimit) -> Option<usize> {
        let (name, load_addresses) = match frame.image {
            ImageReference::Address => return None,
            ImageReference::Name(name) => (name, 0..=frame.address),
            ImageReference::Loaded { path, load_address, .. } => (path, load_address..=load_address),
            ImageReference::Function { path, .. } => (path, 0..=frame.address),
        };
        let by_address = self.known.get(&*lossy_text(name));
        let loaded = by_address.and_then(|by_address| by_address.range(load_addresses).next_back());
        match (loaded, frame.image) {
            (Some((_, number)), _) => Some(*number),
            (None, ImageReference::Function { path, function, start }) => {
                self.of_function(path, function, start, limit)
            }
            (None, _) => None,
        }
    }

    /// Returns the position of the image that has `function` at `start`, and adds it if it is new. `None` past the
    /// limit of functions: the frame is counted.
    fn of_function(&mut self, path: &[u8], function: &[u8], start: u64, limit: &ReadLimit) -> Option<usize> {
        let (path, function) = (lossy(path), lossy(function));
        let key = (path.clone(), function.clone(), start);
        if let Some(number) = self.functions.get(&key) {
            return Some(*number);
        }
        if self.functions.len() == FUNCTIONS {
            limit.skip(1);
            return None;
        }
        limit.take_image_of_frame().then_some(())?;
        self.functions.insert(key, self.images.len());
        let (name, base) = (path.clone(), Base::Function);
        self.images.push(ReportImage {
            name,
            path,
            base,
            function,
            load_address: start,
            ..ReportImage::default()
        });
        Some(self.images.len() - 1)
    }
}
