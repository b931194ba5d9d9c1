//! Targets: where their standard library comes from, and how their programs run here.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use super::output;
use crate::installed::is_installed;

/// A target of a release.
pub(crate) struct Target {
    /// The target's name in Rust.
    pub(crate) name: String,
    /// Whether programs of the target need no libraries.
    is_static: bool,
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
        let arch = name.strip_suffix("-unknown-linux-musl").and_then(arch_of);
        let Some((package_arch, emulator)) = arch else {
            bail!("{name}: releases are made for {}", super::TARGETS.join(" and "));
        };
        let is_native = cfg!(target_os = "linux") && name.starts_with(std::env::consts::ARCH);
        Ok(Self {
            name: name.to_owned(),
            is_static: true,
            package_arch,
            emulator: (!is_native).then_some(emulator),
        })
    }

    /// What `cargo build` compiles for on this machine.
    ///
    /// # Errors
    /// No release is made for such machines.
    pub(crate) fn of_this_machine() -> Result<Self> {
        let arch = std::env::consts::ARCH;
        let (package_arch, _) = arch_of(arch).with_context(|| format!("no release is made for {arch}"))?;
        Ok(Self { name: format!("{arch}-unknown-linux-gnu"), is_static: false, package_arch, emulator: None })
    }

    /// Whether programs of the target run in an emulator.
    pub(crate) fn is_emulated(&self) -> bool {
        self.emulator.is_some()
    }

    /// Copies the libraries that `program` loads, and what loads them, to the same paths below `root`.
    ///
    /// # Errors
    /// ldd fails, or a library cannot be copied.
    pub(crate) fn copy_libraries(&self, program: &Path, root: &Path) -> Result<()> {
        for library in self.libraries(program)? {
            let copy = root.join(library.strip_prefix("/")?);
            fs::create_dir_all(copy.parent().context("a library has a folder")?)?;
            fs::copy(&library, copy)?;
        }
        Ok(())
    }

    fn libraries(&self, program: &Path) -> Result<Vec<PathBuf>> {
        if self.is_static {
            return Ok(Vec::new());
        }
        let listed = String::from_utf8(output(Command::new("ldd").arg(program))?).context("ldd's output")?;
        let path_in =
            |line: &str| line.split_whitespace().find(|word| word.starts_with('/')).map(PathBuf::from);
        Ok(listed.lines().filter_map(path_in).collect())
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

/// An architecture's name in packages and containers, and the program that runs its programs elsewhere.
fn arch_of(arch: &str) -> Option<(&'static str, &'static str)> {
    match arch {
        "x86_64" => Some(("amd64", "qemu-x86_64")),
        "aarch64" => Some(("arm64", "qemu-aarch64")),
        _ => None,
    }
}

/// What `rustc --print` says.
fn printed(rustc: &Path, words: &[&str]) -> Result<String> {
    let text = output(Command::new(rustc).arg("--print").args(words))?;
    Ok(String::from_utf8(text).context("rustc prints text that is not UTF-8")?.trim_end().to_owned())
}
