//! The process as a report that `symdex-report` answers.

use minidump_unwind::{CallStack, StackFrame};
use symdex_report::{FoundBy, Frame, Register, Report, ReportInfo, Thread};

use crate::process::Process;

/// Returns the report of a process whose stacks are walked. `cut` is the number of threads that lack frames.
pub(crate) fn report(process: &mut Process<'_>, cut: usize) -> Report<'static> {
    let state = &process.state;
    let threads = state.threads.iter().enumerate().map(|(number, stack)| thread(process, number, stack));
    let threads = threads.collect();
    let system = &state.system_info;
    let mut info = ReportInfo::default();
    info.pid = state.process_id.map(u64::from);
    let version = system.format_os_version().unwrap_or_default();
    info.os = Some(format!("{} {version}", system.os.long_name()).trim().to_owned());
    if let Some(exception) = &state.exception_info {
        info.exception.get_or_insert_default().kind = Some(exception.reason.to_string());
    }
    let images = std::mem::take(&mut process.images);
    Report::of_stacks(images, threads, info, (cut + process.skipped_threads) as u64)
}

/// The thread with this position, and the registers of its innermost frame.
fn thread(process: &Process<'_>, number: usize, stack: &CallStack) -> Thread {
    let frame = |frame: &StackFrame| {
        let base = frame.module.as_ref().map(|module| module.raw.base_of_image);
        Frame::new(frame.instruction, base.and_then(|base| process.by_base.get(&base)).copied())
    };
    let registers = stack.frames.first().into_iter().flat_map(|frame| frame.context.valid_registers());
    let mut thread = Thread::default();
    thread.name = format!("Thread {number}");
    thread.crashed = process.state.requesting_thread == Some(number);
    thread.id = Some(stack.thread_id.into());
    thread.label = stack.thread_name.clone().filter(|name| !name.is_empty());
    thread.registers = registers.map(|(name, value)| Register::new(name, value)).collect();
    thread.found_by = stack.frames.iter().map(|frame| FoundBy::from_name(frame.trust.as_str())).collect();
    thread.frames = stack.frames.iter().map(frame).collect();
    thread
}
