//! `cargo xtask corpus`: makes files for audits and benchmarks that are too large for the repository, or not ours.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use self::summary::Summary;

mod android;
mod compilers;
mod debian;
mod recipes;
mod scatter;
mod summary;
mod variants;
mod wheels;

/// The arguments of `cargo xtask corpus`.
pub(crate) struct Arguments {
    out: PathBuf,
    parts: Vec<Part>,
}

/// A part of the corpus.
enum Part {
    Android,
    Compilers,
    Debian,
    Wheels,
    /// A dSYM in which functions of all units are interleaved.
    Scatter,
}

impl Part {
    fn named(name: &str) -> Option<Self> {
        match name {
            "android" => Some(Self::Android),
            "compilers" => Some(Self::Compilers),
            "debian" => Some(Self::Debian),
            "wheels" => Some(Self::Wheels),
            "scatter" => Some(Self::Scatter),
            _ => None,
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Android => "android",
            Self::Compilers => "compilers",
            Self::Debian => "debian",
            Self::Wheels => "wheels",
            Self::Scatter => "scatter",
        }
    }
}

impl Arguments {
    /// Parses the words after `corpus`. Returns `None` if they are invalid.
    pub(crate) fn parse(words: &[&str]) -> Option<Self> {
        let mut arguments = Self { out: root().ok()?.join("target/corpora"), parts: Vec::new() };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match *word {
                "-o" => arguments.out = words.next()?.into(),
                part => arguments.parts.push(Part::named(part)?),
            }
        }
        (!arguments.parts.is_empty()).then_some(arguments)
    }
}

/// Makes each part in a new folder with its name and prints its figures.
///
/// # Errors
/// The folder exists, or a tool is missing or fails. Files made so far stay.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    std::fs::create_dir_all(&arguments.out)?;
    let out = arguments.out.canonicalize()?;
    for part in &arguments.parts {
        let folder = out.join(part.name());
        ensure!(!folder.exists(), "{} exists already; remove it to make it again", folder.display());
        match part {
            Part::Android => android::make(&root()?.join("testdata/src"), &folder)?,
            Part::Compilers => compilers::make(&root()?.join("testdata/src"), &folder)?,
            Part::Debian => debian::make(&folder)?,
            Part::Wheels => wheels::make(&folder)?,
            Part::Scatter => scatter::make(&root()?.join("xtask/src/corpus"), &folder)?,
        }
        print!("{}\n{}", folder.display(), Summary::of(&folder)?);
    }
    Ok(())
}

/// The root of the repository that this program was built from.
fn root() -> Result<&'static Path> {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("xtask has no parent folder")
}
