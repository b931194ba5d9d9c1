//! `--discover`: what builds have left below a folder.

use std::fs::{self, DirEntry, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use symdex_build::debug_files::images_in;

use crate::failure::{Cause, Failure, complain, note};

/// How deep folders are searched, and how many entries are looked at.
const MAX_DEPTH: usize = 24;
const MAX_ENTRIES: usize = 2_000_000;

/// What is found by the end of its path. `*` stands for any text in a part of the path. The first that fits counts.
///
/// * Xcode writes archives and, below `DerivedData/*/Build/Products`, bundles. dsymutil, cargo and CMake write bundles
///   beside the program.
/// * Gradle's plugin for Android has the libraries of all modules before they are stripped in `merged_native_libs`, and
///   those of each CMake or ndk-build module in `cxx` (`cmake` before version 7).
/// * Flutter writes `app.android-arm64.symbols` and so on into the folder of `--split-debug-info`.
const FOLDERS: [(&str, &[&str]); 6] = [
    ("Xcode archive", &["*.xcarchive"]),
    ("dSYM", &["*.dSYM"]),
    ("Gradle libraries", &["intermediates", "merged_native_libs", "*"]),
    ("Gradle libraries of a module", &["intermediates", "cxx", "*", "*", "obj"]),
    ("Gradle libraries of a module", &["intermediates", "cmake", "*", "obj"]),
    ("Gradle libraries of a module", &["intermediates", "ndkBuild", "*", "obj"]),
];
const FLUTTER: &str = "*.symbols";

/// A folder of programs. Its programs and libraries are found by what they contain.
struct BuildFolder {
    what: &'static str,
    /// A file in it.
    mark: &'static str,
    /// Folders in it that have copies of what is elsewhere, and programs of the build itself.
    skipped: &'static [&'static str],
}

const BUILD_FOLDERS: [BuildFolder; 2] = [
    BuildFolder {
        what: "cargo",
        mark: ".rustc_info.json",
        skipped: &["deps", "build", "incremental", ".fingerprint"],
    },
    BuildFolder { what: "CMake", mark: "CMakeCache.txt", skipped: &["CMakeFiles"] },
];

/// Folders that are not searched, wherever they are.
const SKIPPED: [&str; 2] = [".git", "node_modules"];

