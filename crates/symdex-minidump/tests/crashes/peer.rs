//! The stacks that rust-minidump's own processor finds.

use std::collections::HashMap;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use minidump::Minidump;
use minidump_processor::{ProcessState, process_minidump};
use minidump_unwind::{Symbolizer, string_symbol_supplier};

/// A frame: the address of the instruction, how it was found, and the name of the function.
pub(crate) type PeerFrame = (u64, &'static str, Option<String>);

/// The stacks of a minidump. `symbols` are symbol files of Breakpad, by the names of their modules. `None` if the
/// minidump is refused.
pub(crate) fn stacks(dump: &[u8], symbols: HashMap<String, String>) -> Option<Vec<Vec<PeerFrame>>> {
    let dump = Minidump::read(dump).ok()?;
    let symbolizer = Symbolizer::new(string_symbol_supplier(symbols));
    let state = wait(process_minidump(&dump, &symbolizer)).ok()?;
    Some(frames(&state))
}

fn frames(state: &ProcessState) -> Vec<Vec<PeerFrame>> {
    let frame = |frame: &minidump_unwind::StackFrame| {
        (frame.instruction, frame.trust.as_str(), frame.function_name.clone())
    };
    state.threads.iter().map(|thread| thread.frames.iter().map(frame).collect()).collect()
}

/// The output of a future that waits for nothing but other futures.
fn wait<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return output;
        }
    }
}
