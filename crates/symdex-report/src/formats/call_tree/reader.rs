//! Reads the lines of a report into trees and images.
//!
//! A tree becomes a thread whose frames are the lines from the last to the first, so that each function comes before
//! its caller.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use symdex::Arch;

use super::lines::{self, Node, SampleLine};
use crate::engine::images::without_signature;
use crate::engine::limits::ReadLimit;
use crate::formats::apple_text::{HeaderReader, KERNEL, code_type, image, is_images_header};
use crate::formats::rules::is_nameless;
use crate::report::{AddressKind, Base, Frame, Number, Parsed, ReportImage, Span, Thread};
use crate::text::lossy;

/// The state of the parser.
#[derive(Default)]
pub(super) struct Reader<'t> {
    parsed: Parsed,
    limit: ReadLimit,
    /// The frames of the tree that is being read, in the order of the lines, and its title.
    tree: Vec<Frame>,
    name: String,
    header: HeaderReader,
    /// The path from a root to the last frame: columns, positions in `tree`, and whether they are frames of the kernel.
    path: Vec<(usize, usize, bool)>,
    section: Section,
    /// The number of processes that have ended. `spindump` lists the images of a process after its trees.
    process: usize,
    /// The architecture of the process, and those of the processes that have ended.
    arch: Option<Arch>,
    archs: Vec<Option<Arch>>,
    /// The process of each image.
    processes: Vec<usize>,
    /// The images that frames name, in the order of the frames. Until the images are known, a frame has the position
    /// in this table as its image.
    frame_images: Vec<FrameImage<'t>>,
    /// The positions in `frame_images`, by process and load address.
    known: HashMap<(usize, u64), Number>,
}

/// The section of the report that is being read.
#[derive(Default, PartialEq, Eq)]
enum Section {
    #[default]
    Trees,
    HeaviestStack,
    Statistics,
    Images,
}

/// The image that a frame names, and its load address.
struct FrameImage<'t> {
    process: usize,
    load_address: u64,
    image: &'t [u8],
}

/// The process number of the kernel's images. `spindump` lists them once for all processes.
const OF_KERNEL: usize = usize::MAX;

impl<'t> Reader<'t> {
    /// A reader of a text of `size` bytes.
    pub(super) fn new(size: usize) -> Self {
        Self { limit: ReadLimit::of(size), ..Self::default() }
    }

    /// Reads the next line, which is at `span`.
    pub(super) fn line(&mut self, line: &'t [u8], span: Span) {
        if self.section != Section::Statistics
            && let Some(sample_line) = lines::sample_line(line)
        {
            self.leave_images();
            match sample_line.node() {
                Some(_) if !self.limit.take() => {}
                Some(node) => self.push(&sample_line, &node, span),
                None if sample_line.rest().starts_with(b"Thread_") => self.begin(sample_line.rest()),
                None if sample_line.is_nowhere() => self.call(&sample_line),
                None => {}
            }
            return;
        }
        let text = line.trim_ascii();
        self.header.line(line);
        if is_images_header(line) {
            self.end_tree();
            self.section = Section::Images;
        } else if self.section == Section::Images {
            self.image(line);
        } else if lines::is_heaviest(line) {
            self.begin(line);
            self.section = Section::HeaviestStack;
        } else if text.starts_with(b"Thread 0x") || text.starts_with(b"Powerstats for:") {
            self.begin(text);
        } else if lines::is_statistics(text) {
            self.end_tree();
            self.section = Section::Statistics;
        } else if text.is_empty() && self.section == Section::HeaviestStack {
            self.end_tree();
        } else if let Some(name) = strip_any(text, [b"Code Type:", b"Architecture:"]) {
            self.arch = code_type(name);
        }
    }

    fn push(&mut self, sample_line: &SampleLine<'t>, node: &Node<'t>, site: Span) {
        let frame = self.tree.len();
        self.call(sample_line);
        self.path.push((sample_line.column, frame, sample_line.is_kernel()));
        let image = node.load_address.and_then(|load_address| {
            let process = if load_address >= KERNEL { OF_KERNEL } else { self.process };
            match self.known.entry((process, load_address)) {
                Entry::Occupied(known) => Some(*known.get()),
                Entry::Vacant(new) => self.limit.take_image_of_frame().then(|| {
                    self.frame_images.push(FrameImage { process, load_address, image: node.image });
                    *new.insert(Number::from(self.frame_images.len() - 1))
                }),
            }
        });
        let function = site.start + sample_line.name..site.start + sample_line.name + node.function_len;
        let is_named = !is_nameless(&sample_line.rest()[..node.function_len]);
        self.tree.push(Frame {
            address: node.address,
            image,
            kind: AddressKind::ProgramCounter,
            site: site.into(),
            detail: node.detail,
            function: is_named.then_some(function.into()),
            inlined: node.inlined,
        });
    }

