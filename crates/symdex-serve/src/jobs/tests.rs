//! Two servers over one bucket. One of them acts between two steps of the other.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, SystemTime};

use symdex_answer::{Symbolicator, SymbolicatorOptions};
use symdex_pipeline::archive::TemporaryFolder;
use symdex_pipeline::{DiskSpace, PipelineOptions};
use symdex_store::OnConflict;
use tempfile::TempDir;

use super::job::{Job, JobState, id_of};
use super::queue::Jobs;
use super::store::{JobStore, JobStoreError, Record, UploadFile, Version};
use super::{Builder, Publishing, Uploads};
use crate::metrics::Metrics;

const DEBUG_FILE: &str = "../../testdata/dsyms/inline-dwarf4.dSYM/Contents/Resources/DWARF/inline-dwarf4";
const SHA256: &str = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

/// The objects of a bucket.
#[derive(Debug, Default)]
struct Objects {
    records: BTreeMap<String, (Job, u64)>,
    uploads: BTreeMap<String, Vec<u8>>,
    last: u64,
}

impl Objects {
    fn put(&mut self, job: &Job, over: Option<&Version>) -> Option<Version> {
        let there = self.records.get(&job.id).map(|(_, version)| Version::File(*version));
        (there.as_ref() == over).then(|| {
            self.last += 1;
            self.records.insert(job.id.clone(), (job.clone(), self.last));
            Version::File(self.last)
        })
    }
}

type Step = Box<dyn FnOnce() + Send>;

/// The bucket as one server sees it.
#[derive(Clone, Default)]
struct Bucket {
    objects: Arc<Mutex<Objects>>,
    /// What happens before the steps with these names. A step that happens twice has two entries.
    before: Arc<Mutex<Vec<(&'static str, Step)>>>,
}

impl std::fmt::Debug for Bucket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.objects.fmt(f)
    }
}

impl Bucket {
    /// Does `step` before the next step of this server with this name.
    fn before(&self, name: &'static str, step: impl FnOnce() + Send + 'static) {
        self.before.lock().expect("a lock").push((name, Box::new(step)));
    }

    fn step(&self, name: &str) {
        let mut before = self.before.lock().expect("a lock");
        let found = before.iter().position(|(of, _)| *of == name).map(|at| before.remove(at));
        drop(before);
        if let Some((_, step)) = found {
            step();
        }
    }
}

impl JobStore for Bucket {
    fn is_shared(&self) -> bool {
        true
    }

    fn list(
        &self,
        _: &dyn Fn(&str) -> Option<Version>,
    ) -> Result<Vec<(String, Option<Record>)>, JobStoreError> {
        let ids: Vec<_> = self.objects.lock().expect("a lock").records.keys().cloned().collect();
        ids.into_iter().map(|id| Ok((id.clone(), self.get(&id)?))).collect()
    }

    fn with_uploads(&self) -> Result<Vec<String>, JobStoreError> {
        let objects = self.objects.lock().expect("a lock");
        Ok(objects.uploads.keys().map(|upload| id_of(upload)).collect())
    }

    fn get(&self, id: &str) -> Result<Option<Record>, JobStoreError> {
        let objects = self.objects.lock().expect("a lock");
        let record = objects.records.get(id).cloned();
        drop(objects);
        let record = record.map(|(job, version)| Record { job, version: Version::File(version) });
        self.step("read");
        Ok(record)
    }

    fn submit(
        &self,
        received: &Path,
        job: &Job,
        over: Option<&Version>,
    ) -> Result<Option<Version>, JobStoreError> {
        self.step("submit");
        let mut objects = self.objects.lock().expect("a lock");
        let version = objects.put(job, over);
        if version.is_some() {
            objects.uploads.insert(job.upload.clone(), fs::read(received)?);
            fs::remove_file(received)?;
        }
        Ok(version)
    }

