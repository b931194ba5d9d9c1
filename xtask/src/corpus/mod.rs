//! `cargo xtask corpus`: makes files for audits and benchmarks that are too large for the repository, or not ours.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

mod android;
mod android_recipes;
mod debian;
mod scatter;
mod variants;
mod wheels;

/// The parts of the corpus. `scatter` is a dSYM in which functions of all units are interleaved.
const PARTS: [&str; 4] = ["android", "debian", "scatter", "wheels"];

/// The arguments of `cargo xtask corpus`.
pub(crate) struct Arguments {
    out: PathBuf,
    parts: Vec<String>,
}

impl Arguments {
    /// Parses the words after `corpus`. Returns `None` if they are invalid.
    pub(crate) fn parse(words: &[&str]) -> Option<Self> {
        let mut arguments = Self { out: root().ok()?.join("target/corpora"), parts: Vec::new() };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match *word {
                "-o" => arguments.out = words.next()?.into(),
                part if PARTS.contains(&part) => arguments.parts.push(part.to_owned()),
                _ => return None,
            }
        }
        (!arguments.parts.is_empty()).then_some(arguments)
    }
}

/// Makes each part in a new folder with its name.
///
/// # Errors
/// The folder exists, or a tool is missing or fails. Files made so far stay.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    std::fs::create_dir_all(&arguments.out)?;
    let out = arguments.out.canonicalize()?;
    for part in &arguments.parts {
        let folder = out.join(part);
        ensure!(!folder.exists(), "{} exists already; remove it to make it again", folder.display());
        match part.as_str() {
            "android" => android::make(&root()?.join("testdata/src"), &folder)?,
            "debian" => debian::make(&folder)?,
            "scatter" => scatter::make(&root()?.join("xtask/src/corpus"), &folder)?,
            _ => wheels::make(&folder)?,
        }
        println!("{}", folder.display());
    }
    Ok(())
}

/// The root of the repository that this program was built from.
fn root() -> Result<&'static Path> {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("xtask has no parent folder")
}
