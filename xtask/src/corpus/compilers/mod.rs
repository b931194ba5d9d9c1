//! `cargo xtask corpus compilers`: public sources and ours, compiled by several compilers with many options.
//!
//! The files are `VARIANT/libSOURCE.so`, or `VARIANT/libSOURCE.dylib` beside its dSYM.

mod variants;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use object::{Object as _, ObjectSymbol as _, SymbolKind};

use self::variants::{Compiler, LTO_OBJECTS, Source, Target, Then, VARIANTS, Variant};
use super::recipes::UNITS;
use crate::host::{self, words};
use crate::installed::is_installed;
use crate::tools::Tools;

const HOST: [host::Program; 5] =
    [("gcc", "gcc"), ("g++", "g++"), ("cargo", "cargo"), ("env", "coreutils"), ("pip", "python3-pip")];
const LLVM: [&str; 6] = ["clang", "ld.lld", "ld64.lld", "dsymutil", "llvm-dwp", "llvm-lipo"];
const BOLT: &str = "llvm-bolt-19";

/// The Python package with LLVM 22: Zig's compiler, which contains clang and lld.
const ZIG: &str = "ziglang==0.17.1";

/// The crates with the sources, and their versions.
const CRATES: [(&str, &str); 2] = [("libsqlite3-sys", "0.30.1"), ("harfbuzz-sys", "0.6.1")];

/// A program in Rust, and its manifest.
const MARKDOWN: &str = r#"
use std::io::Read as _;
fn main() -> std::io::Result<()> {
    let (mut text, mut html) = (String::new(), String::new());
    std::io::stdin().read_to_string(&mut text)?;
    let parser = pulldown_cmark::Parser::new_ext(&text, pulldown_cmark::Options::all());
    pulldown_cmark::html::push_html(&mut html, parser);
    print!("{html}");
    Ok(())
}
"#;
const MARKDOWN_MANIFEST: &str = r#"
[package]
name = "markdown"
edition = "2021"
[workspace]
[dependencies]
pulldown-cmark = { version = "=0.13.0", default-features = false, features = ["html"] }
[profile.release]
debug = 2
"#;

/// The folder in which cargo puts the sources of the crates.
const SOURCES: &str = "sources";

/// The units of testdata that Mach-O targets can compile.
const UNITS_FOR_MACHO: [&str; 7] = [
    "shapes/shapes.cpp",
    "inline/main.c",
    "inline/plain.c",
    "layout/cold.c",
    "layout/fold.c",
    "layout/lines.c",
    "layout/outline.c",
];

/// Basic blocks that get sections of their own, as Propeller lists them.
const BLOCKS: &str = "v1\nf flow_entry\nc 0\nc 1 3\nf drain_entry\nc 0 2\n";

impl Source {
    fn name(self) -> &'static str {
        match self {
            Self::Sqlite => "sqlite3",
            Self::HarfBuzz => "harfbuzz",
            Self::Layout => "layout",
            Self::Ours => "ours",
            Self::Markdown => "markdown",
        }
    }
}

/// Makes the images of every variant in the folder `out`. The sources come from the registries that cargo and pip are
/// configured with. Variants of programs that are not installed are skipped.
///
/// # Errors
/// A tool is missing or fails.
pub(crate) fn make(ours: &Path, out: &Path) -> Result<()> {
    host::need(&HOST)?;
    let scratch = tempfile::tempdir()?;
    let tools = Tools::find(scratch.path(), &LLVM)?;
    // dsymutil looks for it.
    tools.put_on_path("llvm-lipo", "lipo")?;
    download(scratch.path())?;
    let maker = Maker { tools: &tools, ours, scratch: scratch.path() };
    for variant in VARIANTS {
        if let Some(program) = needed(variant).filter(|program| !is_installed(program)) {
            println!("{}: skipped, {program} is not installed", variant.name);
            continue;
        }
        for source in variant.sources {
            println!("{}: {}", variant.name, source.name());
            let folder = out.join(variant.name);
            std::fs::create_dir_all(&folder)?;
            maker.image(variant, *source, &folder)?;
        }
    }
    Ok(())
}

/// A program that a variant needs and that is not part of every installation.
fn needed(variant: &Variant) -> Option<String> {
    match (variant.compiler, variant.then) {
        (Compiler::Gcc(suffix), _) => Some(format!("g++{suffix}")),
        (_, Then::Bolt(_)) => Some(BOLT.to_owned()),
        _ => None,
    }
}

/// Puts the sources of the crates into the folder [`SOURCES`] of `scratch`, and Zig's compiler beside it.
fn download(scratch: &Path) -> Result<()> {
    let mut manifest = "[package]\nname = \"corpus\"\n[workspace]\n[dependencies]\n".to_owned();
    for (name, version) in CRATES {
        writeln!(manifest, "{name} = {{ version = \"={version}\", default-features = false }}")?;
    }
    std::fs::create_dir(scratch.join("src"))?;
    std::fs::write(scratch.join("src/lib.rs"), "")?;
    std::fs::write(scratch.join("Cargo.toml"), manifest)?;
    host::run("cargo", scratch, &words(&["vendor", "--quiet", SOURCES]))?;
    let args = ["install", "--quiet", "--disable-pip-version-check", "--no-deps", "--target", "zig", ZIG];
    host::run("pip", scratch, &words(&args))?;
    Ok(())
}

