//! Receives uploads into files.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use axum::body::{Body, Bytes};
use sha2::{Digest as _, Sha256};
use symdex_pipeline::{DiskSpace, Reservation};
use tokio::sync::mpsc;

use crate::limits::{BodyParts, Lane, Place, Places, has_share};
use crate::metrics::Metrics;
use crate::problem::{Problem, ProblemKind};

/// How long a partial upload is kept.
const KEEP_PARTS: Duration = Duration::from_secs(24 * 60 * 60);
/// How many uploads are received at the same time. Each uses a writer thread.
const MAX_UPLOADS: usize = 64;
/// How many parts of a body may be buffered for the disk.
const WAITING_PARTS: usize = 8;

/// The uploads that are being received.
#[derive(Debug)]
pub(crate) struct Uploads {
    /// Where their files are: `<SHA-256>.part` and `<SHA-256>.<token>.part` can be resumed, `<number>.new` cannot.
    folder: PathBuf,
    /// How many uploads each client is sending.
    sending: Places,
    space: Arc<DiskSpace>,
    /// The files of the resumable ones.
    named: Arc<Mutex<BTreeSet<PathBuf>>>,
}

/// An upload that is being received.
pub(crate) struct Incoming {
    path: PathBuf,
    file: File,
    /// The size of the file, in bytes.
    length: u64,
    /// The hash of these bytes; `None` if an earlier request sent some of them.
    hash: Option<Sha256>,
    /// Whether the file is deleted when this is dropped. An empty file always is.
    is_temporary: bool,
    space: Reservation,
    _turn: Option<Turn>,
    _slot: Place,
}

/// The exclusive right of a request to write the file of a resumable upload.
struct Turn {
    named: Arc<Mutex<BTreeSet<PathBuf>>>,
    path: PathBuf,
}

impl Turn {
    /// `None` if another request has it.
    fn take(named: &Arc<Mutex<BTreeSet<PathBuf>>>, path: &Path) -> Option<Self> {
        let is_free = named.lock().unwrap_or_else(PoisonError::into_inner).insert(path.to_owned());
        is_free.then(|| Self { named: Arc::clone(named), path: path.to_owned() })
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.named.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.path);
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        if self.is_temporary || self.length == 0 {
            // What stays is deleted when the server starts again.
            let _ = fs::remove_file(&self.path);
        }
    }
}

impl Uploads {
    /// Uploads whose files are in `folder` and take `space`. Deletes the files of a killed server that cannot be
    /// resumed.
    pub(crate) fn new(folder: PathBuf, space: Arc<DiskSpace>) -> Self {
        let uploads = Self { folder, sending: Places::default(), space, named: Arc::default() };
        uploads.remove(|path| has_extension(path, "new"));
        uploads
    }

    /// The file of the part that was sent with the token of this name. Other tokens cannot continue or replace it.
    fn part(&self, sha256: &str, token: Option<&str>) -> PathBuf {
        let token = token.map(|name| {
            let hash = Sha256::digest(name);
            let digits = hash.iter().take(8).map(|byte| format!("{byte:02x}"));
            format!(".{}", digits.collect::<String>())
        });
        self.folder.join(format!("{sha256}{}.part", token.unwrap_or_default()))
    }

    /// Returns how many bytes of the upload with this SHA-256 were received with the token of this name. `None` if
    /// there is no part of it.
    pub(crate) fn received(&self, sha256: &str, token: Option<&str>) -> Option<u64> {
        Some(self.part(sha256, token).metadata().ok()?.len())
    }

    /// Deletes partial uploads that were not continued for a day.
    pub(crate) fn sweep(&self, now: SystemTime) {
        self.remove(|path| {
            let modified = path.metadata().and_then(|metadata| metadata.modified());
            let age = modified.ok().and_then(|modified| now.duration_since(modified).ok());
            has_extension(path, "part") && age.is_some_and(|age| age > KEEP_PARTS)
        });
    }

    fn remove(&self, is_unwanted: impl Fn(&Path) -> bool) {
        let files = fs::read_dir(&self.folder).into_iter().flatten().flatten().map(|entry| entry.path());
        files.filter(|path| is_unwanted(path)).for_each(|path| _ = fs::remove_file(path));
    }

    /// Checks that an upload of `bytes` would fit. They are not reserved, because the client may never send them.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::StorageFull`] if it would not.
    pub(crate) fn check_space(&self, bytes: u64) -> io::Result<()> {
        self.space.check(bytes)
    }

