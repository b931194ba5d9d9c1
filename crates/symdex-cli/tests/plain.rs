//! Tests that need nothing besides the repository.

#[cfg(unix)]
mod access;
mod android;
mod archives;
mod atos;
mod build;
mod build_verify;
mod common;
mod config;
mod debug_files;
mod debug_sources;
mod demo;
mod embedded;
mod errors;
mod export;
mod fallback;
mod formats;
mod ids;
mod import;
mod inspect;
#[cfg(unix)]
mod interrupted;
mod isolate;
mod lookup;
mod matching;
mod minidump;
mod pipeline;
#[cfg(unix)]
mod pipeline_document;
mod readable_names;
mod report_inputs;
#[cfg(unix)]
mod shell;
#[cfg(unix)]
mod special_files;
#[cfg(target_os = "linux")]
mod standard_output;
mod store;
mod symbol_map;
mod symbolicate;
mod symbolicate_output;
mod unwind;
mod verify;