    /// Removes the frames from the path that do not call the frame of a line, and marks the address of the caller as a
    /// return address.
    fn call(&mut self, sample_line: &SampleLine<'_>) {
        // In the heaviest stack, which is a list, every frame calls the next one.
        while self.section != Section::HeaviestStack
            && self.path.last().is_some_and(|(column, ..)| *column >= sample_line.column)
        {
            self.path.pop();
        }
        // A caller has a return address, unless the callee is a frame of the kernel.
        if let Some((_, caller, is_kernel)) = self.path.last()
            && *is_kernel == sample_line.is_kernel()
        {
            self.tree[*caller].kind = AddressKind::ReturnAddress;
        }
    }

    /// Begins a tree. The header begins with its title.
    fn begin(&mut self, header: &[u8]) {
        self.end_tree();
        self.leave_images();
        let separator: &[u8] = if header.starts_with(b"Thread_") { b" " } else { b"    " };
        let end = memchr::memmem::find(header, separator).unwrap_or(header.len());
        let name = &header[..end];
        self.name = lossy(name.strip_suffix(b":").unwrap_or(name));
    }

    fn end_tree(&mut self) {
        self.path.clear();
        let mut frames = std::mem::take(&mut self.tree);
        let name = std::mem::take(&mut self.name);
        if !frames.is_empty() {
            frames.reverse();
            frames.shrink_to_fit();
            self.limit.take_stack();
            let id = thread_id(&name);
            self.parsed.threads.push(Thread { name, id, frames, ..Thread::default() });
        }
        if self.section == Section::HeaviestStack {
            self.section = Section::Trees;
        }
    }

    fn image(&mut self, line: &[u8]) {
        let line = line.trim_ascii_start();
        if line.is_empty() {
            return self.leave_images();
        }
        let Some(mut image) = image(line.strip_prefix(b"*").unwrap_or(line)) else { return };
        if let Some(path) = image.path.strip_prefix("__TEXT_EXEC") {
            image.path = path.trim_start().to_owned();
            image.base = Base::TextExec;
        }
        image.arch = image.arch.or_else(|| self.arch.clone());
        if self.limit.take_image() {
            let is_kernel = image.load_address >= KERNEL;
            self.processes.push(if is_kernel { OF_KERNEL } else { self.process });
            self.parsed.images.push(image);
        }
    }

    /// Ends a list of images. The lines after it belong to another process.
    fn leave_images(&mut self) {
        if self.section == Section::Images {
            self.section = Section::Trees;
            self.process += 1;
            self.archs.push(self.arch.clone());
        }
    }

    /// Returns the images and trees, with an image for each frame that names one.
    pub(super) fn finish(mut self) -> Parsed {
        self.end_tree();
        let Self { mut parsed, frame_images, processes, mut archs, arch, header, limit, .. } = self;
        parsed.extent = limit.extent(0);
        parsed.info = header.finish();
        archs.push(arch);
        let mut loaded = HashMap::new();
        for (number, image) in parsed.images.iter().enumerate() {
            loaded.entry((processes[number], image.load_address)).or_insert(number);
        }
        // An image without an end is as large as its frames require.
        let ends: Vec<bool> = parsed.images.iter().map(|image| image.size.is_some()).collect();
        let mut number = |FrameImage { process, load_address, image }| {
            *loaded.entry((process, load_address)).or_insert_with(|| {
                let arch = archs.get(process).cloned().flatten();
                parsed.images.push(ReportImage {
                    name: lossy(image),
                    load_address,
                    arch,
                    ..ReportImage::default()
                });
                parsed.images.len() - 1
            })
        };
        let numbers: Vec<_> = frame_images.into_iter().map(&mut number).collect();
        for frame in parsed.threads.iter_mut().flat_map(|thread| &mut thread.frames) {
            let Some(number) = frame.image().map(|entry| numbers[entry as usize]) else { continue };
            frame.image = Some(number.into());
            if !ends.get(number).is_some_and(|is_known| *is_known) {
                let image = &mut parsed.images[number];
                let distance = without_signature(frame.address).saturating_sub(image.load_address);
                let reach = distance.saturating_add(1);
                image.size = Some(image.size.unwrap_or_default().max(reach));
            }
        }
        parsed
    }
}

/// Returns the number of `Thread_13078`, or of `Thread 0x1a2b`, which is hexadecimal.
fn thread_id(name: &str) -> Option<u64> {
    let hexadecimal = || u64::from_str_radix(name.strip_prefix("Thread 0x")?, 16).ok();
    name.strip_prefix("Thread_").map_or_else(hexadecimal, |digits| digits.parse().ok())
}

fn strip_any<'l, const N: usize>(text: &'l [u8], prefixes: [&[u8]; N]) -> Option<&'l [u8]> {
    prefixes.iter().find_map(|prefix| text.strip_prefix(*prefix))
}