    /// An upload that cannot be resumed, in a new file.
    ///
    /// # Errors
    ///
    /// A problem if too many uploads are being received, or if the file cannot be made.
    pub(crate) fn begin(&self) -> Result<Incoming, Problem> {
        let slot = self.slot()?;
        let path = self.folder.join(format!("{}.new", uuid::Uuid::new_v4().simple()));
        let file = File::options().write(true).read(true).create_new(true).open(&path).map_err(of_disk)?;
        let hash = Some(Sha256::new());
        let space = self.space.reserve();
        Ok(Incoming { path, file, length: 0, hash, is_temporary: true, space, _turn: None, _slot: slot })
    }

    /// The upload with this SHA-256, of which the first part may be there from the token of this name. With
    /// `from_start`, that part is replaced.
    ///
    /// # Errors
    ///
    /// A problem if another request is sending the upload, if too many uploads are being received, or if the file
    /// cannot be opened.
    pub(crate) fn resume(
        &self,
        sha256: &str,
        token: Option<&str>,
        from_start: bool,
    ) -> Result<Incoming, Problem> {
        let path = self.part(sha256, token);
        let slot = self.slot()?;
        let turn = Turn::take(&self.named, &path)
            .ok_or_else(|| Problem::overloaded("uploads", "another request is sending this upload"))?;
        let file = File::options().write(true).read(true).create(true).truncate(from_start).open(&path);
        let mut file = file.map_err(of_disk)?;
        let length = file.seek(SeekFrom::End(0)).map_err(of_disk)?;
        let hash = (length == 0).then(Sha256::new);
        Ok(Incoming {
            path,
            file,
            length,
            hash,
            is_temporary: false,
            space: self.space.reserve(),
            _turn: Some(turn),
            _slot: slot,
        })
    }

    fn slot(&self) -> Result<Place, Problem> {
        let may_have = |own, all| has_share(own, all, MAX_UPLOADS);
        let slot = self.sending.take(Lane::current().client, may_have);
        slot.ok_or_else(|| Problem::overloaded("uploads", "too many uploads are being received"))
    }
}

impl Incoming {
    /// How many bytes are there.
    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// The file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Appends `body`, of at most `max` bytes. `patience` is the longest time for which the client may keep the server
    /// waiting. Bytes that have arrived are in the file even after an error.
    ///
    /// # Errors
    ///
    /// A problem if the body is longer, is cut off or is too slow, or if the disk is full.
    pub(crate) async fn append(
        self,
        body: Body,
        max: u64,
        patience: Duration,
        metrics: &Metrics,
    ) -> Result<Self, Problem> {
        let (sender, parts) = mpsc::channel(WAITING_PARTS);
        // The thread owns the file, so that the next request does not begin before the last byte is written, even if
        // nobody waits for this one any more.
        let writing = tokio::task::spawn_blocking(move || self.write(parts));
        let sent = send(body, sender, max, patience, metrics).await;
        let written = writing.await.map_err(|_| Problem::new(ProblemKind::Internal, ""))?;
        let incoming = written.map_err(of_disk)?;
        sent?;
        Ok(incoming)
    }

    fn write(mut self, mut parts: mpsc::Receiver<Bytes>) -> io::Result<Self> {
        while let Some(part) = parts.blocking_recv() {
            self.space.take(part.len() as u64)?;
            self.file.write_all(&part)?;
            self.length += part.len() as u64;
            if let Some(hash) = &mut self.hash {
                hash.update(&part);
            }
        }
        Ok(self)
    }

    /// Syncs the file and returns its SHA-256. Blocks.
    ///
    /// # Errors
    ///
    /// A problem if the file cannot be read or written.
    pub(crate) fn finish(&mut self) -> Result<String, Problem> {
        self.file.sync_all().map_err(of_disk)?;
        let hash = match self.hash.take() {
            Some(hash) => hash,
            None => hash_of(&mut self.file).map_err(of_disk)?,
        };
        Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// The file is deleted when this is dropped.
    pub(crate) fn discard(&mut self) {
        self.is_temporary = true;
    }

    /// The file is kept, or was renamed.
    pub(crate) fn keep(&mut self) {
        self.is_temporary = false;
    }
}

fn has_extension(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|found| found == extension)
}

