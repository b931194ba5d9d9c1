//! Crash reports in, symbolicated crash reports out.
//!
//! [`Report::parse`] recognises a report by its content and reads its images and stacks; [`symbolicate()`] asks a [`Source`] for what lies
//! at their addresses; [`Symbolicated::write`] writes the report back with the answers in their places, and everything else byte
//! for byte as it was. [`Symbolicated::view`] is the same as JSON.
//!
//! Where answers come from is the caller's: a [`Source`] is asked once for each image, by id, with every offset that is wanted.
//! [`answer_from_index`] is all that one with indexes needs to call.
//!
//! ```
//! use symdex::{ImageOffset, Index, LinePolicy, Scratch};
//! use symdex_report::{Answer, Image, Options, Report, Source, Unanswered, answer_from_index, symbolicate};
//!
//! /// Indexes in a folder, by their ids.
//! struct Folder(std::path::PathBuf, Scratch);
//!
//! impl Source for Folder {
//!     fn answer(
//!         &mut self,
//!         image: &Image,
//!         offsets: &[ImageOffset],
//!         lines: LinePolicy,
//!     ) -> Result<Vec<Answer>, Unanswered> {
//!         let id = image.id.as_ref().ok_or(Unanswered::Missing)?;
//!         let bytes = std::fs::read(self.0.join(format!("{id}.symdex"))).map_err(|_| Unanswered::Missing)?;
//!         let index = Index::open(bytes).map_err(|error| Unanswered::Damaged(error.to_string()))?;
//!         answer_from_index(&index, image, offsets, lines, &mut self.1)
//!     }
//! }
//!
//! let text = b"Thread 0 Crashed:\n\
//!     0   inline-dwarf4   0x0000000104a343d0 0x104a34000 + 976\n\n\
//!     Binary Images:\n\
//!     0x104a34000 - 0x104a37fff inline-dwarf4 arm64  <UUID> /var/App.app/inline-dwarf4\n";
//! let text = String::from_utf8_lossy(text).replace("UUID", "0c37c502aba036419f9d84c794684f36");
//! let report = Report::parse(text.as_bytes())?;
//! let mut folder = Folder("../../testdata/golden/v1".into(), Scratch::default());
//! let symbolicated = symbolicate(&report, &mut folder, &Options::default());
//! let mut out = Vec::new();
//! symbolicated.write(&mut out)?;
//! // There is no index of that id: the report comes back as it was.
//! assert_eq!(out, text.as_bytes());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A format of reports is one file and a line in `format.rs`: see [`Format`].

mod apple_text;
mod error;
mod format;
mod images;
mod ips;
mod json;
mod json_edit;
mod near;
mod places;
mod report;
mod sentry;
mod source;
mod symbolicate;
mod text;
mod view;
mod write;

pub use error::Error;
pub use format::{Edit, Format};
pub use near::{KnownImage, Nearness, near};
pub use report::{AddressKind, Base, Frame, Image, Known, Parsed, Report, Span, Thread};
pub use source::{Answer, Function, Source, Unanswered, answer_from_index};
pub use symbolicate::{
    Called, ImageOutcome, Options, Rewrite, Symbolicated, Unresolved, spelled, symbolicate,
};
pub use view::ReportView;