    fn write(&self, job: &Job, over: &Version) -> Result<Option<Version>, JobStoreError> {
        self.step(match job.state {
            JobState::Running => "begin",
            JobState::Queued => "queue",
            _ => "end",
        });
        let mut objects = self.objects.lock().expect("a lock");
        let version = objects.put(job, Some(over));
        if version.is_some() && job.state.is_finished() {
            objects.uploads.remove(&job.upload);
        }
        Ok(version)
    }

    fn remove(&self, id: &str) {
        self.objects.lock().expect("a lock").records.remove(id);
    }

    fn upload(&self, job: &Job, folder: &Path) -> Result<Option<UploadFile>, JobStoreError> {
        let Some(bytes) = self.objects.lock().expect("a lock").uploads.get(&job.upload).cloned() else {
            return Ok(None);
        };
        let path = folder.join(uuid::Uuid::new_v4().to_string());
        fs::write(&path, bytes)?;
        Ok(Some(UploadFile { path, is_copy: true }))
    }

    fn sweep(&self, _: SystemTime) {}
}

/// A server without threads: each test claims and runs its jobs.
#[derive(Clone)]
struct Server {
    bucket: Bucket,
    jobs: Arc<Jobs>,
    folder: Arc<TempDir>,
    _store: Arc<TempDir>,
}

impl Server {
    fn submit(&self) -> Job {
        let received = self.received();
        fs::copy(DEBUG_FILE, &received).expect("copied");
        self.jobs.submit(&received, Job::new(SHA256, 1, "a")).expect("accepted")
    }

    fn received(&self) -> PathBuf {
        self.folder.path().join("received")
    }

    /// Runs the job as this server knows it.
    fn run(&self) {
        self.jobs.next_waiting().expect("it waits").run(&self.jobs);
    }

    /// Takes over the job of the other server, which seems to be lost.
    fn take_over(&self) {
        self.jobs.load();
        for entry in self.jobs.shared().jobs.values_mut() {
            entry.since = entry.since.checked_sub(Duration::from_secs(3600)).expect("a time");
        }
        self.jobs.load();
        self.jobs.load();
    }

    fn cancel(&self) {
        let canceled = self.jobs.cancel(&id_of(SHA256), "b").expect("written");
        assert!(canceled.is_some_and(|(job, changed)| changed && job.state == JobState::Failed));
    }

    /// The only job, which both servers see, and its uploads in the bucket.
    fn state(&self, other: &Self) -> (Job, Vec<String>) {
        for server in [self, other] {
            server.jobs.load();
            assert!(!server.received().exists(), "its upload is an object, or is not needed");
        }
        let objects = self.bucket.objects.lock().expect("a lock");
        assert_eq!(objects.records.len(), 1);
        let (job, _) = objects.records.values().next().expect("a record").clone();
        for server in [self, other] {
            let seen = server.jobs.view(&job.id, |seen| (seen.state, seen.upload.clone(), seen.attempts));
            assert_eq!(seen, Some((job.state, job.upload.clone(), job.attempts)));
            assert!(server.jobs.claims().is_empty() || job.lease.is_some());
        }
        (job, objects.uploads.keys().cloned().collect())
    }
}

/// Two servers over one bucket and one store of indexes.
fn servers() -> [Server; 2] {
    let objects = Arc::<Mutex<Objects>>::default();
    let store = Arc::new(tempfile::tempdir().expect("a folder"));
    [(); 2].map(|()| {
        let options = SymbolicatorOptions::new().store(store.path().to_owned());
        let symbolicator = Arc::new(Symbolicator::open(&options, &mut |_| ()).expect("a store"));
        let folder = Arc::new(tempfile::tempdir_in(store.path()).expect("a folder"));
        let work = TemporaryFolder::new_in(folder.path()).expect("a folder");
        let space = DiskSpace::of_folder(folder.path(), 0);
        let publishing = Publishing { symbolicator, on_conflict: OnConflict::More };
        let builder = Builder::new(PipelineOptions::default(), publishing, work, Arc::clone(&space));
        let uploads = Arc::new(Uploads::new(folder.path().to_owned(), space));
        let bucket = Bucket { objects: Arc::clone(&objects), ..Bucket::default() };
        let times = (Duration::MAX, Duration::ZERO);
        let builder = Arc::new(builder.expect("threads"));
        let jobs = Jobs::open(Box::new(bucket.clone()), builder, uploads, Arc::new(Metrics::new()), times);
        Server { bucket, jobs, folder, _store: Arc::clone(&store) }
    })
}