fn hash_of(file: &mut File) -> io::Result<Sha256> {
    file.rewind()?;
    let (mut hash, mut part) = (Sha256::new(), vec![0; 1 << 20]);
    loop {
        match file.read(&mut part)? {
            0 => return Ok(hash),
            length => hash.update(&part[..length]),
        }
    }
}

/// Sends the parts of `body` to the thread that writes them.
async fn send(
    body: Body,
    sender: mpsc::Sender<Bytes>,
    max: u64,
    patience: Duration,
    metrics: &Metrics,
) -> Result<(), Problem> {
    let mut parts = BodyParts::new(body, max, patience);
    while let Some(part) = parts.next().await? {
        metrics.upload_bytes.inc_by(part.len() as u64);
        if sender.send(part).await.is_err() {
            // The thread has failed, and says why.
            break;
        }
    }
    Ok(())
}

/// The problem for an error of the disk.
pub(crate) fn of_disk(error: io::Error) -> Problem {
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
            Problem::new(ProblemKind::DiskFull, "free disk space on the server, or send the upload later")
        }
        _ => {
            tracing::error!(%error, "an upload cannot be written");
            Problem::new(ProblemKind::Internal, "the upload cannot be written on the server")
        }
    }
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;
    use crate::limits::Client;

    /// Uploads to a folder whose file system has `free` bytes, of which 1 MB stays free.
    fn uploads(free: u64) -> (TempDir, Arc<Uploads>) {
        let folder = tempfile::tempdir().expect("a folder");
        // The files of this test never change the free space, as if nothing were written yet.
        let space = DiskSpace::measured_by(1_000_000, move || Ok(Some(free)));
        let uploads = Uploads::new(folder.path().to_owned(), space);
        (folder, Arc::new(uploads))
    }

    async fn send_part(incoming: Incoming, bytes: usize) -> Result<Incoming, Problem> {
        // The body does not state its length.
        let parts = [Ok::<_, io::Error>(Bytes::from(vec![7; bytes]))];
        let body = Body::from_stream(futures_util::stream::iter(parts));
        incoming.append(body, u64::MAX, Duration::from_secs(60), &Metrics::new()).await
    }

    #[tokio::test]
    async fn sixteen_uploads_at_once_leave_the_minimum_free() {
        let (_folder, uploads) = uploads(1_000_000 + 10 * 1000);
        assert!(uploads.check_space(10_000).is_ok() && uploads.check_space(10_001).is_err());
        let sending =
            (0..16).map(|_| send_part(uploads.begin().unwrap_or_else(|_| panic!("a slot is free")), 1000));
        let sent = futures_util::future::join_all(sending).await;
        assert_eq!(sent.iter().filter(|sent| sent.is_ok()).count(), 10);
        for refused in sent.into_iter().filter_map(Result::err) {
            assert!(format!("{refused:?}").contains("DiskFull"), "{refused:?}");
        }
    }

    #[tokio::test]
    async fn a_client_with_many_slow_uploads_leaves_slots_for_others() {
        let (_folder, uploads) = uploads(u64::MAX);
        let begin = |client: usize| {
            let lane = Lane { client: Client::Token(client), is_large: false };
            let uploads = Arc::clone(&uploads);
            lane.scope(async move { uploads.begin() })
        };
        let mut slow = Vec::new();
        for _ in 0..MAX_UPLOADS {
            slow.extend(begin(0).await);
        }
        assert_eq!(slow.len(), MAX_UPLOADS / 2);
        let refused = begin(0).await.err();
        assert!(refused.is_some_and(|problem| format!("{problem:?}").contains("Overloaded")));
        let other = begin(1).await;
        assert!(other.is_ok(), "another client may send");
        drop(slow);
        drop(other);
        assert!(begin(0).await.is_ok());
    }

    #[test]
    fn parts_are_deleted_after_a_day() {
        let (_folder, uploads) = uploads(u64::MAX);
        let sha256 = "ab".repeat(32);
        fs::write(uploads.part(&sha256, None), "abc").expect("written");
        uploads.sweep(SystemTime::now());
        assert_eq!((uploads.received(&sha256, None), uploads.received(&sha256, Some("ci"))), (Some(3), None));
        uploads.sweep(SystemTime::now() + KEEP_PARTS + Duration::from_secs(60));
        assert_eq!(uploads.received(&sha256, None), None);
    }
}
