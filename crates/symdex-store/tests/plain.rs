//! Tests that need nothing besides the repository.

mod common;
mod reader;
#[cfg(feature = "object-store")]
mod web;
