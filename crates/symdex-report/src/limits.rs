//! Limits for the frames of a report, and for the text of the answers for one report.
//!
//! A small index can have names of megabytes at each address, and a report can have any number of frames there.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::report::Frame;
use crate::source::Function;
use crate::symbolicate::ResolvedFrame;

/// How many bytes the answers for one report may have, if the report is small.
pub(crate) const ANSWER_BYTES: usize = 64 << 20;
/// How many bytes of output the answers for a large report may have for each byte of the report. Real answers, with
/// many inlined functions, have up to ten.
pub(crate) const OUTPUT_PER_BYTE: usize = 16;

/// The remaining bytes that answers may have. Threads can share it.
#[derive(Debug)]
pub(crate) struct AnswerBytes {
    left: AtomicUsize,
}

impl AnswerBytes {
    /// The limit for the answers that are stored for a report of `size` bytes, each distinct answer once.
    pub(crate) fn in_memory(size: usize) -> Self {
        Self { left: ANSWER_BYTES.max(size).into() }
    }

    /// The limit for the answers that are written for a report of `size` bytes, however many frames repeat one.
    pub(crate) fn written(size: usize) -> Self {
        Self { left: ANSWER_BYTES.max(size.saturating_mul(OUTPUT_PER_BYTE)).into() }
    }

    /// Takes `size` bytes. Returns whether the limit allows them.
    pub(crate) fn take(&self, size: usize) -> bool {
        let rest = |left: usize| left.checked_sub(size);
        self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, rest).is_ok()
    }
}

/// The largest report whose frames are all read, in bytes.
pub(crate) const WHOLE_REPORT: usize = 10_000_000;
/// The bytes of a larger report for each frame that is read. The lines of real reports have more. A frame takes less
/// than twice as many bytes of memory.
pub(crate) const BYTES_PER_FRAME: usize = 30;

/// How many functions of a report are searched by name, each of which stands for an image without a load address. A
/// search takes time in proportion to the index.
pub(crate) const FUNCTIONS: usize = 64;

/// The parts of a report that are not read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Unread {
    /// As [`Report::unread_frames`](crate::Report::unread_frames).
    pub(crate) frames: u64,
    /// As [`Report::malformed_frames`](crate::Report::malformed_frames).
    pub(crate) malformed: u64,
    /// As [`Report::unread_bytes`](crate::Report::unread_bytes).
    pub(crate) bytes: u64,
}

/// How many more frames of a report are read, and how many were skipped.
pub(crate) struct FrameLimit {
    left: Cell<usize>,
    unread: Cell<u64>,
    malformed: Cell<u64>,
}

impl FrameLimit {
    /// The limit for a report of `size` bytes.
    pub(crate) fn of(size: usize) -> Self {
        let left = if size <= WHOLE_REPORT { usize::MAX } else { size / BYTES_PER_FRAME };
        Self { left: left.into(), ..Self::default() }
    }

    /// How many more frames are read.
    pub(crate) fn left(&self) -> usize {
        self.left.get()
    }

    /// The frames that are not read. `bytes` follow the report.
    pub(crate) fn unread(&self, bytes: u64) -> Unread {
        Unread { frames: self.unread.get(), malformed: self.malformed.get(), bytes }
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
        let left = self.left.get().checked_sub(1);
        self.left.set(left.unwrap_or_default());
        self.skip(u64::from(left.is_none()));
        left.is_some()
    }

    /// Counts a stack without its frames. It takes more memory than a frame, but a log often has many stacks of one
    /// frame, so it counts as one.
    pub(crate) fn take_stack(&self) {
        self.left.set(self.left.get().saturating_sub(1));
    }

    /// Counts a stack and its frames. Returns the frames that are read.
    pub(crate) fn stack(&self, frames: impl Iterator<Item = Frame>) -> Vec<Frame> {
        self.take_stack();
        let mut frames: Vec<_> = frames.filter(|_| self.take()).collect();
        frames.shrink_to_fit();
        frames
    }
}

/// No limit.
impl Default for FrameLimit {
    fn default() -> Self {
        Self { left: usize::MAX.into(), unread: Cell::default(), malformed: Cell::default() }
    }
}

/// How many bytes a function of an index takes once its strings are copied.
pub(crate) fn size_of_copy(frame: &symdex::Frame<'_>) -> usize {
    size_of::<Function>() + frame.name.map_or(0, <[u8]>::len) + frame.file.map_or(0, <[u8]>::len)
}

/// How many bytes of output an answer has for a frame with `size` bytes of text. Many formats repeat the text for each
/// function.
pub(crate) fn size_of_output(frames: &[ResolvedFrame], size: usize) -> usize {
    // Punctuation, numbers, and the keys of JSON.
    const OTHER: usize = 64;
    let names = |frame: &ResolvedFrame| {
        let texts = [&frame.function, &frame.file];
        texts.into_iter().flatten().map(String::len).sum::<usize>()
    };
    frames.iter().map(|frame| names(frame) + size + OTHER).sum()
}

/// How many bytes an answer has in memory.
pub(crate) fn size_of_answer(frames: &[ResolvedFrame]) -> usize {
    let size = |frame: &ResolvedFrame| {
        let texts = [&frame.function, &frame.name, &frame.file];
        let texts = texts.into_iter().flatten().map(String::len).sum::<usize>();
        size_of::<ResolvedFrame>() + texts
    };
    frames.iter().map(size).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_the_document_has_these_limits() {
        let limits = [
            ("ANSWER_BYTES", ANSWER_BYTES),
            ("OUTPUT_PER_BYTE", OUTPUT_PER_BYTE),
            ("WHOLE_REPORT", WHOLE_REPORT),
            ("BYTES_PER_FRAME", BYTES_PER_FRAME),
            ("FUNCTIONS", FUNCTIONS),
        ];
        let limits = limits.map(|(name, value)| (name, value as u64));
        symdex_testkit::limits::are_documented(&limits, include_str!("limits.rs"));
    }
}
