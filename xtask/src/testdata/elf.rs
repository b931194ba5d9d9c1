//! The ELF files of `testdata/elf`, made by this machine's GCC.

use std::path::Path;

use anyhow::{Context, Result};

use super::image::SOURCE_ROOT;
use crate::host::{self, words};

pub(super) const HOST: [host::Program; 3] = [("gcc", "gcc"), ("g++", "g++"), ("ld", "binutils")];

/// A compiler, a source, as a path in `testdata/src`, and flags for it.
type Unit = (&'static str, &'static str, &'static [&'static str]);

/// The names of the libraries and their sources.
const LIBRARIES: [(&str, [Unit; 2]); 2] = [
    ("gcc-parts.so", [("gcc", "elf/parts.c", &[]), ("g++", "elf/parts.cpp", &[])]),
    ("gcc-names.so", [("g++", "elf/names.cpp", &[]), ("g++", "modern/coroutine.cpp", &["-std=c++20"])]),
];

/// Makes [`LIBRARIES`] in the folder `out`.
///
/// # Errors
/// A tool fails.
pub(super) fn build(sources: &Path, work: &Path, out: &Path) -> Result<()> {
    LIBRARIES.into_iter().try_for_each(|(name, units)| library(name, units, sources, work, out))
}

fn library(name: &str, units: [Unit; 2], sources: &Path, work: &Path, out: &Path) -> Result<()> {
    let folder = work.join(name);
    std::fs::create_dir_all(&folder)?;
    let mut link = words(&["-nostdlib", "-shared", "-Wl,--build-id=sha1", "-o", name]);
    for (compiler, source, flags) in units {
        let object = format!("{}.o", source.replace('/', "-"));
        let mut args = words(&["-O2", "-g", "-fPIC", "-Wall", "-Werror", "-nostdinc", "-ffreestanding"]);
        args.extend(words(flags));
        args.push(format!("-ffile-prefix-map={}={SOURCE_ROOT}", sources.display()));
        args.extend(words(&["-c", "-o"]));
        args.extend([folder.join(&object).display().to_string(), source.to_owned()]);
        host::run(compiler, sources, &args)?;
        link.push(object);
    }
    host::run("gcc", &folder, &link)?;
    std::fs::create_dir_all(out)?;
    // A copy would be executable.
    std::fs::write(out.join(name), std::fs::read(folder.join(name))?)?;
    Ok(())
}

/// The versions of GCC and its linker, one a line.
///
/// # Errors
/// A tool cannot be run.
pub(super) fn versions(work: &Path) -> Result<String> {
    let mut text = String::new();
    for tool in ["gcc", "ld"] {
        let printed = String::from_utf8(host::run(tool, work, &words(&["--version"]))?)?;
        let version = printed.lines().next().with_context(|| format!("{tool} states no version"))?;
        text += &format!("{tool}: {version}\n");
    }
    Ok(text)
}
