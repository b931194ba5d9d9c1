//! The jobs of a build of many debug files.

use std::fmt;
use std::path::{Path, PathBuf};

use super::{DebugFile, FileError};
use crate::cache::{Cache, CachedImage};
use crate::error::Error;
use crate::input::{Found, search};
use crate::slice::slices;

/// The debug files of a build, in order. At most the first 48 bytes of each were read.
#[derive(Debug, Default)]
pub struct InputFiles {
    files: Vec<Result<DebugFile, FileError>>,
    archives: Vec<UnreadArchives>,
}

/// The debug files of a build, in order. The shared caches among them are open.
#[derive(Debug, Default)]
pub struct BuildInputs {
    inputs: Vec<BuildInput>,
}

/// A debug file of a build.
#[derive(Debug)]
enum BuildInput {
    File(DebugFile),
    Cache {
        /// The main file.
        path: PathBuf,
        cache: Cache,
        /// The parts that are not there.
        missing: Vec<FileError>,
    },
    Failed(FileError),
}

/// Archives in a folder of debug files. They may hold debug files, but are not read.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreadArchives {
    /// The folder that was searched.
    pub folder: PathBuf,
    /// The archives in it and in the folders below it.
    pub archives: Vec<PathBuf>,
}

impl InputFiles {
    /// Finds the debug files that `paths` stand for, as [`find`](crate::find) does.
    #[must_use]
    pub fn find<P: AsRef<Path>>(paths: impl IntoIterator<Item = P>) -> Self {
        let mut files = Self::default();
        paths.into_iter().for_each(|path| files.add(path.as_ref()));
        files
    }

    /// Adds the debug files that `path` stands for.
    pub fn add(&mut self, path: &Path) {
        let Found { debug_files, archives, .. } = search(path);
        // The error for a folder without debug files names the archives itself.
        let has_none = matches!(debug_files[..], [Err(Error::NoDebugFile { .. })]);
        if !archives.is_empty() && !has_none {
            self.archives.push(UnreadArchives { folder: path.to_owned(), archives });
        }
        let failed = |error| FileError::new(path, error);
        self.files.extend(debug_files.into_iter().map(|found| found.map(DebugFile::on_disk).map_err(failed)));
    }

    /// Adds a file from an archive if it may be a debug file. Returns whether the file was added.
    pub fn add_unpacked(&mut self, file: DebugFile) -> bool {
        match file.is_debug_file() {
            Ok(true) => self.files.push(Ok(file)),
            Ok(false) => return false,
            Err(error) => self.files.push(Err(FileError::unreadable(file.name(), error))),
        }
        true
    }

    /// The files, and why others cannot be read.
    pub fn files(&self) -> &[Result<DebugFile, FileError>] {
        &self.files
    }

    /// What [`files`](Self::files) returns.
    #[must_use]
    pub fn into_files(self) -> Vec<Result<DebugFile, FileError>> {
        self.files
    }

    /// Archives beside the debug files.
    #[must_use]
    pub fn unread_archives(&self) -> &[UnreadArchives] {
        &self.archives
    }
}

impl From<InputFiles> for BuildInputs {
    /// Opens the shared caches among `files`.
    fn from(files: InputFiles) -> Self {
        let open = |found: Result<DebugFile, FileError>| match found {
            // The parts of a shared cache are not found in an archive.
            Ok(file) if file.archive_entry().is_none() && Cache::is_cache(file.path()) => {
                BuildInput::cache(file.path().to_owned())
            }
            Ok(file) => BuildInput::File(file),
            Err(error) => BuildInput::Failed(error),
        };
        Self { inputs: files.files.into_iter().map(open).collect() }
    }
}

impl BuildInputs {
    /// Finds the debug files that `paths` stand for, as [`find`](crate::find) does, and opens the shared caches among
    /// them.
    #[must_use]
    pub fn find<P: AsRef<Path>>(paths: impl IntoIterator<Item = P>) -> Self {
        InputFiles::find(paths).into()
    }

    /// The files that are debug files, as opposed to shared caches.
    pub fn files(&self) -> impl Iterator<Item = &DebugFile> {
        self.inputs.iter().filter_map(|input| match input {
            BuildInput::File(file) => Some(file),
            BuildInput::Cache { .. } | BuildInput::Failed(_) => None,
        })
    }

    /// The jobs of the build, limited to the architectures `wanted` if any are named.
    ///
    /// Files that have none of these architectures are skipped. If all files are, [`BuildJob::NoSuchArch`] is the last
    /// job.
    #[must_use]
    pub fn plan(&self, wanted: &[String]) -> BuildPlan<'_> {
        let mut plan = BuildPlan::default();
        let mut skipped_archs = Vec::new();
        for input in &self.inputs {
            match input {
                BuildInput::File(file) => plan.add_file(file, wanted, &mut skipped_archs),
                BuildInput::Cache { path, cache, missing } => {
                    plan.jobs.extend(missing.iter().map(BuildJob::Failed));
                    plan.add_cache(path, cache, wanted, &mut skipped_archs);
                }
                BuildInput::Failed(error) => plan.jobs.push(BuildJob::Failed(error)),
            }
        }
        if plan.skipped != 0 && plan.jobs.iter().all(|job| matches!(job, BuildJob::Failed(_))) {
            let file = match &self.inputs[..] {
                [BuildInput::File(file)] => Some(file.name().to_owned()),
                [BuildInput::Cache { path, .. }] => Some(path.clone()),
                _ => None,
            };
            let (wanted, available) = (wanted.to_vec(), skipped_archs);
            let files = plan.skipped;
            plan.jobs.push(BuildJob::NoSuchArch(NoSuchArch { file, wanted, available, files }));
            plan.skipped = 0;
        }
        plan
    }
}

