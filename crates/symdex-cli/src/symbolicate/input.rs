//! The reports to read: files, folders, archives, and standard input.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufReader, Read as _};
use std::path::{Path, PathBuf};

use symdex::INDEX_MAGIC;
use symdex_build::debug_files::DebugFile;
use symdex_build::may_be_debug_file;
use symdex_pipeline::archive::Unpacker;

use super::compressed;
use crate::archive;
use crate::failure::{Cause, Failure, complain};
use crate::lookup::stdin_failed;
use crate::text;

/// A report to read.
pub(super) struct Input {
    /// The path in messages and JSON. A file in an archive has the path of the archive before its own. `-` stands for
    /// standard input.
    path: PathBuf,
    /// Whether the user has named the file, which may then be a pipe or a device: nobody may ever write to a pipe that
    /// is found in a folder.
    is_named: bool,
    /// If the report is in an archive: the archive, and the unpacked file.
    unpacked: Option<(PathBuf, PathBuf)>,
    /// The number of bytes to read, for progress; 0 if it is unknown.
    size: u64,
    /// The first bytes of the file, at most [`START`]. Empty unless it is a regular file, because a pipe can be read
    /// only once.
    start: Vec<u8>,
}

/// How many bytes at the start of a report tell what kind of file it is.
const START: usize = 256;

/// All reports to read, and what answers them among the inputs.
#[derive(Default)]
pub(super) struct Inputs {
    pub(super) reports: Vec<Input>,
    /// Whether a folder or an archive was given, so that there may be several reports.
    pub(super) has_folder: bool,
    /// The folders, archives and entries of archives that cannot be read.
    pub(super) failures: Vec<Failure>,
    /// Owns the folder of the unpacked reports.
    pub(super) unpacker: Option<Unpacker>,
    /// Debug files, which answer as those of `--dsym` do.
    pub(super) debug_files: Vec<DebugFile>,
    /// Indexes, which answer as those of `--index` do.
    pub(super) indexes: Vec<PathBuf>,
}

/// The message for a debug file that was given as a report.
pub(super) const DEBUG_FILE: &str = "a debug file, not a report; pass it with --dsym";
/// The deepest folder that is searched for reports.
const MAX_DEPTH: usize = 64;
/// The extension of the folders in which Xcode keeps reports.
const CRASH_POINT: &str = "xccrashpoint";

impl Inputs {
    /// Finds the reports at `paths`: files, folders with files, archives. No path stands for standard input.
    pub(super) fn find(paths: &[PathBuf]) -> Self {
        let mut inputs = Self::default();
        if paths.is_empty() {
            inputs.reports.push(Input::new("-", true, None));
        }
        for path in paths {
            if path.is_dir() && is_bundle(path) {
                inputs.debug_files.push(DebugFile::on_disk(path));
            } else if path.is_dir() {
                inputs.has_folder = true;
                let before = inputs.len();
                inputs.folder(path, is_crash_point(path), 0);
                if inputs.len() == before {
                    let message = format!("{}: there is no report in this folder", path.display());
                    inputs.failures.push(Failure::new(Cause::Missing, message));
                }
            } else {
                inputs.file(path, true);
            }
        }
        if inputs.reports.is_empty() && inputs.failures.is_empty() {
            let named = text::list(paths.iter().map(|path| path.display()));
            let message = format!("{named}: no report, only debug files and indexes; name a report, too");
            inputs.failures.push(Failure::new(Cause::Unsupported, message));
        }
        inputs
    }

    /// How many reports, debug files and indexes there are.
    fn len(&self) -> usize {
        self.reports.len() + self.debug_files.len() + self.indexes.len()
    }

    /// Adds the files in a folder, sorted by name. Hidden files and what macOS adds to archives are skipped. In a
    /// crash point of Xcode, reports are in folders named `Logs`.
    fn folder(&mut self, folder: &Path, is_crash_point: bool, depth: usize) {
        let entries = std::fs::read_dir(folder)
            .and_then(|entries| entries.map(|entry| entry.map(|entry| entry.path())).collect());
        let mut paths: Vec<PathBuf> = match entries {
            Ok(paths) => paths,
            Err(error) => return self.failures.push(Failure::unreadable(folder, &error)),
        };
        paths.sort();
        for path in paths {
            if is_junk(&path) {
                continue;
            }
            if path.is_dir() && is_bundle(&path) {
                self.debug_files.push(DebugFile::on_disk(path));
            } else if path.is_dir() {
                if depth < MAX_DEPTH && !path.is_symlink() {
                    self.folder(&path, is_crash_point || self::is_crash_point(&path), depth + 1);
                }
            } else if !is_crash_point || folder.file_name().is_some_and(|name| name == "Logs") {
                self.file(&path, false);
            }
        }
    }

    /// Adds a report, a debug file or an index.
    fn add(&mut self, input: Input) {
        if is_index(&input.start) {
            self.indexes.push(input.file_path().to_owned());
        } else if may_be_debug_file(&input.path, &input.start) {
            self.debug_files.push(match &input.unpacked {
                None => DebugFile::on_disk(input.path),
                Some((archive, file)) => {
                    let entry = input.path.strip_prefix(archive).unwrap_or(&input.path);
                    DebugFile::of_archive(file, &archive.to_string_lossy(), &entry.to_string_lossy())
                }
            });
        } else {
            self.reports.push(input);
        }
    }

