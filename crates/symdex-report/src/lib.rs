//! Crash reports in, symbolicated crash reports out.
//!
//! [`Report::parse`] recognises a report by its content and reads its images and stacks; [`symbolicate()`] asks a
//! [`Source`] for what lies at their addresses; [`Symbolicated::write`] writes the report back with the answers in
//! their places, and everything else byte for byte as it was. [`Symbolicated::write_text`] writes it as text that
//! people read, and [`Symbolicated::view`] is the same as JSON.
//!
//! Where answers come from is the caller's: a [`Source`] is asked once for each image, with every offset that is wanted, and finds the
//! image by its id. [`answer_from_index`] is all that one with indexes needs to call.
//!
//! ```
//! use symdex::{ImageOffset, Index, LinePolicy, Scratch};
//! use symdex_report::{Answers, Image, Options, Report, Source, Unanswered, answer_from_index, symbolicate};
//!
//! /// A store of one index; one of many would look `image.id` up.
//! struct OneIndex(Index<Vec<u8>>, Scratch);
//!
//! impl Source for OneIndex {
//!     fn answer(
//!         &mut self,
//!         image: &Image,
//!         offsets: &[ImageOffset],
//!         lines: LinePolicy,
//!     ) -> Result<Answers, Unanswered> {
//!         let Self(index, scratch) = self;
//!         match image.id.as_ref() == Some(index.id()) {
//!             true => Ok(answer_from_index(index, image, offsets, lines, scratch)?.into()),
//!             false => Err(Unanswered::Missing),
//!         }
//!     }
//! }
//!
//! let text = "\
//! Thread 0 Crashed:
//! 0   libsystem_c.dylib   0x0000000180000010 abort + 8
//! 1   App   0x0000000104a343d0 0x104a34000 + 976
//!
//! Binary Images:
//! 0x104a34000 - 0x104a37fff App arm64  <ID> /var/App.app/App
//! ";
//! let index = Index::open(std::fs::read("../../testdata/golden/v1/inline-dwarf4-1.symdex")?)?;
//! let text = text.replace("ID", &index.id().to_string());
//! let report = Report::parse(text.as_bytes())?;
//! let mut source = OneIndex(index, Scratch::default());
//! let symbolicated = symbolicate(&report, &mut source, &Options::default());
//! let mut out = Vec::new();
//! symbolicated.write(&mut out)?;
//! let out = String::from_utf8(out)?;
//! assert!(out.contains("1   App   0x0000000104a343d0 row (grid.h:16) [inlined]\n"), "{out}");
//! // The other frame is as it was: nothing is known of its image.
//! assert!(out.contains("0   libsystem_c.dylib   0x0000000180000010 abort + 8\n"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A format of reports is one file and a line in `format.rs`: see [`Format`].

mod apple_text;
mod call_tree;
mod error;
mod existing;
mod format;
mod images;
mod info;
mod ips;
mod json;
mod json_edit;
mod kscrash;
mod list;
mod metrickit;
mod native;
mod near;
mod places;
mod registers;
mod render;
mod report;
mod sentry;
mod source;
mod symbolicate;
mod text;
mod view;
mod write;

pub use error::Error;
pub use existing::ExistingSymbol;
pub use format::{Edit, Format};
pub use info::{Exception, ReportInfo};
pub use near::{KnownImage, Nearness, match_by_name, near, nearest};
pub use registers::Register;
pub use report::{AddressKind, Base, Frame, Image, Known, Parsed, Report, Span, Thread};
pub use source::{
    Answer, AnsweredBy, Answers, Function, MatchedBy, Source, Unanswered, answer_from_index, image_offsets,
};
pub use symbolicate::{
    Called, ImageOutcome, Options, Rewrite, Symbolicated, Unresolved, spelled, symbolicate,
};
pub use view::{NearView, ReportView};
