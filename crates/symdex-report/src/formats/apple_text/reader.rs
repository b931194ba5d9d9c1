//! Reads the lines of a report into stacks and images.

use std::collections::HashMap;

use symdex::{Arch, ImageId};

use super::frame::{self, FrameLine};
use super::header::{HeaderReader, label_and_queue};
use super::lines::{self, BareStack, CRASHED, FATAL, KERNEL, Lists};
use crate::engine::limits::ReadLimit;
use crate::formats::rules::is_nameless;
use crate::registers::MAX_REGISTERS;
use crate::report::{AddressKind, Frame, Number, Parsed, ReportImage, Site, Span, Thread};
use crate::text::{lossy, lossy_text};

/// The state of the parser.
#[derive(Default)]
pub(super) struct Reader<'t> {
    parsed: Parsed,
    limit: ReadLimit,
    /// The consecutive frames so far, the numbers of the first and the last of them, and the column of the last line
    /// if they are a tree.
    stack: Vec<Frame>,
    numbers: (u64, u64),
    column: Option<usize>,
    /// The title of the next stack, and other data of its thread.
    name: String,
    thread: Thread,
    header: HeaderReader,
    /// The images that frames name, in the order of the frames. Until the images are known, a frame has the position
    /// in this table as its image.
    frame_images: Vec<FrameImage<'t>>,
    /// The positions in `frame_images`.
    known: HashMap<FrameImage<'t>, Number>,
    /// The architecture that the report states, and the one of a thread's registers.
    arch: Option<Arch>,
    arch_of_registers: Option<Arch>,
    /// The position of the last thread that crashed.
    crashed: Option<usize>,
    lists: Lists,
    /// Whether the last list is one of images.
    is_in_images: bool,
    /// Whether frames may have no numbers, and the image that lines below the stack then state.
    is_umeng: bool,
    stated: ReportImage,
    /// Whether a title is one of Crashlytics. The names of threads are then titles, too.
    is_crashlytics: bool,
}

/// An image as a frame's line states it.
#[derive(Clone, PartialEq, Eq, Hash)]
struct FrameImage<'t> {
    /// The load address of the image, if the frame's line states it. Lines with a function's name do not.
    load_address: Option<u64>,
    /// The id of the image, if the line states it.
    id: Option<ImageId>,
    image: &'t [u8],
}

/// Whether `text` is a report of Umeng, which states the image of the app below the stack.
pub(super) fn is_umeng(text: &[u8]) -> bool {
    memchr::memmem::find(text, b"dSYM UUID: ").is_some()
}

impl<'t> Reader<'t> {
    pub(super) fn new(text: &[u8]) -> Self {
        Self { limit: ReadLimit::of(text.len()), is_umeng: is_umeng(text), ..Self::default() }
    }

