//! The one place that finds the files that a debug file refers to, and that says why one is refused.

use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

use symdex::ImageId;

use super::{Companions, file_name};
use crate::limits;

impl Companions {
    pub(super) fn in_build_id(&self, id: &ImageId, ending: &str) -> impl Iterator<Item = PathBuf> {
        let digits = id.to_string();
        let path = digits
            .split_at_checked(2)
            .map(|(first, rest)| Path::new(".build-id").join(first).join(format!("{rest}.{ending}")));
        self.debug_dirs.iter().filter_map(move |folder| Some(folder.join(path.as_ref()?)))
    }

    /// The companions that `reference` may mean, the likely ones first. They need not exist.
    pub(crate) fn candidates(&self, reference: &Reference<'_>) -> Vec<Candidate> {
        let folder = reference.from.parent().unwrap_or(Path::new(""));
        let absolute = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
        // The path without its root or, on Windows, its drive.
        let below: PathBuf =
            absolute.components().filter(|part| matches!(part, Component::Normal(_))).collect();
        let mut paths = Vec::new();
        if let Some((id, endings)) = reference.build_id {
            paths.extend(endings.iter().flat_map(|ending| self.in_build_id(id, ending)));
        }
        for path in &reference.paths {
            let folders = || std::iter::once(folder).chain(self.debug_dirs());
            if path.file_name() == Some(path.as_os_str()) {
                paths.extend([folder.join(path), folder.join(".debug").join(path)]);
                let in_folder = |folder: &Path| [folder.join(path), folder.join(&below).join(path)];
                paths.extend(self.debug_dirs().flat_map(in_folder));
                continue;
            }
            let mut stated: Vec<PathBuf> = folders().map(|folder| folder.join(path)).collect();
            // Distributions state where a file is installed, such as `/usr/lib/debug/.dwz/x86_64-linux-gnu/foo.debug`.
            let in_dwz: PathBuf = path.components().skip_while(|part| part.as_os_str() != DWZ).collect();
            if reference.build_id.is_some() && in_dwz.file_name().is_some_and(|name| name != DWZ) {
                stated.extend(absolute.ancestors().chain(self.debug_dirs()).map(|root| root.join(&in_dwz)));
            }
            paths.extend(self.within(reference.from, stated));
        }
        paths.dedup();
        let on_disk =
            paths.into_iter().map(|path| Candidate { name: file_name(&path), is_named: true, path });
        on_disk.chain(self.given_for(reference)).collect()
    }

    /// The files that were given together with debug files, first those with a name that `reference` states.
    fn given_for(&self, reference: &Reference<'_>) -> impl Iterator<Item = Candidate> {
        let mut names: Vec<&OsStr> = reference.paths.iter().filter_map(|path| path.file_name()).collect();
        names.dedup();
        let named: Vec<_> = names.iter().filter_map(|name| self.given.get_key_value(*name)).collect();
        let is_other = move |name: &OsStr| reference.is_any_given && !names.contains(&name);
        let others = self.given.iter().filter(move |(name, _)| is_other(name)).map(|given| (given, false));
        let all = named.into_iter().map(|given| (given, true)).chain(others);
        let candidates = all.flat_map(|((name, paths), is_named)| {
            let name = name.to_string_lossy();
            paths.iter().map(move |path| Candidate { path: path.clone(), name: name.to_string(), is_named })
        });
        candidates.take(limits::GIVEN)
    }

    /// The first companion that `reference` may mean and that `accept` accepts. `accept` returns `None` if the file
    /// does not exist.
    ///
    /// # Errors
    ///
    /// Why there is none, as the end of a sentence that names the file and its id.
    pub(crate) fn find<T>(
        &self,
        reference: &Reference<'_>,
        mut accept: impl FnMut(&Path) -> Option<Result<T, Refusal>>,
    ) -> Result<T, String> {
        let mut refused = None;
        for candidate in self.candidates(reference) {
            match accept(&candidate.path) {
                Some(Ok(found)) => return Ok(found),
                // Another file that was given says nothing about the one that is wanted.
                Some(Err(refusal)) if candidate.is_named => {
                    _ = refused.get_or_insert(refusal.of(&candidate.name))
                }
                _ => {}
            }
        }
        Err(refused.unwrap_or_else(|| NOT_FOUND.to_owned()))
    }

    /// The `paths` that may be opened for the file at `file`: those in its folder, in a debug folder, or in a folder
    /// `.dwz` above it. Symbolic links are followed; the owner of the folder made them.
    ///
    /// Debug files may be untrusted. They may state any path, such as that of a secret file, or of a file on another
    /// machine.
    fn within(&self, file: &Path, paths: impl IntoIterator<Item = PathBuf>) -> Vec<PathBuf> {
        let folder = file.parent().and_then(normal);
        let roots: Vec<PathBuf> = self.debug_dirs.iter().filter_map(|folder| normal(folder)).collect();
        let may_be_opened = |path: &PathBuf| {
            let in_dwz = || path.ancestors().find(|folder| folder.file_name() == Some(OsStr::new(DWZ)));
            roots.iter().chain(&folder).any(|root| path.starts_with(root))
                || folder
                    .as_ref()
                    .zip(in_dwz())
                    .is_some_and(|(folder, dwz)| dwz.parent().is_some_and(|above| folder.starts_with(above)))
        };
        paths.into_iter().filter_map(|path| normal(&path)).filter(may_be_opened).collect()
    }
}

