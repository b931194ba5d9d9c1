//! A process with its threads and memory, before its stacks are walked.

use std::collections::HashMap;

use minidump::format::MINIDUMP_MEMORY_DESCRIPTOR;
use minidump::system_info::{Cpu, PointerWidth};
use minidump::{Endian, MinidumpMemory, MinidumpModuleList};
use minidump_processor::ProcessState;
use symdex_report::ReportImage;

/// A process: what a minidump or a list states of it.
pub(crate) struct Process<'d> {
    /// The process as `minidump-processor` describes it. Each thread with known registers has one frame.
    pub(crate) state: ProcessState,
    /// The image for each module of the process, in the same order.
    pub(crate) images: Vec<ReportImage>,
    /// Positions of images by load address.
    pub(crate) by_base: HashMap<u64, usize>,
    /// The modules as frames repeat them: only their places and the ends of their paths.
    pub(crate) modules: MinidumpModuleList,
    /// The stack of each thread, in the order of the threads.
    pub(crate) stacks: Vec<Option<Block<'d>>>,
    /// All known memory, in ascending order.
    pub(crate) memory: Vec<Block<'d>>,
    /// The number of threads that are past the limit.
    pub(crate) skipped_threads: usize,
}

/// The size of an address of `cpu` in bytes.
pub(crate) fn address_size(cpu: Cpu) -> usize {
    match cpu.pointer_width() {
        PointerWidth::Bits32 => 4,
        PointerWidth::Bits64 | PointerWidth::Unknown => 8,
    }
}

/// Memory of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Block<'d> {
    pub(crate) address: u64,
    pub(crate) bytes: &'d [u8],
}

impl<'d> Block<'d> {
    /// Whether the block has the byte at `address`.
    pub(crate) fn contains(&self, address: u64) -> bool {
        address.checked_sub(self.address).is_some_and(|offset| offset < self.bytes.len() as u64)
    }

    /// The part of the block from `address` on.
    pub(crate) fn starting_at(&self, address: u64) -> Option<Self> {
        let offset = usize::try_from(address.checked_sub(self.address)?).ok()?;
        let bytes = self.bytes.get(offset..).filter(|bytes| !bytes.is_empty())?;
        Some(Self { address, bytes })
    }

    /// The block in the form that `minidump-unwind` reads.
    pub(crate) fn to_memory(self) -> MinidumpMemory<'d> {
        let Self { address, bytes } = self;
        let desc = MINIDUMP_MEMORY_DESCRIPTOR::default();
        MinidumpMemory {
            desc,
            base_address: address,
            size: bytes.len() as u64,
            bytes,
            endian: Endian::Little,
        }
    }
}

impl<'d> Process<'d> {
    /// The block that the stack pointer `pointer` of a thread points into: its stack, or any other memory. A signal
    /// handler can have a stack of its own.
    pub(crate) fn stack_at(&self, thread: usize, pointer: u64) -> Option<Block<'d>> {
        let own = self.stacks.get(thread).copied().flatten().filter(|stack| stack.contains(pointer));
        own.or_else(|| {
            let after = self.memory.partition_point(|block| block.address <= pointer);
            let block = self.memory.get(after.checked_sub(1)?)?;
            block.contains(pointer).then_some(*block)
        })
    }
}
