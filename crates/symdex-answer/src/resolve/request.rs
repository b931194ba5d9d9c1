//! Addresses in a stream of Arrow's IPC format, perhaps an untrusted one.

use std::collections::HashMap;

use arrow_buffer::Buffer;
use arrow_ipc::convert::try_fb_to_schema;
use arrow_ipc::{Endianness, Message, MessageHeader, root_as_message_with_opts};
use arrow_schema::{DataType, Schema};
use flatbuffers::VerifierOptions;
use symdex::{ImageId, ImageOffset};

use super::ImageAddress;
use super::texts::{Numbers, Parts, Texts, malformed};

/// The addresses of a request.
#[non_exhaustive]
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// The images, each once.
    pub ids: Vec<ImageId>,
    /// The addresses, in the order of the rows.
    pub addresses: Vec<ImageAddress>,
}

/// The error for a stream that is not a request.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// The stream is not what Arrow's IPC format says.
    #[error("the Arrow IPC stream is malformed: {0}")]
    Malformed(String),
    /// The columns are not those of a request.
    #[error("found the columns {0}; expected `id` (utf8, or a dictionary of it) and `address` (uint64)")]
    Columns(String),
    /// Buffers are compressed.
    #[error(
        "the buffers of the Arrow IPC stream are compressed; compress the body as a whole, with zstd or gzip"
    )]
    Compressed,
    /// A row has no id or no address.
    #[error("row {row}: `{column}` is null")]
    Null {
        /// The column.
        column: &'static str,
        /// The row, counted from 0.
        row: usize,
    },
    /// An address is negative.
    #[error("row {row}: the address {address} is negative; it is an offset from the start of the image")]
    Negative {
        /// The row, counted from 0.
        row: usize,
        /// The address.
        address: i64,
    },
    /// A value of the column `id` is not the id of an image.
    #[error("row {row}: found `{text}`, expected an image id: 2 to 64 hexadecimal digits, dashes allowed")]
    Id {
        /// The row, counted from 0.
        row: usize,
        /// The start of what was found.
        text: String,
    },
    /// There are more rows than the caller allows.
    #[error("found more than {0} addresses; a request may have at most {0}")]
    TooMany(usize),
}

/// The most bytes of the metadata of a message: that of two columns has a few hundred.
const MAX_METADATA: u32 = 64 << 10;

/// The most tables in the metadata of a message: that of two columns has about ten, and pairs of metadata.
const MAX_TABLES: usize = 256;

/// How many bytes of an id are read: its digits and some dashes.
const MAX_QUOTED: usize = 200;

/// Reads a stream with the columns `id` and `address`, of at most `max` rows. Memory and time grow with the bytes that
/// are there, whatever they claim: arrow-ipc reads the metadata, and its arrays are not used, because they panic at
/// wrong lengths.
///
/// # Errors
///
/// [`RequestError`] if the stream is malformed, or has other columns, nulls or more rows.
pub fn read(bytes: Vec<u8>, max: usize) -> Result<Request, RequestError> {
    let mut stream = Stream { rest: bytes.into() };
    let mut reader = Reader { max, schema: None, dictionary: None, numbers: HashMap::new() };
    let mut request = Request::default();
    while let Some((metadata, body)) = stream.next()? {
        reader.message(message_of(&metadata)?, &body, &mut request)?;
    }
    match reader.schema {
        Some(_) => Ok(request),
        None => Err(malformed("it has no schema")),
    }
}

fn message_of(metadata: &[u8]) -> Result<Message<'_>, RequestError> {
    // Parts may be shared. Each is read as often as it is used.
    let options = VerifierOptions {
        max_tables: MAX_TABLES,
        max_apparent_size: 4 * MAX_METADATA as usize,
        ..VerifierOptions::default()
    };
    root_as_message_with_opts(&options, metadata).map_err(|error| malformed(error.to_string()))
}

fn no_header() -> RequestError {
    malformed("a message has no header")
}

