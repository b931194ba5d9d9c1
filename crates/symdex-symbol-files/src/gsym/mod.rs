//! LLVM's GSYM, version 1, as `llvm/DebugInfo/GSYM` reads it: a header, sorted addresses, a place for each of them,
//! files, strings, and for each address a function with its lines and inlined calls.

mod read;
mod write;

use gimli::{EndianSlice, Reader as _, RunTimeEndian};
use symdex_build::Error;

pub(crate) use self::read::read;
pub use self::write::write_gsym;

/// The magic number, in the byte order of the file.
pub(crate) const MAGIC: u32 = 0x4753_594d;
const VERSION: u16 = 1;
const HEADER_SIZE: usize = 48;
/// The longest id that the header holds.
const MAX_ID: usize = 20;

/// The parts of a function.
const END: u32 = 0;
const LINES: u32 = 1;
const INLINED_CALLS: u32 = 2;
const MERGED_FUNCTIONS: u32 = 3;

/// Operations of a line table. All above advance address and line, and add a row.
const END_OF_LINES: u8 = 0;
const SET_FILE: u8 = 1;
const ADVANCE_ADDRESS: u8 = 2;
const ADVANCE_LINE: u8 = 3;
const FIRST_SPECIAL: u8 = 4;

type Slice<'d> = EndianSlice<'d, RunTimeEndian>;

/// The header: its first 4 bytes are [`MAGIC`], and the next 2 [`VERSION`].
struct Header<'d> {
    /// How many bytes each address has: 1, 2, 4 or 8.
    offset_size: u8,
    /// The address that image offset 0 was linked at, which the addresses count from.
    base: u64,
    address_len: u32,
    /// Where the strings are in the file.
    strings_at: u32,
    strings_size: u32,
    /// At most [`MAX_ID`] bytes; the header states their number.
    id: &'d [u8],
}

impl<'d> Header<'d> {
    /// Reads the header from its [`HEADER_SIZE`] bytes.
    fn read(mut header: Slice<'d>) -> Result<Self, Error> {
        header.skip(size_of_val(&MAGIC)).ok();
        let version = number(header.read_u16());
        if version != VERSION {
            let what = format!("GSYM of version {version}; expected version {VERSION}");
            return Err(Error::Unsupported { what });
        }
        let (offset_size, id_size) = (number(header.read_u8()), usize::from(number(header.read_u8())));
        let base = number(header.read_u64());
        let [address_len, strings_at, strings_size] = [(); 3].map(|()| number(header.read_u32()));
        let id = header.slice().get(..id_size).filter(|id| id.len() <= MAX_ID);
        let id =
            id.ok_or_else(|| malformed(format!("an id of {id_size} bytes; expected at most {MAX_ID}")))?;
        if ![1, 2, 4, 8].contains(&offset_size) {
            let what = format!("offsets of addresses have {offset_size} bytes; expected 1, 2, 4 or 8");
            return Err(malformed(what));
        }
        Ok(Self { offset_size, base, address_len, strings_at, strings_size, id })
    }

    /// The header in little-endian bytes.
    fn written(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER_SIZE);
        bytes.extend_from_slice(&MAGIC.to_le_bytes());
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&[self.offset_size, u8::try_from(self.id.len()).unwrap_or(0)]);
        bytes.extend_from_slice(&self.base.to_le_bytes());
        for number in [self.address_len, self.strings_at, self.strings_size] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        bytes.extend_from_slice(self.id);
        bytes.resize(HEADER_SIZE, 0);
        bytes
    }
}

/// A number in a part of the file whose size was checked.
fn number<N: Default>(read: gimli::Result<N>) -> N {
    read.unwrap_or_default()
}

fn malformed(what: String) -> Error {
    Error::Malformed { what: format!("GSYM: {what}") }
}
