//! Fetches the debug file of an image from the first source that has it.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

#[cfg(feature = "remote")]
use symdex_store::Objects;
use symdex_store::{Breaker, StoreUrl};
use tempfile::NamedTempFile;
#[cfg(feature = "remote")]
use url::Url;

use super::decode::{Content, decode, head_of, too_large};
use super::error::{Failure, FetchError};
use super::layout::{WantedImage, keys};
use super::options::FetchOptions;
use super::url::SourceUrl;
#[cfg(feature = "remote")]
use super::web::WebFiles;

/// The first pause before a request is repeated. Each further one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// A source of debug files: a folder, a web server or an object store.
#[derive(Debug)]
pub struct DebugSource {
    url: SourceUrl,
    files: Files,
    breaker: Breaker,
    options: FetchOptions,
}

#[derive(Debug)]
enum Files {
    Folder(PathBuf),
    #[cfg(feature = "remote")]
    Web(WebFiles),
    #[cfg(feature = "remote")]
    Objects(Objects),
}

impl Files {
    #[cfg(feature = "remote")]
    fn remote(location: &StoreUrl, timeout: Duration) -> Result<Self, Failure> {
        let Some(base) = location.web() else {
            return Ok(Self::Objects(Objects::open(location, timeout)?));
        };
        let mut base = Url::parse(&base).map_err(|error| Failure::lasting(error.to_string()))?;
        base.set_fragment(None);
        WebFiles::new(base, timeout).map(Self::Web)
    }

    #[cfg(not(feature = "remote"))]
    fn remote(_: &StoreUrl, _: Duration) -> Result<Self, Failure> {
        Err(Failure::lasting("this build reads folders only; it was made without the feature `remote`"))
    }
}

/// Sources of debug files, in the order in which they are asked. Threads share them.
#[derive(Debug, Default)]
pub struct DebugSources {
    sources: Vec<DebugSource>,
}

/// A debug file. It is deleted when this is dropped, unless it lies in the folder of a source.
#[derive(Debug)]
pub struct FetchedFile {
    place: FilePlace,
    location: String,
    size: u64,
}

#[derive(Debug)]
enum FilePlace {
    Temporary(NamedTempFile),
    InFolder(PathBuf),
}

/// What has become of a fetched file.
#[derive(Debug)]
pub enum Verdict<T> {
    /// It was used. No other source is asked.
    Used(T),
    /// It was used, but has no lines. The next file is fetched. If that is no better, this one counts.
    Poor(T),
    /// It is not the file of the image, or cannot be read. The text says why. The next file is fetched.
    Refused(String),
}

impl DebugSource {
    /// The source at `url`. Nothing is read or connected until the first fetch.
    ///
    /// # Errors
    ///
    /// [`FetchError`] if the environment has no valid configuration for an object store, or if this build lacks the
    /// feature `remote` and the source is not a folder.
    pub fn open(url: &SourceUrl, options: &FetchOptions) -> Result<Self, FetchError> {
        let files = match url.location.folder() {
            Some(folder) => Ok(Files::Folder(folder)),
            None => Files::remote(&url.location, options.timeout),
        };
        let failed = |failure: Failure| FetchError { failures: vec![format!("{url}: {failure}")] };
        let files = files.map_err(failed)?;
        let (breaker, options) = (Breaker::new(options.pause), options.clone());
        Ok(Self { url: url.clone(), files, breaker, options })
    }

    /// The URL of the source.
    #[must_use]
    pub fn url(&self) -> &SourceUrl {
        &self.url
    }

    /// Calls `accept` with each file of `wanted` until it uses one that is not poor. The first that is goes to `poor`.
    fn fetch<T>(
        &self,
        wanted: &WantedImage,
        deadline: Instant,
        failures: &mut Vec<String>,
        poor: &mut Option<T>,
        accept: &mut impl FnMut(FetchedFile) -> Verdict<T>,
    ) -> Option<T> {
        if !self.breaker.allows(Instant::now()) {
            failures.push(format!("{}: it is not asked for a while, after several failures", self.url));
            return None;
        }
        for key in keys(&self.url.layouts(), wanted) {
            let fetched = self.get_with_retries(&key, deadline);
            let is_reached = !fetched.as_ref().is_err_and(|failure| failure.is_transient);
            self.breaker.record(is_reached, Instant::now());
            match fetched {
                Ok(None) => {}
                Ok(Some(file)) => match accept(file) {
                    Verdict::Used(used) => return Some(used),
                    Verdict::Poor(used) => _ = poor.get_or_insert(used),
                    Verdict::Refused(reason) => failures.push(self.failed(&key, &reason)),
                },
                Err(failure) => {
                    failures.push(self.failed(&key, &failure.reason));
                    // Its other keys would fail, too.
                    if failure.is_transient {
                        return None;
                    }
                }
            }
        }
        None
    }

    fn location(&self, key: &str) -> String {
        format!("{}/{key}", self.url)
    }

    fn failed(&self, key: &str, reason: &str) -> String {
        format!("{}: {reason}", self.location(key))
    }

