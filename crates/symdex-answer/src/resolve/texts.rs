//! The columns of a record batch of Arrow's IPC format: integers and texts. Every access is checked.

use arrow_buffer::Buffer;
use arrow_ipc::{FieldNode, RecordBatch};
use arrow_schema::DataType;

use super::request::RequestError;

/// The stream is not what Arrow's IPC format says.
pub(super) fn malformed(what: impl Into<String>) -> RequestError {
    RequestError::Malformed(what.into())
}

/// What the columns of a batch consist of. They are read in the order of the schema.
pub(super) struct Parts {
    pub(super) rows: usize,
    nodes: std::vec::IntoIter<FieldNode>,
    buffers: std::vec::IntoIter<Buffer>,
    /// The number of buffers of each column of views, besides the validity and the views.
    view_buffers: std::vec::IntoIter<i64>,
}

impl Parts {
    pub(super) fn of(batch: RecordBatch<'_>, body: &Buffer) -> Result<Self, RequestError> {
        if batch.compression().is_some() {
            return Err(RequestError::Compressed);
        }
        let buffer = |at: &arrow_ipc::Buffer| {
            let (start, size) = usize::try_from(at.offset()).ok().zip(usize::try_from(at.length()).ok())?;
            (start.checked_add(size)? <= body.len()).then(|| body.slice_with_length(start, size))
        };
        let buffers: Option<Vec<_>> = batch.buffers().unwrap_or_default().iter().map(buffer).collect();
        let rows = usize::try_from(batch.length()).ok();
        let (rows, buffers) = rows.zip(buffers).ok_or_else(|| malformed("a batch exceeds its message"))?;
        let nodes: Vec<_> = batch.nodes().unwrap_or_default().iter().copied().collect();
        let view_buffers: Vec<_> = batch.variadicBufferCounts().unwrap_or_default().iter().collect();
        let (nodes, buffers, view_buffers) =
            (nodes.into_iter(), buffers.into_iter(), view_buffers.into_iter());
        Ok(Self { rows, nodes, buffers, view_buffers })
    }

    /// Begins a column, whose other buffers are read next. Returns the first row that is null.
    pub(super) fn column(&mut self) -> Result<Option<usize>, RequestError> {
        let node = self.nodes.next().ok_or_else(|| malformed("a batch has too few columns"))?;
        if usize::try_from(node.length()) != Ok(self.rows) {
            return Err(malformed("the columns of a batch have different lengths"));
        }
        let validity = self.buffer()?;
        if node.null_count() == 0 {
            return Ok(None);
        }
        let is_null = |row: &usize| validity.get(row / 8).is_none_or(|bits| bits >> (row % 8) & 1 == 0);
        Ok((0..self.rows).find(is_null))
    }

    fn buffer(&mut self) -> Result<Buffer, RequestError> {
        self.buffers.next().ok_or_else(|| malformed("a batch has too few buffers"))
    }
}

/// Integers.
pub(super) struct Numbers {
    bytes: Buffer,
    width: usize,
    is_signed: bool,
    len: usize,
}

impl Numbers {
    pub(super) fn read(kind: &DataType, parts: &mut Parts) -> Result<Self, RequestError> {
        let width = kind.primitive_width().unwrap_or(8).min(8);
        let numbers =
            Self { bytes: parts.buffer()?, width, is_signed: kind.is_signed_integer(), len: parts.rows };
        numbers.check()
    }

    /// Checks that all integers are there.
    fn check(self) -> Result<Self, RequestError> {
        let size = self.len.checked_mul(self.width);
        match size.is_some_and(|size| size <= self.bytes.len()) {
            true => Ok(self),
            false => Err(malformed(format!("a column of {} rows has {} bytes", self.len, self.bytes.len()))),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The integer at a position.
    pub(super) fn get(&self, position: usize) -> Result<u64, RequestError> {
        let start = position.checked_mul(self.width);
        let bytes = start.and_then(|start| self.bytes.get(start..)?.get(..self.width));
        let bytes = bytes.ok_or_else(|| malformed(format!("a column has no row {position}")))?;
        let number = bytes.iter().rfold(0, |number, byte| number << 8 | u64::from(*byte));
        match self.is_signed && bytes.last().is_some_and(|byte| *byte >= 0x80) {
            true => Err(malformed("a key or an offset is negative")),
            false => Ok(number),
        }
    }
}

/// Texts.
pub(super) enum Texts {
    /// Each ends where the next one starts.
    Offsets(Numbers, Buffer),
    /// Each has 16 bytes, which have the text or say where it is.
    Views(Buffer, Vec<Buffer>, usize),
}

impl Texts {
    /// Reads a column of this kind that [`Parts::column`] has begun.
    pub(super) fn read(kind: &DataType, parts: &mut Parts) -> Result<Self, RequestError> {
        if *kind == DataType::Utf8View {
            let views = parts.buffer()?;
            let count = parts.view_buffers.next().and_then(|count| usize::try_from(count).ok()).unwrap_or(0);
            if parts.rows.checked_mul(16).is_none_or(|size| size > views.len()) || count > parts.buffers.len()
            {
                return Err(malformed("a column of views exceeds its message"));
            }
            return Ok(Self::Views(views, parts.buffers.by_ref().take(count).collect(), parts.rows));
        }
        let (bytes, width) = (parts.buffer()?, if *kind == DataType::LargeUtf8 { 8 } else { 4 });
        // A column without rows may have no offsets.
        let len = parts.rows + usize::from(parts.rows != 0);
        let offsets = Numbers { bytes, width, is_signed: true, len }.check()?;
        Ok(Self::Offsets(offsets, parts.buffer()?))
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::Offsets(offsets, _) => offsets.len.saturating_sub(1),
            Self::Views(.., len) => *len,
        }
    }

    /// The bytes of the text at a position. Texts may overlap.
    pub(super) fn get(&self, position: usize) -> Result<&[u8], RequestError> {
        let text = match self {
            Self::Offsets(offsets, text) => {
                let at = |position| Ok(usize::try_from(offsets.get(position)?).unwrap_or(usize::MAX));
                text.get(at(position)?..at(position + 1)?)
            }
            Self::Views(views, texts, _) => of_view(views, texts, position),
        };
        text.ok_or_else(|| malformed(format!("the text {position} exceeds its column")))
    }
}

/// The text of a view: its length, and up to 12 bytes of text, or four bytes of text, the number of a buffer and an
/// offset in it.
fn of_view<'t>(views: &'t [u8], texts: &'t [Buffer], position: usize) -> Option<&'t [u8]> {
    let view = views.get(position.checked_mul(16)?..)?.first_chunk::<16>()?;
    let number = |at: usize| Some(u32::from_le_bytes(*view.get(at..)?.first_chunk()?) as usize);
    let size = number(0)?;
    if size <= 12 {
        return view.get(4..4 + size);
    }
    texts.get(number(8)?)?.get(number(12)?..)?.get(..size)
}
