//! The limits that hold for every name, whatever its language.
//!
//! | what | limit | past it |
//! | --- | --- | --- |
//! | bytes of a name | [`MAX_TEXT`] | the name is not demangled and is cut |
//! | bytes of a text | [`MAX_TEXT`] | the text is cut and ends with `…` |
//! | C++: nesting of a name | [`MAX_DEPTH`] | the name is not demangled |
//! | C++: steps of the printer | [`MAX_STEPS`] | the text is cut |
//! | C++: parts of the text that wait | [`MAX_TASKS`] | the text is cut |

/// The longest name that is demangled and the longest text, in bytes. (215 bytes of C++ can stand for 69 MB.)
pub(crate) const MAX_TEXT: usize = 64 << 10;

/// How deep productions of a C++ name may be nested.
pub(crate) const MAX_DEPTH: usize = 256;

/// How many steps the text of a C++ name may take. A step writes at most one part of the name.
pub(crate) const MAX_STEPS: usize = 1 << 17;

/// How many parts of the text of a C++ name may wait for others to be printed.
pub(crate) const MAX_TASKS: usize = 1 << 13;
