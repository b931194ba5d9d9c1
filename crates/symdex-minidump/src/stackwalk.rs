//! The output of minidump-stackwalk for a process whose stacks are walked.

use std::io::{self, Write};

use minidump::Module;
use minidump_processor::ProcessState;
use minidump_unwind::{InlineFrame, StackFrame, SymbolStats};
use symdex::Cause;
use symdex_demangle::printable;
use symdex_report::{Function, ImageOutcome, Resolution, Symbolicated};

use crate::names::path_on_one_line;

/// A process whose stacks are walked. It writes what minidump-stackwalk writes.
#[derive(Debug)]
pub struct WalkedProcess {
    pub(crate) state: Box<ProcessState>,
}

impl WalkedProcess {
    /// Adds the answers for the frames and modules.
    fn answer(&mut self, symbolicated: &Symbolicated<'_, '_>) {
        for (number, thread) in self.state.threads.iter_mut().enumerate() {
            for (depth, frame) in thread.frames.iter_mut().enumerate() {
                if let Some(resolution) = symbolicated.resolution(number, depth) {
                    add(frame, &resolution);
                }
            }
        }
        // The first outcome for each module name: minidump-stackwalk knows modules by their names, too.
        let outcomes = self.state.modules.iter().zip(symbolicated.images());
        for (module, outcome) in outcomes.filter(|(_, outcome)| **outcome != ImageOutcome::Unused) {
            let path = module.code_file();
            let name = path.rsplit(['/', '\\']).next().unwrap_or_default().to_owned();
            let stats = SymbolStats {
                loaded_symbols: outcome.answered_by().is_some(),
                corrupt_symbols: outcome.cause() == Some(Cause::Damaged),
                ..SymbolStats::default()
            };
            self.state.symbol_stats.entry(name).or_insert(stats);
        }
    }

    /// Writes the text of minidump-stackwalk. `symbolicated` is the report of the same process.
    ///
    /// # Errors
    ///
    /// Those of `out`.
    pub fn write_text(&mut self, symbolicated: &Symbolicated<'_, '_>, mut out: impl Write) -> io::Result<()> {
        self.answer(symbolicated);
        self.state.print(&mut out)
    }

    /// Writes the JSON of minidump-stackwalk on one line. `symbolicated` is the report of the same process.
    ///
    /// # Errors
    ///
    /// Those of `out`.
    pub fn write_json(&mut self, symbolicated: &Symbolicated<'_, '_>, mut out: impl Write) -> io::Result<()> {
        self.answer(symbolicated);
        self.state.print_json(&mut out, false)?;
        out.write_all(b"\n")
    }
}

/// Adds the answer for a frame.
fn add(frame: &mut StackFrame, resolution: &Resolution<'_>) {
    let Some((concrete, inlined)) = resolution.frames.split_last() else { return };
    frame.function_name = concrete.readable().map(on_one_line);
    frame.function_base = resolution.function_offset(concrete).and_then(|o| frame.instruction.checked_sub(o));
    (frame.source_file_name, frame.source_line) = place(concrete);
    if frame.source_file_name.is_some() {
        // The text needs an address. The start of a line is not stored.
        frame.source_line_base = Some(frame.instruction);
    }
    let inline = |function: &Function| {
        let (source_file_name, source_line) = place(function);
        let function_name = on_one_line(function.readable().unwrap_or_default());
        InlineFrame { function_name, source_file_name, source_line }
    };
    frame.inlines = inlined.iter().map(inline).collect();
}

/// The file and the line of a function.
fn place(function: &Function) -> (Option<String>, Option<u32>) {
    (function.file().map(path_on_one_line), function.line)
}

fn on_one_line(name: &str) -> String {
    printable(name.into()).into_owned()
}
