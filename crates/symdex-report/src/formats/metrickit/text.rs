//! Writes a payload as text: the stacks of crashes in the layout of a `.crash`, other diagnostics as call trees.

use std::io::{self, Write};

use symdex_demangle::printable;

use super::{Stack, stacks};
use crate::engine::symbolicate::Symbolicated;
use crate::formats::json::{Json, Value};
use crate::render::tree::Branch;
use crate::render::{Stacks, write_header, write_images};
use crate::report::{Span, to_u32};

pub(super) fn write(symbolicated: &Symbolicated<'_, '_>, out: &mut dyn Write) -> io::Result<()> {
    let report = symbolicated.report;
    write_header(report, out)?;
    let rendered = Stacks::new(symbolicated);
    // The text was parsed before, so this does not fail.
    if let Ok(json) = Json::parse(report.text(), 0) {
        let mut before: Option<Span> = None;
        for (thread, stack) in stacks(json.root()).enumerate().take(report.threads.len()) {
            if before.replace(stack.diagnostic.span()) != Some(stack.diagnostic.span()) {
                write_diagnostic(&stack, out)?;
            }
            if stack.is_of_thread {
                rendered.write(thread, out)?;
            } else {
                writeln!(
                    out,
                    "Call tree of {}, samples before each frame:",
                    printable(stack.name.as_str().into())
                )?;
                rendered.write_tree(thread, &stack.branches(report.threads[thread].frames.len()), out)?;
                writeln!(out)?;
            }
        }
    }
    write_images(report, out)?;
    writeln!(out, "\nEOF")
}

/// Writes the kind and the metadata of a diagnostic. A single diagnostic has no kind, and the header has its metadata
/// already.
fn write_diagnostic(stack: &Stack<'_>, out: &mut dyn Write) -> io::Result<()> {
    let Some((kind, _)) = stack.name.split_once(" Thread ") else { return Ok(()) };
    writeln!(out, "Diagnostic:          {}", printable(kind.into()))?;
    let data = stack.diagnostic.get("diagnosticMetaData").into_iter().flat_map(Value::members);
    for (key, value) in data {
        let scalar = || String::from_utf8_lossy(value.bytes());
        let is_scalar = !matches!(value.bytes().first(), Some(b'{' | b'['));
        let text = value.text().unwrap_or_else(scalar);
        let (Some(key), true, false) = (key.text(), is_scalar, text.trim().is_empty()) else { continue };
        // The header has tables, such as the memory regions, in full.
        let first = text.lines().next().unwrap_or_default();
        writeln!(out, "{:<20} {}", printable(format!("{key}:").into()), printable(first.into()))?;
    }
    writeln!(out)
}

impl Stack<'_> {
    /// The position in the tree of each of the first `frames`, in the order of the thread's frames.
    fn branches(&self, frames: usize) -> Vec<Branch> {
        let branch = |(position, node): (usize, &super::Node<'_>)| {
            // If the root is the innermost frame, the tree has no branches.
            let depth =
                if self.is_outermost_first { node.depth } else { to_u32(self.nodes.len() - 1 - position) };
            Branch {
                depth: depth as usize,
                samples: node.object.get("sampleCount").and_then(Value::number).unwrap_or(1),
            }
        };
        self.innermost_first().take(frames).enumerate().map(branch).collect()
    }
}
