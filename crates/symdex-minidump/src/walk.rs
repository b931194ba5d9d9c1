//! Walks the stacks of a process.

use std::pin::pin;
use std::task::{Context, Waker};

use minidump::{MinidumpContext, UnifiedMemory};
use minidump_unwind::{CallStack, CallStackInfo, FrameTrust, StackFrame, walk_stack};
use symdex_report::Source;

use crate::error::Error;
use crate::limits::{FRAMES_OF_THREAD, POINTERS_INTO_STACK};
use crate::process::{Block, Process, address_size};
use crate::provider::{Provider, Stop};
use crate::registers::{Registers, context_with};
use crate::signal_frame::{has_layout, interrupted};

/// How often a signal handler may interrupt another one in a thread.
const SIGNALS: usize = 64;

/// Walks the stack of every thread. Returns for each whether frames are left out.
pub(crate) fn walk(
    process: &mut Process<'_>,
    source: &mut (dyn Source + Send),
    size: usize,
) -> Result<Vec<bool>, Error> {
    let cpu = process.state.system_info.cpu;
    let registers = Registers::of(cpu).ok_or_else(|| Error::Unsupported {
        what: format!("stacks of the processor {cpu} cannot be walked"),
    })?;
    let mut threads = std::mem::take(&mut process.state.threads);
    let provider = Provider::new(source, &process.images, registers, size);
    let walker = StackWalker { process, provider: &provider };
    let walked = threads.iter_mut().enumerate().map(|(number, thread)| walker.thread(number, thread));
    let is_cut = walked.collect();
    process.state.threads = threads;
    Ok(is_cut)
}

struct StackWalker<'w, 'd> {
    process: &'w Process<'d>,
    provider: &'w Provider<'w>,
}

impl StackWalker<'_, '_> {
    /// Walks the stack of a thread of which only the innermost frame is known. Returns whether frames are left out.
    fn thread(&self, number: usize, thread: &mut CallStack) -> bool {
        let Some(innermost) = thread.frames.pop() else { return false };
        self.provider.start_thread();
        let mut context = innermost.context;
        let mut is_cut = true;
        for _ in 0..SIGNALS {
            let (frames, stop) = self.until_signal(number, context.clone());
            let is_interrupted = !thread.frames.is_empty();
            let (mut frames, stop) = self.until_handler(number, frames, stop);
            if let (Some(Stop::Interrupted(_)), Some(frame)) = (&stop, frames.last_mut()) {
                // The kernel has made the handler return to the start of this code. No call is before it.
                frame.instruction = frame.resume_address & self.provider.address_mask();
            }
            thread.frames.extend(frames.into_iter().enumerate().map(|(at, frame)| {
                // Only the registers of the innermost frame are those of the thread.
                let is_first = at == 0 && is_interrupted;
                StackFrame { trust: if is_first { FrameTrust::CallFrameInfo } else { frame.trust }, ..frame }
            }));
            match stop {
                None => {
                    is_cut = false;
                    break;
                }
                Some(Stop::Limit) => break,
                Some(Stop::Interrupted(registers)) => context = context_with(&context, &registers),
            }
        }
        // The walk stops when the caller of the last frame would be found.
        thread.frames.truncate(FRAMES_OF_THREAD);
        let unloaded = &self.process.state.unloaded_modules;
        for frame in &mut thread.frames {
            // Only the answers for the report state functions.
            (frame.function_name, frame.function_base, frame.parameter_size) = (None, None, None);
            if frame.module.is_none() {
                for module in unloaded.modules_at_address(frame.instruction) {
                    let offset = frame.instruction - module.raw.base_of_image;
                    frame.unloaded_modules.entry(module.name.clone()).or_default().insert(offset);
                }
            }
        }
        is_cut
    }

    /// The same frames, or those before a frame that returns from a signal handler without unwind rows, and the
    /// registers that the signal has interrupted.
    fn until_handler(
        &self,
        thread: usize,
        mut frames: Vec<StackFrame>,
        stop: Option<Stop>,
    ) -> (Vec<StackFrame>, Option<Stop>) {
        let state = &self.process.state;
        let (os, cpu) = (state.system_info.os, state.system_info.cpu);
        let is_code = |address| state.modules.module_at_address(address).is_some();
        let may_return = |frame: &StackFrame| {
            let is_sure = matches!(frame.trust, FrameTrust::CallFrameInfo | FrameTrust::FramePointer);
            is_sure
                && frame.module.as_ref().is_none_or(|module| {
                    let address = frame.resume_address & self.provider.address_mask();
                    is_kernel_code(&module.name) || self.provider.is_signal_return(module, address)
                })
        };
        if !has_layout(os, cpu) {
            return (frames, stop);
        }
        let found = (1..frames.len()).filter(|at| may_return(&frames[*at])).find_map(|at| {
            let pointer = frames[at].context.get_stack_pointer();
            let stack = self.process.stack_at(thread, pointer)?.starting_at(pointer)?;
            Some((at, interrupted(os, cpu, stack, is_code)?))
        });
        match found {
            None => (frames, stop),
            Some((at, registers)) => {
                frames.truncate(at + 1);
                (frames, Some(Stop::Interrupted(registers)))
            }
        }
    }

    /// The frames from that of `context` to the last one of the stack, or to the frame of a signal handler.
    fn until_signal(&self, thread: usize, context: MinidumpContext) -> (Vec<StackFrame>, Option<Stop>) {
        let state = &self.process.state;
        let pointer = context.get_stack_pointer();
        let width = address_size(state.system_info.cpu);
        let memory = self.process.stack_at(thread, pointer);
        let memory = memory.and_then(|stack| without_chains(stack.starting_at(pointer)?, width));
        let memory = memory.map(Block::to_memory);
        let mut stack = CallStack::with_context(context);
        if memory.is_none() {
            stack.info = CallStackInfo::MissingMemory;
        }
        {
            let (modules, system) = (&state.modules, &state.system_info);
            let memory = memory.as_ref().map(UnifiedMemory::Memory);
            let walk = pin!(walk_stack(thread, (), &mut stack, memory, modules, system, self.provider));
            // The provider answers at once or not at all.
            let _ = walk.poll(&mut Context::from_waker(Waker::noop()));
        }
        (stack.frames, self.provider.take_stop())
    }
}

/// Whether an image of this name is code that Linux maps into every process.
fn is_kernel_code(name: &str) -> bool {
    name.contains("vdso") || name.contains("linux-gate")
}

/// The part of a stack in which no more words point into the stack than [`POINTERS_INTO_STACK`] says.
fn without_chains(stack: Block<'_>, width: usize) -> Option<Block<'_>> {
    /// The bits of an address; the others can be a signature.
    const ADDRESS: u64 = (1 << 47) - 1;
    let points_into_stack = |word: &[u8]| {
        let mut bytes = [0; 8];
        bytes[..width].copy_from_slice(word);
        stack.contains(u64::from_le_bytes(bytes) & ADDRESS)
    };
    let mut words = stack.bytes.chunks_exact(width).enumerate().filter(|(_, word)| points_into_stack(word));
    let len = words.nth(POINTERS_INTO_STACK).map_or(stack.bytes.len(), |(at, _)| at * width);
    Some(Block { bytes: stack.bytes.get(..len)?, ..stack })
}