    /// Adds a file, or the files of an archive.
    fn file(&mut self, path: &Path, is_named: bool) {
        let input = Input::new(path, is_named, None);
        if !compressed::is_zip(&input.start) {
            return self.add(input);
        }
        self.has_folder = true;
        if let Err(failure) = self.archive(path) {
            self.failures.push(failure);
        }
    }

    /// Unpacks the zip archive at `path` and adds its files, in the order of its directory.
    fn archive(&mut self, path: &Path) -> Result<(), Failure> {
        let file = File::open(path).map_err(|error| Failure::unreadable(path, &error))?;
        let unpacker = match &mut self.unpacker {
            Some(unpacker) => unpacker,
            none => none.insert(archive::unpacker(compressed::archive_limits())?),
        };
        let unpacked = unpacker.unpack(file, &path.to_string_lossy(), &|_, _| true, &|_| Ok(()));
        for fault in &unpacked.faults {
            if fault.kind.is_harmless() {
                complain(&format!("warning: {fault}"));
            } else {
                self.failures.push(fault.into());
            }
        }
        let files = unpacked.files.into_iter();
        let files = files.filter(|file| !Path::new(&file.entry).iter().any(|part| is_junk(Path::new(part))));
        for file in files {
            self.add(Input::new(path.join(file.entry), false, Some((path.to_owned(), file.path))));
        }
        Ok(())
    }
}

/// Whether a file that begins with `start` is an index, of any version.
pub(super) fn is_index(start: &[u8]) -> bool {
    start.starts_with(&INDEX_MAGIC)
}

/// Whether `folder` is a bundle of debug files.
fn is_bundle(folder: &Path) -> bool {
    folder.extension().is_some_and(|extension| extension == "dSYM" || extension == "xcarchive")
}

fn is_crash_point(folder: &Path) -> bool {
    folder.extension().is_some_and(|extension| extension == CRASH_POINT)
}

/// Whether a file or folder is hidden, or one of those that macOS adds to archives.
fn is_junk(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b".") || name == "__MACOSX")
}

impl Input {
    /// Reads the first bytes of the report. A file that cannot be read is reported by [`read`](Self::read).
    fn new(path: impl Into<PathBuf>, is_named: bool, unpacked: Option<(PathBuf, PathBuf)>) -> Self {
        let mut input = Self { path: path.into(), is_named, unpacked, size: 0, start: Vec::new() };
        if input.path.as_os_str() != "-"
            && let Ok(file) = symdex::open_regular_file(input.file_path())
        {
            input.size = file.metadata().map_or(0, |file| file.len());
            // The bytes before an error suffice.
            let _ = file.take(START as u64).read_to_end(&mut input.start);
        }
        input
    }

    /// The path in messages and JSON.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the user has named the file.
    pub(super) fn is_named(&self) -> bool {
        self.is_named
    }

    /// The path that names the output: without the extension of a compressed file.
    pub(super) fn unpacked_path(&self) -> PathBuf {
        if self.has_packed_extension() { self.path.with_extension("") } else { self.path.clone() }
    }

    /// Whether it has the extension of a compressed file.
    fn has_packed_extension(&self) -> bool {
        self.path.extension().is_some_and(|extension| extension == "gz" || extension == "zst")
    }

    /// The file that is read: the report or the archive that has it. `None` for standard input.
    pub(super) fn source(&self) -> Option<&Path> {
        match &self.unpacked {
            Some((archive, _)) => Some(archive),
            None => Some(self.path.as_path()).filter(|path| path.as_os_str() != "-"),
        }
    }

    /// The report on disk.
    fn file_path(&self) -> &Path {
        self.unpacked.as_ref().map_or(&self.path, |(_, file)| file)
    }

    /// The number of bytes to read, for progress.
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    fn open(&self) -> io::Result<File> {
        let path = self.file_path();
        if self.is_named { File::open(path) } else { symdex::open_regular_file(path) }
    }

    /// The first bytes of the report, unpacked, at most [`START`]. Empty unless it is a regular file that can be read.
    pub(super) fn start(&self) -> Cow<'_, [u8]> {
        if self.start.is_empty() || !self.has_packed_extension() {
            return Cow::Borrowed(&self.start);
        }
        let mut start = self.read().unwrap_or_default();
        start.truncate(START);
        Cow::Owned(start)
    }

    /// The text of the report.
    ///
    /// # Errors
    ///
    /// [`Failure`] if it cannot be read or unpacked.
    pub(super) fn read(&self) -> Result<Vec<u8>, Failure> {
        if self.path.as_os_str() == "-" {
            let mut text = Vec::new();
            io::stdin().lock().read_to_end(&mut text).map_err(|error| stdin_failed(&error))?;
            let size = text.len() as u64;
            // Most reports are not compressed. They need no copy.
            return if compressed::is_packed(&text) {
                compressed::read(&text[..], size, &self.path)
            } else {
                Ok(text)
            };
        }
        let file = self.open().map_err(|error| match error.kind() {
            // As for any other entry of a folder that is not a report.
            io::ErrorKind::Unsupported => {
                Failure::new(Cause::Unsupported, format!("{}: {error}", self.path.display()))
            }
            _ => Failure::unreadable(&self.path, &error),
        })?;
        compressed::read(BufReader::new(file), self.size(), &self.path)
    }
}
