//! What is sent in one piece: its file, the parts in which it is sent, and its job.

use std::fs::File;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use reqwest::header::CONTENT_RANGE;
use reqwest::{Method, RequestBuilder};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use symdex::{Grade, ImageId, MappedFile};
use symdex_pipeline::PublishedIndex;

use super::client::{Server, Trouble, TroubleKind, shown};
use crate::failure::{Cause, Failure};
use crate::progress::Bar;
use crate::text::file_name;

/// How much one request sends.
const PART: u64 = 8 << 20;
/// Indexes in object stores have this level, too. It makes them 14 % smaller; level 19 makes them 18 % smaller, and
/// takes ten times as long.
const ZSTD_LEVEL: i32 = 6;
/// How often a parcel may start over.
const MAX_REWINDS: u32 = 3;
/// The longest pause before a job is asked for again.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// An image of the inputs.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Image {
    pub(super) id: String,
    pub(super) arch: String,
    pub(super) name: String,
    /// The debug file.
    pub(super) file: String,
    /// The most that the server has to answer.
    #[serde(skip)]
    pub(super) grade: Grade,
    /// The sizes of the index and of the debug information, if the index was built here.
    pub(super) index_size: Option<u64>,
    pub(super) debug_size: Option<u64>,
}

/// What is sent in one piece.
pub(super) struct Parcel {
    pub(super) images: Vec<Image>,
    /// The name on the server.
    pub(super) name: String,
    bytes: MappedFile,
    sha256: String,
    /// The id of the index, if it is one.
    index: Option<String>,
}

/// The record of a job.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Job {
    state: JobState,
    failures: Vec<JobFailure>,
    store_error: Option<String>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum JobState {
    Queued,
    Running,
    Unpublished,
    /// It is done, or has failed.
    #[default]
    #[serde(other)]
    Finished,
}

#[derive(Deserialize)]
struct JobFailure {
    kind: serde_json::Value,
    message: String,
}

impl Image {
    /// An image whose index was not built here.
    pub(super) fn of_plan(file: &Path, id: &ImageId, arch: &str, grade: Grade) -> Self {
        let (id, arch, name) = (id.to_string(), arch.to_owned(), file_name(file));
        Self { id, arch, name, file: file.display().to_string(), grade, index_size: None, debug_size: None }
    }
}

impl From<PublishedIndex> for Image {
    fn from(index: PublishedIndex) -> Self {
        let PublishedIndex { id, arch, name, file, grade, index_size, debug_size, .. } = index;
        let [index_size, debug_size] = [index_size, debug_size].map(Some);
        Self { id, arch, name, file, grade, index_size, debug_size }
    }
}

impl Parcel {
    /// The index of `image` in the file at `path`, compressed beside it if that makes it smaller.
    pub(super) fn of_index(image: Image, path: &Path) -> Result<Self, Failure> {
        let compressed = path.with_extension("symdex.zst");
        let written = File::open(path).and_then(|index| {
            zstd::stream::copy_encode(&index, File::create(&compressed)?, ZSTD_LEVEL)?;
            Ok(compressed.metadata()?.len() < index.metadata()?.len() / 100 * 97)
        });
        let is_smaller = written.map_err(|error| Failure::unreadable(path, &error))?;
        let (name, id) = (image.name.clone(), image.id.clone());
        let path = if is_smaller { &compressed } else { path };
        Ok(Self { index: Some(id), ..Self::of_file(vec![image], name, path)? })
    }

