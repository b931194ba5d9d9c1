//! Archives and their entries, whatever the kind of the archive.

use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, Read, Seek as _, Write};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use crate::archive::fault::{Fault, FaultKind, Faults};
use crate::archive::kind::{HEAD, Kind};
use crate::archive::limits::Limits;
use crate::archive::meter::{Meter, OnRead};
use crate::archive::temporary::TemporaryFolder;
use crate::archive::{name, tar, zip};
use crate::space::{DiskSpace, Reservation};

/// Unpacks archives to a [`TemporaryFolder`]. Dropping it deletes the folder.
#[derive(Debug)]
pub struct Unpacker {
    limits: Limits,
    folder: TemporaryFolder,
    /// How many files are in the folder.
    files: u64,
    space: Option<Reservation>,
}

/// A file of an archive, in the temporary folder.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnpackedFile {
    /// Where it is. Its file name is a number.
    pub path: PathBuf,
    /// The archive: `app.zip`, or `all.zip: app.ipa` for an archive in another one.
    pub archive: String,
    /// Its name in the archive: `MyApp.app.dSYM/Contents/Resources/DWARF/MyApp`. It has no `..` and no control
    /// characters, but is not a path on disk.
    pub entry: String,
    /// Its size in bytes.
    pub size: u64,
}

/// The wanted files of an archive, and what was wrong with it.
#[non_exhaustive]
#[derive(Debug, Default)]
pub struct Unpacked {
    /// The files, in the order of the archive.
    pub files: Vec<UnpackedFile>,
    /// What is wrong with the archive, and the entries that are not read.
    pub faults: Vec<Fault>,
    /// How many regular entries were looked at, those of archives in the archive included.
    pub entries: u64,
}

/// Whether an entry is wanted, by its name and its first bytes: 512, or all of a shorter entry.
pub(crate) type IsWanted<'w> = &'w dyn Fn(&str, &[u8]) -> bool;

impl Unpacker {
    /// Makes a private temporary folder.
    ///
    /// # Errors
    ///
    /// [`io::Error`] if it cannot be made.
    pub fn new(limits: Limits) -> io::Result<Self> {
        Self::new_in(&std::env::temp_dir(), limits)
    }

    /// Makes a private temporary folder in the folder `parent`, which has the space that unpacked files need.
    pub(crate) fn new_in(parent: &Path, limits: Limits) -> io::Result<Self> {
        Ok(Self { limits, folder: TemporaryFolder::new_in(parent)?, files: 0, space: None })
    }

    /// Sets the space that unpacked files may take. An entry that does not fit is not unpacked.
    #[must_use]
    pub fn space(self, space: &Arc<DiskSpace>) -> Self {
        Self { space: Some(space.reserve()), ..self }
    }

    /// Copies `stream`, such as standard input, to a file in the folder. Debug files and zip archives are not read from
    /// their beginning to their end.
    ///
    /// # Errors
    ///
    /// [`io::Error`] if the stream cannot be read or the file cannot be written, and if the stream has more bytes than
    /// an archive may have unpacked.
    pub fn copy(&mut self, mut stream: impl Read) -> io::Result<PathBuf> {
        let (path, mut file) = self.new_file()?;
        let (limit, mut size) = (self.limits.unpacked, 0);
        let mut buffer = vec![0; 1 << 16];
        loop {
            let read = match stream.read(&mut buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                read => read?,
            };
            size += read as u64;
            if size > limit {
                // If it cannot be deleted now, it is deleted with the folder.
                let _ = std::fs::remove_file(&path);
                let message = format!("it has more than {limit} bytes, the limit of `unpacked`");
                return Err(io::Error::other(message));
            }
            if read == 0 {
                return Ok(path);
            }
            self.write(&buffer[..read], &mut file)?;
        }
    }

    /// A new file in the folder. Its name is a number.
    fn new_file(&mut self) -> io::Result<(PathBuf, File)> {
        let path = self.folder.path().join(self.files.to_string());
        self.files += 1;
        let file = OpenOptions::new().write(true).create_new(true).open(&path).map_err(unwritable)?;
        Ok((path, file))
    }

    fn write(&mut self, part: &[u8], file: &mut File) -> io::Result<()> {
        if let Some(space) = &mut self.space {
            space.take(part.len() as u64)?;
        }
        file.write_all(part).map_err(unwritable)
    }

    /// Unpacks the entries of `archive` that `is_wanted` accepts, and those of archives in it. `name` stands for the
    /// archive in messages.
    ///
    /// A file that is compressed and no tar archive counts as the only entry of an archive. Its name is that of the
    /// archive without its last extension.
    ///
    /// An entry that is damaged or exceeds a limit is not unpacked. The other entries of a zip archive are, and those
    /// before the damaged part of a tar archive that is not compressed. Of a compressed tar archive, all entries are
    /// unpacked or none: none if the stream is damaged anywhere, also past the end of the archive, or exceeds a limit.
    ///
    /// `on_read` is called with numbers of bytes of the archive that were read. They add up to its size or less.
    pub fn unpack(
        &mut self,
        archive: File,
        name: &str,
        is_wanted: IsWanted<'_>,
        on_read: OnRead<'_>,
    ) -> Unpacked {
        let mut reading = Reading {
            meter: Meter::new(self.limits),
            unpacker: self,
            is_wanted,
            on_read,
            faults: Faults::default(),
            files: Vec::new(),
            entries: 0,
        };
        reading.archive(archive, name, 0);
        let Reading { files, faults, entries, .. } = reading;
        Unpacked { files, faults: faults.into_vec(), entries }
    }
}

