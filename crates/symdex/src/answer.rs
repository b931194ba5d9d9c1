//! What a lookup answers.

use std::borrow::Cow;

use crate::format::Table;
use crate::image::ImageOffset;
use crate::packed::SourceLocation;
use crate::ranges::NonMaxU32;

/// Which line rows a lookup uses. The chain of functions is the same under both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[cfg_attr(feature = "utoipa", derive(utoipa::ToSchema))]
pub enum LinePolicy {
    /// Code with line 0, or without a line, takes the file and line of the last statement before it in the same
    /// inlined call. If there is no such statement, the code keeps its own line: line 0 or none. Reports use this
    /// policy, because more of their frames have a line.
    #[default]
    Statement,
    /// Each row has its own file and line, as in Apple's atos and llvm-symbolizer.
    Exact,
}

impl LinePolicy {
    pub(crate) fn is_statement(self) -> bool {
        self == LinePolicy::Statement
    }
}

/// One frame of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Frame<'a> {
    /// The mangled name, without Mach-O's leading `_`. It can have any bytes. `None` if neither table names the
    /// code.
    pub name: Option<&'a [u8]>,
    /// The readable form of the name, for example `Widget.draw(at:)` for `$s4Demo6WidgetV4draw2atySi_tF`. `None` if the
    /// index has no readable names ([`Index::has_readable_names`](crate::Index::has_readable_names)), or if the name is
    /// its own readable form. [`Self::display_name`] takes the one or the other.
    pub readable: Option<&'a [u8]>,
    /// The path of the file, with the directory that the debug information states. It can have any bytes.
    pub file: Option<&'a [u8]>,
    /// The line, from 1 on. It is 0 for code that the compiler generated, and `None` if there is no line.
    pub line: Option<u32>,
    /// Whether the frame is inlined into the next one. The last frame is not inlined.
    pub inlined: bool,
    /// The start of the function that contains the code. Inlined frames have that of the function they are inlined
    /// into. A function can have several parts (GCC's `f` and `f.cold`): this is the start of the part that contains
    /// the code.
    pub function_start: Option<ImageOffset>,
    /// The table that the frame comes from.
    pub table: Table,
}

impl<'a> Frame<'a> {
    /// The [`name`](Self::name) as text. Bytes that are not UTF-8 become U+FFFD. The name is still mangled; the crate
    /// `symdex-demangle` makes it readable.
    #[must_use]
    pub fn name_lossy(&self) -> Option<Cow<'a, str>> {
        self.name.map(String::from_utf8_lossy)
    }

    /// The readable name if the index has it, else the [`name`](Self::name).
    ///
    /// ```
    /// # fn demo(frame: symdex::Frame<'_>) {
    /// // With the crate symdex-demangle, which is not needed for an index that was built with readable names:
    /// let name = frame.readable.map(String::from_utf8_lossy);
    /// let name = name.or_else(|| Some(symdex_demangle::demangle(frame.name?)));
    /// # }
    /// ```
    #[must_use]
    pub fn display_name(&self) -> Option<&'a [u8]> {
        self.readable.or(self.name)
    }

    /// The [`file`](Self::file) as text. Bytes that are not UTF-8 become U+FFFD.
    #[must_use]
    pub fn file_lossy(&self) -> Option<Cow<'a, str>> {
        self.file.map(String::from_utf8_lossy)
    }
}

/// A [`Frame`] that owns its strings; see [`Frames::to_vec`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OwnedFrame {
    /// As [`Frame::name`].
    pub name: Option<Vec<u8>>,
    /// As [`Frame::readable`].
    pub readable: Option<Vec<u8>>,
    /// As [`Frame::file`].
    pub file: Option<Vec<u8>>,
    /// As [`Frame::line`].
    pub line: Option<u32>,
    /// As [`Frame::inlined`].
    pub inlined: bool,
    /// As [`Frame::function_start`].
    pub function_start: Option<ImageOffset>,
    /// As [`Frame::table`].
    pub table: Table,
}

impl OwnedFrame {
    /// As [`Frame::name_lossy`].
    #[must_use]
    pub fn name_lossy(&self) -> Option<Cow<'_, str>> {
        self.name.as_deref().map(String::from_utf8_lossy)
    }

    /// As [`Frame::file_lossy`].
    #[must_use]
    pub fn file_lossy(&self) -> Option<Cow<'_, str>> {
        self.file.as_deref().map(String::from_utf8_lossy)
    }
}

