//! Writes stacks, a line for each function.

use std::io::{self, Write};

use symdex_demangle::printable;

use crate::engine::symbolicate::Symbolicated;
use crate::formats::apple_text;
use crate::formats::existing::ExistingSymbol;
use crate::report::{Base, ReportImage};

/// The stacks of a report, with the symbols that the report has.
pub(crate) struct Stacks<'s> {
    pub(super) symbolicated: &'s Symbolicated<'s, 's>,
    existing: Vec<Vec<ExistingSymbol>>,
}

impl<'s> Stacks<'s> {
    pub(crate) fn new(symbolicated: &'s Symbolicated<'s, 's>) -> Self {
        let mut existing = symbolicated.report.existing_symbols();
        for function in existing.iter_mut().flatten().filter_map(|symbol| symbol.function.as_mut()) {
            *function = symbolicated.readable(function).into_owned();
        }
        Self { symbolicated, existing }
    }

    /// Writes the stack of a thread with its title, and an empty line at the end.
    pub(crate) fn write(&self, thread: usize, out: &mut dyn Write) -> io::Result<()> {
        let stack = &self.symbolicated.report.threads[thread];
        if is_backtrace(&stack.name) {
            writeln!(out, "{}:", printable(stack.name.as_str().into()))?;
        } else {
            let number = number(&stack.name, thread);
            let is_numbered = stack.name.is_empty() || number_in(&stack.name).is_some();
            let label = stack.label.as_deref().or((!is_numbered).then_some(stack.name.as_str()));
            if label.is_some() || stack.queue.is_some() {
                let queue = stack.queue.as_ref().map(|queue| format!(" Dispatch queue: {queue}"));
                let text = [label.unwrap_or_default(), queue.as_deref().unwrap_or_default()].concat();
                writeln!(out, "Thread {number} name:  {}", printable(text.into()))?;
            }
            writeln!(out, "Thread {number}{}:", if stack.crashed { " Crashed" } else { "" })?;
        }
        for (frame, stated) in stack.frames.iter().enumerate() {
            let image = self.image(thread, frame).map_or("???", |image| image.name.as_str());
            let image = if image.is_empty() { "???" } else { image };
            let address = format!("{:#x}", stated.address);
            for answer in self.answers(thread, frame) {
                writeln!(out, "{frame:<3} {:<30}\t{address:>18} {answer}", printable(image.into()))?;
            }
        }
        writeln!(out)
    }

    /// The image of a frame; `None` if the frame lies in no image.
    pub(super) fn image(&self, thread: usize, frame: usize) -> Option<&ReportImage> {
        let image = self.symbolicated.report.images.get(self.symbolicated.image_of(thread, frame)?)?;
        (image.base != Base::Absolute).then_some(image)
    }

    /// The text after the address of a frame, for each of its functions, innermost first: `-[A b:] + 24 (A.m:42)`.
    fn answers(&self, thread: usize, frame: usize) -> Vec<String> {
        let address = self.symbolicated.report.threads[thread].frames[frame].address;
        let raw = match self.image(thread, frame) {
            Some(image) if image.is_placed() && address >= image.load_address => {
                format!("{:#x} + {}", image.load_address, address - image.load_address)
            }
            _ => "???".to_owned(),
        };
        if let Some(resolution) = self.symbolicated.resolution(thread, frame) {
            let answer = |resolved| apple_text::answer(resolved, raw.as_bytes(), &resolution);
            return resolution.frames.iter().map(answer).collect();
        }
        let inlined = self.symbolicated.report.threads[thread].frames[frame].inlined;
        vec![self.existing(thread, frame).and_then(|symbol| symbol.answer(inlined)).unwrap_or(raw)]
    }

    /// The symbol that the report has for a frame.
    pub(super) fn existing(&self, thread: usize, frame: usize) -> Option<&ExistingSymbol> {
        self.existing.get(thread)?.get(frame)
    }
}

impl ExistingSymbol {
    /// The symbol as `-[A b:] + 24 (A.m:42)`; `None` if it has no function.
    fn answer(&self, inlined: bool) -> Option<String> {
        let mut answer = printable(self.function.as_ref()?.into()).into_owned();
        if let Some(offset) = self.offset {
            answer += &format!(" + {offset}");
        }
        if let Some(file) = &self.file {
            answer += &format!(" ({}:{})", printable(file.into()), self.line.unwrap_or(0));
        }
        answer += if inlined { " [inlined]" } else { "" };
        Some(answer)
    }
}

/// Whether a stack with this title belongs to an exception, and not to a thread.
pub(super) fn is_backtrace(name: &str) -> bool {
    name.contains("Backtrace")
}

/// The number of a thread: the one in its title, or its position in the report.
pub(super) fn number(name: &str, position: usize) -> usize {
    number_in(name).unwrap_or(position)
}

/// The number in a title: 3 in `Thread 3` and in `crash 0 Thread 3`.
fn number_in(name: &str) -> Option<usize> {
    let (before, digits) = name.rsplit_once("Thread ")?;
    digits.parse().ok().filter(|_| before.is_empty() || before.ends_with(' '))
}
