//! Debug information: units, the functions and inlined subroutines in them, their lines, and the ranges made from
//! these.

mod attributes;
mod claims;
mod entries;
mod functions;
mod inline_frames;
mod instances;
mod line_header;
mod lines;
mod lists;
mod names;
mod opcodes;
mod origins;
mod outline;
mod ranges;
mod roots;
mod rows;
mod sequences;
mod shapes;
mod skeletons;
mod slots;
mod statements;
mod tables;
mod type_size;
mod units;
mod variables;
mod walk;

pub(crate) use claims::Claims;
pub(crate) use inline_frames::{Callee, InlineFrames};
pub(crate) use outline::{Part, unit_ranges_at};
pub(crate) use ranges::unit_ranges;
pub(crate) use roots::{Headers, Root, headers};
pub(crate) use skeletons::{Skeleton, skeletons};
pub(crate) use tables::{Table, TableReader};
pub(crate) use units::Units;
pub use variables::{Declaration, Variables};
