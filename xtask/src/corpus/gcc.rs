//! `cargo xtask corpus gcc`: public C and C++ sources, compiled by this machine's GCC.

use std::path::Path;

use anyhow::Result;

use crate::host::{self, words};

const HOST: [host::Program; 3] = [("gcc", "gcc"), ("g++", "g++"), ("cargo", "cargo")];

/// A library. Its sources are part of a crate.
struct Library {
    name: &'static str,
    /// The crate and its version.
    package: [&'static str; 2],
    compiler: &'static str,
    /// The one source file, as a path in the crate.
    source: &'static str,
}

const LIBRARIES: [Library; 2] = [
    Library {
        name: "sqlite3",
        package: ["libsqlite3-sys", "0.30.1"],
        compiler: "gcc",
        source: "sqlite3/sqlite3.c",
    },
    Library {
        name: "harfbuzz",
        package: ["harfbuzz-sys", "0.6.1"],
        compiler: "g++",
        source: "harfbuzz/src/harfbuzz.cc",
    },
];

const OPTIMISATIONS: [&str; 2] = ["-O2", "-Os"];

/// The folder in which cargo puts the sources of the crates.
const SOURCES: &str = "sources";

/// Makes `libNAME-O2.so` and `libNAME-Os.so` of each library in the folder `out`. The sources come from the registry
/// that cargo is configured with.
///
/// # Errors
/// A tool is missing or fails.
pub(crate) fn make(out: &Path) -> Result<()> {
    host::need(&HOST)?;
    let scratch = tempfile::tempdir()?;
    download(scratch.path())?;
    std::fs::create_dir_all(out)?;
    for Library { name, package: [package, _], compiler, source } in LIBRARIES {
        for optimisation in OPTIMISATIONS {
            let file = format!("lib{name}{optimisation}.so");
            println!("{file}: {package}/{source}");
            let mut args = words(&["-w", "-g", optimisation, "-fPIC", "-shared", "-Wl,--build-id=sha1"]);
            args.push(format!("-ffile-prefix-map={}=/src", scratch.path().display()));
            args.extend(["-o".to_owned(), out.join(file).display().to_string()]);
            args.push(scratch.path().join(SOURCES).join(package).join(source).display().to_string());
            host::run(compiler, scratch.path(), &args)?;
        }
    }
    Ok(())
}

/// Puts the sources of the crates into the folder [`SOURCES`] of `scratch`.
fn download(scratch: &Path) -> Result<()> {
    let mut manifest = "[package]\nname = \"corpus\"\n[workspace]\n[dependencies]\n".to_owned();
    for Library { package: [package, version], .. } in LIBRARIES {
        manifest += &format!("{package} = {{ version = \"={version}\", default-features = false }}\n");
    }
    std::fs::create_dir(scratch.join("src"))?;
    std::fs::write(scratch.join("src/lib.rs"), "")?;
    std::fs::write(scratch.join("Cargo.toml"), manifest)?;
    host::run("cargo", scratch, &words(&["vendor", "--quiet", SOURCES]))?;
    Ok(())
}
