//! Limits for hostile minidumps.

/// How many frames of a thread are walked.
pub(crate) const FRAMES_OF_THREAD: usize = 4096;
/// How many frames of a process are walked. A frame takes up to 2 KiB of memory, because it has all registers.
pub(crate) const FRAMES: usize = 16_384;
/// How many threads of a process are walked.
pub(crate) const THREADS: usize = 8192;
/// How many modules, unloaded modules and names of threads a minidump may have, each.
pub(crate) const ENTRIES: usize = 8192;
/// How many ranges of memory a minidump may have. A process of Linux has at most 65,530 by default.
pub(crate) const RANGES: usize = 262_144;
/// How many unloaded modules are named at the frames of a process. Any number of them can overlap.
pub(crate) const UNLOADED: usize = 16_384;
/// How many addresses are looked up in a process while its stacks are walked. A search of the stack looks up as many as
/// 160 for each frame.
pub(crate) const LOOKUPS: usize = 262_144;
/// How many words of the stack may point to higher addresses of the stack. Each can be the frame pointer of a frame
/// outside of all modules, at which the walker cannot be stopped. The rest of the stack is not walked.
pub(crate) const POINTERS_INTO_STACK: usize = 16_384;
/// How many bytes of names and ids the modules and threads may have, each. Many modules can share a long name.
pub(crate) const NAME_BYTES: usize = 4 << 20;
/// How many bytes of a name are repeated at each frame and thread.
pub(crate) const REPEATED_NAME: usize = 255;

/// Returns how many bytes of memory the walk of a file of `size` bytes takes at most, besides the file and the answers.
///
/// ```
/// assert_eq!(symdex_minidump::most_memory(1 << 20) >> 20, 216);
/// ```
#[must_use]
pub fn most_memory(size: usize) -> usize {
    /// A frame with its registers. Its JSON is built as a tree.
    const FRAME: usize = 6 << 10;
    /// A frame with its registers, before those past the limits are dropped.
    const WALKED: usize = 2 << 10;
    /// The bytes of the file that state a module, an unloaded one and a range of memory, how many of these there may
    /// be, and the memory that each takes. The JSON of modules is built as a tree.
    const LISTS: [(usize, usize, usize); 3] =
        [(108, ENTRIES, 6 << 10), (24, ENTRIES, 2 << 10), (16, RANGES, 128)];
    /// What is known of an address that was looked up.
    const LOOKUP: usize = 48;
    /// The memory that a byte of a name takes. JSON and the report have copies.
    const NAMED: usize = 4;
    let lists = LISTS.map(|(stated, limit, memory)| (size / stated).min(limit) * memory);
    let frames = FRAMES * FRAME + POINTERS_INTO_STACK * WALKED + LOOKUPS * LOOKUP;
    frames + lists.iter().sum::<usize>() + size.min(NAME_BYTES) * NAMED
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_the_document_has_these_limits() {
        let limits = [
            ("FRAMES_OF_THREAD", FRAMES_OF_THREAD),
            ("FRAMES", FRAMES),
            ("THREADS", THREADS),
            ("ENTRIES", ENTRIES),
            ("RANGES", RANGES),
            ("UNLOADED", UNLOADED),
            ("LOOKUPS", LOOKUPS),
            ("POINTERS_INTO_STACK", POINTERS_INTO_STACK),
            ("NAME_BYTES", NAME_BYTES),
            ("REPEATED_NAME", REPEATED_NAME),
        ];
        let limits = limits.map(|(name, value)| (name, value as u64));
        symdex_testkit::limits::are_documented(&limits, include_str!("limits.rs"));
    }
}
