//! The limits of demangling, in one place.
//!
//! | language | what is limited | limit | if exceeded |
//! | --- | --- | --- | --- |
//! | all | bytes of a name | [`MAX_TEXT`] | the name is truncated and not demangled |
//! | all | bytes of a text | [`MAX_TEXT`] | the text is truncated |
//! | C++ | nesting of a name | [`MAX_DEPTH`] | the name is not demangled |
//! | C++ | nodes of a name, children in its lists | [`MAX_NODES`], [`MAX_CHILDREN`] | the name is not demangled |
//! | C++ | steps of the printer, pending parts of a text | [`MAX_STEPS`], [`MAX_TASKS`] | the text is truncated |
//! | Rust | writes of the printer times bytes of the name | [`MAX_RUST_STEPS`] | the text is truncated |
//! | Swift | bytes of a name | [`MAX_SWIFT_NAME`] | the name is not demangled |
//! | Swift | nodes that a name stands for, by an estimate | [`MAX_SWIFT_NODES`] | the name is not demangled |
//! | Swift | bytes of a name with an opaque type | [`MAX_OPAQUE_NAME`] | the name is not demangled |
//! | Swift | bytes of a text | 4 KiB, by symbolic-demangle | the text has no types, or the name is not demangled |
//!
//! A truncated text ends with `…`. A C++ name whose text is truncated before the first character is not demangled.
//!
//! A C++ name takes less than 1 MB of memory and 256 kB of stack, in debug builds, too. Rust and Swift names that may
//! need more get a separate stack ([`RUST_STACK`], [`SWIFT_STACK`]), so that all names can be demangled in a thread
//! of 256 kB.

/// The longest name that is demangled and the longest text, in bytes. (215 bytes of C++ can expand to 69 MB.)
pub const MAX_TEXT: usize = 64 << 10;

/// The maximum nesting depth of productions of a C++ name. The deepest of 650,000 names of real programs needs less
/// than 48. A level takes up to 1.3 kB of stack in a debug build.
pub const MAX_DEPTH: usize = 128;

/// The most nodes in the tree of a C++ name. A node has 32 bytes.
pub const MAX_NODES: usize = 1 << 13;

/// The most children in all lists of a C++ name together. A child has 4 bytes.
pub const MAX_CHILDREN: usize = 1 << 14;

/// The most steps that the text of a C++ name may take. A step writes at most one part of the name.
pub const MAX_STEPS: usize = 1 << 17;

/// The most parts of the text of a C++ name that may wait for others to be printed. A part has 32 bytes.
pub const MAX_TASKS: usize = 1 << 12;

/// How many steps the text of a Rust name may take, which is less than 1 ms. Between two writes, rustc-demangle does at
/// most as many as the name has bytes. Of 647,169 names of real programs, 169 need more.
pub const MAX_RUST_STEPS: usize = 1 << 20;

/// The most nodes that a Swift name may expand to, by an estimate (`swift_cost`). The demangler repeats the work on
/// shared parts of a name: without this limit, 150 bytes take seconds. None of 20,000 measured names has more than
/// 70,000.
pub const MAX_SWIFT_NODES: u64 = 1 << 18;

/// The longest Swift name with an opaque type (`some View`) that is demangled, in bytes. Its time is quadratic in the
/// nesting. The longest of real programs has 531 bytes.
pub const MAX_OPAQUE_NAME: usize = 768;

/// The longest Swift name that is demangled, in bytes. It takes less than 1 MB. The longest of 4,000 names of
/// real programs has 1,529 bytes. The demangler does not always keep to its limit of nesting: after `$sS`, each of many
/// `m` is a level of some 400 bytes, and 60,000 of them end the process.
pub const MAX_SWIFT_NAME: usize = 4 << 10;

/// The stack that a Rust name may need, in bytes: a level of the 500 that rustc-demangle allows takes 2 KiB in a debug
/// build. If the thread has less left, the name gets a stack of its own.
pub const RUST_STACK: usize = 5 << 18;

/// The stack that a Swift name may need, in bytes: a level of the 768 that the demangler allows takes 12 KiB if the C++
/// compiler does not optimise, half a KiB if it does. If the thread has less left, the name gets a stack of its own.
pub const SWIFT_STACK: usize = 16 << 20;
