//! The reader of symdex indexes as a C library. `README.md` and `include/symdex.h` describe the interface.
//!
//! `boundary.rs` has the functions that C calls, and all `unsafe` code. The other modules are safe: `types.rs` has what
//! both sides read, `context.rs` the memory of a thread, `index.rs` an open index.

pub mod boundary;
pub mod context;
pub mod index;
pub mod types;
