//! The lines that atos prints.

use std::io::Write;

use symdex::{Frame, Frames, ImageOffset, LinePolicy, Scratch};
use symdex_report::{source_file_name, unsigned};

use super::{Args, Basis};
use crate::failure::{Cause, CommandError, Failure, complain};
use crate::image_lookup::ImageLookup;
use crate::{number, text};

/// Prints answers for one image.
pub(super) struct AtosPrinter<'a, 'i, 'd> {
    args: &'a Args,
    answers: &'a mut ImageLookup<'i, 'd>,
    /// The number to add to an address to get the image offset, modulo 2^64.
    to_offset: u64,
    image: String,
    scratch: Scratch,
    names: Scratch,
    gravest: Option<Cause>,
}

impl<'a, 'i, 'd> AtosPrinter<'a, 'i, 'd> {
    pub(super) fn new(args: &'a Args, answers: &'a mut ImageLookup<'i, 'd>) -> Result<Self, Failure> {
        let metadata = answers.metadata();
        let to_offset = match args.basis {
            Basis { load: Some(load), .. } => load.wrapping_neg(),
            Basis { slide: Some(slide), .. } => metadata.base.wrapping_add(slide).wrapping_neg(),
            Basis { offset: true, .. } => 0,
            Basis { text_exec_address: Some(loaded), .. } => {
                let text_exec = metadata.text_exec_base.ok_or_else(|| {
                    let message = format!(
                        "{}: this image has no __TEXT_EXEC segment; use -l with its load address",
                        answers.location()
                    );
                    Failure::new(Cause::Usage, message)
                })?;
                text_exec.wrapping_sub(metadata.base).wrapping_sub(loaded)
            }
            _ => metadata.base.wrapping_neg(),
        };
        let image = text::printable(metadata.image_name.as_str().into()).into_owned();
        let (scratch, names) = Default::default();
        Ok(Self { args, answers, to_offset, image, scratch, names, gravest: None })
    }

    /// The gravest failure. An address without an answer is not a failure.
    pub(super) fn gravest(&self) -> Option<Cause> {
        self.gravest
    }

    /// Prints the lines of each of these addresses.
    pub(super) fn answer<'t>(
        &mut self,
        typed: impl Iterator<Item = &'t str> + Clone,
        out: &mut impl Write,
    ) -> Result<(), CommandError> {
        let offsets: Vec<_> = typed.clone().filter_map(|typed| Some(self.offset(typed)?.1)).collect();
        self.answers.prepare(&offsets)?;
        typed.into_iter().try_for_each(|typed| self.answer_one(typed, out))
    }

    fn answer_one(&mut self, typed: &str, out: &mut impl Write) -> Result<(), CommandError> {
        let lines = self.lines(typed);
        let delimiter = if self.args.inline_frames { self.args.delimiter.as_str() } else { "\n" };
        writeln!(out, "{}", lines.join(delimiter))?;
        if self.args.inline_frames {
            writeln!(out)?;
        }
        Ok(())
    }

    /// The address and its image offset; `None` if the text is not an address or the address is outside of the image.
    fn offset(&self, typed: &str) -> Option<(u64, ImageOffset)> {
        let address = number::atos_address(typed)?;
        let metadata = self.answers.metadata();
        // The high bits of a return address may be its pointer authentication code.
        let may_be_signed = !self.args.basis.offset && metadata.arch.name.starts_with("arm64");
        let unsigned = unsigned(address).into_iter().filter(|_| may_be_signed);
        let mut offsets = std::iter::once(address)
            .chain(unsigned)
            .map(|address| ImageOffset(address.wrapping_add(self.to_offset)));
        let offset = offsets.find(|offset| offset.0 < metadata.image_size || self.answers.is_far(*offset))?;
        Some((address, offset))
    }

    fn lines(&mut self, typed: &str) -> Vec<String> {
        let Some((address, offset)) = self.offset(typed) else { return vec![typed.to_owned()] };
        let line = AtosLine { args: self.args, image: &self.image, address, offset };
        match found(self.answers, &line, &mut self.scratch, &mut self.names) {
            Ok(lines) => lines,
            Err(failure) => {
                complain(&format!("{typed}: {}", failure.message));
                self.gravest = self.gravest.max(Some(failure.cause));
                vec![line.nameless()]
            }
        }
    }
}

/// The lines of the address of `line`.
fn found(
    answers: &ImageLookup<'_, '_>,
    line: &AtosLine<'_>,
    scratch: &mut Scratch,
    names: &mut Scratch,
) -> Result<Vec<String>, Failure> {
    // Apple's atos uses every line row, and looks up return addresses unchanged.
    let Some(frames) = answers.lookup(line.offset, LinePolicy::Exact, scratch)? else {
        return Ok(vec![line.nameless()]);
    };
    let mut lines = line.of_frames(&frames);
    let concrete = frames.iter().last().filter(|_| line.args.dedup);
    if let Some((frame, start)) = concrete.and_then(|frame| Some((frame, frame.function_start?))) {
        let first = lines.len() - 1;
        for alias in answers.aliases(frame.name, start, names)? {
            let mut named = frame;
            named.name = Some(&alias);
            let alias = line.of_frame(&named);
            // Several names can be equal when demangled, for example those of constructors.
            if !lines[first..].contains(&alias) {
                lines.push(alias);
            }
        }
    }
    Ok(lines)
}

/// What the lines of one address share.
struct AtosLine<'a> {
    args: &'a Args,
    image: &'a str,
    address: u64,
    offset: ImageOffset,
}

impl AtosLine<'_> {
    fn of_frames(&self, frames: &Frames<'_>) -> Vec<String> {
        let skip = if self.args.inline_frames { 0 } else { frames.len() - 1 };
        frames.iter().skip(skip).map(|frame| self.of_frame(&frame)).collect()
    }

    fn of_frame(&self, frame: &Frame<'_>) -> String {
        let image = self.image;
        let line = match frame.name {
            Some(name) => format!("{} (in {image})", text::demangled(name)),
            None => self.nameless(),
        };
        if let Some(number) = frame.line {
            return format!("{line} ({}:{number})", self.file(frame));
        }
        // Without a line, atos prints the offset in the function. It does so for a function of the symbol table, and
        // for a function of the debug information without line rows (outlined code). An inlined function has no start.
        match frame.function_start.filter(|_| !frame.inlined) {
            Some(start) => format!("{line} + {}", self.offset.0.saturating_sub(start.0)),
            None => line,
        }
    }

    /// The line of an address without a name. It has the address as given.
    fn nameless(&self) -> String {
        format!("{:#018x} (in {})", self.address, self.image)
    }

    fn file(&self, frame: &Frame<'_>) -> String {
        let Some(file) = frame.file else { return "<compiler-generated>".to_owned() };
        let file = text::lossy(file);
        // The paths are those of an Apple machine, so `/` separates their parts on any system.
        if self.args.full_path { file.into_owned() } else { source_file_name(&file).to_owned() }
    }
}
