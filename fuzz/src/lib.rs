//! What the fuzzers of symdex check.
//!
//! A target is a module of [`targets`] with two functions: `run` gives bytes to symdex and panics if an answer is
//! wrong, and `seeds` makes the inputs with which fuzzing begins. The program in `fuzz/libfuzzer` fuzzes a target, and
//! `fuzz/run` starts it. The test `regressions` replays, on stable Rust, the inputs in `fuzz/regressions` that once
//! failed.
//!
//! To add a target, add its file to `src/targets`, its module to `src/targets/mod.rs`, and its line to [`TARGETS`].

pub mod checks;
pub mod input;
pub mod seal;
pub mod source;
pub mod targets;

/// A target of fuzzing.
pub struct Target {
    /// The name of its module.
    pub name: &'static str,
    /// Gives `data` to symdex. Panics if an answer is wrong.
    pub run: fn(data: &[u8]),
    /// The inputs with which fuzzing begins.
    pub seeds: fn() -> Vec<Vec<u8>>,
}

macro_rules! target {
    ($name:ident) => {
        Target { name: stringify!($name), run: targets::$name::run, seeds: targets::$name::seeds }
    };
}

/// The target with this name.
///
/// # Panics
///
/// If there is none.
#[must_use]
pub fn target(name: &str) -> &'static Target {
    TARGETS.iter().find(|target| target.name == name).unwrap_or_else(|| panic!("no target {name}"))
}

/// All targets.
pub const TARGETS: &[Target] = &[
    target!(index),
    target!(value),
    target!(names),
    target!(debug_file),
    target!(units),
    target!(entries),
    target!(lines),
    target!(symbol_map),
    target!(breakpad),
    target!(gsym),
    target!(unwind),
    target!(shared_cache),
    target!(split),
    target!(report),
    target!(minidump),
    target!(demangle_cpp),
    target!(demangle_rust),
    target!(demangle_swift),
    target!(archive),
    target!(http),
    target!(arrow_request),
];