    /// The file `key`; `None` if there is none. Failures that may pass are repeated after growing pauses.
    fn get_with_retries(&self, key: &str, deadline: Instant) -> Result<Option<FetchedFile>, Failure> {
        let mut pause = FIRST_PAUSE;
        let mut retries = 0..self.options.retries;
        loop {
            match self.get(key, deadline) {
                Err(failure) if failure.is_transient => {
                    let is_over = Instant::now() + pause >= deadline;
                    if is_over || retries.next().is_none() {
                        return Err(failure);
                    }
                }
                got => return got,
            }
            std::thread::sleep(pause);
            pause *= 2;
        }
    }

    fn get(&self, key: &str, deadline: Instant) -> Result<Option<FetchedFile>, Failure> {
        match &self.files {
            Files::Folder(folder) => self.in_folder(folder, key, deadline),
            #[cfg(feature = "remote")]
            Files::Web(files) => match files.get(key)? {
                Some((body, size)) => self.receive(key, body, size, deadline).map(Some),
                None => Ok(None),
            },
            #[cfg(feature = "remote")]
            Files::Objects(objects) => match objects.get(key)? {
                Some(body) => {
                    let size = body.size();
                    self.receive(key, body, Some(size), deadline).map(Some)
                }
                None => Ok(None),
            },
        }
    }

    /// The file `key` below `folder`. A file that is not compressed stays where it is.
    fn in_folder(&self, folder: &Path, key: &str, deadline: Instant) -> Result<Option<FetchedFile>, Failure> {
        use std::io::{ErrorKind, Seek as _};

        let unreadable = |error: std::io::Error| Failure::lasting(format!("it cannot be read: {error}"));
        let path = key.split('/').fold(folder.to_owned(), |path, part| path.join(part));
        let metadata = match path.metadata() {
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                return Ok(None);
            }
            metadata => metadata.map_err(unreadable)?,
        };
        if !metadata.is_file() {
            return Ok(None);
        }
        let mut file = File::open(&path).map_err(unreadable)?;
        if Content::of(head_of(&mut file).map_err(unreadable)?) == Content::DebugFile {
            let size = metadata.len();
            if size > self.options.max_size {
                return Err(too_large(self.options.max_size));
            }
            let place = FilePlace::InFolder(path);
            return Ok(Some(FetchedFile { place, location: self.location(key), size }));
        }
        file.rewind().map_err(unreadable)?;
        self.receive(key, file, Some(metadata.len()), deadline).map(Some)
    }

    /// Writes the debug file in `body`, which has `size` bytes if that is known, to a temporary file.
    fn receive(
        &self,
        key: &str,
        body: impl Read,
        size: Option<u64>,
        deadline: Instant,
    ) -> Result<FetchedFile, Failure> {
        let options = &self.options;
        if size.is_some_and(|size| size > options.max_size) {
            return Err(too_large(options.max_size));
        }
        if let (Some(on_bytes), Some(size)) = (&options.on_bytes, size) {
            on_bytes(size, 0);
        }
        let made = tempfile::Builder::new().prefix("symdex-fetch-").tempfile_in(&options.temporary);
        let mut file = made.map_err(|error| {
            let folder = options.temporary.display();
            Failure::lasting(format!("no temporary file can be made in {folder}: {error}"))
        })?;
        let size = decode(body, options, deadline, file.as_file_mut())?;
        Ok(FetchedFile { place: FilePlace::Temporary(file), location: self.location(key), size })
    }
}

impl DebugSources {
    /// These sources, in the order in which they are asked.
    #[must_use]
    pub fn new(sources: Vec<DebugSource>) -> Self {
        Self { sources }
    }

    /// Opens the sources at `urls`, in their order.
    ///
    /// # Errors
    ///
    /// As [`DebugSource::open`].
    pub fn open(urls: &[SourceUrl], options: &FetchOptions) -> Result<Self, FetchError> {
        let sources = urls.iter().map(|url| DebugSource::open(url, options));
        Ok(Self::new(sources.collect::<Result<_, _>>()?))
    }

    /// Whether there are no sources.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sources.is_empty()
    }

    /// Asks the sources for the files of `wanted`, and calls `accept` with each file until one is used. Returns what
    /// `accept` has made of it, or of the first [`Verdict::Poor`] one; `None` if no source has a file. This blocks.
    ///
    /// The contents of a file are untrusted. Its first bytes were checked, but not whether it is of the wanted
    /// image: `accept` has to check that.
    ///
    /// # Errors
    ///
    /// [`FetchError`] if no file was used, and a source has failed or a file was refused.
    pub fn fetch<T>(
        &self,
        wanted: &WantedImage,
        mut accept: impl FnMut(FetchedFile) -> Verdict<T>,
    ) -> Result<Option<T>, FetchError> {
        let (mut failures, mut poor) = (Vec::new(), None);
        for source in &self.sources {
            let deadline = Instant::now() + source.options.total;
            if let Some(used) = source.fetch(wanted, deadline, &mut failures, &mut poor, &mut accept) {
                return Ok(Some(used));
            }
        }
        if poor.is_some() || failures.is_empty() { Ok(poor) } else { Err(FetchError { failures }) }
    }
}

impl FetchedFile {
    /// Its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        match &self.place {
            FilePlace::Temporary(file) => file.path(),
            FilePlace::InFolder(path) => path,
        }
    }

    /// Where it was: the URL of the source and the key. It has no secrets.
    #[must_use]
    pub fn location(&self) -> &str {
        &self.location
    }

    /// Its size in bytes, not compressed.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }
}