#[test]
fn two_servers_that_submit_the_same_upload_make_one_job() {
    let [one, other] = servers();
    let (also, (sender, receiver)) = (other.clone(), channel());
    one.bucket.before("submit", move || sender.send(also.submit()).expect("received"));
    let (first, second) = (receiver, one.submit());
    let (job, uploads) = one.state(&other);
    assert_eq!((&second.upload, &first.recv().expect("sent").upload), (&job.upload, &job.upload));
    assert_eq!((job.state, uploads), (JobState::Queued, vec![job.upload]));
    one.run();
    let (done, uploads) = one.state(&other);
    assert_eq!((done.state, done.images.len(), done.attempts), (JobState::Done, 1, 1), "{done:?}");
    assert!(uploads.is_empty());
}

#[test]
fn a_server_finds_new_jobs_of_others_by_their_uploads() {
    let [one, other] = servers();
    one.submit();
    other.jobs.look(&mut BTreeSet::new());
    one.cancel();
    other.jobs.load();
    // It is known as a job that has failed.
    one.submit();
    other.jobs.look(&mut BTreeSet::new());
    other.run();
    assert_eq!(one.state(&other).0.state, JobState::Done);
}

#[test]
fn a_server_that_looks_for_jobs_does_not_lose_one_that_begins_meanwhile() {
    let [one, other] = servers();
    // A bucket has the upload before the record.
    let upload = Job::new(SHA256, 1, "a").upload;
    one.bucket.objects.lock().expect("a lock").uploads.insert(upload.clone(), Vec::new());
    let (same, (sender, claims)) = (one.clone(), channel());
    one.bucket.before("read", move || {
        same.submit();
        sender.send(same.jobs.next_waiting().expect("it waits")).expect("received");
    });
    one.jobs.look(&mut BTreeSet::new());
    claims.recv().expect("sent").run(&one.jobs);
    one.bucket.objects.lock().expect("a lock").uploads.remove(&upload);
    assert_eq!(one.state(&other).0.state, JobState::Done);
}

#[test]
fn left_over_uploads_are_read_once() {
    let [one, _] = servers();
    one.bucket.objects.lock().expect("a lock").uploads.insert(SHA256.to_owned(), Vec::new());
    let mut seen = BTreeSet::new();
    one.jobs.look(&mut seen);
    one.bucket.before("read", || panic!("it is read again"));
    one.jobs.look(&mut seen);
    assert_eq!(seen.len(), 1);
}

#[test]
fn an_upload_whose_indexes_were_left_out_is_another_job_when_they_are_taken() {
    let [one, other] = servers();
    one.submit();
    one.run();
    let current = |indexes| one.jobs.current(SHA256, None, indexes).expect("read").is_some();
    assert_eq!([false, true].map(current), [true, false]);
    fs::copy(DEBUG_FILE, one.received()).expect("copied");
    let job = Job { indexes: true, ..Job::new(SHA256, 1, "a") };
    let job = one.jobs.submit(&one.received(), job).expect("accepted");
    assert_eq!((job.state, job.indexes), (JobState::Queued, true));
    one.run();
    assert_eq!(one.state(&other).0.state, JobState::Done);
    assert!(current(true) && current(false));
}

#[test]
fn the_job_of_a_server_that_has_lost_its_lease_ends_once() {
    let [one, other] = servers();
    one.submit();
    let taker = other.clone();
    one.bucket.before("end", move || {
        taker.take_over();
        taker.run();
    });
    one.run();
    let (job, uploads) = one.state(&other);
    assert_eq!((job.state, job.attempts, job.images.len()), (JobState::Done, 2, 1), "{job:?}");
    assert!(uploads.is_empty());
}

