//! Archives and pipes among the debug files that a command line names.

use std::path::Path;

use symdex_pipeline::archive::{Limits, Unpacker};
use symdex_pipeline::{Batch, Host, Input, Intake};

use crate::failure::{Cause, Failure, complain};
use crate::interrupt;
use crate::progress::Progress;

/// Whether the path stands for standard input.
pub(crate) fn is_standard_input(path: &Path) -> bool {
    matches!(Input::of_argument(path), Input::StandardInput)
}

/// Creates a temporary folder for unpacked archives. A signal that ends the command deletes it.
pub(crate) fn unpacker(limits: Limits) -> Result<Unpacker, Failure> {
    interrupt::delete_temporary_folders();
    Unpacker::new(limits).map_err(|error| Failure::no_temporary_folder(&error))
}

/// Whether the path stands for standard input or a pipe, which can be read only once.
pub(crate) fn is_pipe(path: &Path) -> bool {
    Input::of_argument(path).is_pipe()
}

/// The failure of a command whose debug file is standard input, which cannot have addresses then. `object` is the debug
/// file, and `are_given` whether the command line has addresses.
pub(crate) fn check_addresses(object: Option<&Path>, are_given: bool) -> Result<(), Failure> {
    let is_stdin = |path: &&Path| [Path::new("-"), Path::new("/dev/stdin")].contains(path) && is_pipe(path);
    match object.filter(|path| !are_given && is_stdin(path)) {
        None => Ok(()),
        Some(_) => {
            let message = "the debug file is standard input; give the addresses as arguments";
            Err(Failure::new(Cause::Usage, message))
        }
    }
}

/// Unpacks the debug files of the archive at `path`, and warns of entries that are not read. A debug file from a pipe
/// is copied. Returns `None` if `path` is neither an archive nor a pipe. The batch owns the files.
pub(crate) fn debug_files(path: &Path, host: &impl Host) -> Result<Option<Batch>, Failure> {
    let input = Input::of_argument(path);
    if !input.is_archive_or_pipe() {
        return Ok(None);
    }
    interrupt::delete_temporary_folders();
    let batch = Intake::new(vec![input]).next_batch(host)?;
    let mut batch = batch.unwrap_or_default();
    if batch.files.files().is_empty() && batch.failures.is_empty() {
        // It has symbol maps only.
        batch.failures.push(Failure::archive_without_debug_files(path));
    }
    batch.warnings.iter().for_each(|fault| complain(&format!("warning: {fault}")));
    Ok(Some(batch))
}

/// As [`debug_files`], for a command that reads nothing else. Reports what is wrong with some of the files.
///
/// # Errors
///
/// [`Failure`] if there is no debug file.
pub(crate) fn only_debug_files(path: &Path) -> Result<Option<Batch>, Failure> {
    let Some(mut batch) = debug_files(path, &())? else { return Ok(None) };
    if batch.files.files().is_empty()
        && let Some(failure) = batch.failures.pop()
    {
        return Err(failure);
    }
    batch.failures.iter().for_each(|failure| complain(&failure.message));
    Ok(Some(batch))
}

/// A progress bar counts the bytes of archives and debug files.
impl Host for Progress {
    fn planned(&self, bytes: u64) {
        self.add(bytes);
    }

    fn read(&self, bytes: u64) {
        self.bar().done(bytes);
    }
}
