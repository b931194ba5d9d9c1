//! Walks the stacks of a process.

use std::pin::pin;
use std::task::{Context, Waker};

use minidump::{MinidumpContext, UnifiedMemory};
use minidump_unwind::{CallStack, FrameTrust, StackFrame, walk_stack};
use symdex_report::Source;

use crate::chains::{Bounded, Chains};
use crate::error::Error;
use crate::limits::UNLOADED;
use crate::names::repeated;
use crate::process::{Process, address_size};
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
    let provider = Provider::new(source, process, registers, threads.len(), size);
    let chains = Chains::new(address_size(cpu), size);
    let mut walker = StackWalker { process, provider: &provider, registers, chains, unloaded_left: UNLOADED };
    let walked = threads.iter_mut().enumerate().map(|(number, thread)| walker.thread(number, thread));
    let is_cut = walked.collect();
    process.state.threads = threads;
    Ok(is_cut)
}

struct StackWalker<'w, 'd> {
    process: &'w Process<'d>,
    provider: &'w Provider<'w>,
    registers: Registers,
    chains: Chains,
    /// How many unloaded modules may still be named.
    unloaded_left: usize,
}

impl StackWalker<'_, '_> {
    /// Walks the stack of a thread of which only the innermost frame is known. Returns whether frames are left out.
    fn thread(&mut self, number: usize, thread: &mut CallStack) -> bool {
        let Some(innermost) = thread.frames.pop() else { return false };
        self.provider.start_thread();
        let mut context = innermost.context;
        let mut is_cut = true;
        for _ in 0..SIGNALS {
            let is_interrupted = !thread.frames.is_empty();
            let (frames, stop) = self.until_signal(number, context.clone());
            let (mut frames, stop) = self.until_handler(number, frames, stop);
            if let (Some(Stop::Interrupted(_)), Some(frame)) = (&stop, frames.last_mut()) {
                // The kernel has made the handler return to the start of this code. No call is before it.
                frame.instruction = frame.resume_address & self.provider.address_mask();
            }
            self.provider.keep_frames(frames.len() - usize::from(!is_interrupted));
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
        for frame in &mut thread.frames {
            // Only the answers for the report state functions.
            (frame.function_name, frame.function_base, frame.parameter_size) = (None, None, None);
        }
        thread.frames.iter_mut().for_each(|frame| is_cut |= !self.name_unloaded(frame));
        is_cut
    }

    /// Names the unloaded modules at a frame. Returns whether the limit allows all of them.
    fn name_unloaded(&mut self, frame: &mut StackFrame) -> bool {
        if frame.module.is_some() {
            return true;
        }
        let process = self.process;
        process.state.unloaded_modules.modules_at_address(frame.instruction).all(|module| {
            let Some(left) = self.unloaded_left.checked_sub(1) else { return false };
            self.unloaded_left = left;
            let offset = frame.instruction - module.raw.base_of_image;
            frame.unloaded_modules.entry(repeated(&module.name)).or_default().insert(offset);
            true
        })
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
        let is_code = |address| self.process.modules.module_at_address(address).is_some();
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
    fn until_signal(&mut self, thread: usize, context: MinidumpContext) -> (Vec<StackFrame>, Option<Stop>) {
        let Process { state, modules, .. } = self.process;
        let pointer = context.get_stack_pointer();
        let room = self.provider.start_walk();
        let known = self.process.stack_at(thread, pointer);
        let bounded = known.filter(|_| room > 0).and_then(|block| self.chains.bound(block, pointer));
        let memory = bounded.map(|bounded| bounded.stack.to_memory());
        let mut stack = CallStack::with_context(context);
        {
            let memory = memory.as_ref().map(UnifiedMemory::Memory);
            let system = &state.system_info;
            let walk = pin!(walk_stack(thread, (), &mut stack, memory, modules, system, self.provider));
            // The provider answers at once or not at all.
            let _ = walk.poll(&mut Context::from_waker(Waker::noop()));
        }
        let (mut frames, stop) = (stack.frames, self.provider.take_stop());
        let cut = bounded.and_then(|bounded| self.last_before_cut(&bounded, &frames));
        let most = cut.unwrap_or(usize::MAX).min(1 + room);
        let is_left_out = frames.len() > most || cut.is_some() || known.is_some() && bounded.is_none();
        frames.truncate(most);
        (frames, if is_left_out { Some(Stop::Limit) } else { stop })
    }

    /// The number of frames up to the first one whose caller may be found by memory that is cut off.
    fn last_before_cut(&self, bounded: &Bounded<'_>, frames: &[StackFrame]) -> Option<usize> {
        /// A search of the stack reads 160 words.
        const SEARCHED: u64 = 160 * 8;
        let (cut, end) = bounded.cut?;
        let is_near = |address: u64| (cut.saturating_sub(SEARCHED)..end).contains(&address);
        let needs_more = |frame: &StackFrame| {
            let frame_pointer = frame.context.get_register(self.registers.frame_pointer);
            is_near(frame.context.get_stack_pointer()) || frame_pointer.is_some_and(is_near)
        };
        Some(1 + frames.iter().position(needs_more)?)
    }
}

/// Whether an image of this name is code that Linux maps into every process.
fn is_kernel_code(name: &str) -> bool {
    name.contains("vdso") || name.contains("linux-gate")
}
