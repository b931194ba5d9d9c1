//! Tests that need nothing besides the repository.

mod common;
mod stack_cfi;
mod symbol_file;
