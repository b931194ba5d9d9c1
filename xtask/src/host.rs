//! Runs programs of this machine, found on the PATH.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::installed::is_installed;

/// A program and the Debian package that contains it.
pub(crate) type Program = (&'static str, &'static str);

/// Checks that all of `programs` are installed.
///
/// # Errors
/// Programs are missing. The error lists them and the packages to install.
pub(crate) fn need(programs: &[Program]) -> Result<()> {
    let missing: Vec<&Program> = programs.iter().filter(|(program, _)| !is_installed(program)).collect();
    let names: Vec<&str> = missing.iter().map(|(program, _)| *program).collect();
    let packages: Vec<&str> = missing.iter().map(|(_, package)| *package).collect();
    ensure!(
        missing.is_empty(),
        "{} not on the PATH. Debian: `apt-get install {}`",
        names.join(", "),
        packages.join(" ")
    );
    Ok(())
}

/// Runs `program` in `folder` with `args` and returns its output.
///
/// # Errors
/// The program fails. The error has the command line and the program's error text.
pub(crate) fn run(program: &str, folder: &Path, args: &[String]) -> Result<Vec<u8>> {
    let mut command = Command::new(program);
    command.current_dir(folder).args(args).env("LC_ALL", "C");
    let output = command.output().with_context(|| format!("cannot run {program}"))?;
    if !output.status.success() {
        bail!("{command:?} failed:\n{}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(output.stdout)
}

/// Converts `words` to owned arguments.
pub(crate) fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_program_is_named_with_its_package() {
        let error = need(&[("sh", "dash"), ("no-such-program", "its-package")]).unwrap_err().to_string();
        assert_eq!(error, "no-such-program not on the PATH. Debian: `apt-get install its-package`");
    }
}
