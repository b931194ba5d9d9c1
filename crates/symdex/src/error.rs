//! What can go wrong when an index is opened, read or written.

use crate::cause::Cause;

/// Why an index could not be opened, read or written.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file is not an index.
    #[error("not a symdex index: {}; expected a file made by `symdex build`", guess_file_kind(found))]
    NotAnIndex {
        /// The first bytes, at most 32.
        found: Vec<u8>,
    },
    /// The index was written by a newer symdex.
    #[error("the index has format version {found}, this reader knows version {known}; update symdex")]
    UnsupportedVersion {
        /// The version in the header.
        found: u16,
        /// The version this reader knows.
        known: u16,
    },
    /// The index needs a feature that this reader does not know.
    #[error("the index needs features this reader does not know (bits {unknown:#x}); update symdex")]
    UnsupportedFeature {
        /// The unknown incompatible feature bits.
        unknown: u64,
    },
    /// The file is shorter, or longer, than it was when written.
    #[error(
        "the index has {found} bytes, expected {expected}: it was cut or appended to; build or copy it again"
    )]
    WrongSize {
        /// Bytes there are.
        found: u64,
        /// Bytes its header says there should be.
        expected: u64,
    },
    /// The index is too large to be read into memory.
    #[error("the index has {found} bytes, and at most {limit} are read into memory; map it instead")]
    TooLarge {
        /// Bytes there are.
        found: u64,
        /// The most bytes that are read.
        limit: u64,
    },
    /// [`Index::function_start`](crate::Index::function_start) would take too long.
    #[error("the names or the functions of the index are too many, or too long, for its size to be searched")]
    SearchTooLong,
    /// Stored bytes do not match their checksum.
    #[error("damaged index: the checksum of {location} does not match; build or copy it again")]
    Checksum {
        /// What was read.
        location: ErrorLocation,
    },
    /// Stored bytes match their checksum but are invalid.
    #[error("damaged index: {location}: {what}; build or copy it again")]
    Malformed {
        /// What was read.
        location: ErrorLocation,
        /// What is wrong with it.
        what: &'static str,
    },
    /// The format cannot hold what the writer was given.
    #[error("cannot write the index: {what}")]
    Unwritable {
        /// What it was.
        what: &'static str,
    },
    /// The index file could not be read or mapped.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

impl Error {
    /// The cause. A file that does not begin like an index is [`Cause::Unsupported`].
    #[must_use]
    pub fn cause(&self) -> Cause {
        match self {
            Error::NotAnIndex { .. }
            | Error::UnsupportedVersion { .. }
            | Error::UnsupportedFeature { .. } => Cause::Unsupported,
            Error::WrongSize { .. } | Error::Checksum { .. } | Error::Malformed { .. } => Cause::Damaged,
            Error::TooLarge { .. } | Error::SearchTooLong => Cause::Limit,
            Error::Unwritable { .. } => Cause::Other,
            Error::Io(error) => Cause::of_io(error),
        }
    }
}

/// Describes the file that begins with `bytes`, for an error message: "an ELF file", "a text file (...)".
#[must_use]
pub fn guess_file_kind(bytes: &[u8]) -> String {
    const SHOWN: usize = 32;
    const MAGICS: [(&[u8], &str); 7] = [
        (b"\xcf\xfa\xed\xfe", "a Mach-O file"),
        (b"\xce\xfa\xed\xfe", "a Mach-O file"),
        (b"\xca\xfe\xba\xbe", "a universal Mach-O file (or a Java class)"),
        (b"\xca\xfe\xba\xbf", "a universal Mach-O file"),
        (b"\x7fELF", "an ELF file"),
        (b"PK\x03\x04", "a zip archive"),
        (b"\x1f\x8b", "a gzip file"),
    ];
    if let Some((_, name)) = MAGICS.iter().find(|(magic, _)| bytes.starts_with(magic)) {
        return (*name).to_owned();
    }
    // The end may cut a character.
    let text = bytes.utf8_chunks().next().filter(|chunk| bytes.len() - chunk.valid().len() < 4);
    let text =
        text.map(|chunk| chunk.valid().trim_start_matches('\u{feff}').trim_start()).unwrap_or_default();
    let is_text = |c: char| !c.is_control() || c.is_ascii_whitespace();
    if !text.is_empty() && text.chars().all(is_text) {
        let start: String = text.lines().next().unwrap_or_default().chars().take(SHOWN).collect();
        return format!("a text file (it begins with {start:?})");
    }
    format!("a file that begins with {:02x?}", bytes.get(..8).unwrap_or(bytes))
}

/// A part of an index. Its number is part of its checksums.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(u32)]
pub enum SectionKind {
    /// The fixed header.
    Header = 0,
    /// The metadata block.
    Metadata = 1,
    /// A page of the codes, which also say where each chunk begins.
    CodePage = 2,
    /// A page of file paths.
    FilePage = 3,
    /// A page of names.
    NamePage = 4,
    /// A page of chunks.
    ChunkPage = 5,
    /// A chunk of the `dwarf` table, in errors only.
    DwarfChunk = 7,
    /// A chunk of the `symbol_table` table, in errors only.
    SymbolChunk = 8,
    /// A page of readable names.
    ReadableNamePage = 9,
    /// A page of unwind rows.
    UnwindPage = 10,
}

impl SectionKind {
    /// The section's name, as error messages and `symdex inspect` print it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            SectionKind::Header => "header",
            SectionKind::Metadata => "metadata",
            SectionKind::CodePage => "code page",
            SectionKind::FilePage => "file page",
            SectionKind::NamePage => "name page",
            SectionKind::ChunkPage => "chunk page",
            SectionKind::DwarfChunk => "dwarf chunk",
            SectionKind::SymbolChunk => "symbol_table chunk",
            SectionKind::ReadableNamePage => "readable name page",
            SectionKind::UnwindPage => "unwind row page",
        }
    }
}

/// Where in an index an error is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ErrorLocation {
    /// The section.
    pub section: SectionKind,
    /// The number of the page or chunk, from 0 on. It is 0 for the header and the metadata.
    pub index: u64,
}

impl ErrorLocation {
    pub(crate) fn malformed(self, what: &'static str) -> Error {
        Error::Malformed { location: self, what }
    }
}

impl std::fmt::Display for ErrorLocation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.section {
            SectionKind::Header | SectionKind::Metadata => write!(f, "the {}", self.section.name()),
            _ => write!(f, "{} {}", self.section.name(), self.index),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_files_are_named_by_their_first_words() {
        let text = |bytes: &[u8]| guess_file_kind(bytes);
        assert_eq!(text(b"{\"a\": 1}\nmore"), r#"a text file (it begins with "{\"a\": 1}")"#);
        assert_eq!(
            text("\u{feff}\r\n Gr\u{fc}\u{df}e".as_bytes()),
            "a text file (it begins with \"Gr\u{fc}\u{df}e\")"
        );
        // The last character is cut.
        assert_eq!(text(b"caf\xc3"), "a text file (it begins with \"caf\")");
        for bytes in [&b"\0text"[..], b"\x1b[0m", b"\xff\xfe\xfd\xfctext", b"", b"\n"] {
            assert!(text(bytes).starts_with("a file that begins with ["), "{bytes:?}");
        }
    }
}