    /// A debug file or an archive of debug files.
    pub(super) fn of_file(images: Vec<Image>, name: String, path: &Path) -> Result<Self, Failure> {
        let bytes = symdex::map_file(path).map_err(|error| Failure::unreadable(path, &error))?;
        let sha256 = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Self { images, name, bytes, sha256, index: None })
    }

    pub(super) fn size(&self) -> u64 {
        self.bytes.as_ref().len() as u64
    }

    /// The id of its job: that of every upload is the first half of its hash.
    pub(super) fn job(&self) -> &str {
        self.sha256.get(..32).unwrap_or(&self.sha256)
    }

    /// Sends what the server does not have of it. Returns the number of bytes that were sent and have arrived.
    pub(super) fn send(&self, server: &Server, bar: &Bar) -> Result<u64, Failure> {
        let (mut is_complete, first) = self.offset(server)?;
        bar.done(first);
        let (mut patience, mut at, mut rewinds, mut sent) = (server.patience(), first, 0, 0);
        while !is_complete {
            let (done, offset) = match self.put(server, at)? {
                Ok(end) => (end == self.size(), end),
                Err(trouble) => {
                    let (failure, kind) = (trouble.failure.clone(), trouble.kind);
                    patience.wait(trouble)?;
                    let (done, offset) = self.offset(server)?;
                    rewinds +=
                        u32::from(offset < at || offset == at && !done && kind == TroubleKind::OutOfStep);
                    if rewinds > MAX_REWINDS {
                        let message = format!(
                            "{}; the upload has started over or stood still {rewinds} times",
                            failure.message
                        );
                        return Err(Failure { message, ..failure });
                    }
                    (done, offset)
                }
            };
            // The server keeps what arrived of a part before the connection broke.
            if offset > at {
                patience = server.patience();
            }
            sent += offset.saturating_sub(at);
            bar.done(offset.saturating_sub(at));
            (is_complete, at) = (done, offset);
        }
        Ok(sent)
    }

    /// Whether the server has all of it, and how many bytes it has.
    fn offset(&self, server: &Server) -> Result<(bool, u64), Failure> {
        let there = server.ask(|| self.request(server, Method::HEAD))?;
        match there.status.as_u16() {
            200 if there.headers.get("upload-complete").is_some_and(|value| value == "?1") => {
                Ok((true, self.size()))
            }
            200 => {
                let offset = there.number("upload-offset").filter(|offset| *offset <= self.size());
                Ok((false, offset.unwrap_or(0)))
            }
            404 => Ok((false, 0)),
            _ => Err(server.failure(&there)),
        }
    }

    /// Sends the part that begins at `at`. Returns where it ends, or why it has to be sent again.
    fn put(&self, server: &Server, at: u64) -> Result<Result<u64, Trouble>, Failure> {
        let size = self.size();
        let end = size.min(at.saturating_add(PART));
        let [from, to] = [at, end].map(|at| usize::try_from(at).unwrap_or(usize::MAX));
        let part = self.bytes.as_ref().get(from..to).unwrap_or_default().to_vec();
        let range = match end.checked_sub(1).filter(|_| at < end) {
            Some(last) => format!("bytes {at}-{last}/{size}"),
            None => format!("bytes */{size}"),
        };
        let request = self.request(server, Method::PUT).header(CONTENT_RANGE, range);
        let answer = match server.once(request.body(part)) {
            Ok(answer) => answer,
            Err(trouble) => return Ok(Err(trouble)),
        };
        match answer.status.as_u16() {
            200 | 202 | 204 => Ok(Ok(end)),
            // The server has another part of it, or one that was damaged and is deleted now.
            409 | 422 => Ok(Err(Trouble::out_of_step(server.failure(&answer)))),
            _ => Err(server.failure(&answer)),
        }
    }

    fn request(&self, server: &Server, method: Method) -> RequestBuilder {
        let name = ("name", &*self.name);
        match &self.index {
            Some(id) => server.request(method, &["indexes", id], &[("sha256", &self.sha256), name]),
            None => server.request(method, &["debug-files", &self.sha256], &[name]),
        }
    }

    /// Waits until the job of the parcel has ended.
    pub(super) fn follow(&self, server: &Server, until: Option<Instant>) -> Result<Job, Failure> {
        let mut pause = Duration::from_millis(20);
        loop {
            let answer = server.ask(|| server.request(Method::GET, &["jobs", self.job()], &[]))?;
            let job: Job = match answer.status.as_u16() {
                200 => answer.json()?,
                // Another replica has it, or it ended long ago: what counts is whether the image is answered.
                404 => Job::default(),
                _ => return Err(server.failure(&answer)),
            };
            let state = match job.state {
                JobState::Queued => "queued",
                JobState::Running => "running",
                JobState::Unpublished | JobState::Finished => return Ok(job),
            };
            if until.is_some_and(|until| Instant::now() >= until) {
                let message = format!(
                    "the job {} is still {state} after the time of --wait; what was sent is not lost",
                    self.job()
                );
                return Err(Failure::new(Cause::Unavailable, message));
            }
            sleep(pause);
            pause = pause.saturating_mul(2).min(LONGEST_PAUSE);
        }
    }
}

impl Job {
    /// Why images of its upload have no index, if the server says so.
    pub(super) fn failures(self) -> impl Iterator<Item = (Cause, String)> {
        let of_store = self.store_error.filter(|_| self.state == JobState::Unpublished);
        let of_store = of_store.map(|why| (Cause::Unavailable, shown(&why)));
        let failures = self.failures.into_iter().map(move |JobFailure { kind, message }| {
            (serde_json::from_value(kind).unwrap_or(Cause::Other), shown(&message))
        });
        of_store.into_iter().chain(failures)
    }
}
