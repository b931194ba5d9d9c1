//! Limits for the frames of a report, and for the text of the answers for one report.
//!
//! A small index can have names of megabytes at each address, and a report can have any number of frames there.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::engine::function::Function;
use crate::report::{Frame, ReportImage, Thread};

/// How many bytes the answers for one report may have, if the report is small.
pub(crate) const ANSWER_BYTES: usize = 64 << 20;
/// How many bytes of output the answers for a large report may have for each byte of the report. Real answers, with
/// many inlined functions, have up to ten.
pub(crate) const OUTPUT_PER_BYTE: usize = 16;

/// How many bytes the answer at one address may have, in memory and in the output.
pub(crate) const ADDRESS_BYTES: usize = 2 << 20;

/// The remaining bytes that answers may have. Threads can share it.
#[derive(Debug)]
pub struct AnswerBytes {
    left: AtomicUsize,
}

impl AnswerBytes {
    /// The limit for the answers that are stored for a report of `size` bytes, each distinct answer once.
    pub(crate) fn in_memory(size: usize) -> Self {
        Self { left: ANSWER_BYTES.max(size).into() }
    }

    /// The limit for the answers that are written for a report or a request of `size` bytes, however many frames repeat
    /// one: 64 MiB, or 16 times the size if that is more.
    #[must_use]
    pub fn written(size: usize) -> Self {
        Self { left: ANSWER_BYTES.max(size.saturating_mul(OUTPUT_PER_BYTE)).into() }
    }

    /// What a function has in any output besides its names and file: punctuation and numbers.
    pub(crate) const OF_FUNCTION: usize = 64;
    /// What it has besides in JSON: keys.
    pub(crate) const KEYS: usize = 72;

    /// Takes what the functions at an address have in JSON: their names, readable and as linkage names, and files.
    /// Returns whether the limit allows them. It allows 2 MiB for one address.
    pub fn take_functions(&self, functions: &[Function]) -> bool {
        self.take_frame(functions, true, 0)
    }

    /// Takes what the functions at a frame with `size` bytes of text have in the output. Many formats repeat the text
    /// for each function. Returns as [`Self::take_functions`].
    pub(crate) fn take_frame(&self, functions: &[Function], is_json: bool, size: usize) -> bool {
        self.take(functions.iter().map(|function| function.written_size(is_json) + size).sum())
    }

    /// Takes the `size` bytes of the answer at an address. Returns whether the limit allows them.
    pub(crate) fn take(&self, size: usize) -> bool {
        if size > ADDRESS_BYTES {
            return false;
        }
        let rest = |left: usize| left.checked_sub(size);
        self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, rest).is_ok()
    }
}

/// How many bytes of memory the frames, stacks and images of any report may take.
pub(crate) const READ_BYTES: usize = 256 << 10;
/// How many further bytes they may take for each byte of the report. In real reports they take two to five.
pub(crate) const READ_PER_BYTE: usize = 16;
/// The bytes of a report for which [`READ_PER_BYTE`] holds.
pub(crate) const WHOLE_REPORT: usize = 10_000_000;
/// How many bytes they may take for each byte of a report for which that is more.
pub(crate) const READ_PER_BYTE_OF_LARGE: usize = 5;

/// How many bytes of memory a frame takes: itself, its outcome, and the symbol that the report has for it. The test
/// program `memory` checks these.
const FRAME: usize = 128;
/// As [`FRAME`], for a stack without its frames.
const STACK: usize = 384;
/// As [`FRAME`], for an image, with its entries in tables and the outcome of asking for it.
const IMAGE: usize = 1024;
/// As [`FRAME`], for an entry of another table.
const ENTRY: usize = 128;

/// Returns how many bytes of memory the frames, stacks and images of a report of `size` bytes may take. The rest of the
/// report is not read. The text, with what is read from it besides these, takes eight times its size; the answers count
/// separately, too.
///
/// ```
/// assert_eq!(symdex_report::most_memory(1000), (256 << 10) + 16_000);
/// ```
#[must_use]
pub fn most_memory(size: usize) -> usize {
    let of_whole = size.min(WHOLE_REPORT) * READ_PER_BYTE;
    READ_BYTES + of_whole.max(size.saturating_mul(READ_PER_BYTE_OF_LARGE))
}

/// How many functions of a report are searched by name, each of which stands for an image without a load address. A
/// search takes time in proportion to the index.
pub(crate) const FUNCTIONS: usize = 64;

/// How much of a report is not read, and how much memory the rest takes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Extent {
    /// As [`Report::unread_frames`](crate::Report::unread_frames).
    pub(crate) frames: u64,
    /// As [`Report::malformed_frames`](crate::Report::malformed_frames).
    pub(crate) malformed: u64,
    /// As [`Report::unread_bytes`](crate::Report::unread_bytes).
    pub(crate) bytes: u64,
    /// As [`Report::memory`](crate::Report::memory).
    pub(crate) memory: usize,
}

