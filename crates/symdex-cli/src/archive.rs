//! Archives among the files that a command line names.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use symdex_build::debug_files::{DebugFile, InputFiles};
use symdex_build::{SymbolMaps, may_be_debug_file};
use symdex_pipeline::archive::{Fault, FaultKind, Limits, Unpacked, Unpacker, is_archive, spool};

use crate::failure::{Failure, FailureKind, complain};
use crate::interrupt;
use crate::progress::Progress;

/// Whether the path stands for standard input.
pub(crate) fn is_standard_input(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// The name of an archive for messages.
fn shown(path: &Path) -> String {
    if is_standard_input(path) { "standard input".to_owned() } else { path.to_string_lossy().into_owned() }
}

/// Opens the file at `path` if it is an archive. Standard input is always one. It is copied to a temporary file, of at
/// most `limit` bytes.
pub(crate) fn open(path: &Path, limit: u64) -> io::Result<Option<File>> {
    if is_standard_input(path) {
        return spool(io::stdin().lock(), limit).map(Some);
    }
    // Unreadable files are reported when they are read as debug files. Opening a pipe would block until it has a
    // writer.
    if !std::fs::metadata(path).is_ok_and(|metadata| metadata.is_file()) {
        return Ok(None);
    }
    let Ok(file) = File::open(path) else { return Ok(None) };
    let mut head = Vec::new();
    (&file).take(512).read_to_end(&mut head)?;
    Ok(is_archive(&head).then_some(file))
}

/// Creates a temporary folder for unpacked archives. A signal that ends the command deletes it.
pub(crate) fn unpacker(limits: Limits) -> Result<Unpacker, Failure> {
    interrupt::delete_temporary_folders();
    Unpacker::new(limits).map_err(|error| no_temporary_folder(&error))
}

/// There is no folder for temporary files.
pub(crate) fn no_temporary_folder(error: &io::Error) -> Failure {
    Failure::new(FailureKind::Other, format!("cannot make a folder for temporary files: {error}"))
}

/// Unpacks what may be debug files and symbol maps of the archive at `path`. `progress` counts the bytes of the archive
/// that are read.
pub(crate) fn unpack(
    unpacker: &mut Unpacker,
    archive: File,
    path: &Path,
    progress: Option<&Progress>,
) -> Unpacked {
    let size = archive.metadata().map_or(0, |file| file.len());
    let progress = progress.map(|progress| {
        progress.add(size);
        progress.of_image(size)
    });
    let read = Cell::new(0);
    let on_read = |bytes: u64| {
        read.set(read.get() + bytes);
        progress.iter().for_each(|progress| progress.set(read.get(), size));
    };
    let is_wanted = |name: &str, head: &[u8]| {
        may_be_debug_file(Path::new(name), head) || SymbolMaps::may_be_one(Path::new(name))
    };
    unpacker.unpack(archive, &shown(path), &is_wanted, &on_read)
}

/// The debug files of an archive.
pub(crate) struct ArchiveFiles {
    pub(crate) files: InputFiles,
    /// What is wrong with the archive.
    pub(crate) failures: Vec<Failure>,
    /// Owns the folder of the files.
    pub(crate) unpacker: Unpacker,
}

/// Unpacks the debug files of the archive at `path`, and warns of entries that are not read; `None` if the file is no
/// archive.
pub(crate) fn debug_files(path: &Path, progress: Option<&Progress>) -> Result<Option<ArchiveFiles>, Failure> {
    let limits = Limits::default();
    let file = open(path, limits.unpacked).map_err(|error| Failure::unreadable(path, &error))?;
    let Some(file) = file else { return Ok(None) };
    let mut unpacker = unpacker(limits)?;
    let unpacked = unpack(&mut unpacker, file, path, progress);
    let mut files = InputFiles::default();
    for file in unpacked.files {
        files.add_unpacked(DebugFile::of_archive(file.path, &file.archive, &file.entry));
    }
    let mut failures = Vec::new();
    for fault in &unpacked.faults {
        match fault.kind.is_harmless() {
            true => complain(&format!("warning: {fault}")),
            false => failures.push(fault.into()),
        }
    }
    if files.files().is_empty() && failures.is_empty() {
        failures.push(without_debug_files(path));
    }
    Ok(Some(ArchiveFiles { files, failures, unpacker }))
}

/// The failure of an archive without debug files.
pub(crate) fn without_debug_files(path: &Path) -> Failure {
    let message = format!(
        "{}: no debug file in this archive; expected a .dSYM bundle or a linked Mach-O or ELF file inside",
        shown(path)
    );
    let failure = Failure::new(FailureKind::Missing, message);
    Failure { reason: "archive without debug files".into(), ..failure }.of_path(path)
}

impl From<&Fault> for Failure {
    fn from(fault: &Fault) -> Self {
        let (kind, reason) = match &fault.kind {
            FaultKind::Io(_) => (FailureKind::Other, "not readable"),
            kind if kind.is_damage() => (FailureKind::Damaged, "damaged archive"),
            _ => (FailureKind::Unsupported, "refused in an archive"),
        };
        Self { reason: reason.into(), ..Self::new(kind, fault.to_string()) }
            .of_path(Path::new(&fault.archive))
    }
}
