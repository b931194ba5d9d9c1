//! Uploads, and builds of debug files that clients send or that are fetched.

mod bucket;
mod builder;
mod folder;
mod job;
mod publish;
mod published;
mod queue;
mod receive;
mod refresh;
mod run;
mod store;
#[cfg(test)]
mod tests;
mod threads;

pub(crate) use self::bucket::Bucket;
pub(crate) use self::builder::Builder;
pub(crate) use self::folder::{StateFolder, is_sha256};
pub(crate) use self::job::{Job, JobProgress, JobState, Timestamp};
pub(crate) use self::publish::Publishing;
pub(crate) use self::published::BuildResults;
pub(crate) use self::queue::{Changed, Jobs, SubmitError};
pub(crate) use self::receive::{Incoming, Uploads, of_disk};
pub(crate) use self::store::JobStore;
