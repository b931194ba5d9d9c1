//! `cargo xtask corpus wheels`: Mach-O libraries from Python packages for macOS.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use walkdir::WalkDir;

use crate::host::{self, words};

const HOST: [host::Program; 2] = [("python3", "python3"), ("pip", "python3-pip")];

const ARM64: &str = "macosx_12_0_arm64";
const X86_64: &str = "macosx_12_0_x86_64";

/// Releases, the platform for pip, and the purpose of each. Most have local symbols; the others say so.
const WHEELS: [(&str, &str, &str); 32] = [
    ("aiohttp==3.14.5", ARM64, "C of Cython, small"),
    ("cffi==2.1.1", ARM64, "one small bundle"),
    ("cryptography==50.0.2", ARM64, "Rust with OpenSSL's C and assembler in it"),
    ("duckdb==2.0.0", ARM64, "C++, 32,000 exported symbols and no local one"),
    ("greenlet==3.5.6", ARM64, "universal; assembler that changes stacks"),
    ("grpcio==1.85.1", ARM64, "universal; C++ of abseil and BoringSSL, 46,000 symbols a slice"),
    ("grpcio-tools==1.85.1", ARM64, "universal; protoc in C++"),
    ("h5py==3.16.0", ARM64, "libhdf5, which links several others of the wheel"),
    ("h5py==3.16.0", X86_64, "the same for the other architecture"),
    ("jaxlib==0.10.2", ARM64, "the large one: 260 MB, 650,000 symbols"),
    ("kiwisolver==1.5.1", ARM64, "C++ templates, small"),
    ("lightgbm==4.7.0", ARM64, "C++ without local symbols"),
    ("llvmlite==0.47.0", ARM64, "all of LLVM: 128,000 symbols"),
    ("lxml==6.1.3", ARM64, "universal; libxml2"),
    ("matplotlib==3.11.2", ARM64, "C++ with freetype"),
    ("mypy==2.4.1", ARM64, "generated C: one bundle of 197,000 symbols and 232 of nearly nothing"),
    ("numpy==2.4.6", ARM64, "OpenBLAS: Fortran and assembler"),
    ("numpy==2.4.6", X86_64, "the same for the other architecture"),
    ("onnxruntime==1.19.2", ARM64, "universal; C++, 82,000 symbols a slice"),
    ("orjson==3.13.0", ARM64, "universal; Rust, stripped"),
    ("pandas==3.1.1", ARM64, "45 bundles of Cython"),
    ("pillow==13.0.0", ARM64, "image libraries, each a dylib of its own"),
    ("polars-runtime-32==2.1.0", ARM64, "Rust: 195,000 symbols"),
    ("pyarrow==26.0.1", ARM64, "C++ with long names, 111,000 symbols"),
    ("pymupdf==2.0", ARM64, "C with much data among its text"),
    ("pyzmq==27.3.0", ARM64, "universal"),
    ("scikit-learn==1.9.1", ARM64, "70 bundles, OpenMP's runtime"),
    ("scipy==1.17.1", ARM64, "113 bundles: Fortran, C, C++"),
    ("shapely==2.2.0", ARM64, "GEOS in C++"),
    ("tokenizers==0.23.3", X86_64, "Rust with C++ in it"),
    ("xgboost==3.2.0", ARM64, "C++ templates"),
    ("z3-solver==4.13.2.0", ARM64, "C++, 65,000 symbols"),
];

/// Unpacks the Mach-O files of every wheel in `out`, in a folder named after the release and the architecture.
///
/// # Errors
/// A tool is missing or fails, or a wheel has no Mach-O file.
pub(crate) fn make(out: &Path) -> Result<()> {
    host::need(&HOST)?;
    for (release, platform, why) in WHEELS {
        println!("{release} {platform}: {why}");
        let scratch = tempfile::tempdir()?;
        let wheel = download(release, platform, scratch.path())?;
        let unpacked = scratch.path().join("unpacked");
        let args = ["-m", "zipfile", "-e", &wheel, "unpacked"];
        host::run("python3", scratch.path(), &words(&args))?;
        let arch = if platform == X86_64 { "-x86_64" } else { "" };
        let kept = keep(&unpacked, &out.join(format!("{}{arch}", release.replace("==", "-"))))?;
        ensure!(kept > 0, "{wheel} has no Mach-O file");
    }
    Ok(())
}

/// Downloads a wheel to `folder` and returns its file name.
fn download(release: &str, platform: &str, folder: &Path) -> Result<String> {
    let mut args = words(&["download", "--quiet", "--disable-pip-version-check", "--no-deps"]);
    args.extend(words(&["--only-binary=:all:", "--python-version", "3.11", "--platform", platform, release]));
    host::run("pip", folder, &args)?;
    let wheel = std::fs::read_dir(folder)?.next().context("pip downloaded nothing")??;
    Ok(wheel.file_name().display().to_string())
}

/// Copies the Mach-O files of `unpacked` to the same paths in `target` and returns their number.
fn keep(unpacked: &Path, target: &Path) -> Result<usize> {
    let mut kept = 0;
    for entry in WalkDir::new(unpacked).sort_by_file_name() {
        let entry = entry?;
        if entry.file_type().is_file() && is_mach_o(entry.path())? {
            let target = target.join(entry.path().strip_prefix(unpacked)?);
            std::fs::create_dir_all(target.parent().context("a path without a parent folder")?)?;
            std::fs::copy(entry.path(), target)?;
            kept += 1;
        }
    }
    Ok(kept)
}

/// Whether the file has the magic number of a thin little-endian or a fat Mach-O file.
fn is_mach_o(path: &Path) -> Result<bool> {
    let mut head = [0; 4];
    let read = File::open(path)?.read(&mut head)?;
    let magic = u32::from_be_bytes(head);
    Ok(read == head.len() && matches!(magic, 0xcafe_babe | 0xcafe_babf | 0xcefa_edfe | 0xcffa_edfe))
}
