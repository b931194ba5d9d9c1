//! Tar archives, compressed or not, and compressed files that are not tar archives.

mod header;
mod pax;
mod sparse;

use std::collections::HashSet;
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, BufRead, BufReader, Read};
use std::rc::Rc;

use self::header::{BLOCK, Header, cut, more_regions, text, too_large};
use self::pax::Pax;
use self::sparse::{Data, Map, map_in_data};
use crate::archive::compression::Compression;
use crate::archive::fault::FaultKind;
use crate::archive::kind::{HEAD, Kind};
use crate::archive::limits::HEADER_BYTES;
use crate::archive::meter::{Compressed, Metered};
use crate::archive::name;
use crate::archive::unpacker::Reading;

/// Reads a tar archive that is not compressed.
///
/// # Errors
///
/// Why the archive is not read to its end. Files before the damage are kept: the archive has no checksum of them.
pub(crate) fn read(
    reading: &mut Reading<'_>,
    file: impl BufRead,
    archive: &str,
    depth: u32,
) -> Result<(), FaultKind> {
    let (file, taken) = Compressed::new(file, reading.on_read(depth));
    entries(reading, &mut Metered::new(file, &reading.meter.clone(), taken), archive, depth)
}

/// Reads a compressed file, which may be a tar archive.
///
/// # Errors
///
/// Why the file is not read to its end. No file of it is kept then: the checksum at its end covers all of them.
pub(crate) fn read_compressed(
    reading: &mut Reading<'_>,
    compression: Compression,
    file: impl BufRead,
    archive: &str,
    depth: u32,
) -> Result<(), FaultKind> {
    let kept = reading.kept();
    compressed(reading, compression, file, archive, depth).map_err(|fault| {
        let is_any_discarded = reading.discard_after(kept);
        match fault {
            FaultKind::Damaged(what) if is_any_discarded => {
                FaultKind::Damaged(format!("{what}; none of its files is used"))
            }
            fault => fault,
        }
    })
}

fn compressed(
    reading: &mut Reading<'_>,
    compression: Compression,
    file: impl BufRead,
    archive: &str,
    depth: u32,
) -> Result<(), FaultKind> {
    let meter = Rc::clone(&reading.meter);
    let failed = |error: io::Error| meter.fault(&error);
    let (file, taken) = Compressed::new(file, reading.on_read(depth));
    let decoder = compression.decoder(BufReader::new(file), Compression::MAX_WINDOW_LOG).map_err(failed)?;
    let mut data = Metered::new(decoder, &meter, taken);
    let name = archive.rsplit(['/', ' ']).next().unwrap_or(archive);
    let name = name.rsplit_once('.').map_or(name, |(stem, _)| stem).to_owned();
    let peeked = data.peek(HEAD).map_err(failed);
    let is_tar = Kind::of(data.peeked()) == Some(Kind::Tar);
    match peeked {
        // An app may have files that only begin like compressed ones.
        Err(FaultKind::Damaged(_)) if depth > 0 && !is_tar && !reading.is_wanted(&name, data.peeked()) => {
            return Ok(());
        }
        peeked => peeked?,
    }
    if !is_tar {
        meter.entry()?;
        return reading.entry(&mut data, archive, &name, depth);
    }
    entries(reading, &mut data, archive, depth)?;
    // The last checksum is compared at the end of the data, which is after that of the archive.
    io::copy(&mut data, &mut io::sink()).map_err(failed)?;
    Ok(())
}

/// Reads the entries of the tar archive `data`.
fn entries(
    reading: &mut Reading<'_>,
    data: &mut Metered<impl Read>,
    archive: &str,
    depth: u32,
) -> Result<(), FaultKind> {
    let meter = Rc::clone(&reading.meter);
    let failed = |error: io::Error| meter.fault(&error);
    let (hasher, mut names) = (RandomState::new(), HashSet::new());
    while let Some(Entry { name, kind, map, stored }) = next_entry(data).map_err(failed)? {
        let size = map.size();
        let mut data = Data::new(data, map, stored).map_err(failed)?;
        if kind != EntryKind::Folder {
            meter.entry()?;
            let (name, read) = match (name::checked(&name), kind) {
                (Err((name, fault)), _) => (name, Err(fault)),
                (Ok(name), EntryKind::Link) => (name, Err(FaultKind::Link)),
                (Ok(name), EntryKind::Special | EntryKind::Folder) => (name, Err(FaultKind::Special)),
                (Ok(name), EntryKind::File) => {
                    let limit = meter.limits.entry_size;
                    let read = match names.insert(hasher.hash_one(&name)) {
                        false => Err(FaultKind::Duplicate),
                        true if size > limit => Err(FaultKind::EntrySize { limit }),
                        true => reading.entry(&mut data, archive, &name, depth),
                    };
                    (name, read)
                }
            };
            if let Err(fault) = read {
                // After these faults, the next entry cannot be found.
                let is_last = matches!(
                    fault,
                    FaultKind::Damaged(_)
                        | FaultKind::Ratio { .. }
                        | FaultKind::Unpacked { .. }
                        | FaultKind::Io(_)
                );
                if is_last || meter.is_over() {
                    return Err(fault);
                }
                reading.faults.entry(archive, name, fault);
            }
        }
        data.skip().map_err(failed)?;
    }
    Ok(())
}

