//! Archives among the files that a command line names.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use symdex_archive::{Fault, FaultKind, Unpacked, Unpacker, is_archive, spool};
use symdex_build::{SymbolMaps, may_be_debug_file};

use crate::failure::{Failure, FailureKind};

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
    // What cannot be read is reported by the reader of other files. Opening a pipe would wait for its writer.
    if !std::fs::metadata(path).is_ok_and(|metadata| metadata.is_file()) {
        return Ok(None);
    }
    let Ok(file) = File::open(path) else { return Ok(None) };
    let mut head = Vec::new();
    (&file).take(512).read_to_end(&mut head)?;
    Ok(is_archive(&head).then_some(file))
}

/// Unpacks what may be debug files and symbol maps of the archive at `path`.
pub(crate) fn unpack(unpacker: &mut Unpacker, archive: File, path: &Path) -> Unpacked {
    let is_wanted = |name: &str, head: &[u8]| {
        may_be_debug_file(Path::new(name), head) || SymbolMaps::may_be_one(Path::new(name))
    };
    unpacker.unpack(archive, &shown(path), &is_wanted)
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
