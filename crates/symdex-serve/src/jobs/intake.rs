//! The debug files in what is to be built.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use symdex_build::debug_files::DebugFile;
use symdex_build::{SymbolMaps, may_be_debug_file};
use symdex_pipeline::archive::{Fault, FaultKind, Limits, Unpacker, is_archive};
use symdex_pipeline::isolate::build::{BuildFailure, TaskFile};

/// A file to build: a debug file, or an archive of debug files.
#[derive(Clone, Debug)]
pub(crate) struct BuildInput {
    /// Where the file is.
    pub(crate) path: PathBuf,
    /// The name of the file, such as `MyApp` or `MyApp.app.dSYM.zip`. It is never used as a path. An image of a debug
    /// file that is in no archive has the last part of this name.
    pub(crate) name: String,
    /// Where the file comes from: `upload`, or a URL without secrets. Messages about a debug file begin with it.
    pub(crate) origin: String,
}

/// The debug files of inputs.
pub(super) struct Intake {
    /// The debug files.
    pub(super) files: Vec<TaskFile>,
    /// The symbol maps and property lists of the archives.
    pub(super) maps: Vec<TaskFile>,
    /// What is wrong with the inputs.
    pub(super) failures: Vec<BuildFailure>,
    /// Entries that are not read although valid archives have them.
    pub(super) warnings: Vec<String>,
    /// Owns the folder of the unpacked files.
    unpacker: Unpacker,
}

impl Intake {
    /// Finds the debug files of `inputs`. Those in archives are unpacked to a folder in `folder`, which is deleted when
    /// this is dropped. At most the first bytes of each file are read.
    ///
    /// # Errors
    ///
    /// [`io::Error`] if there is no folder for temporary files.
    pub(super) fn new(inputs: &[BuildInput], folder: &Path, limits: Limits) -> io::Result<Self> {
        let unpacker = Unpacker::new_in(folder, limits)?;
        let (failures, warnings) = (Vec::new(), Vec::new());
        let mut intake = Self { files: Vec::new(), maps: Vec::new(), failures, warnings, unpacker };
        for input in inputs {
            if let Err(error) = intake.add(input) {
                intake.failures.push(unreadable(&input.name, &error));
            }
        }
        Ok(intake)
    }

    fn add(&mut self, input: &BuildInput) -> io::Result<()> {
        let file = File::open(&input.path)?;
        let mut head = Vec::new();
        (&file).take(512).read_to_end(&mut head)?;
        match is_archive(&head) {
            true => self.add_archive(file, &input.name),
            false => {
                if !self.add_debug_file(&input.path, &input.origin, &input.name) {
                    self.failures.push(failure(&input.name, "unsupported", &not_a_debug_file(&head)));
                }
            }
        }
        Ok(())
    }

    fn add_archive(&mut self, file: File, name: &str) {
        let is_wanted = |name: &str, head: &[u8]| {
            may_be_debug_file(Path::new(name), head) || SymbolMaps::may_be_one(Path::new(name))
        };
        let unpacked = self.unpacker.unpack(file, name, &is_wanted, &|_| ());
        let mut is_empty = true;
        for file in unpacked.files {
            if SymbolMaps::may_be_one(Path::new(&file.entry)) {
                self.maps.push(TaskFile::of_archive(&file.path, file.archive, file.entry));
            } else {
                is_empty &= !self.add_debug_file(&file.path, &file.archive, &file.entry);
            }
        }
        let (warnings, faults): (Vec<_>, Vec<_>) =
            unpacked.faults.into_iter().partition(|fault| fault.kind.is_harmless());
        if is_empty && faults.is_empty() {
            let what = "no debug file in this archive; expected a .dSYM bundle or a linked Mach-O or ELF file inside";
            self.failures.push(failure(name, "missing", what));
        }
        self.failures.extend(faults.iter().map(of_fault));
        self.warnings.extend(warnings.iter().map(Fault::to_string));
    }

    /// Adds the file at `path` if it is a debug file. Returns whether it is one, or cannot be read.
    fn add_debug_file(&mut self, path: &Path, origin: &str, name: &str) -> bool {
        let file = DebugFile::of_archive(path, origin, name);
        match file.is_debug_file() {
            Ok(true) => self.files.push(TaskFile::of_archive(path, origin, name)),
            Ok(false) => return false,
            Err(error) => self.failures.push(unreadable(name, &error)),
        }
        true
    }
}

/// The failure of the input `name`.
pub(super) fn failure(name: &str, kind: &str, what: &str) -> BuildFailure {
    BuildFailure {
        file: Some(name.into()),
        kind: kind.to_owned(),
        limit: None,
        reason: kind.to_owned(),
        message: format!("{name}: {what}"),
    }
}

fn unreadable(name: &str, error: &io::Error) -> BuildFailure {
    failure(name, "other", &format!("cannot read: {error}"))
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

fn of_fault(fault: &Fault) -> BuildFailure {
    let kind = match &fault.kind {
        FaultKind::Io(_) => "other",
        kind if kind.is_damage() => "damaged",
        _ => "unsupported",
    };
    BuildFailure { message: fault.to_string(), ..failure(&fault.archive, kind, "") }
}
