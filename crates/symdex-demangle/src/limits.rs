//! The limits of demangling, in one place.
//!
//! | language | what is limited | limit | past it |
//! | --- | --- | --- | --- |
//! | all | bytes of a name | [`MAX_TEXT`] | the name is not demangled, and is cut |
//! | all | bytes of a text | [`MAX_TEXT`] | the text is cut |
//! | C++ | nesting of a name | [`MAX_DEPTH`] | the name is not demangled |
//! | C++ | nodes of a name, children in its lists | [`MAX_NODES`], [`MAX_CHILDREN`] | the name is not demangled |
//! | C++ | steps of the printer, parts of a text that wait | [`MAX_STEPS`], [`MAX_TASKS`] | the text is cut |
//!
//! A text that is cut ends with `…`. A C++ name takes less than 1 MB of memory and 256 kB of stack, in debug builds, too.

/// The longest name that is demangled and the longest text, in bytes. (215 bytes of C++ can stand for 69 MB.)
pub(crate) const MAX_TEXT: usize = 64 << 10;

/// How deep productions of a C++ name may be nested. The deepest of 650,000 names of real programs needs less than 48. A level takes
/// up to 1,100 bytes of stack in a debug build.
pub(crate) const MAX_DEPTH: usize = 160;

/// The most nodes in the tree of a C++ name. A node has 32 bytes.
pub(crate) const MAX_NODES: usize = 1 << 13;

/// The most children in all lists of a C++ name together. A child has 4 bytes.
pub(crate) const MAX_CHILDREN: usize = 1 << 14;

/// How many steps the text of a C++ name may take. A step writes at most one part of the name.
pub(crate) const MAX_STEPS: usize = 3 << 16;

/// How many parts of the text of a C++ name may wait for others to be printed. A part has 48 bytes.
pub(crate) const MAX_TASKS: usize = 1 << 12;
