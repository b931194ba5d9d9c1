//! Reads the lines of a report into stacks and images.

use std::collections::HashMap;

use symdex::{Arch, ImageId};

use super::frame::{self, FrameLine};
use super::header::{HeaderReader, label_and_queue};
use super::lines::{self, BareStack, is_nameless};
use crate::report::{AddressKind, Frame, Image, MAX_IMAGES, Parsed, Span, SymbolDetail, Thread};
use crate::text::lossy;

/// The state of the parser.
#[derive(Default)]
pub(super) struct Reader<'t> {
    parsed: Parsed,
    /// The consecutive frames so far, and the numbers of the first and the last of them.
    stack: Vec<Frame>,
    numbers: (u64, u64),
    /// The title of the next stack, and other data of its thread.
    name: String,
    thread: Thread,
    header: HeaderReader,
    /// The images that frames name, in the order of the frames.
    frame_images: Vec<FrameImage<'t>>,
    /// The architecture that the report states, and the one of a thread's registers.
    arch: Option<Arch>,
    registers: Option<Arch>,
    is_in_images: bool,
}

struct FrameImage<'t> {
    thread: usize,
    frame: usize,
    /// The load address of the image, if the frame's line states it. Lines with a function's name do not.
    load_address: Option<u64>,
    /// The id of the image, if the line states it. The load address is then 0.
    id: Option<ImageId>,
    image: &'t [u8],
}

impl<'t> Reader<'t> {
    /// Reads the next line, which is at `span`.
    pub(super) fn line(&mut self, line: &'t [u8], span: Span) {
        if let Some(frame) = frame::frame(line, span.start) {
            self.push(frame, span);
            return;
        }
        self.end_stack();
        self.header.line(line);
        if lines::is_images_header(line) {
            self.is_in_images = true;
        } else if let Some(image) = lines::image(line).filter(|_| self.is_in_images) {
            if self.parsed.images.len() < MAX_IMAGES {
                self.parsed.images.push(image);
            }
        } else if let Some(name) = lines::stack_name(line) {
            if let Some((_, label)) = String::from_utf8_lossy(line).split_once("::") {
                (self.thread.label, self.thread.queue) = label_and_queue(label);
            }
            self.name = name;
        } else if let Some(label) = lines::thread_label(line) {
            (self.thread.label, self.thread.queue) = label_and_queue(&lossy(label));
        } else if let Some(arch) = line.strip_prefix(b"Code Type:").and_then(lines::code_type) {
            self.arch = Some(arch);
        } else if let Some(arch) = lines::thread_state(line) {
            self.registers = Some(arch);
        } else if let Some(stack) = lines::bare_stack(line, span.start) {
            self.bare_stack(stack);
        }
    }

    /// Returns the images and stacks, with an image for each frame that names one.
    pub(super) fn finish(mut self) -> Parsed {
        self.end_stack();
        let Self { mut parsed, frame_images, arch, registers, header, .. } = self;
        parsed.info = header.finish();
        let arch = arch.or(registers);
        parsed.images.iter_mut().for_each(|image| image.arch = image.arch.take().or_else(|| arch.clone()));
        let mut loaded = HashMap::new();
        for (number, image) in parsed.images.iter().enumerate() {
            loaded.entry(image.load_address).or_insert(number);
        }
        // Positions of the images that the report does not list, by name. `None` if several images have the name.
        let mut unlisted = HashMap::new();
        let mut with_ids = HashMap::new();
        for FrameImage { thread, frame, load_address, id, image } in &frame_images {
            let Some(load_address) = *load_address else { continue };
            if let Some(id) = id {
                let number = *with_ids.entry((*image, id)).or_insert_with(|| {
                    let (name, id) = (lossy(image), Some(id.clone()));
                    parsed.images.push(Image { name, id, arch: arch.clone(), ..Image::default() });
                    parsed.images.len() - 1
                });
                parsed.threads[*thread].frames[*frame].image = Some(number);
                continue;
            }
            let number = *loaded.entry(load_address).or_insert_with(|| {
                // An excerpt of a report has frames of images that it does not list.
                let number = parsed.images.len();
                unlisted.entry(*image).and_modify(|known| *known = None).or_insert(Some(number));
                parsed.images.push(Image {
                    name: lossy(image),
                    load_address,
                    arch: arch.clone(),
                    ..Image::default()
                });
                number
            });
            parsed.threads[*thread].frames[*frame].image = Some(number);
        }
        for FrameImage { thread, frame, image, .. } in
            frame_images.iter().filter(|frame_image| frame_image.load_address.is_none())
        {
            // This is `None` for an image that the report lists. The address tells that image.
            parsed.threads[*thread].frames[*frame].image = unlisted.get(image).copied().flatten();
        }
        parsed
    }

    fn push(&mut self, line: FrameLine<'t>, site: Span) {
        let FrameLine { number, image, address, load_address, id, detail, function, inlined, .. } = line;
        self.numbers = (if self.stack.is_empty() { number } else { self.numbers.0 }, number);
        if !is_nameless(image) {
            let (thread, frame) = (self.parsed.threads.len(), self.stack.len());
            self.frame_images.push(FrameImage { thread, frame, load_address, id, image });
        }
        let kind = AddressKind::ReturnAddress;
        self.stack.push(Frame { address, image: None, kind, site, detail, function, inlined });
    }

    /// Makes a thread from the frames so far.
    fn end_stack(&mut self) {
        let mut frames = std::mem::take(&mut self.stack);
        if frames.is_empty() {
            return;
        }
        let name = std::mem::take(&mut self.name);
        let (first, last) = self.numbers;
        // `leaks` counts down, from the outermost frame to the caller of malloc.
        if first > last {
            frames.reverse();
            let thread = self.parsed.threads.len();
            let of_stack =
                self.frame_images.iter_mut().rev().take_while(|frame_image| frame_image.thread == thread);
            of_stack.for_each(|frame_image| frame_image.frame = frames.len() - 1 - frame_image.frame);
        // The stack of an exception has return addresses only.
        } else if first == 0 && !lines::is_of_exception(&name) {
            frames[0].kind = AddressKind::ProgramCounter;
        }
        let crashed = name.contains("Crashed");
        self.parsed.threads.push(Thread { name, crashed, frames, ..std::mem::take(&mut self.thread) });
    }

    /// Adds the stack of an exception that is one line of addresses. All of them are return addresses.
    fn bare_stack(&mut self, stack: BareStack) {
        let own = std::mem::take(&mut self.name);
        let name = stack.name.unwrap_or(own);
        let frame = |(address, site)| Frame {
            address,
            image: None,
            kind: AddressKind::ReturnAddress,
            site,
            detail: SymbolDetail::AddressOnly,
            function: None,
            inlined: false,
        };
        let frames = stack.addresses.into_iter().map(frame).collect();
        self.parsed.threads.push(Thread { name, frames, ..std::mem::take(&mut self.thread) });
    }
}