    /// Reads the next line, which is at `span`.
    pub(super) fn line(&mut self, line: &'t [u8], span: Span) {
        let is_listed = self.lists.have(line);
        let frame = if is_listed { None } else { frame::frame(line, span.start) };
        if let Some(frame) = frame.filter(|frame| frame.number.is_some() || self.is_umeng) {
            if self.limit.take() {
                self.push(frame, span);
            }
            return;
        }
        self.end_stack();
        self.header.line(line);
        if lines::is_images_header(line) {
            self.is_in_images = true;
        } else if let Some(image) = lines::image(line).filter(|_| self.is_in_images) {
            if self.limit.take_image() {
                self.parsed.images.push(image);
            }
        } else if let Some(name) = lines::stack_name(line) {
            // `Thread 3:: Dispatch queue: q`, `Thread 3 Crashed: worker`. The titles of exceptions have no label.
            let title = lossy_text(line);
            self.is_crashlytics |= [FATAL, CRASHED].iter().any(|title| name.starts_with(title));
            let is_of_thread = name.starts_with("Thread ") || name.starts_with(CRASHED);
            if let Some((_, label)) = title.split_once(':').filter(|_| is_of_thread) {
                let known = std::mem::take(&mut self.thread);
                let (label, queue) = label_and_queue(label.trim_start_matches(':'));
                (self.thread.label, self.thread.queue) = (label.or(known.label), queue.or(known.queue));
            }
            self.name = name;
        } else if let Some(label) = lines::thread_label(line) {
            (self.thread.label, self.thread.queue) = label_and_queue(&lossy(label));
        } else if let Some(arch) = line.strip_prefix(b"Code Type:").and_then(lines::code_type) {
            self.arch = Some(arch);
        } else if lines::is_thread_state(line) {
            self.arch_of_registers = lines::thread_state(line).or(self.arch_of_registers.take());
            self.is_in_images = false;
        } else if let Some(thread) = self.crashed.filter(|_| is_listed && !self.is_in_images) {
            let registers = &mut self.parsed.threads[thread].registers;
            registers.extend(lines::registers(line, MAX_REGISTERS - registers.len()));
        } else if let Some(stack) = lines::bare_stack(line, span.start, self.limit.frames_left()) {
            self.bare_stack(stack);
        } else if self.is_umeng {
            lines::stated_image(line, &mut self.stated);
        } else if self.is_crashlytics && self.name.is_empty() {
            self.name = lossy(line.trim_ascii());
        }
    }

    /// Whether `line` begins another report: the list of images is the last part of a report that states ids.
    pub(super) fn is_before(&self, line: &[u8]) -> bool {
        const FIRST: [&[u8]; 2] = [b"Incident Identifier:", b"Process:"];
        !self.parsed.images.is_empty() && FIRST.iter().any(|first| line.starts_with(first))
    }

    /// Returns the images and stacks, with an image for each frame that names one. `rest` is the number of bytes that
    /// follow the report.
    pub(super) fn finish(mut self, rest: u64) -> Parsed {
        self.end_stack();
        let Self { mut parsed, frame_images, arch, arch_of_registers, header, limit, stated, .. } = self;
        parsed.info = header.finish();
        if stated.id.is_some() && stated.load_address != 0 && limit.take_image() {
            parsed.images.push(stated);
        }
        let arch = arch.or(arch_of_registers);
        parsed.images.iter_mut().for_each(|image| image.arch = image.arch.take().or_else(|| arch.clone()));
        let mut loaded = HashMap::new();
        for (number, image) in parsed.images.iter().enumerate() {
            loaded.entry(image.load_address).or_insert(number);
        }
        // Positions of the images that the report does not list, by name. `None` if several images have the name.
        let mut unlisted = HashMap::new();
        let mut with_ids = HashMap::new();
        let mut numbers: Vec<Option<usize>> = Vec::with_capacity(frame_images.len());
        for FrameImage { load_address, id, image } in &frame_images {
            let mut push = |load_address| {
                let (name, id, arch) = (lossy(image), id.clone(), arch.clone());
                parsed.images.push(ReportImage {
                    name,
                    id,
                    load_address,
                    arch,
                    is_unlisted: true,
                    ..ReportImage::default()
                });
                parsed.images.len() - 1
            };
            numbers.push(match (load_address, id) {
                (Some(0), Some(id)) => Some(*with_ids.entry((*image, id)).or_insert_with(|| push(0))),
                (Some(load_address), None) if is_nameless(image) => loaded.get(load_address).copied(),
                (Some(load_address), id) => {
                    let number = *loaded.entry(*load_address).or_insert_with(|| {
                        // An excerpt of a report has frames of images that it does not list.
                        let number = push(*load_address);
                        unlisted.entry(*image).and_modify(|known| *known = None).or_insert(Some(number));
                        number
                    });
                    // One line of an image can state its id.
                    let known = &mut parsed.images[number];
                    known.id = known.id.take().or_else(|| id.clone());
                    Some(number)
                }
                (None, _) => None,
            });
        }
        for (FrameImage { image, .. }, number) in frame_images.iter().zip(&mut numbers) {
            // This stays `None` for an image that the report lists. The address tells that image.
            *number = number.or_else(|| unlisted.get(image).copied().flatten());
        }
        for frame in parsed.threads.iter_mut().flat_map(|thread| &mut thread.frames) {
            frame.image = frame.image().and_then(|entry| numbers[entry as usize]).map(Number::from);
        }
        parsed.extent = limit.extent(rest);
        parsed
    }

