//! Questions of a report, their answers, and what becomes of each frame.

pub(crate) mod ask;
pub(crate) mod function;
pub(crate) mod gathered;
pub(crate) mod images;
pub(crate) mod known;
pub(crate) mod limits;
pub(crate) mod lookup_targets;
pub(crate) mod near;
pub(crate) mod options;
pub(crate) mod outcome;
pub(crate) mod readings;
pub(crate) mod source;
pub(crate) mod symbolicate;
pub(crate) mod totals;
