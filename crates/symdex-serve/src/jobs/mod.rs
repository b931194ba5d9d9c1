//! Uploads, and builds of debug files that clients send or that are fetched.

mod builder;
mod job;
mod publish;
mod published;
mod queue;
mod receive;
mod state;

pub(crate) use self::builder::Builder;
pub(crate) use self::job::{Job, JobProgress, JobState, Timestamp};
pub(crate) use self::publish::Publishing;
pub(crate) use self::published::BuildResults;
pub(crate) use self::queue::{Jobs, SubmitError};
pub(crate) use self::receive::{Incoming, Uploads, of_disk};
pub(crate) use self::state::{StateFolder, is_sha256};
