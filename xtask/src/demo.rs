//! `cargo xtask demo`: builds indexes of the demo app and symbolicates its crash report.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail, ensure};

use crate::{cargo, workspace};

/// Builds the indexes of the demo's debug files and answers every frame of its crash from them.
pub(crate) fn run() -> Result<()> {
    let symdex = build_symdex()?;
    let indexes = indexes_of(&symdex)?;

    symdex_with(&symdex, &["build".as_ref(), "testdata/demo".as_ref(), "-o".as_ref(), &indexes])?;
    // With a separate store, indexes of the user cannot replace a missing index of the demo.
    let report = Path::new("testdata/demo/demo.crash");
    // This fails if a frame of the demo app is not resolved.
    symdex_with(&symdex, &["symbolicate".as_ref(), report, "--store".as_ref(), &indexes])
}

/// Builds the command `symdex` and returns the path of the program, which depends on cargo's configuration.
///
/// The profile is `dev`: it compiles in less than half of the time of `release`. The demo needs no default feature, and
/// a third of their crates.
fn build_symdex() -> Result<PathBuf> {
    let arguments = ["build", "--package", "symdex-cli", "--no-default-features"];
    println!("$ cargo {}", arguments.join(" "));
    let built = cargo()
        .args(arguments)
        .arg("--message-format=json-render-diagnostics")
        .current_dir(workspace()?)
        .stderr(Stdio::inherit())
        .output()
        .context("cannot run cargo")?;
    ensure!(built.status.success(), "cargo build ended with {}", built.status);
    let messages = String::from_utf8(built.stdout).context("cargo's messages are not UTF-8")?;
    program_in(&messages).context("cargo does not say where it put the program symdex")
}

/// Finds the path of the program `symdex` in cargo's JSON messages.
pub(crate) fn program_in(messages: &str) -> Option<PathBuf> {
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let mut programs = messages.filter(|message| message["target"]["name"] == "symdex");
    programs.find_map(|message| message["executable"].as_str().map(PathBuf::from))
}

/// The folder for the demo's indexes: `demo` in the target directory that contains `program`.
fn indexes_of(program: &Path) -> Result<PathBuf> {
    let target = program.parent().and_then(Path::parent);
    Ok(shown(
        &target.with_context(|| format!("{} is not in a target directory", program.display()))?.join("demo"),
    ))
}

/// `path` relative to the workspace, if it is inside.
fn shown(path: &Path) -> PathBuf {
    workspace().ok().and_then(|workspace| path.strip_prefix(workspace).ok()).unwrap_or(path).to_owned()
}

/// Prints and runs a command of symdex in the workspace. Its output goes to the terminal.
fn symdex_with(program: &Path, arguments: &[&Path]) -> Result<()> {
    let words: Vec<_> = arguments.iter().map(|word| word.display().to_string()).collect();
    println!("$ {} {}", shown(program).display(), words.join(" "));
    let mut command = Command::new(program);
    let status = command.args(arguments).current_dir(workspace()?).status();
    let status = status.with_context(|| format!("cannot run {}", program.display()))?;
    if status.success() { Ok(()) } else { bail!("symdex {} failed: {status}", words.join(" ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_of_the_program_comes_from_cargo() {
        let messages = [
            r#"{"reason":"compiler-artifact","target":{"name":"symdex"},"executable":null}"#,
            r#"{"reason":"build-script-executed","package_id":"zstd-sys"}"#,
            r#"{"reason":"compiler-artifact","target":{"name":"other"},"executable":"/elsewhere/debug/other"}"#,
            r#"{"reason":"compiler-artifact","target":{"name":"symdex"},"executable":"/elsewhere/debug/symdex"}"#,
            r#"{"reason":"build-finished","success":true}"#,
        ];
        let program = program_in(&messages.join("\n"));
        assert_eq!(program.as_deref(), Some(Path::new("/elsewhere/debug/symdex")));
        assert_eq!(program_in(r#"{"reason":"build-finished","success":true}"#), None);
    }

    #[test]
    fn the_indexes_are_in_the_target_directory() {
        let indexes = |program: &Path| indexes_of(program).expect("a target directory");
        assert_eq!(indexes(Path::new("/elsewhere/debug/symdex")), Path::new("/elsewhere/demo"));
        let inside = workspace().expect("a workspace").join("target/debug/symdex");
        assert_eq!(indexes(&inside), Path::new("target/demo"));
        assert!(indexes_of(Path::new("symdex")).is_err());
    }
}
