//! `cargo xtask corpus debian`: the programs and libraries of this machine, and packages with debug files.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use anyhow::{Context, Result};
use walkdir::{DirEntry, WalkDir};

use crate::host::{self, words};
use crate::tools;

const HOST: [host::Program; 2] = [("apt-get", "apt"), ("dpkg-deb", "dpkg")];

/// Packages to unpack, each with its purpose. The version is the one that this machine would install.
const PACKAGES: [(&str, &str); 4] = [
    ("libc6", "stripped, the other half of libc6-dbg"),
    ("libc6-dbg", "GCC's C and assembler; DWARF 5, compressed; found by build id"),
    ("librados2", "stripped, the other half of librados2-dbg"),
    ("librados2-dbg", "GCC's C++; a debug file of 95 MB, 280 MB when decompressed"),
];

/// Links installed files in `out/machine` and unpacks packages in `out/packages`.
///
/// # Errors
/// A tool is missing or fails, or a folder cannot be written.
pub(crate) fn make(out: &Path) -> Result<()> {
    host::need(&HOST)?;
    let scratch = tempfile::tempdir()?;
    for (package, why) in PACKAGES {
        println!("{package}: {why}");
        unpack(package, scratch.path(), &out.join("packages").join(package))?;
    }
    let mut linked = 0;
    for folder in ["usr/bin", "usr/lib"] {
        linked += link_installed(folder, &out.join("machine"))?;
    }
    println!("{linked} files of this machine");
    Ok(())
}

fn unpack(package: &str, scratch: &Path, target: &Path) -> Result<()> {
    let downloads = scratch.join(package);
    std::fs::create_dir_all(&downloads)?;
    host::run("apt-get", &downloads, &words(&["download", "--quiet", package]))?;
    let downloaded = std::fs::read_dir(&downloads)?.next().context("apt-get downloaded nothing")??.path();
    std::fs::create_dir_all(target)?;
    let args = ["-x".to_owned(), downloaded.display().to_string(), target.display().to_string()];
    host::run("dpkg-deb", scratch, &args)?;
    Ok(())
}

/// Links every ELF executable and shared object of `/folder` in `out/folder` and returns their number. Symbolic links
/// are skipped, so that each file is linked once.
fn link_installed(folder: &str, out: &Path) -> Result<usize> {
    let mut linked = 0;
    let is_wanted = |entry: &DirEntry| entry.path() != Path::new("/usr/lib/debug");
    for entry in
        WalkDir::new(Path::new("/").join(folder)).sort_by_file_name().into_iter().filter_entry(is_wanted)
    {
        // The corpus skips files that this user cannot read.
        let Ok(entry) = entry else { continue };
        if entry.file_type().is_file() && is_image(entry.path()) {
            let target = out.join(entry.path().strip_prefix("/")?);
            std::fs::create_dir_all(target.parent().context("a path without a parent folder")?)?;
            tools::link(entry.path(), &target).with_context(|| target.display().to_string())?;
            linked += 1;
        }
    }
    Ok(linked)
}

/// Whether the file is an ELF executable or shared object in little-endian byte order. Object files, kernel modules and
/// core dumps are not.
fn is_image(path: &Path) -> bool {
    let mut head = [0; 18];
    let is_read = File::open(path).and_then(|mut file| file.read_exact(&mut head)).is_ok();
    is_read && head.starts_with(b"\x7fELF") && matches!(head, [.., 2 | 3, 0])
}
