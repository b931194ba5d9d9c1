//! Symbolicates crash reports: reads a report in any supported format, and writes it back with functions, files and
//! lines.
//!
//! Start with three calls:
//!
//! 1. [`Report::parse`] recognises the format by the content, and reads the images and stacks.
//! 2. [`symbolicate()`] asks a [`Source`] for the functions at the addresses: for the offsets in all images at once.
//! 3. [`Symbolicated::write`] writes the report in its own format. Only the frames change. Alternatively,
//!    [`Symbolicated::write_text`] writes text that people read, and [`Symbolicated::view`] returns the report for
//!    JSON.
//!
//! The crate reads no files. You implement [`Source`] over your own storage: find the index of the image by its id, and
//! call [`answer_from_index`].
//!
//! ```
//! use symdex::{Index, Scratch};
//! use symdex_report::{Options, Question, Report, Unanswered, answer_from_index, symbolicate};
//!
//! let text = "\
//! Thread 0 Crashed:
//! 0   libsystem_c.dylib   0x0000000180000010 abort + 8
//! 1   App   0x0000000104a343d0 0x104a34000 + 976
//!
//! Binary Images:
//! 0x104a34000 - 0x104a37fff App arm64  <ID> /var/App.app/App
//! ";
//! # let path = "../../testdata/golden/v1/inline-dwarf4-1.symdex";
//! let index = Index::open(std::fs::read(path)?)?;
//! let text = text.replace("ID", &index.id().to_string());
//! let report = Report::parse(text.as_bytes())?;
//! let mut scratch = Scratch::default();
//! // A source with one index. A source with many finds the index by the id of the image.
//! let mut source = |question: &Question<'_>| match question.image.id.as_ref() == Some(index.id()) {
//!     true => Ok(answer_from_index(&index, question, &mut scratch)?.into()),
//!     false => Err(Unanswered::Missing),
//! };
//! let symbolicated = symbolicate(&report, &mut source, &Options::new());
//! let mut out = Vec::new();
//! symbolicated.write(&mut out)?;
//! let out = String::from_utf8(out)?;
//! assert!(out.contains("1   App   0x0000000104a343d0 row (grid.h:16) [inlined]\n"), "{out}");
//! // The other frame stays: the store has no index of its image.
//! assert!(out.contains("0   libsystem_c.dylib   0x0000000180000010 abort + 8\n"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Formats
//!
//! Apple's `.crash` and `.ips`, the output of `leaks`, `sample` and `spindump`, MetricKit's diagnostics,
//! PLCrashReporter's text and binary reports, KSCrash's reports, events of Sentry, Bugsnag, App Center and measure.sh,
//! the output of minidump-stackwalk, Android's tombstones and logcat, HarmonyOS's cppcrash logs, the output of
//! sanitizers, panics of Apple's kernels, oopses of Linux kernels, backtraces of lldb, gdb, glibc, Swift, Rust, Go,
//! Dart, Godot, Unreal and Mono,
//! profiles of pprof, Sentry, xctrace and the Firefox Profiler, and lists of `image address load_address`. [`formats`]
//! returns all formats, and [`Report::format_name`] names the format of a report.
//!
//! # Beyond the first report
//!
//! * [`Options`] choose the line policy, inlined functions, demangling and the handling of return addresses.
//! * [`Symbolicated::images`] says for each image which source answered, or why none did. [`KnownImageMap`] lists
//!   known images that resemble a missing one.
//! * Some reports do not state the ids of their images. [`match_by_name`] finds the only image of a name.
//! * [`Symbolicated::resolution`] and [`Symbolicated::unresolved`] return the outcome of a single frame.
//!
//! # Guarantees
//!
//! * Every byte of a report that is not a frame's answer stays, in all formats.
//! * Damaged and hostile reports yield an error or a partial result. There is no panic, and time and memory stay in
//!   proportion to the length of the text.
//! * Reports and answers are `Send` and `Sync`.

mod engine;
mod error;
mod formats;
mod info;
mod registers;
mod render;
mod report;
mod text;

#[cfg(test)]
extern crate self as symdex_report;
/// Reports that tests of this crate share with the tests that use only public items.
#[cfg(test)]
#[path = "../tests/common/mod.rs"]
mod test_reports;

pub use engine::function::{Function, source_file_name};
pub use engine::gathered::{GatheredAnswers, SourceAnswers};
pub use engine::images::unsigned;
pub use engine::limits::{AnswerBytes, most_memory};
pub use engine::near::{KnownImage, KnownImageMap, Nearness, match_by_name, nearness};
pub use engine::options::{Addresses, Options, OutputFormat};
pub use engine::outcome::{ImageOutcome, Unresolved, apple_uuid};
pub use engine::source::{
    Answer, AnsweredBy, Answers, MatchedBy, Question, Source, Unanswered, answer_from_index,
    answer_from_lookups, image_offsets,
};
pub use engine::symbolicate::{Resolution, Symbolicated, symbolicate};
pub use engine::totals::Totals;
pub use error::{Error, NearFormat};
pub use formats::existing::ExistingSymbol;
pub use formats::format::{Format, FormatKind};
pub use formats::formats;
pub use formats::minidump::MinidumpModule;
pub use info::{Exception, ReportInfo};
pub use registers::Register;
pub use render::index_view::IndexView;
pub use render::view::{AnsweredFunction, FunctionWithOffset, ReportImageView, ReportView};
pub use report::{AddressKind, Base, FoundBy, Frame, Report, ReportImage, SymbolDetail, Thread};
pub use symdex::debug_id::{build_id_start as build_id_start_of_debug_id, uuid as uuid_of_debug_id};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
