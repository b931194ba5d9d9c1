//! What tests need besides the repository. Each function ends the test as ignored if the machine does not have it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::{Need, ignore};

/// The environment variable that names the folder of the corpora.
const CORPORA: &str = "SYMDEX_TEST_CORPORA";

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The folder of the corpora: `SYMDEX_TEST_CORPORA`, or else `shared/corpora` beside the repository.
#[must_use]
pub fn corpora() -> PathBuf {
    let folder = std::env::var_os(CORPORA).map_or_else(|| root().join("../shared/corpora"), PathBuf::from);
    if !folder.join("unpack").exists() {
        ignore(Need::Corpora, &format!("the corpora are not in {} (see {CORPORA})", folder.display()));
    }
    folder
}

/// The folder of the corpus `name`, unpacked below the folder `to`.
///
/// # Panics
/// If the corpora are there and this one is not, or cannot be unpacked.
#[must_use]
pub fn corpus(name: &str, to: &Path) -> PathBuf {
    let unpacked = Command::new(corpora().join("unpack")).arg("-d").arg(to).arg(name).status();
    assert!(unpacked.expect("sh runs").success(), "{name}: unpack needs zstd and tar");
    to.join(name)
}

/// A command that runs the program `name`, which `name version_option` must find.
#[must_use]
pub fn program(name: &str, version_option: &str) -> Command {
    let silent = |command: &mut Command| command.stdout(Stdio::null()).stderr(Stdio::null()).status();
    if !silent(Command::new(name).arg(version_option)).is_ok_and(|status| status.success()) {
        ignore(Need::Programs, &format!("{name} is not installed"));
    }
    Command::new(name)
}

/// The path of a file that `.ci/run` installs below `target`.
#[must_use]
pub fn target_file(path: &str) -> PathBuf {
    let file = root().join("target").join(path);
    if !file.exists() {
        ignore(Need::Programs, &format!("target/{path} is not installed; .ci/run does it"));
    }
    file
}