impl From<Frame<'_>> for OwnedFrame {
    fn from(frame: Frame<'_>) -> Self {
        let Frame { name, readable, file, line, inlined, function_start, table } = frame;
        let [name, readable, file] = [name, readable, file].map(|string| string.map(<[u8]>::to_vec));
        Self { name, readable, file, line, inlined, function_start, table }
    }
}

/// The frames of one answer, borrowed from the scratch space of the lookup.
#[derive(Clone, Copy, Debug)]
pub struct Frames<'a> {
    pub(crate) frames: &'a [FoundFrame],
    /// The positions of their strings in `text`.
    pub(crate) strings: &'a [StringRanges],
    pub(crate) text: &'a [u8],
}

/// Where the name, the file and the readable name of a frame lie in a text.
pub(crate) type StringRanges = [StringRange; 3];

/// Where a string lies in a text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StringRange {
    start: u32,
    end: u32,
}

impl StringRange {
    /// No string: no text has this range.
    pub(crate) const NONE: Self = Self { start: 1, end: 0 };

    /// A string that begins at `start` of a text, and its readable form, which begins at `readable` and ends at `end`.
    pub(crate) fn pair(start: usize, readable: Option<usize>, end: usize) -> [Self; 2] {
        // The strings of an answer take less than 4 GiB. A range beyond that would be no range of the text.
        let [start, middle, end] =
            [start, readable.unwrap_or(end), end].map(|at| u32::try_from(at).unwrap_or(u32::MAX));
        let second = readable.map_or(Self::NONE, |_| Self { start: middle, end });
        [Self { start, end: middle }, second]
    }

    #[inline]
    fn of(self, text: &[u8]) -> Option<&[u8]> {
        text.get(self.start as usize..self.end as usize)
    }
}

/// A frame of an answer, with its strings by id.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FoundFrame {
    pub(crate) source: SourceLocation,
    pub(crate) function_start: Option<ImageOffset>,
    pub(crate) table: Table,
}

impl<'a> Frames<'a> {
    /// The number of frames, at least one.
    #[expect(clippy::len_without_is_empty, reason = "an answer is never empty: a gap is no answer")]
    #[must_use]
    pub fn len(&self) -> usize {
        self.frames.len()
    }

    /// The frames, innermost first.
    #[inline]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Frame<'a>> + DoubleEndedIterator + use<'a> {
        let frames = *self;
        (0..self.len()).map(move |number| frames.frame(number))
    }

    /// The ids of the name and of the file of each frame, in the order of [`Self::iter`]. In one index, equal ids are
    /// equal strings, and [`crate::Index::strings`] reads the string of an id. So a caller that converts strings can
    /// convert each once.
    pub fn string_ids(&self) -> impl ExactSizeIterator<Item = [Option<NonMaxU32>; 2]> + use<'a> {
        // `map` of arrays is not inlined.
        let id = NonMaxU32::from_stored;
        self.frames.iter().map(move |frame| [id(frame.source.name), id(frame.source.file)])
    }

    /// Copies the frames out of the [`crate::Scratch`], so that they outlive the next lookup.
    ///
    /// ```
    /// use symdex::{ImageOffset, Index, LinePolicy, OwnedFrame, Scratch};
    ///
    /// # let path = "../../testdata/golden/v1/inline-dwarf4-1.symdex";
    /// let index = Index::open(std::fs::read(path)?)?;
    /// let mut scratch = Scratch::default();
    /// let mut stack: Vec<OwnedFrame> = Vec::new();
    /// for offset in [0x3cf, 0x3d3].map(ImageOffset) {
    ///     if let Some(frames) = index.lookup(offset, LinePolicy::Statement, &mut scratch)? {
    ///         stack.extend(frames.to_vec());
    ///     }
    /// }
    /// assert_eq!(stack[0].name.as_deref(), Some(&b"cell"[..]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn to_vec(&self) -> Vec<OwnedFrame> {
        self.iter().map(OwnedFrame::from).collect()
    }

    /// Frame `number`, counted from the innermost. Callers seldom read all of a frame.
    #[inline]
    fn frame(self, number: usize) -> Frame<'a> {
        let frame = self.frames.get(number);
        let none = [StringRange::NONE; 3];
        let [name, file, readable] = self.strings.get(number).unwrap_or(&none);
        let of = |string: &StringRange| string.of(self.text);
        let (name, file, readable) = (of(name), of(file), of(readable));
        Frame {
            name,
            readable,
            file,
            line: frame.and_then(|frame| frame.source.line.checked_sub(1)),
            inlined: number + 1 < self.frames.len(),
            function_start: frame.and_then(|frame| frame.function_start),
            table: frame.map_or(Table::Dwarf, |frame| frame.table),
        }
    }
}
