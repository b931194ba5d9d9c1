//! The functions that the npm package `symdex` calls, over the memory of WebAssembly.
//!
//! A call has its input in a buffer that JavaScript asks for with [`input`] and fills. Results are in two buffers: text
//! (or bytes) and numbers. They are valid until the next call. Indexes have numbers; JavaScript closes them. The
//! package is in `symdex.js`, and this crate is of no use without it.
//!
//! The interface is written by hand. It has a dozen functions, and bindings that a tool generates would know neither
//! the types of the JSON nor the layout of the answers, which `answers.rs` describes.

#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing,
        clippy::cast_possible_truncation
    )
)]

mod answers;
mod build;
#[expect(unsafe_code, reason = "an exported name is unsafe: another object could have it")]
mod exports;
mod failure;
mod indexes;
mod report;
mod sent_strings;

pub use exports::*;
