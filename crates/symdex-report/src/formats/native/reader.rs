//! Reads the lines of a report into stacks and images.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use symdex::{Arch, ImageId};

use super::frame::{self, FrameLine, Writer, log_prefix};
use super::header::{self, Header, StatedId};
use super::info;
use crate::engine::limits::ReadLimit;
use crate::report::{Base, FoundBy, Frame, Parsed, ReportImage, Span, SymbolDetail, Thread};
use crate::text::lossy;

/// The state of the parser.
#[derive(Default)]
pub(super) struct Reader<'t> {
    parsed: Parsed,
    limit: ReadLimit,
    /// The positions of images.
    images: HashMap<Key<'t>, usize>,
    previous: Option<PreviousFrame<'t>>,
    /// The name of the next stack, the id of its thread, and whether it is the one that crashed.
    name: String,
    id: Option<u64>,
    crashed: bool,
    /// Whether the tombstone's thread that crashed has been read. The other threads can have a signal, too.
    is_crash_read: bool,
    /// The architecture of the frames that follow.
    arch: Option<Arch>,
    /// The release of Android that wrote the frames that follow.
    release: Option<u64>,
    /// The build ids that other lines state, by the path of the file: memory maps, and the list of xCrash. `None` if
    /// two lines differ. In an archive with several files, the offset tells the file.
    ids: HashMap<PathAndOffset<'t>, Option<&'t [u8]>>,
}

/// The path of a file, and the position in it of the bytes that a memory map states.
type PathAndOffset<'t> = (&'t [u8], Option<u64>);

/// The key of an image: the path, the offset in an archive, the digits of the build id, the CPU type and subtype, and
/// what addresses count from.
type Key<'t> = (&'t [u8], Option<u64>, Option<&'t [u8]>, Option<(u32, u32)>, Base);

/// The frame before a line.
struct PreviousFrame<'t> {
    number: Option<u64>,
    /// The log prefix of its line.
    prefix: &'t [u8],
    /// `#0 0x55d0c0de1234` of a sanitizer's line. Functions inlined into one frame have the same text.
    number_and_address: &'t [u8],
}

impl<'t> Reader<'t> {
    /// The first release of Android whose addresses are those of the image's file.
    pub(super) const SINCE_FILE_ADDRESSES: u64 = 11;

    /// A reader of a text of `size` bytes, which is of this release of Android if it states none.
    pub(super) fn new(size: usize, release: Option<u64>) -> Self {
        Self { limit: ReadLimit::of(size), release, ..Self::default() }
    }

    /// Reads the next line, which is at `span`.
    pub(super) fn line(&mut self, line: &'t [u8], span: Span) {
        if let Some(frame) = frame::frame(line) {
            if self.limit.take() {
                self.push(frame, line, span);
            }
        } else if self.previous.as_ref().is_some_and(|previous| frame::states_location(line, previous.prefix))
        {
            let last = self.parsed.threads.last_mut().and_then(|thread| thread.frames.last_mut());
            if let Some(frame) = last {
                frame.detail = SymbolDetail::Line;
            }
        } else if let Some(StatedId { path, offset, digits }) = header::build_id(line) {
            self.state_id(path, None, digits);
            self.state_id(path, offset, digits);
        } else {
            if self.parsed.threads.is_empty() {
                info::read(line, &mut self.parsed.info);
            }
            self.id = header::thread_id(line).or(self.id);
            self.release = header::release(line).or(self.release);
            match header::header(line) {
                Some(Header::Name(name)) => self.name = lossy(name),
                Some(Header::RuntimeThread(name)) => {
                    (self.name, self.id) = (lossy(name), header::thread_id(line));
                }
                Some(Header::Crash) => self.crashed = !self.is_crash_read,
                Some(Header::TombstoneStart) => self.is_crash_read = false,
                Some(Header::OtherThreads) => (self.crashed, self.is_crash_read) = (false, true),
                Some(Header::Error(what)) => (self.name, self.crashed) = (lossy(what), true),
                Some(Header::Arch(arch)) => self.arch = arch,
                None => {}
            }
        }
    }

    /// Notes that a line states the digits of the build id of a file.
    fn state_id(&mut self, path: &'t [u8], offset: Option<u64>, digits: &'t [u8]) {
        match self.ids.entry((path, offset)) {
            Entry::Occupied(mut known) => {
                let same = known.get().filter(|known| *known == digits);
                known.insert(same);
            }
            Entry::Vacant(new) if self.limit.take_entry() => _ = new.insert(Some(digits)),
            Entry::Vacant(_) => {}
        }
    }

