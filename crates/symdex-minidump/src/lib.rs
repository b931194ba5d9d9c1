//! Walks the stacks of minidumps, and makes reports of them that `symdex-report` answers.
//!
//! A minidump has the registers and the stack memory of each thread, not its frames. A microdump of Breakpad has those
//! of one thread, as lines of a log. [`walk`] finds the frames with the walker of [rust-minidump], which asks the same
//! [`Source`] that answers reports: by the unwind rows of its indexes, by frame pointers, and last by a search of the
//! stack for addresses of code. [`Walked::report`] is then a report that [`symdex_report::symbolicate`] answers.
//!
//! ```
//! use symdex_report::{Answers, Options, Question, Unanswered, symbolicate};
//!
//! fn nothing(_: &Question<'_>) -> Result<Answers, Unanswered> {
//!     Err(Unanswered::Missing)
//! }
//!
//! # fn demo(file: &[u8]) -> Result<(), Box<dyn std::error::Error>> {
//! let Some(walked) = symdex_minidump::walk(file, &mut nothing) else { return Ok(()) };
//! let walked = walked?;
//! let symbolicated = symbolicate(&walked.report, &mut nothing, &Options::new());
//! symbolicated.write_text(&mut std::io::stdout())?;
//! # Ok(())
//! # }
//! ```
//!
//! # Guarantees
//!
//! * Hostile files yield an error or a partial result. Time and memory are bounded: [`most_memory`], and the limits in
//!   `docs/SECURITY.md`.
//! * The frames depend on the file and the answers of the source only.
//!
//! [rust-minidump]: https://github.com/rust-minidump/rust-minidump

mod chains;
mod dump;
mod error;
mod limits;
mod made_dump;
mod microdump;
mod names;
mod process;
mod provider;
mod registers;
mod report;
mod row;
mod signal_frame;
mod stackwalk;
mod walk;

use symdex_report::{Report, Source};

use crate::microdump::{Microdump, is_microdump};

pub use error::Error;
pub use limits::most_memory;
pub use stackwalk::WalkedProcess;

/// The first bytes of a minidump.
const SIGNATURE: &[u8] = b"MDMP";

/// A process whose stacks are walked.
#[non_exhaustive]
#[derive(Debug)]
pub struct Walked {
    /// The report. It has no text.
    pub report: Report<'static>,
    /// The same process, for the output of minidump-stackwalk.
    pub process: WalkedProcess,
}

/// Whether [`walk`] walks the stacks of `file`, judged by its content: a minidump, or a text with a microdump of
/// Breakpad and without frames.
#[must_use]
pub fn is_process(file: &[u8]) -> bool {
    file.starts_with(SIGNATURE) || is_microdump(file)
}

/// Walks the stacks of `file`, a minidump or a text with a microdump. Returns `None` for any other file.
///
/// `source` is asked whether there is code at the addresses that are found, one at a time, and for unwind rows. Frames
/// whose images it does not have are found by frame pointers, or by a search that takes every address in their images
/// for code.
///
/// # Errors
///
/// [`Error::Damaged`] or [`Error::TooLarge`] if the file is damaged, [`Error::Unsupported`] if its processor is not
/// supported.
pub fn walk(file: &[u8], source: &mut (dyn Source + Send)) -> Option<Result<Walked, Error>> {
    if file.starts_with(SIGNATURE) {
        return Some(walk_minidump(file, source, None));
    }
    let walk_microdump = || {
        let microdump = Microdump::read(file)?;
        walk_minidump(&microdump.to_minidump()?, source, Some(&microdump))
    };
    is_microdump(file).then(walk_microdump)
}

/// Walks the stacks of a minidump, which may be made of a microdump.
fn walk_minidump(
    file: &[u8],
    source: &mut (dyn Source + Send),
    microdump: Option<&Microdump>,
) -> Result<Walked, Error> {
    let dump = dump::open(file)?;
    let mut process = dump::process(&dump)?;
    let mut is_cut = walk::walk(&mut process, source, file.len())?;
    if let Some(microdump) = microdump {
        // It does not state the model of the processor.
        process.state.system_info.cpu_info = None;
        process.skipped_threads += microdump.others;
        is_cut.iter_mut().for_each(|is_cut| *is_cut |= microdump.is_cut);
    }
    if process.state.threads.iter().all(|thread| thread.frames.is_empty()) {
        return Err(Error::Damaged { what: "no thread has registers that can be read".to_owned() });
    }
    let cut = is_cut.into_iter().filter(|is_cut| *is_cut).count();
    let report = report::report(&mut process, cut);
    Ok(Walked { report, process: WalkedProcess { state: Box::new(process.state) } })
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
