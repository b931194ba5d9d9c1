//! A function of an answer, with texts that many answers share.

use std::borrow::Cow;
use std::sync::Arc;

use symdex::{ImageOffset, Table};

use crate::engine::known::KnownAnswers;
use crate::engine::limits::AnswerBytes;
use crate::text::lossy_text;

/// A function at an offset: the concrete function, or one that is inlined into it.
///
/// ```
/// use symdex::Table;
/// use symdex_report::Function;
///
/// let mut function = Function::new(Table::Dwarf, Some(b"_ZN3app4mainEv"), Some(b"/src/main.cc"));
/// function.line = Some(7);
/// assert_eq!(function.readable(), Some("app::main()"));
/// ```
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    texts: Texts,
    /// The line, 1-based; 0 for code that the compiler generated. `None` if it is unknown.
    pub line: Option<u32>,
    /// Where the concrete function starts, counted as the offsets that the source was asked for. `None` if it is
    /// unknown.
    pub start: Option<ImageOffset>,
    /// Whether the function is inlined into the next one of the answer.
    pub inlined: bool,
    /// The table that the function comes from.
    pub table: Table,
}

impl Function {
    /// The function with this linkage name, in the file at this path. `None` stands for an unknown one. Bytes that are
    /// not UTF-8 become U+FFFD. The other fields are set afterwards.
    ///
    /// The process keeps up to 4 MiB of names and paths, so that each name is demangled once.
    #[must_use]
    pub fn new(table: Table, name: Option<&[u8]>, file: Option<&[u8]>) -> Self {
        let (texts, _) = KnownAnswers::shared().texts(RawTexts { name, readable: None, file });
        Self::of_texts(table, texts)
    }

    fn of_texts(table: Table, texts: Texts) -> Self {
        Self { texts, line: None, start: None, inlined: false, table }
    }

    /// The function of a frame that has `texts`.
    pub(crate) fn of_frame(frame: &symdex::Frame<'_>, texts: Texts) -> Self {
        let (line, start, inlined) = (frame.line, frame.function_start, frame.inlined);
        Self { line, start, inlined, ..Self::of_texts(frame.table, texts) }
    }

    /// The linkage name. `None` if it is unknown.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.texts.name()
    }

    /// The readable name: that of the index, if it stores readable names, else the one that
    /// [`symdex_demangle::demangle`] returns. It is the linkage name if the function was symbolicated without
    /// [`Options::demangle`](crate::Options::demangle). `None` if the name is unknown.
    #[must_use]
    pub fn readable(&self) -> Option<&str> {
        self.texts.readable()
    }

    /// The path of the source file. `None` if it is unknown.
    #[must_use]
    pub fn file(&self) -> Option<&str> {
        self.texts.file()
    }

    /// The path of the source file, or `<compiler-generated>` if it is unknown.
    #[must_use]
    pub fn file_path(&self) -> &str {
        self.file().unwrap_or("<compiler-generated>")
    }

    /// The [`source_file_name`] of [`Self::file_path`].
    #[must_use]
    pub fn file_name(&self) -> &str {
        source_file_name(self.file_path())
    }

    /// How many bytes `offset` is after the start of the function. `None` if the start is unknown or after `offset`.
    #[must_use]
    pub fn distance(&self, offset: ImageOffset) -> Option<u64> {
        offset.0.checked_sub(self.start?.0)
    }

    /// The same function, whose readable name is its linkage name.
    pub(crate) fn not_demangled(&self) -> Self {
        let mut function = self.clone();
        function.texts.has_readable = false;
        function
    }

    /// The name and the line in a few words, for messages.
    pub(crate) fn summary(&self) -> String {
        let line = self.line.map(|line| format!(" ({}:{line})", self.file_name()));
        self.printable(&(self.readable().unwrap_or("?").to_owned() + &line.unwrap_or_default())).into_owned()
    }

    /// The same function, of which it is unknown where it starts.
    pub(crate) fn without_start(&self) -> Self {
        Self { start: None, ..self.clone() }
    }

    /// How many bytes it has in memory, if no other function shares its texts.
    pub(crate) fn size(&self) -> usize {
        size_of::<Self>() + self.texts.len()
    }

    /// How many bytes it has in an output, at most. Every limit of outputs counts this. JSON has the linkage name, too,
    /// even if it is the readable one, and keys.
    pub(crate) fn written_size(&self, is_json: bool) -> usize {
        let Texts { written, written_name, .. } = self.texts;
        let more = if is_json { written_name as usize + AnswerBytes::KEYS } else { 0 };
        written as usize + more + AnswerBytes::OF_FUNCTION
    }

    /// `text`, one of the texts of this function, on one line, as [`symdex_demangle::printable`] returns it.
    pub(crate) fn printable<'f>(&'f self, text: &'f str) -> Cow<'f, str> {
        if self.texts.is_plain { Cow::Borrowed(text) } else { symdex_demangle::printable(text.into()) }
    }
}

/// A frame of an index's answer.
impl From<&symdex::Frame<'_>> for Function {
    fn from(frame: &symdex::Frame<'_>) -> Self {
        let (texts, _) = KnownAnswers::shared().texts(RawTexts::of(frame));
        Self::of_frame(frame, texts)
    }
}

