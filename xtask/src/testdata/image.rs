//! Makes an image and its `.dSYM` from a [`Recipe`]: compile, link, join slices, run dsymutil.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use super::recipes::{Arch, Recipe, Unit};
use crate::tools::Tools;

/// The folder of the sources in debug files. The real folder differs between machines.
pub(super) const SOURCE_ROOT: &str = "/src/symdex";

/// Makes images in a folder, each in a subfolder with its name.
pub(crate) struct Builder<'a> {
    pub(crate) tools: &'a Tools,
    /// `testdata/src`. The compilers run in it, so that file names in debug files are relative.
    pub(crate) sources: &'a Path,
    pub(crate) work: &'a Path,
}

impl Builder<'_> {
    /// Links the image of `recipe` and returns its path. The objects stay beside it for dsymutil.
    ///
    /// # Errors
    /// A tool fails. The error has its command line and its error text.
    pub(crate) fn link(&self, recipe: &Recipe) -> Result<PathBuf> {
        let folder = self.work.join(recipe.name);
        std::fs::create_dir_all(&folder)?;
        let image = folder.join(recipe.name);
        let mut slices = Vec::new();
        for arch in recipe.arches {
            let objects = self.compile(recipe.units, arch, &folder)?;
            let slice = format!("{}.{}", recipe.name, arch.name);
            self.link_slice(recipe, arch, &objects, &folder, &slice)?;
            slices.push(slice);
        }
        if let [thin] = slices.as_slice() {
            std::fs::rename(folder.join(thin), &image)?;
        } else {
            let mut args = vec!["-create".to_owned(), "-output".to_owned(), recipe.name.to_owned()];
            args.extend(slices);
            self.tools.run("llvm-lipo", &folder, args)?;
        }
        Ok(image)
    }

    /// Makes the `.dSYM` of a linked image in the folder `out` and returns the path of the debug file in it.
    ///
    /// # Errors
    /// A tool fails. The error has its command line and its error text.
    pub(crate) fn debug_file(&self, recipe: &Recipe, out: &Path) -> Result<PathBuf> {
        let folder = self.work.join(recipe.name);
        let bundle = out.join(format!("{}.dSYM", recipe.bundle.unwrap_or(recipe.name)));
        let mut args: Vec<&str> = recipe.dsymutil.to_vec();
        let target = bundle.to_str().context("the output folder's path is not UTF-8")?;
        args.extend(["--num-threads", "1", "-o", target, recipe.name]);
        self.tools.run("dsymutil", &folder, args)?;
        let resources = bundle.join("Contents/Resources");
        // A map of relocations, which contains the path of the image. Only dsymutil reads it.
        let relocations = resources.join("Relocations");
        if relocations.exists() {
            std::fs::remove_dir_all(relocations)?;
        }
        let dwarf = resources.join("DWARF").join(recipe.name);
        ensure!(dwarf.is_file(), "dsymutil made no {}", dwarf.display());
        Ok(dwarf)
    }

    /// Compiles `units` and returns the objects' paths relative to `folder`.
    fn compile(&self, units: &[Unit], arch: &Arch, folder: &Path) -> Result<Vec<String>> {
        let mut objects = Vec::new();
        for (number, unit) in units.iter().enumerate() {
            let object = format!("unit{number}.{}.o", arch.name);
            let path = folder.join(&object);
            if unit.source.ends_with(".swift.c") {
                self.compile_swift_names(unit, arch, &path)?;
            } else {
                self.clang(unit, arch, &["-c"], &path)?;
            }
            objects.push(object);
        }
        Ok(objects)
    }

    fn clang(&self, unit: &Unit, arch: &Arch, action: &[&str], output: &Path) -> Result<()> {
        let (tool, standard) = match unit.source.rsplit('.').next() {
            Some("cpp" | "cppm" | "mm") => ("clang++", "-std=c++20"),
            _ => ("clang", "-std=c17"),
        };
        let mut args =
            vec!["-target", arch.triple, "-nostdinc", "-Wall", "-Wno-unused-command-line-argument"];
        let map = format!("-ffile-prefix-map={}={SOURCE_ROOT}", self.sources.display());
        let directory = format!("-fdebug-compilation-dir={SOURCE_ROOT}");
        args.extend([map.as_str(), directory.as_str()]);
        if !unit.source.ends_with(".s") {
            args.push(standard);
        }
        if unit.source.ends_with(".m") || unit.source.ends_with(".mm") {
            args.extend(["-fobjc-arc", "-fblocks"]);
        }
        args.extend(unit.flags);
        let output = output.to_str().context("the scratch folder's path is not UTF-8")?;
        args.extend(action);
        args.extend([unit.source, "-o", output]);
        self.tools.run(tool, self.sources, args)?;
        Ok(())
    }

    /// Compiles C with Swift names as asm labels, so that the debug information looks like swiftc's.
    ///
    /// clang writes an asm label into the linkage name with Mach-O's `_`. swiftc writes the name without it, and states
    /// Swift as the language. Both are edited in the text of the optimised LLVM IR.
    fn compile_swift_names(&self, unit: &Unit, arch: &Arch, object: &Path) -> Result<()> {
        let listing = object.with_extension("ll");
        self.clang(unit, arch, &["-S", "-emit-llvm"], &listing)?;
        let text = std::fs::read_to_string(&listing)?;
        std::fs::write(&listing, as_swiftc_would(&text))?;
        // The optimiser has run already. Only code generation is left.
        let flags = ["-target", arch.triple, "-O2", "-Xclang", "-disable-llvm-passes", "-c"].map(OsStr::new);
        let files = [listing.as_os_str(), OsStr::new("-o"), object.as_os_str()];
        self.tools.run("clang", self.sources, flags.into_iter().chain(files))?;
        Ok(())
    }

    fn link_slice(
        &self,
        recipe: &Recipe,
        arch: &Arch,
        objects: &[String],
        folder: &Path,
        slice: &str,
    ) -> Result<()> {
        let [platform, version] = arch.platform;
        let mut args = vec!["-arch", arch.name, "-platform_version", platform, version, version];
        // Object paths are relative to the folder, because the linker hashes them into the UUID.
        args.extend(["-oso_prefix", ".", "-undefined", "dynamic_lookup", "-o", slice]);
        let install_name = match recipe.bundle {
            Some(bundle) => format!("@rpath/{bundle}/{}", recipe.name),
            None => format!("@rpath/{}", recipe.name),
        };
        if recipe.dylib {
            args.extend(["-dylib", "-install_name", &install_name]);
        }
        args.extend(objects.iter().map(String::as_str));
        args.extend(recipe.link);
        self.tools.run("ld64.lld", folder, args)?;
        if let Some(subtype) = arch.subtype {
            let (path, at) = (folder.join(slice), 8);
            let mut bytes = std::fs::read(&path)?;
            bytes[at..at + 4].copy_from_slice(&subtype.to_le_bytes());
            std::fs::write(path, bytes)?;
        }
        Ok(())
    }
}

fn as_swiftc_would(ir: &str) -> String {
    let renamed = ir.replace(r#"linkageName: "\01_$s"#, r#"linkageName: "$s"#);
    let mut lines: Vec<String> = renamed.lines().map(str::to_owned).collect();
    for line in lines.iter_mut().filter(|line| line.contains("!DICompileUnit(")) {
        *line = line.replace("language: DW_LANG_C11", "language: DW_LANG_Swift");
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::as_swiftc_would;

    #[test]
    fn swift_names_lose_the_underscore_and_units_become_swift() {
        let ir = concat!(
            "!1 = !DICompileUnit(language: DW_LANG_C11, file: !2)\n",
            r#"!3 = !DISubprogram(name: "f", linkageName: "\01_$s1a1fyyF", unit: !1)"#,
            "\n"
        );
        let expected = concat!(
            "!1 = !DICompileUnit(language: DW_LANG_Swift, file: !2)\n",
            r#"!3 = !DISubprogram(name: "f", linkageName: "$s1a1fyyF", unit: !1)"#,
            "\n"
        );
        assert_eq!(as_swiftc_would(ir), expected);
    }
}