    fn push(&mut self, line: FrameLine<'t>, site: Span) {
        let FrameLine { number, column, image, address, load_address, id, detail, function, inlined, .. } =
            line;
        if column.is_some() != self.column.is_some() {
            self.end_stack();
        }
        // A deeper line has a function that the one above calls. The caller of a function of the kernel is at an
        // instruction.
        if std::mem::replace(&mut self.column, column) < column
            && address < KERNEL
            && let Some(caller) = self.stack.last_mut()
        {
            caller.kind = AddressKind::ReturnAddress;
        }
        let number = number.unwrap_or(self.stack.len() as u64);
        self.numbers = (if self.stack.is_empty() { number } else { self.numbers.0 }, number);
        let frame_image = FrameImage { load_address, id, image };
        let is_unknown = is_nameless(image) && load_address.is_none();
        let image = if is_unknown { None } else { self.frame_image(frame_image) };
        let kind = column.map_or(AddressKind::ReturnAddress, |_| AddressKind::ProgramCounter);
        let (site, function) = (site.into(), function.map(Into::into));
        self.stack.push(Frame { address, image, kind, site, detail, function, inlined });
    }

    /// The position of `image` in the table, which gets it if it is new.
    fn frame_image(&mut self, image: FrameImage<'t>) -> Option<Number> {
        // Most frames are of the image of the frame before. Comparing is faster than hashing.
        let before = self.stack.last().and_then(|frame| frame.image);
        if let Some(before) =
            before.filter(|before| self.frame_images.get(before.get() as usize) == Some(&image))
        {
            return Some(before);
        }
        if let Some(number) = self.known.get(&image) {
            return Some(*number);
        }
        self.limit.take_image_of_frame().then_some(())?;
        let number = Number::from(self.frame_images.len());
        self.known.insert(image.clone(), number);
        self.frame_images.push(image);
        Some(number)
    }

    /// Makes a thread from the frames so far.
    fn end_stack(&mut self) {
        let mut frames = std::mem::take(&mut self.stack);
        if frames.is_empty() {
            return;
        }
        let name = std::mem::take(&mut self.name);
        let (first, last) = self.numbers;
        // Trees begin with the outermost frame. `leaks` counts down, from the outermost frame to the caller of malloc.
        if self.column.take().is_some() || first > last {
            frames.reverse();
        } else if lines::is_of_kotlin(&name) {
            frames.iter_mut().for_each(|frame| frame.kind = AddressKind::ProgramCounter);
        // The stack of an exception has return addresses only.
        } else if first == 0 && !lines::is_of_exception(&name) {
            frames[0].kind = AddressKind::ProgramCounter;
        }
        let crashed = name.contains("Crashed") || name.starts_with(FATAL);
        frames.shrink_to_fit();
        self.crashed = if crashed { Some(self.parsed.threads.len()) } else { self.crashed };
        self.limit.take_stack();
        self.parsed.threads.push(Thread { name, crashed, frames, ..std::mem::take(&mut self.thread) });
    }

    /// Adds the stack of an exception that is one line of addresses. All of them are return addresses.
    fn bare_stack(&mut self, stack: BareStack) {
        let own = std::mem::take(&mut self.name);
        let name = stack.name.unwrap_or(own);
        let kind = AddressKind::ReturnAddress;
        let frame = |(address, site): (u64, Site)| Frame { kind, site, ..Frame::new(address, None) };
        self.limit.skip(stack.more);
        let read = stack.addresses.into_iter().take_while(|_| self.limit.take());
        let frames = read.map(frame).collect();
        self.limit.take_stack();
        self.parsed.threads.push(Thread { name, frames, ..std::mem::take(&mut self.thread) });
    }
}