    /// Returns the images and stacks. An image whose frames have no build id gets the one that another line states for
    /// its path.
    pub(super) fn finish(self) -> Parsed {
        let Self { mut parsed, images, ids, limit, .. } = self;
        parsed.extent = limit.extent(0);
        for ((path, offset, id, ..), number) in images {
            // `base.apk!libfoo.so` is mapped as `base.apk`.
            let archive = memchr::memchr(b'!', path).map_or(path, |end| &path[..end]);
            let keys = [(path, offset), (archive, offset), (path, None)];
            let stated = keys.iter().filter(|_| id.is_none()).find_map(|key| *ids.get(key)?);
            if let (Some(stated), Some(image)) = (stated, parsed.images.get_mut(number)) {
                image.id = build_id(stated).filter(|_| image.base != Base::Absolute);
            }
        }
        parsed
    }

    fn push(&mut self, line: FrameLine<'t>, text: &'t [u8], site: Span) {
        let number_and_address = match line.writer {
            Writer::Sanitizer { at } => &text[line.head..at],
            Writer::Android { .. } | Writer::HarmonyOs { .. } => &[],
        };
        let previous =
            PreviousFrame { number: line.number, prefix: log_prefix(text, line.head), number_and_address };
        if !self.previous.replace(previous).is_some_and(|previous| {
            let is_inlined =
                !number_and_address.is_empty() && previous.number_and_address == number_and_address;
            let is_next = line.number.is_none_or(|number| previous.number < Some(number));
            is_next && (line.number.is_some() || self.name.is_empty()) || is_inlined
        }) {
            let (name, crashed) = (std::mem::take(&mut self.name), std::mem::take(&mut self.crashed));
            let id = self.id.take();
            self.is_crash_read |= crashed;
            if let Some(thread) = self.parsed.threads.last_mut() {
                thread.frames.shrink_to_fit();
            }
            self.limit.take_stack();
            self.parsed.threads.push(Thread { name, id, crashed, ..Thread::default() });
        }
        let image = self.image(&line);
        // The writers have already adjusted return addresses.
        let frame = Frame {
            detail: line.detail,
            function: line.function.map(|name| (site.start + name.start..site.start + name.end).into()),
            site: site.into(),
            ..Frame::new(line.address, image)
        };
        if let Some(thread) = self.parsed.threads.last_mut() {
            if let Some(way) = line.found_by {
                thread.found_by.resize(thread.frames.len(), FoundBy::Other);
                thread.found_by.push(way);
            }
            thread.frames.push(frame);
        }
    }

    /// Returns the position of the image that `line` names, and adds the image if it is new.
    fn image(&mut self, line: &FrameLine<'t>) -> Option<usize> {
        let path = line.path?;
        let arch = line.arch.as_ref().or(self.arch.as_ref());
        // The offset tells files of an archive apart if the ids do not.
        let offset = line.offset.filter(|_| line.id.is_none());
        let base = match (self.release, line.writer) {
            (Some(Self::SINCE_FILE_ADDRESSES..), _) | (_, Writer::Sanitizer { .. }) => Base::File,
            // Before 9, frames have no ids.
            (release, _) => Base::Android { release, mapped: release.and(line.offset).or(offset) },
        };
        let key = (path, offset, line.id, arch.map(|arch| (arch.cputype, arch.cpusubtype)), base);
        let images = &mut self.parsed.images;
        let known = self.images.get(&key).copied();
        if known.is_some() || !self.limit.take_image_of_frame() {
            return known;
        }
        self.images.insert(key, images.len());
        images.push(image(path, line.id, arch.cloned(), base));
        let number = images.len() - 1;
        if let Some(digits) = line.id {
            self.state_id(path, line.offset, digits);
        }
        Some(number)
    }
}

fn image(path: &[u8], id: Option<&[u8]>, arch: Option<Arch>, base: Base) -> ReportImage {
    // Paths that are not files: `[vdso]`, `<anonymous:7f00>`, `Not mapped`.
    let is_file = !matches!(path.first(), Some(b'[' | b'<'))
        && !path.starts_with(b"anonymous:")
        && !matches!(path, b"Not mapped" | b"Unknown");
    ReportImage {
        arch,
        id: id.and_then(build_id).filter(|_| is_file),
        base: if is_file { base } else { Base::Absolute },
        ..ReportImage::of_file(lossy(path), &['/', '!'])
    }
}

/// Parses hexadecimal digits as an id. `None` if they are invalid, as in a truncated report.
fn build_id(digits: &[u8]) -> Option<ImageId> {
    let digits = std::str::from_utf8(digits).ok()?;
    digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then(|| digits.parse().ok())?
}
