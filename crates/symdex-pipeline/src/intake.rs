//! The inputs of a build: files, folders, and archives, which are unpacked.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use symdex::{Cause, INDEX_MAGIC, ImageId};
use symdex_build::debug_files::{DebugFile, InputFiles};
use symdex_build::{SymbolMaps, may_be_debug_file};

use crate::archive::{Fault, Limits, Unpacker, is_archive};
use crate::failure::Failure;
use crate::pipeline::Host;
use crate::space::DiskSpace;

/// How many bytes of a file tell whether it is an archive.
const HEAD: u64 = 512;

/// An input of a build.
#[derive(Clone, Debug)]
pub enum Input {
    /// A debug file, a bundle, a folder or an archive. Messages have its path. A debug file or an archive may come from
    /// a pipe.
    Path(PathBuf),
    /// A debug file or an archive on standard input.
    StandardInput,
    /// An upload or a fetched file: a debug file, or an archive of debug files.
    Named {
        /// Where the file is.
        path: PathBuf,
        /// The name of the file, such as `MyApp` or `MyApp.app.dSYM.zip`. It is never used as a path. An image of a
        /// debug file that is in no archive has the last part of this name.
        name: String,
        /// Where the file comes from: `upload`, or a URL without secrets. Messages about a debug file begin with it.
        origin: String,
    },
}

impl Input {
    /// The input that a command line names: `-` is standard input.
    #[must_use]
    pub fn of_argument(path: &Path) -> Self {
        if path.as_os_str() == "-" { Self::StandardInput } else { Self::Path(path.to_owned()) }
    }

    /// The name for messages.
    fn name(&self) -> PathBuf {
        match self {
            Self::Path(path) => path.clone(),
            Self::StandardInput => "standard input".into(),
            Self::Named { name, .. } => name.into(),
        }
    }

    /// Whether the input is an archive or a pipe, or cannot be read.
    #[must_use]
    pub fn is_archive_or_pipe(&self) -> bool {
        self.is_pipe() || !matches!(self.open_archive(), Ok(None))
    }

    /// Whether the input is standard input or a pipe, which can be read only once.
    #[must_use]
    pub fn is_pipe(&self) -> bool {
        match self {
            Self::StandardInput => true,
            Self::Path(path) => is_pipe(path),
            Self::Named { .. } => false,
        }
    }

    /// Opens the input if it is an archive.
    fn open_archive(&self) -> io::Result<Option<File>> {
        let file = match self {
            Self::StandardInput => return Ok(None),
            // Unreadable files are reported when they are read as debug files.
            Self::Path(path) => match symdex::open_regular_file(path) {
                Ok(file) => file,
                Err(_) => return Ok(None),
            },
            Self::Named { path, .. } => File::open(path)?,
        };
        Ok(is_archive(&head_of(&file)?).then_some(file))
    }
}

/// What becomes of indexes among the inputs. Folders are not searched for them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Indexes {
    /// They are failures; in an archive with debug files, they are left out. The text says what to do with an index
    /// instead.
    Refused(&'static str),
    /// They are checked whole, and then count as built.
    Taken,
    /// The only input is the index of this image, also in an archive. Anything else is a failure.
    Only(ImageId),
}

impl Default for Indexes {
    fn default() -> Self {
        Self::Refused("put it into a store with `symdex store put`")
    }
}

/// Whether a path is that of a pipe: a FIFO, `/dev/stdin` or `<(...)` of a shell. Nothing else that is no file is
/// opened: reading a device can have effects, or no end.
#[cfg(unix)]
fn is_pipe(path: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt as _;
    std::fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_fifo())
}

#[cfg(not(unix))]
fn is_pipe(_: &Path) -> bool {
    false
}

fn head_of(file: &File) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    file.take(HEAD).read_to_end(&mut head)?;
    Ok(head)
}

/// The first bytes of the file at `path`; none if it cannot be read.
fn head_at(path: &Path) -> Vec<u8> {
    File::open(path).and_then(|file| head_of(&file)).unwrap_or_default()
}