/// The bytes of a stream that are not read yet.
struct Stream {
    rest: Buffer,
}

impl Stream {
    /// The metadata and the body of the next message; `None` at the end.
    fn next(&mut self) -> Result<Option<(Buffer, Buffer)>, RequestError> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let mut size = self.number()?;
        if size == u32::MAX {
            size = self.number()?;
        }
        if size == 0 {
            return Ok(None);
        }
        if size > MAX_METADATA {
            return Err(malformed(format!("a message has {size} bytes of metadata")));
        }
        let metadata = self.take(i64::from(size))?;
        let body = message_of(&metadata)?.bodyLength();
        Ok(Some((metadata, self.take(body)?)))
    }

    fn number(&mut self) -> Result<u32, RequestError> {
        Ok(self.take(4)?.first_chunk().copied().map_or(0, u32::from_le_bytes))
    }

    fn take(&mut self, size: i64) -> Result<Buffer, RequestError> {
        let left = self.rest.len();
        match usize::try_from(size).ok().filter(|size| *size <= left) {
            Some(size) => {
                let taken = self.rest.slice_with_length(0, size);
                self.rest.advance(size);
                Ok(taken)
            }
            None => Err(malformed(format!("it ends {left} bytes after the start of a part of {size} bytes"))),
        }
    }
}

/// The state of a stream between its messages.
struct Reader {
    max: usize,
    schema: Option<Schema>,
    /// The dictionary of the ids, and the images of its entries as far as rows have them.
    dictionary: Option<(Texts, Vec<Option<u32>>)>,
    /// The images by their ids.
    numbers: HashMap<ImageId, u32>,
}

impl Reader {
    fn message(&mut self, message: Message<'_>, body: &Buffer, to: &mut Request) -> Result<(), RequestError> {
        match (message.header_type(), &self.schema) {
            (MessageHeader::Schema, None) => self.schema = Some(schema_of(message)?),
            (MessageHeader::DictionaryBatch, Some(schema)) => {
                let batch = message.header_as_dictionary_batch().ok_or_else(no_header)?;
                let kind = schema.fields().iter().find_map(|field| match field.data_type() {
                    DataType::Dictionary(_, kind) => Some(kind),
                    _ => None,
                });
                let kind = kind.ok_or_else(|| malformed("it has a dictionary that no column has"))?;
                if batch.isDelta() {
                    return Err(malformed("a dictionary grows; send whole dictionaries"));
                }
                let mut parts = Parts::of(batch.data().ok_or_else(no_header)?, body)?;
                if parts.column()?.is_some() {
                    return Err(malformed("an entry of the dictionary is null"));
                }
                let texts = Texts::read(kind, &mut parts)?;
                let unknown = vec![None; texts.len()];
                self.dictionary = Some((texts, unknown));
            }
            (MessageHeader::RecordBatch, Some(_)) => {
                let batch = message.header_as_record_batch().ok_or_else(no_header)?;
                self.rows(&mut Parts::of(batch, body)?, to)?;
            }
            (kind, _) => {
                let kind = kind.variant_name().unwrap_or("unknown");
                return Err(malformed(format!("a message of the type {kind} is out of place")));
            }
        }
        Ok(())
    }

