//! Writes call trees in the layout of `sample`: `2761 main  (in App) + 24  [0x101671d68]  main.m:42`.

use std::io::{self, Write};

use symdex_demangle::printable;

use super::stacks::Stacks;
use crate::engine::function::Function;

/// The position of a frame in a call tree.
#[derive(Clone, Copy)]
pub(crate) struct Branch {
    /// The number of frames above it.
    pub(crate) depth: usize,
    /// How often it was sampled.
    pub(crate) samples: u64,
}

/// The deepest indentation, in levels. Recursion makes trees of thousands of levels.
const MAX_INDENT: usize = 120;

impl Stacks<'_> {
    /// Writes the frames of a thread as a tree, the outermost first. `branches` are their positions, in the order of
    /// the frames.
    pub(crate) fn write_tree(
        &self,
        thread: usize,
        branches: &[Branch],
        out: &mut dyn Write,
    ) -> io::Result<()> {
        // The depths of the frames above, with the number of functions inlined into them and into the frames above
        // them. What a frame calls is indented below all of its inlined functions.
        let mut inlined_above: Vec<(usize, usize)> = Vec::new();
        for (frame, branch) in branches.iter().enumerate().rev() {
            while inlined_above.last().is_some_and(|(depth, _)| *depth >= branch.depth) {
                inlined_above.pop();
            }
            let above = inlined_above.last().map_or(0, |(_, inlined)| *inlined);
            let lines = self.tree_lines(thread, frame);
            for (inner, line) in lines.iter().enumerate() {
                let indent = 2 * (branch.depth + above + inner).min(MAX_INDENT);
                writeln!(out, "    {:indent$}{} {line}", "", branch.samples)?;
            }
            inlined_above.push((branch.depth, above + lines.len().saturating_sub(1)));
        }
        Ok(())
    }

    /// The lines of a frame without their sample counts, the outermost function first.
    fn tree_lines(&self, thread: usize, frame: usize) -> Vec<String> {
        let stated = &self.symbolicated.report.threads[thread].frames[frame];
        let image = self.image(thread, frame);
        let image_name =
            image.map(|image| image.name.as_str()).filter(|name| !name.is_empty()).unwrap_or("???");
        let line = |function: &str, offset: Option<u64>, location: Option<(&str, u32)>, inlined: bool| {
            let offset = offset.map(|offset| format!(" + {offset}")).unwrap_or_default();
            let location = location
                .map(|(file, line)| format!("  {}:{line}", printable(file.into())))
                .unwrap_or_default();
            let inlined = if inlined { " [inlined]" } else { "" };
            let (function, image) = (printable(function.into()), printable(image_name.into()));
            format!("{function}  (in {image}){offset}  [{:#x}]{location}{inlined}", stated.address)
        };
        if let Some(resolution) = self.symbolicated.resolution(thread, frame) {
            let of = |resolved: &Function| {
                let location = resolved.line.map(|line| (resolved.file_name(), line));
                line(
                    resolved.readable().unwrap_or("???"),
                    resolution.function_offset(resolved),
                    location,
                    resolved.inlined,
                )
            };
            return resolution.frames.iter().rev().map(of).collect();
        }
        let symbol =
            self.existing(thread, frame).and_then(|symbol| Some((symbol, symbol.function.as_ref()?)));
        vec![match (symbol, image) {
            (Some((symbol, function)), _) => {
                let location = symbol.file.as_deref().map(|file| (file, symbol.line.unwrap_or(0)));
                line(function, symbol.offset, location, stated.inlined)
            }
            (None, Some(image)) if stated.address >= image.load_address => {
                let (load_address, offset) = (image.load_address, stated.address - image.load_address);
                let image = printable(image_name.into());
                format!(
                    "???  (in {image})  load address {load_address:#x} + {offset:#x}  [{:#x}]",
                    stated.address
                )
            }
            (None, _) => line("???", None, None, stated.inlined),
        }]
    }
}
