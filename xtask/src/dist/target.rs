//! Targets: where their standard library comes from, and how their programs run here.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use super::{is_installed, output};

/// A target of a release.
pub(crate) struct Target {
    /// The target's name in Rust.
    pub(crate) name: String,
    /// The architecture in names of Debian packages and of containers.
    pub(crate) package_arch: &'static str,
    /// The program that runs programs of the target, if this machine does not do so itself.
    emulator: Option<&'static str>,
}

/// Where the standard library of a target comes from.
pub(crate) enum Std {
    /// It is installed, as `rustup target add` does.
    Installed,
    /// It is compiled from the sources that came with this compiler, which are of the same version.
    Source { rustc: PathBuf },
}

impl Target {
    /// The target with this name.
    ///
    /// # Errors
    /// No release is made for it.
    pub(crate) fn parse(name: &str) -> Result<Self> {
        let (package_arch, emulator) = match name {
            "x86_64-unknown-linux-musl" => ("amd64", "qemu-x86_64"),
            "aarch64-unknown-linux-musl" => ("arm64", "qemu-aarch64"),
            _ => bail!("{name}: releases are made for {}", super::TARGETS.join(" and ")),
        };
        let is_native = cfg!(target_os = "linux") && name.starts_with(std::env::consts::ARCH);
        Ok(Self { name: name.to_owned(), package_arch, emulator: (!is_native).then_some(emulator) })
    }

    /// A command that runs `program`, which was compiled for this target.
    ///
    /// # Errors
    /// The emulator is not installed.
    pub(crate) fn command(&self, program: &Path) -> Result<Command> {
        let Some(emulator) = self.emulator else { return Ok(Command::new(program)) };
        if !is_installed(emulator) {
            bail!("{} programs run in {emulator}. Debian: `apt-get install qemu-user`", self.name);
        }
        let mut command = Command::new(emulator);
        command.arg(program);
        Ok(command)
    }

    /// Finds the standard library: installed, or the sources of the compiler, or those of Debian's compiler.
    ///
    /// # Errors
    /// There is none. The error says how to get it.
    pub(crate) fn find_std(&self) -> Result<Std> {
        let usual = PathBuf::from("rustc");
        if Path::new(&printed(&usual, &["target-libdir", "--target", &self.name])?).is_dir() {
            return Ok(Std::Installed);
        }
        for rustc in [usual, PathBuf::from("/usr/bin/rustc")] {
            let Ok(sysroot) = printed(&rustc, &["sysroot"]) else { continue };
            if Path::new(&sysroot).join("lib/rustlib/src/rust/library/std/Cargo.toml").is_file() {
                return Ok(Std::Source { rustc });
            }
        }
        bail!(
            "there is no standard library for {0}: `rustup target add {0}`; without rustup, a compiler with its \
             sources, such as Debian's `apt-get install rustc-web rust-web-src`",
            self.name
        )
    }
}

/// What `rustc --print` says.
fn printed(rustc: &Path, words: &[&str]) -> Result<String> {
    let text = output(Command::new(rustc).arg("--print").args(words))?;
    Ok(String::from_utf8(text).context("rustc prints text that is not UTF-8")?.trim_end().to_owned())
}
