//! Archives, packages and checksums.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result};

use super::target::Target;
use super::{VERSION, Variant, output, source};
use crate::workspace;

/// The shells for which there are completions, and the file names that they look for.
const COMPLETIONS: [(&str, &str); 4] =
    [("bash", "symdex"), ("zsh", "_symdex"), ("fish", "symdex.fish"), ("powershell", "_symdex.ps1")];

/// Who installs a package.
#[derive(Clone, Copy)]
pub(crate) enum Packager {
    /// Debian's dpkg.
    Deb,
    /// Fedora's rpm.
    Rpm,
}

impl Packager {
    /// The packager's name for nfpm, which is the extension of its packages.
    fn name(self) -> &'static str {
        match self {
            Self::Deb => "deb",
            Self::Rpm => "rpm",
        }
    }
}

/// Puts the program and what belongs to it into the folder `stage`.
///
/// # Errors
/// The program cannot be run, or a file cannot be written.
pub(crate) fn stage(program: &Path, target: &Target, stage: &Path) -> Result<()> {
    fs::create_dir_all(stage.join("completions"))?;
    fs::copy(program, stage.join("symdex")).with_context(|| format!("cannot copy {}", program.display()))?;
    for file in ["CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT", "README.md"] {
        fs::copy(source(file)?, stage.join(file)).with_context(|| format!("cannot copy {file}"))?;
    }
    output(target.command(program)?.arg("man").arg(stage.join("man")))?;
    for (shell, name) in COMPLETIONS {
        let script = output(target.command(program)?.args(["completions", shell]))?;
        fs::write(stage.join("completions").join(name), script)?;
    }
    Ok(())
}

/// Packs the folder `name` in `dist` and returns the name of the archive. The same folder gives the same bytes.
///
/// # Errors
/// tar or git fails.
pub(crate) fn archive(dist: &Path, name: &str) -> Result<String> {
    let archive = format!("{name}.tar.gz");
    let mut tar = Command::new("tar");
    tar.current_dir(dist).args([
        "--sort=name",
        "--owner=0",
        "--group=0",
        "--numeric-owner",
        "--mode=u+w,go-w,a+rX",
    ]);
    tar.arg(format!("--mtime=@{}", commit_time()?)).args([
        "--use-compress-program=gzip -9n",
        "-cf",
        &archive,
        name,
    ]);
    output(&mut tar)?;
    Ok(archive)
}

/// Makes the package of the folder `name` in `dist` and returns its name.
///
/// # Errors
/// nfpm or git fails.
pub(crate) fn package(
    dist: &Path,
    name: &str,
    variant: Variant,
    target: &Target,
    packager: Packager,
) -> Result<String> {
    let packager = packager.name();
    let package = format!("{}-{VERSION}-{}.{packager}", variant.name(), target.package_arch);
    let mut nfpm = Command::new("nfpm");
    nfpm.arg("package").arg("--config").arg(source("xtask/src/dist/nfpm.yaml")?);
    nfpm.args(["--packager", packager, "--target"]).arg(dist.join(&package));
    nfpm.env("SYMDEX_PACKAGE", variant.name()).env("SYMDEX_OTHER_PACKAGE", variant.other().name());
    nfpm.env("SYMDEX_VERSION", VERSION)
        .env("SYMDEX_ARCH", target.package_arch)
        .env("SOURCE_DATE_EPOCH", commit_time()?);
    output(nfpm.current_dir(dist.join(name)))?;
    Ok(package)
}

/// Writes `SHA256SUMS` of `files`.
///
/// # Errors
/// A file cannot be read or written.
pub(crate) fn checksums(dist: &Path, files: &[String]) -> Result<()> {
    let sums = output(Command::new("sha256sum").args(files).current_dir(dist))?;
    fs::write(dist.join("SHA256SUMS"), sums).context("cannot write SHA256SUMS")
}

/// The time of the last commit, in seconds. Files in packages have this time.
fn commit_time() -> Result<String> {
    let time = output(Command::new("git").args(["log", "-1", "--format=%ct"]).current_dir(workspace()?))?;
    Ok(String::from_utf8(time)?.trim_end().to_owned())
}
