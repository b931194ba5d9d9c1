//! The targets of fuzzing, each in a file of its own. [`Target`](crate::Target) says what their two functions do.

#![allow(missing_docs, reason = "the functions of all targets do the same")]

pub mod archive;
pub mod arrow_request;
pub mod breakpad;
pub mod debug_file;
pub mod demangle_cpp;
pub mod demangle_rust;
pub mod demangle_swift;
pub mod entries;
pub mod gsym;
pub mod http;
pub mod index;
pub mod lines;
pub mod minidump;
pub mod names;
pub mod report;
pub mod shared_cache;
pub mod split;
pub mod symbol_map;
pub mod units;
pub mod unwind;
pub mod value;