impl BuildInput {
    fn cache(path: PathBuf) -> Self {
        match Cache::open(&path) {
            Ok(cache) => {
                let missing = cache.missing().into_iter().map(|error| FileError::new(&path, error)).collect();
                Self::Cache { path, cache, missing }
            }
            Err(error) => Self::Failed(FileError::new(path, error)),
        }
    }
}

/// The jobs of a build. Each can run on its own.
#[non_exhaustive]
#[derive(Debug, Default)]
pub struct BuildPlan<'i> {
    /// The jobs, in the order of the inputs.
    pub jobs: Vec<BuildJob<'i>>,
    /// How many files are skipped because they have no image of a wanted architecture, while other files have one.
    pub skipped: u64,
}

/// One job of a build.
#[derive(Debug)]
pub enum BuildJob<'i> {
    /// Build every wanted image of a file.
    File(&'i DebugFile),
    /// Build one image of a shared cache.
    CachedImage {
        /// The cache's main file.
        cache: &'i Path,
        /// The image.
        image: CachedImage<'i>,
    },
    /// Report an input that cannot be read.
    Failed(&'i FileError),
    /// Report that no file has a wanted architecture.
    NoSuchArch(NoSuchArch),
}

impl BuildJob<'_> {
    /// The number of bytes that the job reads, for progress.
    #[must_use]
    pub fn size(&self) -> u64 {
        match self {
            Self::File(file) => file.size(),
            Self::CachedImage { image, .. } => image.size(),
            Self::Failed(_) | Self::NoSuchArch(_) => 0,
        }
    }
}

/// No file of a build has an image of a wanted architecture.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoSuchArch {
    /// The file, if it is the only input.
    pub file: Option<PathBuf>,
    /// The architectures that were asked for.
    pub wanted: Vec<String>,
    /// The architectures that the files have.
    pub available: Vec<String>,
    /// How many files there are.
    pub files: u64,
}

impl fmt::Display for NoSuchArch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let wanted = self.wanted.iter().map(|arch| format!("{arch:?}")).collect::<Vec<_>>().join(" or ");
        let available = self.available.join(", ");
        match &self.file {
            Some(file) => write!(f, "{}: no slice for {wanted}; the file has {available}", file.display()),
            None => write!(f, "no file has a slice for {wanted}; the files have {available}"),
        }
    }
}

impl std::error::Error for NoSuchArch {}

impl<'i> BuildPlan<'i> {
    fn add_file(&mut self, file: &'i DebugFile, wanted: &[String], skipped_archs: &mut Vec<String>) {
        // A file that cannot be read is not skipped: its job reports the error.
        let archs = if wanted.is_empty() { None } else { archs_in(file).ok() };
        match archs {
            Some(archs) if !archs.iter().any(|arch| is_wanted(arch, wanted)) => {
                self.skip(archs, skipped_archs);
            }
            _ => self.jobs.push(BuildJob::File(file)),
        }
    }

    fn add_cache(&mut self, path: &'i Path, cache: &'i Cache, wanted: &[String], skipped: &mut Vec<String>) {
        // An image that cannot be read is not skipped: its job reports the error.
        let is_wanted =
            |image: &CachedImage<'_>| image.arch().map_or(true, |arch| is_wanted(&arch.name, wanted));
        let (images, others): (Vec<_>, Vec<_>) = cache.images().into_iter().partition(is_wanted);
        if images.is_empty() {
            self.skip(others.iter().filter_map(|image| Some(image.arch().ok()?.name)), skipped);
        }
        self.jobs.extend(images.into_iter().map(|image| BuildJob::CachedImage { cache: path, image }));
    }

    /// Counts a file that has images of the architectures `archs` only.
    fn skip(&mut self, archs: impl IntoIterator<Item = String>, skipped_archs: &mut Vec<String>) {
        self.skipped += 1;
        for arch in archs {
            if !skipped_archs.contains(&arch) {
                skipped_archs.push(arch);
            }
        }
    }
}

/// Whether `arch` is one of the architectures `wanted`. Every architecture is wanted if none is named.
#[must_use]
pub fn is_wanted(arch: &str, wanted: &[String]) -> bool {
    wanted.is_empty() || wanted.iter().any(|wanted| wanted == arch)
}

/// The architectures of the slices of `file`. Unlike [`slices_of`](super::slices_of), this also names the
/// architecture of a slice that is damaged.
fn archs_in(file: &DebugFile) -> Result<Vec<String>, FileError> {
    let bytes = symdex::map_file(file.path()).map_err(|error| FileError::unreadable(file.name(), error))?;
    let slices = slices(&bytes).map_err(|error| FileError::new(file.name(), error))?;
    Ok(slices.into_iter().map(|slice| slice.arch.name).collect())
}
