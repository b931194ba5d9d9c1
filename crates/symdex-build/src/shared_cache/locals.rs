//! The local symbols of a cache's images.
//!
//! The header of their file states the offset of six numbers of 32 bits. These are the offsets (from the numbers) and
//! lengths of the symbols, their strings and the entries of images. An entry is the distance of the image from the
//! first address of the cache, the number of its first symbol, and how many symbols it has. The distance has 64 bits in
//! caches that may have their symbols in a part of their own, and 32 bits in older ones.

use std::collections::BTreeMap;
use std::mem::offset_of;
use std::path::Path;

use object::ReadRef;
use object::endian::U32;
use symdex::MappedFile;

use super::parts::Part;
use super::{ENDIAN, Header};
use crate::symbols::macho::LocalSymbols;

/// Where the local symbols are.
pub(super) struct Locals {
    /// The part that has them, if it is not the main file.
    part: Option<MappedFile>,
    /// Offset in the file.
    symbols: usize,
    strings: std::ops::Range<usize>,
    /// For each image, by its address, the number of its first symbol, and how many it has.
    images: BTreeMap<u64, (u32, u32)>,
}

/// The local symbols of the cache at `path`, whose first address is `base`, if it has any.
///
/// # Errors
///
/// The error says why they cannot be read, without the folder's path.
pub(super) fn find(path: &Path, main: &[u8], base: u64) -> Result<Option<Locals>, String> {
    let cannot = |why: &str| format!("local symbols: {why}");
    let header = Header::parse(main).map_err(|_| cannot("the header is cut short"))?;
    let part = header.symbols_subcache_uuid(ENDIAN).map(|uuid| {
        let part = Part { suffix: ".symbols".to_owned(), uuid, vm_offset: 0 };
        part.file(path).map_err(|wanted| cannot(&wanted.without_folder().error().to_string()))
    });
    let part = part.transpose()?;
    let bytes = part.as_deref().unwrap_or(main);
    let read = || {
        let header = Header::parse(bytes).ok()?;
        let offset = header.local_symbols_offset.get(ENDIAN);
        if offset == 0 || header.local_symbols_size.get(ENDIAN) == 0 {
            return Some(None);
        }
        read(bytes, offset, base, has_wide_entries(header)).map(Some)
    };
    let found = read().ok_or_else(|| cannot("their table contradicts itself, or is cut short"))?;
    Ok(found.map(|locals| Locals { part, ..locals }))
}

/// The size of a header is the offset of the mappings that follow it.
fn has_wide_entries(header: &Header) -> bool {
    header.mapping_offset.get(ENDIAN) as usize >= offset_of!(Header, symbol_file_uuid)
}

/// Bytes of a symbol of an image with addresses of 32 bits.
const SMALLEST_SYMBOL: usize = 12;

/// Reads the six numbers at `offset`. Returns `None` if the file is too short, or if an image shares the symbols of
/// another one.
fn read(bytes: &[u8], offset: u64, base: u64, wide: bool) -> Option<Locals> {
    let numbers = bytes.read_slice_at::<U32<_>>(offset, 6).ok()?;
    let number = |index: usize| numbers.get(index).map(|number: &U32<_>| u64::from(number.get(ENDIAN)));
    let (symbols, symbol_count) = (offset.checked_add(number(0)?)?, number(1)?);
    let strings = offset.checked_add(number(2)?)?;
    let strings = usize::try_from(strings).ok()?..usize::try_from(strings.checked_add(number(3)?)?).ok()?;
    bytes.get(strings.clone())?;
    let symbols = usize::try_from(symbols).ok()?;
    bytes.get(symbols..)?.get(..usize::try_from(symbol_count).ok()?.checked_mul(SMALLEST_SYMBOL)?)?;
    let (entries, entry_count) = (offset.checked_add(number(4)?)?, usize::try_from(number(5)?).ok()?);
    let width = if wide { 4 } else { 3 };
    let entries = bytes.read_slice_at::<U32<_>>(entries, entry_count.checked_mul(width)?).ok()?;
    let mut images = BTreeMap::new();
    let mut left = symbol_count;
    for entry in entries.chunks_exact(width) {
        let (distance, rest) = entry.split_at(width - 2);
        let distance = distance.iter().rev().fold(0, |high, low| high << 32 | u64::from(low.get(ENDIAN)));
        let [first, count] = [0, 1].map(|index| rest.get(index).map_or(0, |number| number.get(ENDIAN)));
        left = left.checked_sub(u64::from(count))?;
        images.insert(base.checked_add(distance)?, (first, count));
    }
    Some(Locals { part: None, symbols, strings, images })
}

impl Locals {
    /// The local symbols of the image at `address`, in the cache with the main file `main`.
    pub(super) fn of_image<'c>(&'c self, main: &'c [u8], address: u64) -> Option<LocalSymbols<'c>> {
        let (first, count) = *self.images.get(&address)?;
        let bytes = self.part.as_deref().unwrap_or(main);
        let (table, strings) = (bytes.get(self.symbols..)?, bytes.get(self.strings.clone())?);
        Some(LocalSymbols { table, strings, first, count })
    }
}