struct Maker<'a> {
    tools: &'a Tools,
    /// The folder of our sources.
    ours: &'a Path,
    scratch: &'a Path,
}

impl Maker<'_> {
    /// Makes the image of `source` in `folder`.
    fn image(&self, variant: &Variant, source: Source, folder: &Path) -> Result<()> {
        if variant.compiler == Compiler::Rust {
            return self.rust(variant, folder);
        }
        // An image refers to its .dwo files by the folder that the compiler ran in.
        let objects = folder.join(source.name());
        std::fs::create_dir(&objects)?;
        let name = match variant.target {
            Target::Elf => format!("lib{}.so", source.name()),
            Target::MachO => format!("lib{}.dylib", source.name()),
        };
        std::fs::write(objects.join("BLOCKS"), BLOCKS)?;
        let linked = self.compile(variant, source, &objects)?;
        self.link(variant, &objects, &name, &linked, &[])?;
        let image = objects.join(&name);
        self.finish(variant, folder, &objects, &name, &linked)?;
        if variant.target == Target::MachO {
            let bundle = folder.join(format!("{name}.dSYM"));
            self.tools.run("dsymutil", &objects, [name.as_ref(), "-o".as_ref(), bundle.as_os_str()])?;
        }
        std::fs::rename(image, folder.join(name))?;
        remove(&objects, &["o", "BLOCKS", "order", LTO_OBJECTS])?;
        // The folder stays if it has .dwo files.
        let _ = std::fs::remove_dir(&objects);
        Ok(())
    }

    /// Does with the image `name` in the folder `objects` what the variant asks for after the link.
    fn finish(
        &self,
        variant: &Variant,
        folder: &Path,
        objects: &Path,
        name: &str,
        linked: &[String],
    ) -> Result<()> {
        let image = objects.join(name);
        match variant.then {
            Then::Nothing => {}
            Then::Package => {
                let package = format!("{name}.dwp");
                self.tools.run("llvm-dwp", objects, ["-e", name, "-o", &package])?;
                std::fs::rename(objects.join(&package), folder.join(package))?;
                remove(objects, &["dwo"])?;
            }
            Then::Reorder => {
                let order = order(&std::fs::read(&image)?)?;
                ensure!(!order.is_empty(), "{} has no functions", image.display());
                std::fs::write(objects.join("order"), order)?;
                let option = match variant.target {
                    Target::Elf => ["--symbol-ordering-file", "order"],
                    Target::MachO => ["-order_file", "order"],
                };
                self.link(variant, objects, name, linked, &option)?;
            }
            Then::Bolt(options) => {
                let bolted = format!("{name}.bolt");
                let mut args = words(options);
                args.extend(words(&["--update-debug-sections", name, "-o", &bolted]));
                host::run(BOLT, objects, &args)?;
                std::fs::rename(objects.join(bolted), &image)?;
            }
        }
        Ok(())
    }

    /// Compiles the units of `source` in the folder `objects` and returns the names of the objects.
    fn compile(&self, variant: &Variant, source: Source, objects: &Path) -> Result<Vec<String>> {
        let crates = self.scratch.join(SOURCES);
        let (folder, units): (&Path, &[&str]) = match (source, variant.target) {
            (Source::Sqlite, _) => (&crates, &["libsqlite3-sys/sqlite3/sqlite3.c"]),
            (Source::HarfBuzz, _) => (&crates, &["harfbuzz-sys/harfbuzz/src/harfbuzz.cc"]),
            (Source::Layout, _) => (&crates, &["harfbuzz-sys/harfbuzz/src/hb-aat-layout.cc"]),
            (Source::Ours, Target::Elf) => (self.ours, &UNITS),
            (Source::Ours, Target::MachO) => (self.ours, &UNITS_FOR_MACHO),
            (Source::Markdown, _) => (&crates, &[]),
        };
        let mut linked = Vec::new();
        for (number, unit) in units.iter().enumerate() {
            let object = format!("unit{number}.o");
            let mut args = words(variant.flags);
            args.extend(words(&["-w", "-fPIC", "-c", "-o", &object]));
            args.extend(words(match source {
                Source::Ours => &["-ffreestanding", "-DLIBRARY"],
                // Its functions of other files are hidden otherwise, and no linker leaves those undefined.
                Source::Layout => &["-DHB_NO_VISIBILITY"],
                Source::Sqlite | Source::HarfBuzz | Source::Markdown => &[],
            }));
            for private in [self.scratch, self.ours] {
                args.push(format!("-ffile-prefix-map={}=/src", private.display()));
            }
            args.push(folder.join(unit).display().to_string());
            let is_cxx = unit.ends_with(".cc") || unit.ends_with(".cpp");
            self.compiler(variant, is_cxx, objects, args)?;
            linked.push(object);
        }
        Ok(linked)
    }

    fn compiler(&self, variant: &Variant, is_cxx: bool, folder: &Path, mut args: Vec<String>) -> Result<()> {
        let own = match (variant.compiler, variant.target) {
            (Compiler::Gcc(suffix), _) => {
                let program = if is_cxx { "g++" } else { "gcc" };
                host::run(&format!("{program}{suffix}"), folder, &args)?;
                return Ok(());
            }
            // It reads the headers of this machine, after its own.
            (Compiler::Clang22, Target::Elf) => {
                let headers = self.scratch.join("zig/ziglang/lib/include").display().to_string();
                let mode = if is_cxx { "--driver-mode=g++" } else { "--driver-mode=gcc" };
                words(&["clang", mode, "-idirafter", &headers])
            }
            // It brings the headers of macOS.
            (Compiler::Clang22, Target::MachO) => {
                words(&[if is_cxx { "c++" } else { "cc" }, "-target", "aarch64-macos.13.0"])
            }
            (Compiler::Clang19 | Compiler::Rust, target) => {
                let triple = if target == Target::Elf { "x86_64-linux-gnu" } else { "arm64-apple-macos13.0" };
                args.splice(0..0, words(&["-target", triple]));
                self.tools.run("clang", folder, args)?;
                return Ok(());
            }
        };
        args.splice(0..0, own);
        self.zig(folder, args)
    }

    /// Runs Zig's compiler. Its cache is in the scratch folder.
    fn zig(&self, folder: &Path, args: Vec<String>) -> Result<()> {
        let cache = format!("ZIG_GLOBAL_CACHE_DIR={}", self.scratch.join("cache").display());
        let zig = self.scratch.join("zig/ziglang/zig").display().to_string();
        host::run("env", folder, &[vec![cache, zig], args].concat())?;
        Ok(())
    }

    /// Links the image `name` in the folder `objects`.
    fn link(
        &self,
        variant: &Variant,
        objects: &Path,
        name: &str,
        linked: &[String],
        more: &[&str],
    ) -> Result<()> {
        let elf = ["-shared", "--build-id=sha1", "-o", name];
        let macho =
            ["-arch", "arm64", "-platform_version", "macos", "13.0", "13.0", "-dylib", "-oso_prefix", "."];
        let undefined = ["-undefined", "dynamic_lookup", "-o", name];
        let own = words(&[variant.link, more].concat());
        let args = |first: &[&str]| [words(first), own.clone(), linked.to_vec()].concat();
        match (variant.compiler, variant.target) {
            (Compiler::Gcc(suffix), _) => {
                let shared = [variant.flags, &["-shared", "-Wl,--build-id=sha1", "-o", name]].concat();
                host::run(&format!("g++{suffix}"), objects, &args(&shared))?;
            }
            (Compiler::Clang22, Target::Elf) => self.zig(objects, args(&[&["ld.lld"], &elf[..]].concat()))?,
            (_, Target::Elf) => {
                self.tools.run("ld.lld", objects, args(&elf))?;
            }
            (_, Target::MachO) => {
                self.tools.run("ld64.lld", objects, args(&[&macho[..], &undefined].concat()))?;
            }
        }
        Ok(())
    }

    /// Makes a program that converts Markdown, with cargo's own compiler.
    fn rust(&self, variant: &Variant, folder: &Path) -> Result<()> {
        let package = self.scratch.join(variant.name);
        std::fs::create_dir_all(package.join("src"))?;
        std::fs::write(package.join("src/main.rs"), MARKDOWN)?;
        std::fs::write(package.join("Cargo.toml"), MARKDOWN_MANIFEST)?;
        let mut args = words(&["build", "--quiet", "--release", "--target-dir", "target", "--config"]);
        args.push(format!("build.rustflags=['--remap-path-prefix={}=/src']", package.display()));
        args.extend(words(variant.flags));
        host::run("cargo", &package, &args)?;
        std::fs::copy(package.join("target/release/markdown"), folder.join("markdown"))?;
        Ok(())
    }
}

/// The functions of an image in the reverse order of their names, one a line.
fn order(image: &[u8]) -> Result<String> {
    let file = object::File::parse(image)?;
    let is_function =
        |symbol: &object::Symbol<'_, '_>| symbol.kind() == SymbolKind::Text && symbol.is_definition();
    let names: Vec<&str> =
        file.symbols().filter(is_function).filter_map(|symbol| symbol.name().ok()).collect();
    let mut names: Vec<&str> = names.into_iter().filter(|name| !name.is_empty()).collect();
    names.sort_unstable_by(|a, b| b.cmp(a));
    Ok(names.iter().fold(String::new(), |lines, name| lines + name + "\n"))
}

/// Removes the files and folders with these names or extensions.
fn remove(folder: &Path, names: &[&str]) -> Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path: PathBuf = entry?.path();
        let name = path.extension().or(path.file_name()).context("a file without a name")?;
        if names.iter().any(|unwanted| name == *unwanted) {
            if path.is_dir() { std::fs::remove_dir_all(path)? } else { std::fs::remove_file(path)? }
        }
    }
    Ok(())
}
