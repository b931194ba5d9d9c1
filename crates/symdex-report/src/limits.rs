//! How many frames of a report are read, and how much text the answers for one report may have.
//!
//! A small index can have names of megabytes at each address, and a report can have any number of frames there.

use crate::source::Function;
use crate::symbolicate::ResolvedFrame;

/// How many bytes the answers for one report may have, beside [`ANSWER_BYTES_PER_FRAME`].
pub(crate) const ANSWER_BYTES: usize = 32 << 20;
/// How many further bytes for each frame of the report. Real answers have a few hundred.
pub(crate) const ANSWER_BYTES_PER_FRAME: usize = 4 << 10;

/// What is left of the bytes that answers may have.
pub(crate) struct AnswerBytes {
    left: usize,
}

impl AnswerBytes {
    /// The limit for answers of `frames` frames.
    pub(crate) fn of(frames: usize) -> Self {
        Self { left: ANSWER_BYTES.saturating_add(frames.saturating_mul(ANSWER_BYTES_PER_FRAME)) }
    }

    /// Takes `size` bytes. Returns whether the limit allows them.
    pub(crate) fn take(&mut self, size: usize) -> bool {
        let left = self.left.checked_sub(size);
        self.left = left.unwrap_or(self.left);
        left.is_some()
    }
}

/// The largest report whose frames are all read, in bytes.
pub(crate) const WHOLE_REPORT: usize = 10_000_000;
/// The bytes of a larger report for each frame that is read. The lines of real reports have more. A frame takes less
/// than twice as many bytes of memory.
pub(crate) const BYTES_PER_FRAME: usize = 30;

/// How many frames of a report are still read, and how many were not.
pub(crate) struct FrameLimit {
    left: usize,
    /// The number of frames that are not read.
    pub(crate) unread: u64,
}

impl FrameLimit {
    /// The limit for a report of `size` bytes.
    pub(crate) fn of(size: usize) -> Self {
        let left = if size <= WHOLE_REPORT { usize::MAX } else { size / BYTES_PER_FRAME };
        Self { left, unread: 0 }
    }

    /// How many frames are still read.
    pub(crate) fn left(&self) -> usize {
        self.left
    }

    /// Counts a frame. Returns whether it is read.
    pub(crate) fn take(&mut self) -> bool {
        let left = self.left.checked_sub(1);
        self.left = left.unwrap_or_default();
        self.unread += u64::from(left.is_none());
        left.is_some()
    }
}

/// No limit.
impl Default for FrameLimit {
    fn default() -> Self {
        Self { left: usize::MAX, unread: 0 }
    }
}

/// How many bytes a function of an index takes once its strings are copied.
pub(crate) fn size_of_copy(frame: &symdex::Frame<'_>) -> usize {
    size_of::<Function>() + frame.name.map_or(0, <[u8]>::len) + frame.file.map_or(0, <[u8]>::len)
}

/// How many bytes an answer has.
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
        let document = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/SECURITY.md");
        let document = std::fs::read_to_string(document).expect("docs/SECURITY.md");
        let limits = [
            ("ANSWER_BYTES", ANSWER_BYTES),
            ("ANSWER_BYTES_PER_FRAME", ANSWER_BYTES_PER_FRAME),
            ("WHOLE_REPORT", WHOLE_REPORT),
            ("BYTES_PER_FRAME", BYTES_PER_FRAME),
        ];
        for (name, value) in limits {
            assert!(document.contains(&format!("| `{name}` | {value} |")), "{name} is {value}");
        }
    }
}