/// The reading of one archive and of the archives in it.
pub(crate) struct Reading<'u> {
    pub(crate) meter: Rc<Meter>,
    unpacker: &'u mut Unpacker,
    is_wanted: IsWanted<'u>,
    on_read: OnRead<'u>,
    pub(crate) faults: Faults,
    files: Vec<UnpackedFile>,
    entries: u64,
}

impl<'u> Reading<'u> {
    /// The callback for the bytes read from an archive inside of `depth` others. Only those of the outermost one are
    /// reported.
    pub(crate) fn on_read(&self, depth: u32) -> OnRead<'u> {
        if depth == 0 { self.on_read } else { &|_| Ok(()) }
    }

    pub(crate) fn is_wanted(&self, name: &str, head: &[u8]) -> bool {
        (self.is_wanted)(name, head)
    }

    /// How many files are kept so far.
    pub(crate) fn kept(&self) -> usize {
        self.files.len()
    }

    /// Discards all files but the first `kept`. Returns whether there were any.
    pub(crate) fn discard_after(&mut self, kept: usize) -> bool {
        let discarded = self.files.split_off(kept);
        for file in &discarded {
            // If it cannot be deleted now, it is deleted with the folder.
            let _ = std::fs::remove_file(&file.path);
        }
        !discarded.is_empty()
    }

    /// Reads an archive that is inside of `depth` others. The recursion ends at the limit of the nesting.
    fn archive(&mut self, mut file: File, archive: &str, depth: u32) {
        let kind = head_of(&mut file).map(|head| Kind::of(&head));
        let read = match kind {
            Err(error) => Err(FaultKind::Io(format!("cannot read: {error}"))),
            Ok(None) => Err(FaultKind::NotAnArchive),
            Ok(Some(Kind::Zip)) => zip::read(self, file, archive, depth),
            Ok(Some(Kind::Tar)) => tar::read(self, BufReader::new(file), archive, depth),
            Ok(Some(Kind::Compressed(compression))) => {
                tar::read_compressed(self, compression, BufReader::new(file), archive, depth)
            }
        };
        if let Err(kind) = read {
            self.faults.archive(archive, kind);
        }
    }

    /// Reads the data of an entry: writes a wanted file to the temporary folder, and reads an archive.
    ///
    /// # Errors
    ///
    /// The fault of the entry. Nothing of it is kept then.
    pub(crate) fn entry(
        &mut self,
        data: &mut dyn Read,
        archive: &str,
        name: &str,
        depth: u32,
    ) -> Result<(), FaultKind> {
        self.entries += 1;
        if name::is_junk(name) {
            return Ok(());
        }
        let mut head = Vec::with_capacity(HEAD);
        data.take(HEAD as u64).read_to_end(&mut head).map_err(|error| self.meter.fault(&error))?;
        if self.is_wanted(name, &head) {
            return self.keep(&head, data, archive, name);
        }
        if Kind::of(&head).is_none() {
            return Ok(());
        }
        let nesting = self.meter.limits.nesting;
        if depth >= nesting {
            return Err(FaultKind::TooDeep { nesting });
        }
        let file = tempfile::tempfile_in(self.unpacker.folder.path());
        let mut file = file.map_err(unwritable).map_err(failed)?;
        self.copy(&head, data, &mut file)?;
        self.archive(file, &format!("{archive}: {name}"), depth + 1);
        Ok(())
    }

    /// Writes a file to the temporary folder.
    fn keep(
        &mut self,
        head: &[u8],
        data: &mut dyn Read,
        archive: &str,
        entry: &str,
    ) -> Result<(), FaultKind> {
        let (archive, entry) = (archive.to_owned(), entry.to_owned());
        let (path, mut file) = self.unpacker.new_file().map_err(failed)?;
        match self.copy(head, data, &mut file) {
            Ok(size) => self.files.push(UnpackedFile { path, archive, entry, size }),
            Err(fault) => {
                // If it cannot be deleted now, it is deleted with the folder.
                let _ = std::fs::remove_file(&path);
                return Err(fault);
            }
        }
        Ok(())
    }

    /// Copies `head` and the rest of `data` to `file`. Returns the number of bytes.
    fn copy(&mut self, head: &[u8], data: &mut dyn Read, file: &mut File) -> Result<u64, FaultKind> {
        self.write(head, file)?;
        let limit = self.meter.limits.entry_size;
        let mut size = head.len() as u64;
        let mut buffer = vec![0; 1 << 16];
        while size <= limit {
            let read = data.read(&mut buffer).map_err(|error| self.meter.fault(&error))?;
            if read == 0 {
                return Ok(size);
            }
            self.write(&buffer[..read], file)?;
            size += read as u64;
        }
        Err(FaultKind::EntrySize { limit })
    }

    fn write(&mut self, part: &[u8], file: &mut File) -> Result<(), FaultKind> {
        self.unpacker.write(part, file).map_err(failed)
    }
}

fn failed(error: io::Error) -> FaultKind {
    FaultKind::Io(error.to_string())
}

fn unwritable(error: io::Error) -> io::Error {
    io::Error::other(format!(
        "cannot write a temporary file: {error}; set TMPDIR to a folder with more space"
    ))
}

/// The first bytes of `file`, which is read from its beginning afterwards.
fn head_of(file: &mut File) -> io::Result<Vec<u8>> {
    let mut head = Vec::with_capacity(HEAD);
    file.rewind()?;
    file.take(HEAD as u64).read_to_end(&mut head)?;
    file.rewind()?;
    Ok(head)
}
