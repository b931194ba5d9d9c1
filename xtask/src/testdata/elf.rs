//! The ELF files of `testdata/elf`, made by this machine's GCC.

use std::path::Path;

use anyhow::{Context, Result};

use super::image::SOURCE_ROOT;
use crate::host::{self, words};

pub(super) const HOST: [host::Program; 3] = [("gcc", "gcc"), ("g++", "g++"), ("ld", "binutils")];

/// The name of the library.
const PARTS: &str = "gcc-parts.so";
/// Its sources, as paths in `testdata/src`, and their compilers.
const UNITS: [(&str, &str); 2] = [("gcc", "elf/parts.c"), ("g++", "elf/parts.cpp")];

/// Makes [`PARTS`] in the folder `out`.
///
/// # Errors
/// A tool fails.
pub(super) fn build(sources: &Path, work: &Path, out: &Path) -> Result<()> {
    let folder = work.join(PARTS);
    std::fs::create_dir_all(&folder)?;
    let mut link = words(&["-nostdlib", "-shared", "-Wl,--build-id=sha1", "-o", PARTS]);
    for (compiler, source) in UNITS {
        let object = format!("{}.o", source.replace('/', "-"));
        let mut args = words(&["-O2", "-g", "-fPIC", "-Wall", "-Werror", "-nostdinc", "-ffreestanding"]);
        args.push(format!("-ffile-prefix-map={}={SOURCE_ROOT}", sources.display()));
        args.extend(words(&["-c", "-o"]));
        args.extend([folder.join(&object).display().to_string(), source.to_owned()]);
        host::run(compiler, sources, &args)?;
        link.push(object);
    }
    host::run("gcc", &folder, &link)?;
    std::fs::create_dir_all(out)?;
    // A copy would be executable.
    std::fs::write(out.join(PARTS), std::fs::read(folder.join(PARTS))?)?;
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