    /// Reads the rows of a batch.
    fn rows(&mut self, parts: &mut Parts, to: &mut Request) -> Result<(), RequestError> {
        let first = to.addresses.len();
        if parts.rows > self.max - first {
            return Err(RequestError::TooMany(self.max));
        }
        let fields = self.schema.as_ref().map(|schema| schema.fields().clone()).unwrap_or_default();
        let (mut images, mut addresses) = (Vec::new(), None);
        for field in &fields {
            let is_id = field.name() == "id";
            let column = if is_id { "id" } else { "address" };
            if let Some(row) = parts.column()? {
                return Err(RequestError::Null { column, row: first + row });
            }
            match field.data_type() {
                kind if !is_id => addresses = Some((Numbers::read(&DataType::UInt64, parts)?, kind)),
                DataType::Dictionary(kind, _) => {
                    images = self.images_of_keys(&Numbers::read(kind, parts)?, first, to)?;
                }
                kind => {
                    let texts = Texts::read(kind, parts)?;
                    let numbers = (0..parts.rows).map(|row| self.number(texts.get(row)?, first + row, to));
                    images = numbers.collect::<Result<_, _>>()?;
                }
            }
        }
        let (addresses, kind) = addresses.ok_or_else(no_header)?;
        let is_signed = *kind == DataType::Int64;
        for (row, image) in images.into_iter().enumerate() {
            let address = addresses.get(row)?;
            if is_signed && address.cast_signed() < 0 {
                return Err(RequestError::Negative { row: first + row, address: address.cast_signed() });
            }
            to.addresses.push((image, ImageOffset(address)));
        }
        Ok(())
    }

    /// The number of the image of each row, which has a key of the dictionary.
    fn images_of_keys(
        &mut self,
        keys: &Numbers,
        first: usize,
        to: &mut Request,
    ) -> Result<Vec<u32>, RequestError> {
        let mut dictionary = self.dictionary.take();
        let mut number = |row| {
            let key = usize::try_from(keys.get(row)?).unwrap_or(usize::MAX);
            let entry = dictionary.as_mut().and_then(|(texts, known)| Some((texts, known.get_mut(key)?)));
            let (texts, known) =
                entry.ok_or_else(|| malformed(format!("the dictionary has no entry {key}")))?;
            match *known {
                Some(number) => Ok(number),
                None => Ok(*known.insert(self.number(texts.get(key)?, first + row, to)?)),
            }
        };
        let numbers = (0..keys.len()).map(&mut number).collect();
        self.dictionary = dictionary;
        numbers
    }

    /// The number of the image whose id is `text`, in this row.
    fn number(&mut self, text: &[u8], row: usize, to: &mut Request) -> Result<u32, RequestError> {
        // Rows may share one long text.
        let start = String::from_utf8_lossy(text.get(..MAX_QUOTED).unwrap_or(text));
        let wrong = || RequestError::Id { row, text: start.clone().into_owned() };
        let is_short = text.len() <= MAX_QUOTED;
        let id: ImageId = start.parse().ok().filter(|_| is_short).ok_or_else(wrong)?;
        if let Some(number) = self.numbers.get(&id) {
            return Ok(*number);
        }
        let number = u32::try_from(to.ids.len()).map_err(|_| wrong())?;
        to.ids.push(id.clone());
        self.numbers.insert(id, number);
        Ok(number)
    }
}

/// The schema of a request.
fn schema_of(message: Message<'_>) -> Result<Schema, RequestError> {
    let header = message.header_as_schema().ok_or_else(no_header)?;
    if header.endianness() != Endianness::Little {
        return Err(malformed("its numbers are big-endian; send little-endian ones"));
    }
    let schema = try_fb_to_schema(header);
    let schema = schema.map_err(|error| malformed(error.to_string()))?;
    let is_text = |kind: &DataType| matches!(kind, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
    let is_id = |kind: &DataType| match kind {
        DataType::Dictionary(_, values) => is_text(values),
        kind => is_text(kind),
    };
    let has = |name, is_kind: &dyn Fn(&DataType) -> bool| {
        schema.field_with_name(name).is_ok_and(|field| is_kind(field.data_type()))
    };
    let is_address = |kind: &DataType| matches!(kind, DataType::UInt64 | DataType::Int64);
    if schema.fields().len() == 2 && has("id", &is_id) && has("address", &is_address) {
        return Ok(schema);
    }
    let column = |field: &arrow_schema::FieldRef| format!("`{}` ({})", field.name(), field.data_type());
    let found: Vec<_> = schema.fields().iter().take(10).map(column).collect();
    let found: String = found.join(", ").chars().take(500).collect();
    Err(RequestError::Columns(if found.is_empty() { "of no table".to_owned() } else { found }))
}