/// Returns the name of the source file at `path` as Apple's tools print it: the last component, and all of a path that
/// has no other slash than one at its start.
///
/// ```
/// use symdex_report::source_file_name;
///
/// assert_eq!(source_file_name("/src/App/main.swift"), "main.swift");
/// // Swift 6 states the directory `/` for generated code.
/// assert_eq!(source_file_name("/<compiler-generated>"), "/<compiler-generated>");
/// ```
#[must_use]
pub fn source_file_name(path: &str) -> &str {
    match path.rsplit_once('/') {
        Some((directory, name)) if !directory.is_empty() && !name.is_empty() => name,
        _ => path,
    }
}

/// How many bytes `text` has in an output, at most: control characters and quotes are escaped, and once more in JSON
/// that is a string of JSON.
fn written_len(text: &str) -> u32 {
    let is_as_it_is = |byte: u8| matches!(byte, b' '..=b'~') & !matches!(byte, b'"' | b'\\');
    if text.bytes().fold(true, |plain, byte| plain & is_as_it_is(byte)) {
        return u32::try_from(text.len()).unwrap_or(u32::MAX);
    }
    let len = |c: char| match c {
        '"' | '\\' => 4,
        // `\\u0001`; a text has `\u{1}`.
        c if c.is_control() => 7,
        c => c.len_utf8(),
    };
    u32::try_from(text.chars().map(len).sum::<usize>()).unwrap_or(u32::MAX)
}

/// The names and the file of a function, as an index states them.
#[derive(Clone, Copy, Default, Hash)]
pub(crate) struct RawTexts<'f> {
    /// The linkage name.
    pub(crate) name: Option<&'f [u8]>,
    /// The readable name, if the index stores it.
    pub(crate) readable: Option<&'f [u8]>,
    /// The path of the source file.
    pub(crate) file: Option<&'f [u8]>,
}

impl<'f> RawTexts<'f> {
    pub(crate) fn of(frame: &symdex::Frame<'f>) -> Self {
        Self { name: frame.name, readable: frame.readable, file: frame.file }
    }

    /// The number of their bytes.
    pub(crate) fn len(&self) -> usize {
        [self.name, self.readable, self.file].into_iter().flatten().map(<[u8]>::len).sum()
    }
}

/// The names and the file of a function, in one allocation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Texts {
    /// The linkage name, the readable name unless it is the same, and the file.
    all: Arc<str>,
    name_end: u32,
    readable_end: u32,
    has_name: bool,
    /// Whether there is a readable name that differs from the linkage name.
    has_readable: bool,
    has_file: bool,
    /// Whether all characters are printable ones of ASCII.
    is_plain: bool,
    /// As [`written_len`]: the readable name and the file, and the linkage name.
    written: u32,
    written_name: u32,
}

impl Texts {
    /// Demangles the name, if the index does not state a readable one. Texts that exceed 4 GiB are left out.
    pub(crate) fn new(raw: RawTexts<'_>) -> Self {
        let RawTexts { name, readable, file } = raw;
        let readable = readable.map(lossy_text);
        let readable = readable.or_else(|| name.map(symdex_demangle::demangle)).unwrap_or_default();
        let [name_text, file_text] = [name, file].map(|text| lossy_text(text.unwrap_or_default()));
        let has_readable = readable != name_text;
        let readable = if has_readable { readable } else { "".into() };
        let ends =
            u32::try_from(name_text.len()).ok().zip(u32::try_from(name_text.len() + readable.len()).ok());
        let Some((name_end, readable_end)) = ends else { return Self::new(RawTexts::default()) };
        let all: Arc<str> = [name_text, readable, file_text].concat().into();
        let is_plain = all.bytes().fold(true, |plain, byte| plain & matches!(byte, b' '..=b'~'));
        let (has_name, has_file) = (name.is_some(), file.is_some());
        let (written, written_name) = (0, 0);
        let mut texts = Self {
            all,
            name_end,
            readable_end,
            has_name,
            has_readable,
            has_file,
            is_plain,
            written,
            written_name,
        };
        let size = |text: Option<&str>| text.map_or(0, written_len);
        let written = (size(texts.readable()).saturating_add(size(texts.file())), size(texts.name()));
        (texts.written, texts.written_name) = written;
        texts
    }

    /// Whether they are those of `raw`. Returns `false` for texts that are not UTF-8.
    pub(crate) fn are_of(&self, raw: RawTexts<'_>) -> bool {
        self.name().map(str::as_bytes) == raw.name
            && self.file().map(str::as_bytes) == raw.file
            && raw.readable.is_none_or(|readable| self.readable().map(str::as_bytes) == Some(readable))
    }

    /// The number of their bytes.
    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    fn name(&self) -> Option<&str> {
        self.has_name.then(|| &self.all[..self.name_end as usize])
    }

    pub(crate) fn readable(&self) -> Option<&str> {
        if self.has_readable {
            Some(&self.all[self.name_end as usize..self.readable_end as usize])
        } else {
            self.name()
        }
    }

    fn file(&self) -> Option<&str> {
        self.has_file.then(|| &self.all[self.readable_end as usize..])
    }
}