/// What a debug file states of another file.
pub(crate) struct Reference<'r> {
    /// The debug file.
    pub(crate) from: &'r Path,
    /// The paths that the other file may have, from the folder of the debug file or from a debug folder. A name alone
    /// is also searched in `.debug` beside the debug file, and below a debug folder in the path of the debug file.
    pub(crate) paths: Vec<PathBuf>,
    /// A build id, and how the names of such files end in `.build-id`.
    pub(crate) build_id: Option<(&'r ImageId, &'static [&'static str])>,
    /// Whether any file that was given may be the one, whatever its name.
    pub(crate) is_any_given: bool,
}

/// A file that may be the one that a debug file refers to.
pub(crate) struct Candidate {
    pub(crate) path: PathBuf,
    /// Its name for messages.
    pub(crate) name: String,
    /// Whether the debug file states its name or its id.
    pub(crate) is_named: bool,
}

/// Why a file that exists is not the one that a debug file refers to.
#[derive(Clone)]
pub(crate) enum Refusal {
    /// It is of another build: what it has instead, such as `the build id 0c37c5`.
    Other(String),
    Unreadable(String),
}

impl Refusal {
    /// The file `name` cannot be read because of `error`.
    pub(crate) fn unreadable(error: impl std::fmt::Display) -> Self {
        Self::Unreadable(error.to_string())
    }

    /// The end of a sentence that names the wanted file and its id.
    pub(crate) fn of(&self, name: &str) -> String {
        match self {
            Self::Other(has) => format!("does not match: {name} has {has}"),
            Self::Unreadable(error) => format!("cannot be read: {name}: {error}"),
        }
    }
}

/// The end of a sentence that names a file and its id.
pub(crate) const NOT_FOUND: &str = "is not found";

/// The folder for supplementary files in folders of debug files.
pub(crate) const DWZ: &str = ".dwz";

/// The absolute path without `.` and `..`. Nothing is looked up on disk.
fn normal(path: &Path) -> Option<PathBuf> {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    let mut normal = PathBuf::new();
    for part in std::path::absolute(path).ok()?.components() {
        match part {
            Component::CurDir => {}
            // There is nothing above the root.
            Component::ParentDir => _ = normal.pop(),
            part => normal.push(part),
        }
    }
    Some(normal)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::debug_files::DebugFile;

    #[cfg(unix)]
    #[test]
    fn files_elsewhere_are_not_opened_because_a_debug_file_names_them() {
        let companions = Companions::new(vec!["/debug/".into()]);
        let within =
            |path: &str| companions.within(Path::new("/up/x/../load/liba.so"), [PathBuf::from(path)]);
        for inside in ["/up/load/a.dwo", "/debug/a", "/up/.dwz/a", "/.dwz/a"] {
            assert_eq!(within(inside), [Path::new(inside)]);
        }
        assert_eq!(within("/up/load/../../up/load/./obj//a.dwo"), [Path::new("/up/load/obj/a.dwo")]);
        for outside in
            ["/etc/passwd", "/up/loader/a", "/up/load/../a", "/debug/../a", "/a/.dwz/a", "/../a", "a"]
        {
            assert_eq!(within(outside), [""; 0].map(PathBuf::from), "{outside}");
        }
        let beside = Companions::default().within(Path::new("liba.so"), ["./obj/a.dwo".into()]);
        assert_eq!(beside, [std::env::current_dir().expect("a folder").join("obj/a.dwo")]);
    }

    fn candidates(companions: &Companions, reference: &Reference<'_>) -> Vec<PathBuf> {
        companions.candidates(reference).into_iter().map(|candidate| candidate.path).collect()
    }

    #[cfg(unix)]
    #[test]
    fn files_are_searched_by_build_id_and_by_name() {
        let companions = Companions::new(vec!["/debug".into()]);
        let id: ImageId = "0c37c5".parse().expect("an id");
        let found: Vec<PathBuf> = companions.by_build_id(&id).collect();
        assert_eq!(found, [Path::new("/debug/.build-id/0c/37c5.debug")]);
        let reference = |path: &str| Reference {
            from: Path::new("/lib/x/liba.so"),
            paths: vec![path.into()],
            build_id: None,
            is_any_given: false,
        };
        let expected = ["/lib/x/a.debug", "/lib/x/.debug/a.debug", "/debug/a.debug", "/debug/lib/x/a.debug"];
        assert_eq!(candidates(&companions, &reference("a.debug")), expected.map(Path::new));
        let by_id = Reference { build_id: Some((&id, &["dwp", "debug.dwp"])), ..reference("/elsewhere/a") };
        let expected = ["/debug/.build-id/0c/37c5.dwp", "/debug/.build-id/0c/37c5.debug.dwp"];
        assert_eq!(candidates(&companions, &by_id), expected.map(Path::new));
        let expected = ["/lib/x/.dwz/m/a", "/lib/.dwz/m/a", "/.dwz/m/a", "/debug/.dwz/m/a"];
        let installed = |path| Reference { build_id: Some((&id, &[])), ..reference(path) };
        assert_eq!(candidates(&companions, &installed("/usr/lib/debug/.dwz/m/a")), expected.map(Path::new));
        assert_eq!(candidates(&companions, &installed("/usr/.dwz/../../etc/a")), [""; 0].map(Path::new));
    }

    #[cfg(unix)]
    #[test]
    fn files_that_were_given_are_searched_by_name_and_by_id() {
        let given = [("0", "other.dwp"), ("1", "b/liba.so.dwp")];
        let given = given.map(|(path, entry)| DebugFile::of_archive(path, "a.zip", entry));
        let companions = Companions::default().files(&given);
        let reference = |is_any_given| Reference {
            from: Path::new("/tmp/2"),
            paths: vec!["liba.so.dwp".into()],
            build_id: None,
            is_any_given,
        };
        assert_eq!(candidates(&companions, &reference(true))[2..], ["1", "0"].map(Path::new));
        assert_eq!(candidates(&companions, &reference(false))[2..], ["1"].map(Path::new));
    }
}