impl Extent {
    /// Of a report without text, which lacks `unread` frames.
    pub(crate) fn of_stacks(images: &[ReportImage], threads: &[Thread], unread: u64) -> Self {
        let of_thread =
            |thread: &Thread| STACK + FRAME * thread.frames.len() + ENTRY * thread.registers.len();
        let memory = IMAGE * images.len() + threads.iter().map(of_thread).sum::<usize>();
        Self { frames: unread, memory, ..Self::default() }
    }

    /// As [`ReadLimit::take_image_of_frame`], for a report of `size` bytes that is read.
    pub(crate) fn take_image_of_frame(&mut self, size: usize) -> bool {
        let is_read = self.memory + IMAGE <= most_memory(size);
        self.memory += if is_read { IMAGE } else { 0 };
        self.frames += u64::from(!is_read);
        is_read
    }

    /// Whether parts of the report are not read.
    pub(crate) fn is_partial(&self) -> bool {
        self.frames != 0 || self.malformed != 0 || self.bytes != 0
    }
}

/// How much more of a report is read, and how much was skipped.
pub(crate) struct ReadLimit {
    /// As [`most_memory`].
    most: usize,
    /// The bytes of memory that frames, stacks and images may still take.
    left: Cell<usize>,
    unread: Cell<u64>,
    malformed: Cell<u64>,
}

impl ReadLimit {
    /// The limit for a report of `size` bytes.
    pub(crate) fn of(size: usize) -> Self {
        let most = most_memory(size);
        // The last stacks may take more than is left.
        Self { most, left: (most - 2 * STACK).into(), unread: Cell::default(), malformed: Cell::default() }
    }

    /// How many more frames are read.
    pub(crate) fn frames_left(&self) -> usize {
        self.left.get() / FRAME
    }

    /// Whether another stack is read, if its frames are.
    pub(crate) fn has_room(&self) -> bool {
        self.left.get() >= STACK
    }

    /// Counts `size` bytes. Returns whether they are within the limit.
    fn take_bytes(&self, size: usize) -> bool {
        let left = self.left.get().checked_sub(size);
        self.left.set(left.unwrap_or_else(|| self.left.get()));
        left.is_some()
    }

    /// What was counted. `bytes` follow the report.
    pub(crate) fn extent(&self, bytes: u64) -> Extent {
        let memory = self.most - self.left.get();
        Extent { frames: self.unread.get(), malformed: self.malformed.get(), bytes, memory }
    }

    /// Counts `frame` as malformed if it is `None` and the report states an address for it.
    pub(crate) fn read(&self, frame: Option<Frame>, is_stated: bool) -> Option<Frame> {
        self.count_malformed(u64::from(frame.is_none() && is_stated));
        frame
    }

    /// Counts `more` frames that are malformed.
    pub(crate) fn count_malformed(&self, more: u64) {
        self.malformed.set(self.malformed.get().saturating_add(more));
    }

    /// Counts `more` frames that are past a limit.
    pub(crate) fn skip(&self, more: u64) {
        self.unread.set(self.unread.get().saturating_add(more));
    }

    /// Counts a frame. Returns whether it is read.
    pub(crate) fn take(&self) -> bool {
        let is_read = self.take_bytes(FRAME);
        self.skip(u64::from(!is_read));
        is_read
    }

    /// Counts a stack without its frames. It may take the last bytes.
    pub(crate) fn take_stack(&self) {
        self.left.set(self.left.get().saturating_sub(STACK));
    }

    /// Counts an entry of a table that is neither a frame nor an image. Returns whether it is read.
    pub(crate) fn take_entry(&self) -> bool {
        self.take_bytes(ENTRY)
    }

    /// Counts an image of the report's list. Returns whether it is read.
    pub(crate) fn take_image(&self) -> bool {
        self.take_bytes(IMAGE)
    }

    /// Counts an image that a frame names. Returns whether it is read. If not, the frame has no image, and counts as
    /// not read.
    pub(crate) fn take_image_of_frame(&self) -> bool {
        let is_read = self.take_image();
        self.skip(u64::from(!is_read));
        is_read
    }

    /// Counts a stack and its frames. Returns the frames that are read.
    pub(crate) fn stack(&self, frames: impl Iterator<Item = Frame>) -> Vec<Frame> {
        self.take_stack();
        let mut frames: Vec<_> = frames.filter(|_| self.take()).collect();
        frames.shrink_to_fit();
        frames
    }
}

/// The limit for an empty report.
impl Default for ReadLimit {
    fn default() -> Self {
        Self::of(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_the_document_has_these_limits() {
        let limits = [
            ("ANSWER_BYTES", ANSWER_BYTES),
            ("ADDRESS_BYTES", ADDRESS_BYTES),
            ("OUTPUT_PER_BYTE", OUTPUT_PER_BYTE),
            ("READ_BYTES", READ_BYTES),
            ("READ_PER_BYTE", READ_PER_BYTE),
            ("WHOLE_REPORT", WHOLE_REPORT),
            ("READ_PER_BYTE_OF_LARGE", READ_PER_BYTE_OF_LARGE),
            ("FUNCTIONS", FUNCTIONS),
        ];
        let limits = limits.map(|(name, value)| (name, value as u64));
        symdex_testkit::limits::are_documented(&limits, include_str!("limits.rs"));
    }
}
