//! Tar archives, compressed or not, and compressed files that are no tar archive.

use std::cell::Cell;
use std::collections::HashSet;
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, BufRead, BufReader, Read};
use std::rc::Rc;

use ::tar::{Archive, Entry, EntryType};
use flate2::bufread::MultiGzDecoder;

use crate::fault::FaultKind;
use crate::kind::{HEAD, Kind};
use crate::limits::HEADER_BYTES;
use crate::meter::{Compressed, Metered};
use crate::name;
use crate::unpacker::Reading;

/// Reads `file`, which is compressed as `kind` says.
///
/// # Errors
///
/// Why the archive is not read to its end.
pub(crate) fn read(
    reading: &mut Reading<'_>,
    kind: Kind,
    file: impl BufRead,
    archive: &str,
    depth: u32,
) -> Result<(), FaultKind> {
    if kind == Kind::Tar {
        let data = Metered::new(file, &reading.meter, None);
        return entries(reading, data, archive, depth);
    }
    let taken = Rc::new(Cell::new(0));
    let compressed = BufReader::new(Compressed { reader: file, taken: Rc::clone(&taken) });
    let decoder: Box<dyn Read> = match kind {
        Kind::Gzip => Box::new(MultiGzDecoder::new(compressed)),
        _ => Box::new(zstd::Decoder::with_buffer(compressed).map_err(|error| reading.meter.fault(&error))?),
    };
    let mut data = Metered::new(decoder, &reading.meter, Some(taken));
    let allowance = data.allowance();
    let mut head = Vec::with_capacity(HEAD);
    let read =
        (&mut data).take(HEAD as u64).read_to_end(&mut head).map_err(|error| reading.meter.fault(&error));
    match read {
        // An app may have files that only begin like compressed ones.
        Err(FaultKind::Damaged(_)) if depth > 0 => return Ok(()),
        read => read?,
    };
    if Kind::of(&head) == Some(Kind::Tar) {
        return entries_of(reading, io::Cursor::new(head).chain(data), &allowance, archive, depth);
    }
    reading.meter.entry()?;
    let name = archive.rsplit(['/', ' ']).next().unwrap_or(archive);
    let name = name.rsplit_once('.').map_or(name, |(stem, _)| stem).to_owned();
    reading.entry(&mut io::Cursor::new(head).chain(data), archive, &name, depth)
}

fn entries(
    reading: &mut Reading<'_>,
    data: Metered<impl Read>,
    archive: &str,
    depth: u32,
) -> Result<(), FaultKind> {
    let allowance = data.allowance();
    entries_of(reading, data, &allowance, archive, depth)
}

/// Reads the entries of the tar archive `data`. `allowance` bounds what is read between two entries: the crate tar reads
/// the headers of long names into memory, whatever their stated size.
fn entries_of(
    reading: &mut Reading<'_>,
    data: impl Read,
    allowance: &Cell<u64>,
    archive: &str,
    depth: u32,
) -> Result<(), FaultKind> {
    let meter = Rc::clone(&reading.meter);
    let failed = |error: io::Error| meter.fault(&error);
    let mut tar = Archive::new(data);
    let mut all = tar.entries().map_err(failed)?;
    let (hasher, mut names) = (RandomState::new(), HashSet::new());
    loop {
        allowance.set(HEADER_BYTES);
        let Some(entry) = all.next() else { return Ok(()) };
        let mut entry = entry.map_err(failed)?;
        allowance.set(u64::MAX);
        meter.entry()?;
        if let Some((name, read)) =
            one(reading, &mut entry, &mut |name| names.insert(hasher.hash_one(name)), archive, depth)
            && let Err(fault) = read
        {
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
        // What is left is read here and not between the entries.
        io::copy(&mut entry, &mut io::sink()).map_err(failed)?;
    }
}

/// Reads an entry. Returns its name and its fault, if it has one; `None` for folders.
fn one(
    reading: &mut Reading<'_>,
    entry: &mut Entry<'_, impl Read>,
    is_new: &mut dyn FnMut(&str) -> bool,
    archive: &str,
    depth: u32,
) -> Option<(String, Result<(), FaultKind>)> {
    let kind = entry.header().entry_type();
    if matches!(kind, EntryType::Directory | EntryType::XGlobalHeader) {
        return None;
    }
    let name = match name::checked(&entry.path_bytes()) {
        Ok(name) => name,
        Err((name, fault)) => return Some((name, Err(fault))),
    };
    let read = match kind {
        EntryType::Regular | EntryType::Continuous if !is_new(&name) => Err(FaultKind::Duplicate),
        EntryType::Regular | EntryType::Continuous => {
            let left = entry.size();
            reading.entry(&mut Whole { reader: entry, left }, archive, &name, depth)
        }
        EntryType::Symlink | EntryType::Link => Err(FaultKind::Link),
        _ => Err(FaultKind::Special),
    };
    Some((name, read))
}

/// The data of an entry, which ends with an error if it is cut short.
struct Whole<R> {
    reader: R,
    left: u64,
}

impl<R: Read> Read for Whole<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(buffer)?;
        self.left = self.left.saturating_sub(read as u64);
        if read == 0 && self.left != 0 && !buffer.is_empty() {
            return Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                format!("{} bytes are missing", self.left),
            ));
        }
        Ok(read)
    }
}
