//! The hostile files of the corpora, which abort or hang most other tools.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::folder;
use symdex_testkit::corpus;

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder");
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    files
}

/// Runs `symdex` with at most 512 MB of memory and two minutes of one core. If it needs more, it is killed and the test
/// fails. Address space is limited, so jemalloc must give it back.
#[cfg(target_os = "linux")]
fn limited(arguments: &[&str]) -> std::process::Output {
    let symdex = env!("CARGO_BIN_EXE_symdex");
    let script = r#"ulimit -v 524288; ulimit -t 120; exec "$0" "$@""#;
    let mut limited = Command::new("sh");
    limited.env("_RJEM_MALLOC_CONF", "retain:false").args(["-c", script, symdex]);
    limited.args(arguments).output().expect("sh")
}

#[cfg(target_os = "linux")]
pub(crate) fn hostile_files_become_whole_indexes_or_errors() {
    let root = folder();
    let malformed = corpus("malformed", root.path());
    let mut built = 0;
    for file in files(&malformed.join("synthetic")) {
        let (out, name) = (root.path().join("indexes"), file.display());
        let arguments =
            ["build", "--jobs", "2", &file.to_string_lossy(), "-o", &out.to_string_lossy(), "--json"];
        let output = limited(&arguments);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        match output.status.code() {
            Some(0) => built += 1,
            Some(3) => assert!(said.contains("nothing to answer"), "{name}: {said}"),
            Some(4) => assert!(said.contains("damaged debug file"), "{name}: {said}"),
            code => panic!("{name}: {code:?} {said}"),
        }
        if output.status.success() {
            let index = files(&out).pop().expect("an index");
            crate::common::symdex(["verify".as_ref(), index.as_os_str()]).ok();
            std::fs::remove_dir_all(&out).expect("removed");
        }
    }
    assert!(built > 20, "only {built} became indexes");
}

pub(crate) fn the_output_of_hostile_names_is_bounded() {
    let root = folder();
    let malformed = corpus("malformed", root.path());
    let crashers = malformed.join("swift-demangle-crashers");
    let names =
        [crashers.clone(), crashers.join("fuzz-corpus-evolved")].map(|folder| files(&folder)).concat();
    let names: Vec<_> = names.into_iter().filter(|path| path.is_file()).collect();
    assert!(names.len() > 1000, "only {} names", names.len());
    for path in names {
        let name = std::fs::read(&path).expect("a name");
        for prefix in ["", "$s", "_T0", "_Tt", "_Z", "_R"] {
            let text = symdex_demangle::demangle(&[prefix.as_bytes(), &name].concat()).len();
            assert!(text <= 64 << 10, "{}: {text} bytes", path.display());
        }
    }
}