#[test]
fn a_server_that_has_lost_its_lease_ends_nothing_while_the_other_one_builds() {
    let [one, other] = servers();
    one.submit();
    let (goes_on, goes) = channel();
    let (ends, ended) = channel();
    let (is_at_end, at_end) = channel();
    one.bucket.before("end", move || {
        is_at_end.send(()).expect("received");
        goes.recv().expect("sent");
    });
    let late = one.clone();
    let late = thread::spawn(move || {
        late.run();
        ends.send(()).expect("received");
    });
    at_end.recv().expect("it has built");
    let bucket = other.bucket.clone();
    other.bucket.before("end", move || {
        goes_on.send(()).expect("received");
        ended.recv().expect("the other one has tried to end it");
        assert_eq!(bucket.objects.lock().expect("a lock").uploads.len(), 1);
    });
    other.take_over();
    other.run();
    late.join().expect("no panic");
    let (job, uploads) = one.state(&other);
    assert_eq!((job.state, job.attempts, job.images.len()), (JobState::Done, 2, 1), "{job:?}");
    assert!(uploads.is_empty());
}

#[test]
fn a_cancel_between_the_steps_of_a_submit_loses_neither() {
    // Before the other server joins the job that waits, it is canceled.
    for step in ["read", "queue"] {
        let [one, other] = servers();
        let canceled = one.submit();
        if step == "queue" {
            // An operator is asked, because the server ended three times.
            let mut objects = one.bucket.objects.lock().expect("a lock");
            let (job, _) = objects.records.get_mut(&canceled.id).expect("a record");
            job.state = JobState::Unpublished;
        }
        let canceler = one.clone();
        other.bucket.before(step, move || canceler.cancel());
        let sent = other.submit();
        let (job, uploads) = one.state(&other);
        assert_ne!(sent.upload, canceled.upload, "{step}");
        assert_eq!(
            (job.state, &job.upload, &uploads),
            (JobState::Queued, &sent.upload, &vec![sent.upload.clone()])
        );
        other.run();
        assert_eq!(one.state(&other).0.state, JobState::Done);
    }
}

#[test]
fn a_job_that_is_canceled_while_it_is_built_stays_canceled() {
    for by_itself in [true, false] {
        for step in ["begin", "end"] {
            let [one, other] = servers();
            one.submit();
            let canceler = if by_itself { one.clone() } else { other.clone() };
            one.bucket.before(step, move || canceler.cancel());
            one.run();
            let (job, uploads) = one.state(&other);
            assert_eq!((job.state, job.images.len()), (JobState::Failed, 0), "{step}: {job:?}");
            assert_eq!(job.failures.last().map(|failure| &*failure.message), Some("a: canceled by b"));
            assert!(uploads.is_empty() && one.jobs.claims().is_empty());
            // The same file is a new job, which the old build does not touch.
            one.submit();
            one.run();
            assert_eq!(one.state(&other).0.state, JobState::Done);
        }
    }
}

#[test]
fn an_old_build_does_not_write_the_new_job_of_the_same_file() {
    let [one, other] = servers();
    one.submit();
    let (goes_on, goes) = channel();
    let (starts, started) = channel();
    let again = one.clone();
    one.bucket.before("end", move || {
        again.cancel();
        again.submit();
        let (is_at_end, at_end) = channel();
        again.bucket.before("end", move || {
            is_at_end.send(()).expect("received");
            goes.recv().expect("sent");
        });
        starts.send(thread::spawn(move || again.run())).expect("received");
        at_end.recv().expect("the new build is at its end");
    });
    one.run();
    let job = one.state(&other).0;
    assert_eq!((job.state, job.images.len()), (JobState::Running, 0), "both claims are of this server");
    goes_on.send(()).expect("received");
    started.recv().expect("sent").join().expect("no panic");
    let (job, uploads) = one.state(&other);
    assert_eq!((job.state, job.attempts, uploads.len()), (JobState::Done, 1, 0), "{job:?}");
}
