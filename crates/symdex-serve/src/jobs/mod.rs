//! Builds of debug files that clients send or that are fetched.

mod builder;
mod disk;
mod intake;
mod permits;
mod published;

pub(crate) use self::builder::{BuildLimits, BuildProgress, BuildResults, Builder};
pub(crate) use self::intake::BuildInput;
pub(crate) use self::published::PublishedImage;
