//! From lines to trees and images.
//!
//! A tree is a thread whose frames are its lines from the last to the first: what is called comes before what calls it.

use rustc_hash::FxHashMap;
use symdex::Arch;

use super::lines::{self, Counted, Node};
use crate::apple_text::{code_type, image, is_images_header};
use crate::report::{AddressKind, Base, Frame, Image, Known, MAX_IMAGES, Parsed, Span, Thread};
use crate::text::lossy;

/// What has been read so far.
#[derive(Default)]
pub(super) struct Reader<'t> {
    parsed: Parsed,
    /// The frames of the tree that is being read, in the order of the lines, and what it is called.
    tree: Vec<Frame>,
    name: String,
    /// The way from a root to the last frame: columns, numbers in `tree`, and whether they are the kernel's.
    path: Vec<(usize, usize, bool)>,
    place: Place,
    /// `spindump` has processes, each with its images behind its trees. This is how many have ended.
    process: usize,
    /// The architecture of the process, and those of the processes that have ended.
    arch: Option<Arch>,
    archs: Vec<Option<Arch>>,
    /// The process of each image.
    processes: Vec<usize>,
    loads: Vec<Load<'t>>,
}

/// Which part of the report is being read.
#[derive(Default, PartialEq, Eq)]
enum Place {
    #[default]
    Trees,
    HeaviestStack,
    Statistics,
    Images,
}

/// Where a frame says that its image was loaded, and how it calls it.
struct Load<'t> {
    thread: usize,
    /// In the order of the lines.
    frame: usize,
    process: usize,
    load_address: u64,
    image: &'t [u8],
}

/// The kernel's images are listed once, for all processes: as one with this number. What lies from here on is the kernel's.
const KERNEL: (usize, u64) = (usize::MAX, 1 << 63);

impl<'t> Reader<'t> {
    /// Reads the next line, which lies at `span`.
    pub(super) fn line(&mut self, line: &'t [u8], span: Span) {
        if self.place != Place::Statistics
            && let Some(counted) = lines::counted(line)
        {
            self.leave_images();
            match counted.node() {
                Some(node) => self.push(&counted, &node, span),
                None if counted.rest().starts_with(b"Thread_") => self.begin(counted.rest()),
                None if counted.is_nowhere() => self.call(&counted),
                None => {}
            }
            return;
        }
        let text = line.trim_ascii();
        if is_images_header(line) {
            self.end_tree();
            self.place = Place::Images;
        } else if self.place == Place::Images {
            self.image(line);
        } else if lines::is_heaviest(line) {
            self.begin(line);
            self.place = Place::HeaviestStack;
        } else if text.starts_with(b"Thread 0x") || text.starts_with(b"Powerstats for:") {
            self.begin(text);
        } else if lines::is_statistics(text) {
            self.end_tree();
            self.place = Place::Statistics;
        } else if text.is_empty() && self.place == Place::HeaviestStack {
            self.end_tree();
        } else if let Some(name) = strip_any(text, [b"Code Type:", b"Architecture:"]) {
            self.arch = code_type(name);
        }
    }

    fn push(&mut self, counted: &Counted<'t>, node: &Node<'t>, site: Span) {
        let frame = self.tree.len();
        self.call(counted);
        self.path.push((counted.column, frame, counted.is_kernel()));
        if let Some(load_address) = node.load_address {
            let process = if load_address >= KERNEL.1 { KERNEL.0 } else { self.process };
            let (thread, image) = (self.parsed.threads.len(), node.image);
            self.loads.push(Load { thread, frame, process, load_address, image });
        }
        let function = site.start + counted.name..site.start + counted.name + node.function_len;
        self.tree.push(Frame {
            address: node.address,
            image: None,
            kind: AddressKind::ProgramCounter,
            site,
            known: node.known,
            function: (node.known != Known::Nothing).then_some(function),
            inlined: node.inlined,
        });
    }

    /// Goes the way back up to what calls the frame of a line.
    fn call(&mut self, counted: &Counted<'_>) {
        // In a stack that is a list every frame calls the next.
        while self.place != Place::HeaviestStack
            && self.path.last().is_some_and(|(column, ..)| *column >= counted.column)
        {
            self.path.pop();
        }
        // What calls something holds where that returns to, unless what it called is the kernel.
        if let Some((_, caller, is_kernel)) = self.path.last()
            && *is_kernel == counted.is_kernel()
        {
            self.tree[*caller].kind = AddressKind::ReturnAddress;
        }
    }

    /// Begins a tree whose header begins with what it is called.
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
            self.parsed.threads.push(Thread { name, crashed: false, frames });
        }
        if self.place == Place::HeaviestStack {
            self.place = Place::Trees;
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
        if self.parsed.images.len() < MAX_IMAGES {
            let is_kernel = image.load_address >= KERNEL.1;
            self.processes.push(if is_kernel { KERNEL.0 } else { self.process });
            self.parsed.images.push(image);
        }
    }

    /// What comes behind a list of images is of another process.
    fn leave_images(&mut self) {
        if self.place == Place::Images {
            self.place = Place::Trees;
            self.process += 1;
            self.archs.push(self.arch.clone());
        }
    }

    /// The images and trees, frames with their images.
    pub(super) fn finish(mut self) -> Parsed {
        self.end_tree();
        let Self { mut parsed, loads, processes, mut archs, arch, .. } = self;
        archs.push(arch);
        let mut loaded = FxHashMap::default();
        for (number, image) in parsed.images.iter().enumerate() {
            loaded.entry((processes[number], image.load_address)).or_insert(number);
        }
        // How far images reach whose end is not known: as far as their frames lie.
        let ends: Vec<bool> = parsed.images.iter().map(|image| image.size.is_some()).collect();
        for Load { thread, frame, process, load_address, image } in loads {
            let number = *loaded.entry((process, load_address)).or_insert_with(|| {
                let arch = archs.get(process).cloned().flatten();
                parsed.images.push(Image { name: lossy(image), load_address, arch, ..Image::default() });
                parsed.images.len() - 1
            });
            let frames = &mut parsed.threads[thread].frames;
            let last = frames.len() - 1;
            let frame = &mut frames[last - frame];
            frame.image = Some(number);
            if !ends.get(number).is_some_and(|is_known| *is_known) {
                let image = &mut parsed.images[number];
                let reach = (frame.address - load_address.min(frame.address)).saturating_add(1);
                image.size = Some(image.size.unwrap_or_default().max(reach));
            }
        }
        parsed
    }
}

fn strip_any<'l, const N: usize>(text: &'l [u8], prefixes: [&[u8]; N]) -> Option<&'l [u8]> {
    prefixes.iter().find_map(|prefix| text.strip_prefix(*prefix))
}