/// An entry, as its headers describe it.
struct Entry {
    name: Vec<u8>,
    kind: EntryKind,
    map: Map,
    /// How many bytes of the file the archive has.
    stored: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum EntryKind {
    File,
    Folder,
    Link,
    Special,
}

/// Reads the headers of the next entry; `None` at the end of the archive.
fn next_entry(data: &mut Metered<impl Read>) -> io::Result<Option<Entry>> {
    let (mut long_name, mut pax, mut left) = (None, None, HEADER_BYTES);
    while let Some(header) = Header::read(data)? {
        let size = header.size()?;
        match header.kind() {
            b'L' => long_name = Some(text(&extension(data, size, &mut left)?).to_vec()),
            b'x' | b'X' => pax = Some(Pax::parse(&extension(data, size, &mut left)?)?),
            // The target of a link, and records for all entries.
            b'K' | b'g' => _ = extension(data, size, &mut left)?,
            _ => return entry(&header, long_name, pax.unwrap_or_default(), data).map(Some),
        }
    }
    if long_name.is_some() || pax.is_some() { Err(cut()) } else { Ok(None) }
}

fn entry(
    header: &Header,
    long_name: Option<Vec<u8>>,
    pax: Pax,
    data: &mut Metered<impl Read>,
) -> io::Result<Entry> {
    let mut stored = pax.size.map_or_else(|| header.size(), Ok)?;
    let mut map = Map::whole(stored);
    let mut name = pax.path.or(long_name).unwrap_or_else(|| header.name());
    let kind = match header.kind() {
        b'0' | 0 | b'7' if name.ends_with(b"/") => EntryKind::Folder,
        b'0' | 0 | b'7' | b'S' => EntryKind::File,
        b'5' | b'D' => EntryKind::Folder,
        b'1' | b'2' => EntryKind::Link,
        _ => EntryKind::Special,
    };
    if header.kind() == b'S' {
        map = Map::sparse(old_sparse(header, data)?, header.sparse_size()?, stored)?;
    } else if let Some(mut sparse) = pax.sparse.filter(|_| kind == EntryKind::File) {
        if sparse.is_map_in_data {
            let (regions, size) = map_in_data(data)?;
            sparse.regions = regions;
            stored = stored.checked_sub(size).ok_or_else(cut)?;
        }
        map = Map::sparse(sparse.regions, sparse.size, stored)?;
        name = sparse.path.unwrap_or(name);
    }
    Ok(Entry { name, kind, map, stored })
}

/// The regions of a sparse file of GNU's old format.
fn old_sparse(header: &Header, data: &mut impl Read) -> io::Result<Vec<(u64, u64)>> {
    let (mut regions, mut has_more) = header.sparse_regions()?;
    while has_more {
        let more;
        (more, has_more) = more_regions(data)?;
        regions.extend(more);
        if regions.len() as u64 * 24 > HEADER_BYTES {
            return Err(too_large());
        }
    }
    Ok(regions)
}

/// Reads what a header states of the next one. `left` is how much there may be of all of them.
fn extension(data: &mut impl Read, size: u64, left: &mut u64) -> io::Result<Vec<u8>> {
    let blocks = size.checked_next_multiple_of(BLOCK as u64).ok_or_else(too_large)?;
    *left = left.checked_sub(blocks).ok_or_else(too_large)?;
    let mut bytes = Vec::new();
    data.take(blocks).read_to_end(&mut bytes)?;
    if bytes.len() as u64 != blocks {
        return Err(cut());
    }
    bytes.truncate(usize::try_from(size).unwrap_or(usize::MAX));
    Ok(bytes)
}