/// Debug files that are built together, and what is wrong with the inputs that they come from.
#[derive(Debug, Default)]
pub struct Batch {
    /// The debug files.
    pub files: InputFiles,
    /// What becomes of the indexes among them.
    pub(crate) indexes: Indexes,
    /// The symbol maps and property lists of the archives.
    pub(crate) maps: Vec<DebugFile>,
    /// What is wrong with the inputs.
    pub failures: Vec<Failure>,
    /// Entries that are not read although valid archives have them.
    pub warnings: Vec<Fault>,
    /// Owns the folder of the unpacked files.
    unpacker: Option<Unpacker>,
    /// The size of the unpacked files.
    unpacked: u64,
}

/// Makes batches of inputs.
#[derive(Debug)]
pub struct Intake {
    /// The limits of each archive.
    pub limits: Limits,
    /// A batch ends when its unpacked files have this many bytes. The default is no limit.
    pub max_temporary: u64,
    /// The folder for unpacked files. The default is the system's folder for temporary files.
    pub temporary: PathBuf,
    /// The space that unpacked files may take. Without it, the default, they may fill the disk.
    pub space: Option<Arc<DiskSpace>>,
    /// What becomes of indexes among the inputs. By default, they are refused.
    pub indexes: Indexes,
    inputs: std::vec::IntoIter<Input>,
}

impl Intake {
    /// Reads `inputs` in this order.
    #[must_use]
    pub fn new(inputs: Vec<Input>) -> Self {
        let (limits, temporary) = (Limits::default(), std::env::temp_dir());
        let (space, indexes, inputs) = (None, Indexes::default(), inputs.into_iter());
        Self { limits, max_temporary: u64::MAX, temporary, space, indexes, inputs }
    }

    /// Takes inputs until their unpacked files reach [`max_temporary`](Self::max_temporary). `None` if no inputs are
    /// left. The unpacked files are deleted when the batch is dropped. `host` learns how much of the archives is read.
    ///
    /// # Errors
    ///
    /// [`Failure`] if there is no folder for temporary files.
    pub fn next_batch(&mut self, host: &impl Host) -> Result<Option<Batch>, Failure> {
        if self.inputs.len() == 0 {
            return Ok(None);
        }
        let mut batch = Batch { indexes: self.indexes.clone(), ..Batch::default() };
        while batch.unpacked < self.max_temporary
            && let Some(input) = self.inputs.next()
        {
            batch.add(&input, self, host)?;
        }
        Ok(Some(batch))
    }
}

impl Batch {
    fn add(&mut self, input: &Input, intake: &Intake, host: &impl Host) -> Result<(), Failure> {
        if input.is_pipe() {
            return self.add_pipe(input, intake, host);
        }
        match input.open_archive() {
            Ok(Some(file)) => self.add_archive(file, input, intake, host)?,
            Ok(None) => match input {
                Input::Named { path, name, origin } => self.add_named(path, name, origin),
                Input::Path(path) => self.files.add(path),
                Input::StandardInput => {}
            },
            Err(error) => self.failures.push(Failure::unreadable(&input.name(), &error)),
        }
        Ok(())
    }

    /// Copies a pipe to a temporary file, and adds that.
    fn add_pipe(&mut self, input: &Input, intake: &Intake, host: &impl Host) -> Result<(), Failure> {
        let name = input.name();
        let unpacker = self.unpacker(intake)?;
        let copied = match input {
            Input::Path(path) => File::open(path).and_then(|pipe| unpacker.copy(pipe)),
            _ => unpacker.copy(io::stdin().lock()),
        };
        let opened = copied.and_then(|path| {
            let file = File::open(&path)?;
            Ok((path, head_of(&file)?, file))
        });
        match opened {
            Ok((path, head, file)) if is_archive(&head) => {
                self.add_archive(file, input, intake, host)?;
                // If it cannot be deleted now, it is deleted with the folder.
                let _ = std::fs::remove_file(path);
            }
            Ok((path, _, file)) => {
                self.unpacked += file.metadata().map_or(0, |file| file.len());
                self.files.add_file(DebugFile::of_pipe(path, &name.to_string_lossy()));
            }
            Err(error) => self.failures.push(Failure::unreadable(&name, &error)),
        }
        Ok(())
    }

