//! Landlock: which files the process may open, and no network.

use std::ffi::OsStr;
use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetError,
    RulesetStatus, Scope, make_bitflags, path_beneath_rules,
};

use crate::isolate::limits::Access;

/// The newest version of Landlock that is used. Older kernels enforce what they can.
const NEWEST: ABI = ABI::V6;

/// Restricts the process to the files of `access`. Returns whether the kernel does so.
pub(super) fn restrict(access: &Access, has_unnamed_files: bool) -> bool {
    rules(access, has_unnamed_files).is_ok_and(|status| status != RulesetStatus::NotEnforced)
}

fn rules(access: &Access, has_unnamed_files: bool) -> Result<RulesetStatus, RulesetError> {
    let read = make_bitflags!(AccessFs::{ReadFile | ReadDir});
    let write = write_access(has_unnamed_files);
    let restricted = Ruleset::default()
        .handle_access(AccessFs::from_all(NEWEST))?
        .handle_access(AccessNet::from_all(NEWEST))?
        .scope(Scope::from_all(NEWEST))?
        .create()?
        // A path that cannot be opened has no rule. Reading it fails later, with an error that names it.
        .add_rules(path_beneath_rules(&access.read, read))?
        .add_rules(path_beneath_rules(&access.temporary, write))?
        .restrict_self()?;
    Ok(restricted.ruleset)
}

/// The rights in the folder of temporary files. A file without a name needs fewer.
fn write_access(has_unnamed_files: bool) -> BitFlags<AccessFs> {
    if has_unnamed_files {
        make_bitflags!(AccessFs::{ReadFile | WriteFile})
    } else {
        make_bitflags!(AccessFs::{ReadFile | WriteFile | MakeReg | RemoveFile})
    }
}

/// Whether the file system of `folder` has files without names. `tempfile` makes a named file and deletes its name
/// where it has none.
pub(super) fn has_unnamed_files(folder: &OsStr) -> bool {
    OpenOptions::new().read(true).write(true).custom_flags(libc::O_TMPFILE).open(folder).is_ok()
}
