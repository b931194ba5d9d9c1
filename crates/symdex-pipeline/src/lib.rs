//! The way from a debug file to a published index: inputs are unpacked, and untrusted debug files are read in child
//! processes with limits.

#![warn(missing_debug_implementations)]

pub mod archive;
pub mod isolate;
