//! `cargo xtask corpus android`: our sources as shared objects for each Android ABI, each in many variants.
//!
//! The files are `ABI/IMAGE/VARIANT/libIMAGE.so`. No NDK is needed, because the sources include no headers of a system.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::android_recipes::{
    ABIS, Abi, Compiler, PLAIN, RECIPES, Recipe, SHARED_BY_DWZ, Shared, UNITS, Variants,
};
use super::variants;
use crate::host::{self, words};
use crate::tools::Tools;

const LLVM: [&str; 5] = ["clang", "clang++", "ld.lld", "llvm-objcopy", "llvm-dwp"];
const HOST: [host::Program; 5] =
    [("gcc", "gcc"), ("g++", "g++"), ("objcopy", "binutils"), ("xz", "xz-utils"), ("dwz", "dwz")];

/// The folder of the sources in the debug information.
const SOURCE_ROOT: &str = "/src/symdex";

/// Makes every image and variant in the folder `out`.
///
/// The files must stay in `out`: an image refers to its `.dwo` files by their folder.
///
/// # Errors
/// A tool is missing or fails.
pub(crate) fn make(sources: &Path, out: &Path) -> Result<()> {
    host::need(&HOST)?;
    let scratch = tempfile::tempdir()?;
    let tools = Tools::find(scratch.path(), &LLVM)?;
    let builder = Builder { tools: &tools, sources, scratch: scratch.path() };
    for abi in &ABIS {
        let folder = out.join(abi.name);
        for recipe in RECIPES.iter().filter(|recipe| recipe.is_for(abi)) {
            println!("{} {}", abi.name, recipe.name);
            builder.image(abi, recipe, &folder.join(recipe.name))?;
        }
        for shared in &SHARED_BY_DWZ {
            share(shared, &folder)?;
        }
    }
    Ok(())
}

struct Builder<'a> {
    tools: &'a Tools,
    sources: &'a Path,
    scratch: &'a Path,
}

impl Builder<'_> {
    /// Makes the image and its variants in `folder`.
    fn image(&self, abi: &Abi, recipe: &Recipe, folder: &Path) -> Result<()> {
        let name = format!("lib{}.so", recipe.name);
        // An image refers to its .dwo files by the folder that the compiler ran in.
        let objects = match recipe.variants {
            Variants::Dwo => folder.join("dwo"),
            _ => self.scratch.join(abi.name).join(recipe.name),
        };
        std::fs::create_dir_all(&objects)?;
        self.link(abi, recipe, &objects, &name)?;
        let image = objects.join(&name);
        match recipe.variants {
            Variants::Few => variants::few(self.tools, &image, folder),
            Variants::All => variants::all(self.tools, &image, folder, abi.name),
            Variants::Dwo => remove_objects(&objects),
            Variants::Dwp => variants::packaged(self.tools, &image, folder),
        }
    }

    /// Compiles and links in the folder `objects`. The image is `name` there.
    fn link(&self, abi: &Abi, recipe: &Recipe, objects: &Path, name: &str) -> Result<()> {
        let mut linked = Vec::new();
        for (number, unit) in UNITS.iter().enumerate() {
            let object =
                format!("{}.o", Path::new(unit).file_stem().context("a unit without a file name")?.display());
            let source = self.sources.join(unit);
            // The build systems of the NDK use these flags. clang omits unwind tables from freestanding code otherwise.
            let mut args = words(&["-funwind-tables", "-fasynchronous-unwind-tables"]);
            args.extend(words(recipe.flags));
            if number % 2 == 1 {
                args.extend(words(recipe.second));
            }
            if *unit == PLAIN {
                args.push("-g0".to_owned());
            }
            args.extend(words(&["-w", "-fPIC", "-ffreestanding", "-DLIBRARY", "-c", "-o", &object]));
            args.push(format!("-ffile-prefix-map={}={SOURCE_ROOT}", self.sources.display()));
            args.push(source.display().to_string());
            let is_cxx = source.extension().is_some_and(|extension| extension == "cpp");
            self.compiler(abi, recipe, is_cxx, objects, args)?;
            linked.push(object);
        }
        let mut args = words(&["-nostdlib", "-o", name]);
        args.extend(words(recipe.link));
        args.extend(linked);
        self.compiler(abi, recipe, false, objects, args)
    }

    fn compiler(
        &self,
        abi: &Abi,
        recipe: &Recipe,
        is_cxx: bool,
        folder: &Path,
        mut args: Vec<String>,
    ) -> Result<()> {
        match recipe.compiler {
            Compiler::Clang => {
                let own = ["-Qunused-arguments", "-fuse-ld=lld"].map(str::to_owned);
                args.splice(0..0, own.into_iter().chain([format!("--target={}", abi.triple)]));
                self.tools.run(if is_cxx { "clang++" } else { "clang" }, folder, args)?;
            }
            Compiler::Gcc => {
                // Destructors of static objects need a symbol of the C library's start files otherwise.
                args.push("-fno-use-cxa-atexit".to_owned());
                host::run(if is_cxx { "g++" } else { "gcc" }, folder, &args)?;
            }
        }
        Ok(())
    }
}

/// Removes the objects and keeps the `.dwo` files and the image.
fn remove_objects(folder: &Path) -> Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "o") {
            std::fs::remove_file(path)?;
        }
    }
    Ok(())
}

/// Runs dwz, which moves the common parts of two images to a third file beside them. Does nothing if the ABI lacks one.
fn share(shared: &Shared, abi: &Path) -> Result<()> {
    let unstripped = |name: &&str| abi.join(name).join(variants::UNSTRIPPED).join(format!("lib{name}.so"));
    let images: Vec<PathBuf> = shared.recipes.iter().map(unstripped).collect();
    if !images.iter().all(|image| image.is_file()) {
        return Ok(());
    }
    let folder = abi.join(shared.name);
    std::fs::create_dir_all(&folder)?;
    let mut args = words(shared.flags);
    args.extend(words(&["-m", "common.debug", "-M", "common.debug"]));
    for image in &images {
        let name = image.file_name().context("an image without a file name")?;
        std::fs::copy(image, folder.join(name))?;
        args.push(name.display().to_string());
    }
    host::run("dwz", &folder, &args)?;
    Ok(())
}
