//! What C reads: these types have the layout of C.

use std::ffi::c_char;
use std::ptr;

/// What became of a call. `symdex_message` describes everything but SYMDEX_STATUS_OK.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// The call did what it says.
    Ok = 0,
    /// An argument is NULL that must not be, or has a value that is not allowed.
    InvalidArgument = 1,
    /// There is no such file, or the folder has no index of this id.
    NotFound = 2,
    /// The file cannot be read.
    Io = 3,
    /// The index is damaged.
    Damaged = 4,
    /// The file is not a symdex index, or it was written by a version of symdex that this library does not know.
    Unsupported = 5,
    /// The answer is too large for one call, or the index is too large to be read into memory.
    TooLarge = 6,
    /// A bug of this library. The handles of the call can only be freed.
    Internal = 7,
}

/// Which line rows a lookup uses. The functions are the same under both.
pub type LinePolicy = u32;

/// Code without a line of its own has the line of the statement before it. Reports use this.
pub const SYMDEX_STATEMENT: LinePolicy = 0;
/// Each line row counts as it is, as in atos and llvm-symbolizer.
pub const SYMDEX_EXACT: LinePolicy = 1;

/// A text: `size` bytes and a 0 after them. It is not always UTF-8, and can have a 0 within. `data` is NULL if there is
/// no text.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Text {
    /// The bytes.
    pub data: *const c_char,
    /// How many there are, without the 0.
    pub size: usize,
}

impl Text {
    pub(crate) const NONE: Self = Self { data: ptr::null(), size: 0 };

    /// `bytes`, which a 0 follows.
    pub(crate) fn of(bytes_and_zero: &[u8]) -> Self {
        Self { data: bytes_and_zero.as_ptr().cast(), size: bytes_and_zero.len().saturating_sub(1) }
    }
}

/// `symdex_frame.line` is a line.
pub const SYMDEX_HAS_LINE: u32 = 1;
/// `symdex_frame.function_start` is an image offset.
pub const SYMDEX_HAS_FUNCTION_START: u32 = 2;
/// The frame is inlined into the next one.
pub const SYMDEX_INLINED: u32 = 4;
/// The frame comes from the symbol table, not from debug information.
pub const SYMDEX_FROM_SYMBOL_TABLE: u32 = 8;

/// A function at an address.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    /// The mangled name, without the `_` of Mach-O.
    pub name: Text,
    /// The name as people read it: the readable name of the index, or with the feature `demangle` the demangled name.
    /// Otherwise, it is the same as `name`.
    pub function: Text,
    /// The path of the source file.
    pub file: Text,
    /// Image offset of the start of the function that contains the code; see SYMDEX_HAS_FUNCTION_START.
    pub function_start: u64,
    /// The line, from 1 on, or 0 for code that the compiler generated; see SYMDEX_HAS_LINE.
    pub line: u32,
    /// SYMDEX_HAS_LINE, SYMDEX_HAS_FUNCTION_START, SYMDEX_INLINED, SYMDEX_FROM_SYMBOL_TABLE.
    pub flags: u32,
}

/// The answer to one of several lookups.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Answer {
    /// The frames, the innermost inlined function first; NULL if `len` is 0.
    pub frames: *const Frame,
    /// How many there are. 0 if the index knows no code at the address, or if the status is not SYMDEX_STATUS_OK.
    pub len: usize,
    /// What became of the lookup.
    pub status: Status,
}

/// What an index states about its image and its build.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Metadata {
    /// The id of the image in lower-case hexadecimal: LC_UUID, the ELF build id, or `h-` and a hash.
    pub id: Text,
    /// The file name of the image.
    pub image_name: Text,
    /// The architecture, such as `arm64`.
    pub arch: Text,
    /// The version of symdex that built the index.
    pub builder: Text,
    /// The most that the index answers: `lines`, `names`, `bounds` (functions without names) or `nothing`.
    pub grade: Text,
    /// The address that image offset 0 was linked at.
    pub base: u64,
    /// Bytes from the base to the end of the code.
    pub image_size: u64,
    /// Compile units that were read.
    pub units: u64,
    /// Functions with debug information.
    pub functions: u64,
    /// Ranges of code with debug information.
    pub ranges: u64,
    /// Ranges of code of the symbol table.
    pub symbols: u64,
    /// How many times something could not be indexed. 0 for a whole index.
    pub partial: u64,
    /// The type and subtype of the processor, as in Mach-O.
    pub cputype: u32,
    /// As `cputype`.
    pub cpusubtype: u32,
    /// The version of the format.
    pub format_version: u32,
    /// Whether the index stores readable names.
    pub has_readable_names: bool,
}
