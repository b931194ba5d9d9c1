//! Makes the variants of a linked image: stripped, compressed, separated from its debug information.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use object::{Object, ObjectSymbol, SymbolKind};

use crate::host::{self, words};
use crate::tools::Tools;

/// The variant that the others are made from.
pub(crate) const UNSTRIPPED: &str = "unstripped";

/// Variants that one run of llvm-objcopy makes, with its option. All keep `.dynsym` and the build id.
const COPIES: [(&str, &str); 5] = [
    ("strip-debug", "--strip-debug"),
    ("zlib", "--compress-debug-sections=zlib"),
    ("zstd", "--compress-debug-sections=zstd"),
    // Without section headers, only the program headers describe the file.
    ("without-sections", "--strip-sections"),
    STRIPPED,
];

const STRIPPED: (&str, &str) = ("stripped", "--strip-all");

/// Makes the unstripped image, a stripped one, and a stripped one with a `.gnu_debuglink` in `folder`.
///
/// # Errors
/// A tool fails. The error has its command line and its error text.
pub(crate) fn few(tools: &Tools, image: &Path, folder: &Path) -> Result<()> {
    let unstripped = place(image, &folder.join(UNSTRIPPED))?;
    copy(tools, &unstripped, folder, STRIPPED)?;
    link_debug_file(tools, &unstripped, &folder.join("debuglink"))
}

/// Makes every variant that does not depend on the compiler in `folder`.
///
/// # Errors
/// A tool fails. The error has its command line and its error text.
pub(crate) fn all(tools: &Tools, image: &Path, folder: &Path, abi: &str) -> Result<()> {
    few(tools, image, folder)?;
    let unstripped = place(image, &folder.join(UNSTRIPPED))?;
    for variant in COPIES {
        copy(tools, &unstripped, folder, variant)?;
    }
    by_build_id(tools, &unstripped, &folder.join("build-id"))?;
    mini_debug_info(tools, &unstripped, &folder.join("minidebug"))?;
    // LLVM no longer writes .zdebug sections, and Debian's objcopy supports only the formats of this machine.
    if abi.starts_with("x86") {
        let target = placed(&unstripped, &folder.join("zdebug"))?;
        let args = ["--compress-debug-sections=zlib-gnu", text(&unstripped)?, text(&target)?];
        host::run("objcopy", folder, &words(&args))?;
    }
    Ok(())
}

/// Makes the image beside a `.dwp` of its `.dwo` files, and the image alone. The `.dwo` files beside `image` are not
/// copied.
///
/// # Errors
/// A tool fails. The error has its command line and its error text.
pub(crate) fn packaged(tools: &Tools, image: &Path, folder: &Path) -> Result<()> {
    place(image, &folder.join("missing"))?;
    let image = place(image, &folder.join("dwp"))?;
    let package = format!("{}.dwp", text(&image)?);
    tools.run("llvm-dwp", folder, ["-e", text(&image)?, "-o", &package])?;
    Ok(())
}

/// Makes a copy of `image` with one option of llvm-objcopy, in a folder with the variant's name.
fn copy(tools: &Tools, image: &Path, folder: &Path, (variant, option): (&str, &str)) -> Result<()> {
    let target = placed(image, &folder.join(variant))?;
    objcopy(tools, folder, &[option, text(image)?, text(&target)?])
}

/// Makes the stripped image beside the debug file that it refers to.
fn link_debug_file(tools: &Tools, image: &Path, folder: &Path) -> Result<()> {
    let target = placed(image, folder)?;
    let debug_file = format!("{}.debug", text(&target)?);
    objcopy(tools, folder, &["--only-keep-debug", text(image)?, &debug_file])?;
    let link = format!("--add-gnu-debuglink={debug_file}");
    objcopy(tools, folder, &["--strip-all", &link, text(image)?, text(&target)?])
}

/// Makes the stripped image, and its debug file as `.build-id/XX/REST.debug` for `--debug-dir`.
fn by_build_id(tools: &Tools, image: &Path, folder: &Path) -> Result<()> {
    let target = placed(image, folder)?;
    objcopy(tools, folder, &["--strip-all", text(image)?, text(&target)?])?;
    let bytes = std::fs::read(image)?;
    let id = object::File::parse(bytes.as_slice())?.build_id()?.context("an image without a build id")?;
    let hex: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
    let debug_file = folder.join(format!(".build-id/{}/{}.debug", &hex[..2], &hex[2..]));
    std::fs::create_dir_all(debug_file.parent().context("a path without a parent folder")?)?;
    objcopy(tools, folder, &["--only-keep-debug", text(image)?, text(&debug_file)?])
}

/// Makes the stripped image with a `.gnu_debugdata`: an ELF file, compressed by xz, with the functions that `.dynsym`
/// lacks.
fn mini_debug_info(tools: &Tools, image: &Path, folder: &Path) -> Result<()> {
    let target = placed(image, folder)?;
    let bytes = std::fs::read(image)?;
    let file = object::File::parse(bytes.as_slice())?;
    let dynamic: BTreeSet<&str> = file.dynamic_symbols().filter_map(|symbol| symbol.name().ok()).collect();
    let functions =
        file.symbols().filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.is_definition());
    let kept: BTreeSet<&str> =
        functions.filter_map(|symbol| symbol.name().ok()).filter(|name| !dynamic.contains(name)).collect();
    let scratch = tempfile::tempdir()?;
    let [names, debug, mini] = ["names", "debug", "mini"].map(|name| scratch.path().join(name));
    std::fs::write(&names, kept.into_iter().collect::<Vec<_>>().join("\n"))?;
    objcopy(tools, folder, &["--only-keep-debug", text(image)?, text(&debug)?])?;
    let keep = format!("--keep-symbols={}", text(&names)?);
    objcopy(tools, folder, &["--strip-all", &keep, text(&debug)?, text(&mini)?])?;
    host::run("xz", scratch.path(), &words(&["mini"]))?;
    let add = format!("--add-section=.gnu_debugdata={}.xz", text(&mini)?);
    objcopy(tools, folder, &["--strip-all", &add, text(image)?, text(&target)?])
}

fn objcopy(tools: &Tools, folder: &Path, args: &[&str]) -> Result<()> {
    tools.run("llvm-objcopy", folder, args)?;
    Ok(())
}

/// Copies `image` to `folder` and returns the path of the copy.
fn place(image: &Path, folder: &Path) -> Result<PathBuf> {
    let target = placed(image, folder)?;
    std::fs::copy(image, &target)?;
    Ok(target)
}

/// Creates `folder` and returns the path of a file with the name of `image` in it.
fn placed(image: &Path, folder: &Path) -> Result<PathBuf> {
    std::fs::create_dir_all(folder)?;
    Ok(folder.join(image.file_name().context("an image without a file name")?))
}

fn text(path: &Path) -> Result<&str> {
    path.to_str().context("a path that is not UTF-8")
}