/// A search.
#[derive(Default)]
struct Search {
    found: Vec<(&'static str, PathBuf)>,
    entries: usize,
}

/// What builds have left below `roots`, in the order of the paths of each. It is printed unless `is_quiet`.
pub(super) fn discover(roots: &[PathBuf], is_quiet: bool) -> Result<Vec<PathBuf>, Failure> {
    let mut search = Search::default();
    for root in roots {
        let entries = fs::read_dir(root).map_err(|error| Failure::unreadable(root, &error))?;
        let (before, build) = (search.found.len(), build_folder(root));
        search.entries_of(entries.flatten().collect(), build, 0);
        search.found[before..].sort_by(|a, b| a.1.cmp(&b.1));
    }
    if search.entries >= MAX_ENTRIES {
        complain(&format!(
            "warning: --discover ends after {MAX_ENTRIES} files; give the folders of the builds"
        ));
    }
    if search.found.is_empty() {
        let roots = crate::text::list(roots.iter().map(|root| root.display()));
        let message = format!(
            "{roots}: --discover finds no Xcode archive, dSYM, native library of Gradle, symbols of Flutter, and no \
             build folder of cargo or CMake with debug information"
        );
        return Err(Failure::new(Cause::NotFound, message));
    }
    for (what, path) in search.found.iter().filter(|_| !is_quiet) {
        note(&format!("found {what}: {}", path.display()));
    }
    Ok(search.found.into_iter().map(|(_, path)| path).collect())
}

impl Search {
    /// Searches the `entries` of a folder, which is in a build folder of this kind.
    fn entries_of(&mut self, entries: Vec<DirEntry>, build: Option<&BuildFolder>, depth: usize) {
        for entry in entries {
            self.entries += 1;
            if self.entries >= MAX_ENTRIES {
                return;
            }
            let (Ok(kind), path, name) = (entry.file_type(), entry.path(), entry.file_name()) else {
                continue;
            };
            let name = name.to_string_lossy();
            // cargo links to the bundles below `deps`.
            if kind.is_dir() || kind.is_symlink() && fits(&name, "*.dSYM") && path.is_dir() {
                let is_skipped = |skipped: &[&str]| skipped.contains(&&*name);
                if let Some((what, _)) = FOLDERS.iter().find(|(_, end)| ends_with(&path, end)) {
                    self.found.push((what, path));
                } else if !is_skipped(&SKIPPED) && !build.is_some_and(|build| is_skipped(build.skipped)) {
                    let build = build.or_else(|| build_folder(&path));
                    match fs::read_dir(&path) {
                        _ if depth == MAX_DEPTH => not_searched(&path, "it is too deep"),
                        Ok(entries) => self.entries_of(entries.flatten().collect(), build, depth + 1),
                        Err(error) => not_searched(&path, &error.to_string()),
                    }
                }
            } else if kind.is_file() {
                if fits(&name, FLUTTER) && is_elf(&path) {
                    self.found.push(("symbols of Flutter", path));
                } else if let Some(build) = build.filter(|_| is_elf(&path) && has_debug_information(&path)) {
                    self.found.push((build.what, path));
                }
            }
        }
    }
}

fn not_searched(folder: &Path, why: &str) {
    complain(&format!("warning: {}: --discover does not search this folder: {why}", folder.display()));
}

/// What `folder` is a build folder of.
fn build_folder(folder: &Path) -> Option<&'static BuildFolder> {
    BUILD_FOLDERS.iter().find(|build| folder.join(build.mark).is_file())
}

/// Whether the last parts of `path` fit the patterns.
fn ends_with(path: &Path, patterns: &[&str]) -> bool {
    let mut parts = path.iter().rev();
    patterns
        .iter()
        .rev()
        .all(|pattern| parts.next().is_some_and(|part| fits(&part.to_string_lossy(), pattern)))
}

/// Whether `name` fits a pattern with at most one `*`, at its start.
fn fits(name: &str, pattern: &str) -> bool {
    pattern.strip_prefix('*').map_or(name == pattern, |end| name.len() > end.len() && name.ends_with(end))
}

/// Whether the file is a linked ELF file: neither an object file nor a core dump.
fn is_elf(path: &Path) -> bool {
    let mut head = [0; 18];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut head));
    let kind = if head[5] == 2 { head[17] } else { head[16] };
    read.is_ok() && head.starts_with(b"\x7fELF") && [2, 3].contains(&kind)
}

fn has_debug_information(path: &Path) -> bool {
    images_in(path).is_ok_and(|images| images.iter().flatten().any(|image| image.identity.has_lines))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_fit_the_end_of_a_path() {
        let what =
            |path: &str| FOLDERS.iter().find(|(_, end)| ends_with(path.as_ref(), end)).map(|found| found.0);
        assert_eq!(what("/x/My App.xcarchive"), Some("Xcode archive"));
        assert_eq!(what("DerivedData/App-x/Build/Products/Release-iphoneos/App.app.dSYM"), Some("dSYM"));
        assert_eq!(what("app/build/intermediates/merged_native_libs/release"), Some("Gradle libraries"));
        assert_eq!(
            what("app/build/intermediates/cxx/RelWithDebInfo/1b73323r/obj"),
            Some("Gradle libraries of a module")
        );
        for other in
            ["merged_native_libs/release", "intermediates/cxx/Debug/1b73323r/logs", ".dSYM", "", "a/dSYM"]
        {
            assert_eq!(what(other), None, "{other}");
        }
    }
}
