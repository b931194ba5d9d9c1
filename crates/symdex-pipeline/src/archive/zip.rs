//! Zip archives.

use std::cell::Cell;
use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, BufReader, Read};
use std::rc::Rc;

use deflate64::Deflate64Decoder;
use flate2::bufread::DeflateDecoder;
use rawzip::{
    CompressionMethod, Error, ErrorKind, FileReader, RECOMMENDED_BUFFER_SIZE, ZipArchive,
    ZipArchiveEntryWayfinder,
};

use crate::archive::fault::FaultKind;
use crate::archive::meter::{Compressed, Metered};
use crate::archive::name;
use crate::archive::unpacker::Reading;

/// Reads the entries that the directory of the archive lists.
///
/// # Errors
///
/// Why the archive is not read to its end.
pub(crate) fn read(
    reading: &mut Reading<'_>,
    file: File,
    archive: &str,
    depth: u32,
) -> Result<(), FaultKind> {
    let mut buffer = vec![0; RECOMMENDED_BUFFER_SIZE];
    let zip = ZipArchive::from_file(file, &mut buffer).map_err(damaged)?;
    let stated = zip.entries_hint();
    let mut zip = Zip { zip: &zip, hasher: RandomState::new(), names: HashSet::new(), data: BTreeMap::new() };
    let mut entries = zip.zip.entries(&mut buffer);
    let mut count = 0;
    while let Some(header) = entries.next_entry().map_err(damaged)? {
        count += 1;
        reading.meter.entry()?;
        if header.is_dir() {
            continue;
        }
        let file = header.mode().value() & 0o170_000;
        let (name, fault) = match name::checked(header.file_path().as_bytes()) {
            Err((name, fault)) => (name, Err(fault)),
            Ok(name) if header.mode().is_symlink() => (name, Err(FaultKind::Link)),
            // 0 is an archive of a system without kinds of files.
            Ok(name) if file != 0o100_000 && file != 0 => (name, Err(FaultKind::Special)),
            Ok(name) if name::is_junk(&name) => continue,
            Ok(name) if !zip.names.insert(zip.hasher.hash_one(&name)) => (name, Err(FaultKind::Duplicate)),
            Ok(name) if header.flags().is_encrypted() => (name, Err(FaultKind::Encrypted)),
            Ok(name) => {
                let read = zip.entry(
                    reading,
                    header.wayfinder(),
                    header.compression_method(),
                    archive,
                    &name,
                    depth,
                );
                (name, read)
            }
        };
        match fault {
            Err(fault @ (FaultKind::Unpacked { .. } | FaultKind::Entries { .. } | FaultKind::Io(_))) => {
                return Err(fault);
            }
            Err(fault) => reading.faults.entry(archive, name, fault),
            Ok(()) => {}
        }
    }
    if count == stated {
        return Ok(());
    }
    Err(FaultKind::Damaged(format!("its directory has {count} entries and states {stated}")))
}

struct Zip<'z> {
    zip: &'z ZipArchive<FileReader>,
    hasher: RandomState,
    /// The hashes of the names so far.
    names: HashSet<u64>,
    /// The start and the end of the data of each entry so far.
    data: BTreeMap<u64, u64>,
}

impl Zip<'_> {
    /// Reads an entry.
    fn entry(
        &mut self,
        reading: &mut Reading<'_>,
        place: ZipArchiveEntryWayfinder,
        method: CompressionMethod,
        archive: &str,
        name: &str,
        depth: u32,
    ) -> Result<(), FaultKind> {
        let (stated, limit) = (place.uncompressed_size_hint(), reading.meter.limits.entry_size);
        if stated > limit {
            return Err(FaultKind::EntrySize { limit });
        }
        let entry = self.zip.get_entry(place).map_err(damaged)?;
        let (start, end) = entry.compressed_data_range();
        if self.overlaps(start, end) {
            return Err(FaultKind::Overlap);
        }
        let (compressed, _) = Compressed::new(entry.reader(), reading.on_read(depth));
        let compressed = BufReader::new(compressed);
        let decoder: Box<dyn Read> = match method {
            CompressionMethod::STORE => Box::new(compressed),
            CompressionMethod::DEFLATE => Box::new(DeflateDecoder::new(compressed)),
            CompressionMethod::DEFLATE64 => Box::new(Deflate64Decoder::with_buffer(compressed)),
            CompressionMethod::ZSTD => {
                Box::new(zstd::Decoder::with_buffer(compressed).map_err(|error| reading.meter.fault(&error))?)
            }
            other => return Err(FaultKind::Method(other.as_u16())),
        };
        let size = Rc::new(Cell::new(end - start));
        let metered = Metered::new(decoder, &reading.meter, size).stated(stated);
        let mut verified = entry.verifying_reader(metered);
        reading.entry(&mut verified, archive, name, depth)
    }

    /// Whether data from `start` to `end` is that of an earlier entry, too. Archives that unpack to far more bytes than
    /// they have list the same data many times.
    fn overlaps(&mut self, start: u64, end: u64) -> bool {
        if start == end {
            return false;
        }
        // The ranges so far do not overlap, so that the last one before `end` reaches farthest.
        let overlaps = self.data.range(..end).next_back().is_some_and(|(_, other)| *other > start);
        if !overlaps {
            self.data.insert(start, end);
        }
        overlaps
    }
}

fn damaged(error: Error) -> FaultKind {
    let what = match error.kind() {
        ErrorKind::MissingEndOfCentralDirectory => {
            "it is cut short: it has no directory at its end".to_owned()
        }
        ErrorKind::Eof => "it is cut short".to_owned(),
        ErrorKind::IO(error) if error.kind() == io::ErrorKind::UnexpectedEof => "it is cut short".to_owned(),
        ErrorKind::IO(error) => return FaultKind::Io(format!("cannot read: {error}")),
        _ => error.to_string(),
    };
    FaultKind::Damaged(what)
}
