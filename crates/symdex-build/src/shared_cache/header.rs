//! The header of a file of a shared cache.

use object::Endianness;
use object::macho::DyldCacheHeader;

use crate::error::Error;

pub(super) const ENDIAN: Endianness = Endianness::Little;
pub(super) const MAGIC: &[u8] = b"dyld_v1";

pub(super) type Header = DyldCacheHeader<Endianness>;

/// Makes errors that name the part of the shared cache that does not parse.
pub(super) fn malformed(what: &str) -> impl FnOnce(object::Error) -> Error {
    move |error| Error::Malformed { what: format!("{what} of the shared cache: {error}") }
}
