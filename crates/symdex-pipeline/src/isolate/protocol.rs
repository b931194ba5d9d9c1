//! What a parent and its child tell each other: lines of JSON.
//!
//! The parent writes one [`Request`] to the child's standard input and keeps it open. The child writes [`Line`]s to its
//! standard error. Lines there that are not JSON are messages of the runtime, such as that of a panic. The child's
//! standard output is a file without a name for the bytes that it makes.

use serde::{Deserialize, Serialize};

use crate::isolate::confine::Protections;
use crate::isolate::limits::{Access, Limits};

/// The first line that a child reads.
#[derive(Serialize, Deserialize)]
pub(crate) struct Request<T> {
    pub(crate) limits: Limits,
    pub(crate) access: Access,
    pub(crate) is_nice: bool,
    pub(crate) task: T,
}

/// A line that a child writes.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Line<R> {
    /// The first line: the child has limited itself.
    Confined(Protections),
    Progress {
        size: u64,
        done: u64,
        total: u64,
    },
    Result(R),
    /// The last line: the task is done. The braces make it an object, as each line is.
    End {},
}

/// What a child reports while it works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event<R> {
    /// `done` of `total` parts of the next result, which counts for `size` bytes of debug files.
    Progress {
        /// The size of the input.
        size: u64,
        /// The parts that are done.
        done: u64,
        /// All parts.
        total: u64,
    },
    /// A result. A task has any number of them.
    Result(R),
}
