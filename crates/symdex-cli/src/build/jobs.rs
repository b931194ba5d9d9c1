//! What `symdex build` has to do, in pieces that can be worked on at once.

use std::path::{Path, PathBuf};

use symdex_build::{Cache, CachedImage, Error};

use crate::failure::Failure;

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
    /// How many bytes it is about; of an image in a cache only that it is small.
    pub(super) fn size(&self) -> u64 {
        match self {
            Job::File(path) => path.metadata().map_or(0, |file| file.len()),
            Job::Image { .. } | Job::Failed(_) => 0,
        }
    }
}

/// The files that `argument` stands for, in order.
pub(super) fn inputs(argument: &Path) -> Vec<Input> {
    let input = |found: Result<PathBuf, Error>| match found {
        Ok(path) if Cache::is_one(&path) => match Cache::open(&path) {
            Ok(cache) => Input::Cache(path, cache),
            Err(error) => Input::Failed(Failure::debug_file(&path, &error)),
        },
        Ok(path) => Input::File(path),
        Err(error) => Input::Failed(Failure::debug_file(argument, &error)),
    };
    symdex_build::find(argument).into_iter().map(input).collect()
}

/// What is to be done for `input`, and only for the architecture `arch` where one is asked for.
pub(super) fn jobs<'i>(input: &'i Input, arch: Option<&str>) -> Vec<Job<'i>> {
    match input {
        Input::File(path) => vec![Job::File(path)],
        Input::Cache(path, cache) => images(path, cache, arch),
        Input::Failed(failure) => vec![Job::Failed(failure.clone())],
    }
}

/// First what the cache lacks, then its images.
fn images<'i>(path: &'i Path, cache: &'i Cache, arch: Option<&str>) -> Vec<Job<'i>> {
    let failed = |error: Error| Job::Failed(Failure::debug_file(path, &error));
    let mut jobs: Vec<Job<'i>> = cache.missing().into_iter().map(failed).collect();
    let is_wanted = |image: &CachedImage<'_>| {
        // One that cannot be read is not passed over: whoever reads it says why.
        arch.is_none_or(|wanted| image.arch().map_or(true, |arch| arch.name == wanted))
    };
    let (wanted, others): (Vec<_>, Vec<_>) = cache.images().into_iter().partition(is_wanted);
    if let (true, Some(arch)) = (wanted.is_empty(), arch) {
        let mut available: Vec<_> = others.iter().filter_map(|image| Some(image.arch().ok()?.name)).collect();
        available.sort();
        available.dedup();
        jobs.push(failed(Error::NoSuchArch { wanted: arch.to_owned(), available }));
    }
    jobs.extend(wanted.into_iter().map(|image| Job::Image { cache: path, image }));
    jobs
}
