//! Limits for hostile minidumps.

/// How many frames of a thread are walked.
pub(crate) const FRAMES_OF_THREAD: usize = 4096;
/// How many frames of a process are walked. A frame takes up to 2 KiB of memory, because it has all registers.
pub(crate) const FRAMES: usize = 16_384;
/// How many threads of a process are walked.
pub(crate) const THREADS: usize = 8192;
/// How many addresses are looked up in a process while its stacks are walked. A search of the stack looks up as many as
/// 160 for each frame.
pub(crate) const LOOKUPS: usize = 262_144;
/// How many words of the stack may point into the stack. Each can be the frame pointer of a frame outside of all
/// modules, for which no limit of frames holds. The rest of the stack is not walked.
pub(crate) const POINTERS_INTO_STACK: usize = 16_384;
/// How many bytes of names and ids the modules and threads may have: these for any minidump,
pub(crate) const NAME_BYTES: u64 = 4 << 20;
/// and this number for each byte of the minidump. Many modules can share a name of megabytes.
pub(crate) const NAME_BYTES_PER_BYTE: u64 = 4;

/// Returns how many bytes of memory the walk of a file of `size` bytes takes at most, besides the file and the answers.
///
/// ```
/// assert_eq!(symdex_minidump::most_memory(1 << 20) >> 20, 96 + 4 + 4);
/// ```
#[must_use]
pub fn most_memory(size: usize) -> usize {
    /// A frame has all registers. Its JSON is built as a tree.
    const FRAME: usize = 6 << 10;
    /// The least memory of a stack that a frame takes.
    const STACK_OF_FRAME: usize = 8;
    let frames = FRAMES.min(size / STACK_OF_FRAME) * FRAME;
    let names = NAME_BYTES.saturating_add((size as u64).saturating_mul(NAME_BYTES_PER_BYTE));
    frames.saturating_add(usize::try_from(names).unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_the_document_has_these_limits() {
        let limits = [
            ("FRAMES_OF_THREAD", FRAMES_OF_THREAD as u64),
            ("FRAMES", FRAMES as u64),
            ("THREADS", THREADS as u64),
            ("LOOKUPS", LOOKUPS as u64),
            ("POINTERS_INTO_STACK", POINTERS_INTO_STACK as u64),
            ("NAME_BYTES", NAME_BYTES),
            ("NAME_BYTES_PER_BYTE", NAME_BYTES_PER_BYTE),
        ];
        symdex_testkit::limits::are_documented(&limits, include_str!("limits.rs"));
    }
}
