//! What `symdex build` has to do, in pieces that can be worked on at once.

use std::path::{Path, PathBuf};

use symdex_build::{Cache, CachedImage, Error, Found};

use crate::failure::{Failure, Kind, complain};
use crate::text;

/// What an argument stands for: one of these for each file found.
pub(super) enum Input {
    File(PathBuf),
    Cache(PathBuf, Cache),
    Failed(Failure),
}

impl Input {
    /// The path of a file that holds images of its own.
    pub(super) fn file(&self) -> Option<&Path> {
        match self {
            Input::File(path) => Some(path),
            Input::Cache(..) | Input::Failed(_) => None,
        }
    }
}

/// A piece of work.
pub(super) enum Job<'i> {
    /// Every image of a file.
    File(&'i Path),
    /// One image of a shared cache.
    Image {
        /// The cache's main file.
        cache: &'i Path,
        image: CachedImage<'i>,
    },
    /// What cannot be worked on.
    Failed(Failure),
}

impl Job<'_> {
    /// How many bytes it is about.
    pub(super) fn size(&self) -> u64 {
        match self {
            Job::File(path) => path.metadata().map_or(0, |file| file.len()),
            Job::Image { image, .. } => image.size(),
            Job::Failed(_) => 0,
        }
    }
}

/// The files that `argument` stands for, in order. Standard error tells of archives beside them.
pub(super) fn inputs(argument: &Path) -> Vec<Input> {
    let input = |found: Result<PathBuf, Error>| match found {
        Ok(path) if Cache::is_one(&path) => match Cache::open(&path) {
            Ok(cache) => Input::Cache(path, cache),
            Err(error) => Input::Failed(Failure::debug_file(&path, &error)),
        },
        Ok(path) => Input::File(path),
        Err(error) => Input::Failed(Failure::debug_file(argument, &error)),
    };
    let Found { debug_files, archives, .. } = symdex_build::search(argument);
    // The error of a folder without debug files names the archives itself.
    let has_none = matches!(debug_files[..], [Err(Error::NoDebugFile { .. })]);
    if !archives.is_empty() && !has_none {
        let names = archives.iter().map(|path| path.strip_prefix(argument).unwrap_or(path).display());
        complain(&format!(
            "warning: {}: holds archives that are not read yet: {}; unpack them first",
            argument.display(),
            text::list(names)
        ));
    }
    debug_files.into_iter().map(input).collect()
}

/// What is to be done for some inputs.
#[derive(Default)]
pub(super) struct Jobs<'i> {
    pub(super) jobs: Vec<Job<'i>>,
    /// How many files have no image of a wanted architecture, while others have.
    pub(super) skipped: u64,
    /// The architectures of these files.
    skipped_archs: Vec<String>,
}

impl<'i> Jobs<'i> {
    /// The jobs for `inputs`, and only for the architectures `wanted` if any are named.
    ///
    /// Files that have none of them are skipped. If all files are, that is a failure.
    pub(super) fn new(inputs: &'i [Input], wanted: &[String]) -> Self {
        let mut jobs = Self::default();
        for input in inputs {
            match input {
                Input::File(path) => jobs.add_file(path, wanted),
                Input::Cache(path, cache) => jobs.add_cache(path, cache, wanted),
                Input::Failed(failure) => jobs.jobs.push(Job::Failed(failure.clone())),
            }
        }
        if jobs.skipped != 0 && jobs.jobs.iter().all(|job| matches!(job, Job::Failed(_))) {
            let failure = jobs.nothing_wanted(inputs, wanted);
            jobs.jobs.push(Job::Failed(failure));
            jobs.skipped = 0;
        }
        jobs
    }

    fn add_file(&mut self, path: &'i Path, wanted: &[String]) {
        // A file that cannot be read is not skipped: the job says why.
        let archs = if wanted.is_empty() { None } else { archs_in(path).ok() };
        match archs {
            Some(archs) if !archs.iter().any(|arch| is_wanted(arch, wanted)) => self.skip(archs),
            _ => self.jobs.push(Job::File(path)),
        }
    }

    /// First what the cache lacks, then its images.
    fn add_cache(&mut self, path: &'i Path, cache: &'i Cache, wanted: &[String]) {
        let failed = |error: Error| Job::Failed(Failure::debug_file(path, &error));
        self.jobs.extend(cache.missing().into_iter().map(failed));
        // An image that cannot be read is not skipped: the job says why.
        let is_wanted =
            |image: &CachedImage<'_>| image.arch().map_or(true, |arch| is_wanted(&arch.name, wanted));
        let (images, others): (Vec<_>, Vec<_>) = cache.images().into_iter().partition(is_wanted);
        if images.is_empty() {
            self.skip(others.iter().filter_map(|image| Some(image.arch().ok()?.name)));
        }
        self.jobs.extend(images.into_iter().map(|image| Job::Image { cache: path, image }));
    }

    /// Counts a file that has images of these architectures only.
    fn skip(&mut self, archs: impl IntoIterator<Item = String>) {
        self.skipped += 1;
        for arch in archs {
            if !self.skipped_archs.contains(&arch) {
                self.skipped_archs.push(arch);
            }
        }
    }

    fn nothing_wanted(&self, inputs: &[Input], wanted: &[String]) -> Failure {
        let wanted = wanted.iter().map(|arch| format!("{arch:?}")).collect::<Vec<_>>().join(" or ");
        let there_are = self.skipped_archs.join(", ");
        let message = match inputs {
            [Input::File(path) | Input::Cache(path, _)] => {
                format!("{}: no slice for {wanted}; the file has {there_are}", path.display())
            }
            _ => format!("no file has a slice for {wanted}; the files have {there_are}"),
        };
        Failure { reason: "without the architecture", ..Failure::new(Kind::NotFound, message) }
    }
}

/// Whether `arch` is one of the architectures `wanted`; each is if none is named.
pub(super) fn is_wanted(arch: &str, wanted: &[String]) -> bool {
    wanted.is_empty() || wanted.iter().any(|wanted| wanted == arch)
}

/// The architectures of the images in the file at `path`.
fn archs_in(path: &Path) -> Result<Vec<String>, Error> {
    let failed = |source| Error::Io { doing: "read", path: path.to_owned(), source };
    let bytes = symdex::map_file(path).map_err(failed)?;
    Ok(symdex_build::slices(&bytes)?.into_iter().map(|slice| slice.arch.name).collect())
}
