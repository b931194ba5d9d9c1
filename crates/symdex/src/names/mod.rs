//! Names and file paths: a grammar that any of them is read from by itself.

mod expand;
mod layout;
mod verify;

pub(crate) use expand::NameReader;
pub(crate) use layout::{GROUP_BITS, GROUP_LEN, LEN_BITS, Layout, MAX_PIECE, MAX_WIDTH};

#[cfg(test)]
mod tests;