    fn add_named(&mut self, path: &Path, name: &str, origin: &str) {
        let head = head_at(path);
        if !self.add_file(DebugFile::of_archive(path, origin, name), &head) {
            self.failures.push(Failure::of_file(name.as_ref(), Cause::Unsupported, &not_a_debug_file(&head)));
        }
    }

    /// Adds a file that begins with `head` if it may be a debug file or is an index. Returns whether it was added.
    fn add_file(&mut self, file: DebugFile, head: &[u8]) -> bool {
        if !head.starts_with(&INDEX_MAGIC) {
            return self.files.add_unpacked(file);
        }
        self.files.add_file(file);
        true
    }

    /// What unpacks archives to the temporary folder of this batch.
    fn unpacker(&mut self, intake: &Intake) -> Result<&mut Unpacker, Failure> {
        Ok(match &mut self.unpacker {
            Some(unpacker) => unpacker,
            none => {
                let unpacker = Unpacker::new_in(&intake.temporary, intake.limits)
                    .map_err(|error| Failure::no_temporary_folder(&error))?;
                none.insert(match &intake.space {
                    Some(space) => unpacker.space(space),
                    None => unpacker,
                })
            }
        })
    }

    fn add_archive(
        &mut self,
        archive: File,
        input: &Input,
        intake: &Intake,
        host: &impl Host,
    ) -> Result<(), Failure> {
        let unpacker = self.unpacker(intake)?;
        let size = archive.metadata().map_or(0, |file| file.len());
        host.planned(size);
        let refused = match intake.indexes {
            Indexes::Refused(advice) => Some(advice),
            Indexes::Taken | Indexes::Only(_) => None,
        };
        let has_refused = std::cell::Cell::new(false);
        let is_wanted = |name: &str, head: &[u8]| {
            let is_index = head.starts_with(&INDEX_MAGIC);
            has_refused.set(has_refused.get() || is_index && refused.is_some());
            is_index && refused.is_none()
                || may_be_debug_file(Path::new(name), head)
                || SymbolMaps::may_be_one(Path::new(name))
        };
        let (name, read) = (input.name(), std::cell::Cell::new(0));
        let on_read = |bytes| {
            read.set(read.get() + bytes);
            host.read(bytes);
            if host.is_stopped() { Err(io::Error::other("the program is stopping")) } else { Ok(()) }
        };
        let unpacked = unpacker.unpack(archive, &name.to_string_lossy(), &is_wanted, &on_read);
        host.read(size.saturating_sub(read.get()));
        let (mut is_empty, mut maps) = (true, SymbolMaps::default());
        for file in unpacked.files {
            self.unpacked += file.size;
            let entry = Path::new(&file.entry);
            let (may_be_map, is_map) = (SymbolMaps::may_be_one(entry), maps.add(entry, &file.path));
            let head = head_at(&file.path);
            let file = DebugFile::of_archive(file.path, &file.archive, &file.entry);
            if may_be_map {
                self.maps.push(file.clone());
            }
            is_empty &= !is_map && !self.add_file(file, &head);
        }
        let (warnings, faults): (Vec<_>, Vec<_>) =
            unpacked.faults.into_iter().partition(|fault| fault.kind.is_harmless());
        if is_empty && faults.is_empty() {
            self.failures.push(match refused.filter(|_| has_refused.get()) {
                Some(advice) => Failure::refused_index(&name, advice),
                None => Failure::archive_without_debug_files(&name),
            });
        }
        self.failures.extend(faults.iter().map(Failure::from));
        self.warnings.extend(warnings);
        Ok(())
    }
}

/// Adds the files among `maps` that were taken out of archives, by the names that they have there.
pub(crate) fn add_unpacked_maps(found: &mut SymbolMaps, maps: &[DebugFile]) {
    for map in maps {
        if let Some((_, entry)) = map.archive_entry() {
            found.add(Path::new(entry), map.path());
        }
    }
}

fn not_a_debug_file(head: &[u8]) -> String {
    let expected = "expected a linked Mach-O or ELF file, or an archive of such files (zip, tar, gzip, zstd)";
    match head {
        [] => format!("not a debug file: it is empty; {expected}"),
        _ => {
            let begin: String = head.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
            format!("not a debug file: it begins with the bytes {begin}; {expected}")
        }
    }
}
