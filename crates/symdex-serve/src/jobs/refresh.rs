//! Copies of the records that other servers write, jobs of lost servers, and the removal of old jobs.

use std::collections::BTreeSet;
use std::time::{Duration, Instant, SystemTime};

use super::job::{Job, JobState};
use super::queue::{Entry, Jobs, Shared};
use super::store::JobStoreError;

/// How many bytes the finished jobs have together as JSON, in memory and in their store. The oldest ones are removed
/// first.
const MAX_FINISHED: usize = 256 << 20;
/// How often a server reads which jobs other servers have changed.
const REFRESH: Duration = Duration::from_secs(10);
/// How often a server without work looks for new jobs of other servers, at most: it is up to twice as long, by chance,
/// so that not all servers see a job at the same time.
const LOOK: Duration = Duration::from_secs(1);
/// After how many refreshes old jobs are removed.
const SWEEP: u64 = 60;
/// How long a server sees the same version of a job that another one runs until it takes the job for abandoned. No
/// clocks are compared.
const LEASE: Duration = Duration::from_secs(60);

impl Jobs {
    /// Reads all jobs, and queues those that only waited for a store.
    pub(super) fn load(&self) {
        self.refresh();
        for id in self.ids(|entry| entry.job.waits_for_store()) {
            log_unwritten(&id, self.update(&id, Job::waits_for_store, Job::resume));
        }
    }

    /// Reads what other servers do, takes over their abandoned jobs, and removes old jobs.
    pub(super) fn keep_fresh(&self) {
        if self.store.is_shared() {
            // A bucket that cannot be reached does not delay the start.
            self.load();
        }
        for round in 0_u64.. {
            if round.is_multiple_of(SWEEP) {
                self.sweep();
            }
            let next = Instant::now() + REFRESH;
            let mut seen = BTreeSet::new();
            while let left = next.saturating_duration_since(Instant::now())
                && !left.is_zero()
            {
                let chance = f64::from(uuid::Uuid::new_v4().as_bytes()[0]) / 256.0;
                if !self.pause(left.min(LOOK.mul_f64(1.0 + chance))) {
                    return;
                }
                if self.store.is_shared() && self.shared().idle > 0 {
                    self.look(&mut seen);
                }
            }
            if self.store.is_shared() {
                self.refresh();
            }
        }
    }

    /// Reads the new jobs of other servers, which this one can run. `seen` has the ids of uploads that are left over:
    /// their jobs have finished, or there are none.
    pub(super) fn look(&self, seen: &mut BTreeSet<String>) {
        let listed = match self.store.with_uploads() {
            Ok(listed) => listed,
            Err(error) => return tracing::warn!(%error, "the uploads cannot be listed"),
        };
        for id in listed {
            if seen.contains(&id) || self.view(&id, |job| job.state.is_finished()) == Some(false) {
                continue;
            }
            let read = self.read(&id);
            if read
                .as_ref()
                .is_ok_and(|record| record.as_ref().is_none_or(|there| there.job.state.is_finished()))
            {
                seen.insert(id.clone());
            }
            log_unwritten(&id, read);
        }
    }

    /// Reads the records that have changed, and queues the jobs of lost servers.
    fn refresh(&self) {
        let known = |id: &str| self.shared().jobs.get(id).map(|entry| entry.version.clone());
        let listed = match self.store.list(&known) {
            Ok(listed) => listed,
            Err(error) => return tracing::warn!(%error, "the jobs cannot be listed"),
        };
        let mut gone: BTreeSet<_> = self.ids(|entry| entry.claim.is_none()).into_iter().collect();
        for (id, record) in listed {
            gone.remove(&id);
            record.into_iter().for_each(|record| self.show(record, false));
        }
        for id in gone {
            // It may be newer than the list.
            log_unwritten(&id, self.read(&id));
        }
        let patience = if self.store.is_shared() { LEASE } else { Duration::ZERO };
        for id in self.ids(|entry| {
            entry.job.state == JobState::Running && entry.claim.is_none() && entry.since.elapsed() >= patience
        }) {
            let lease = self.view(&id, |job| job.lease.clone()).flatten();
            let is_lost = |job: &Job| job.state == JobState::Running && job.lease == lease;
            tracing::warn!(job = id, "a job of a server that was killed starts over");
            log_unwritten(&id, self.update(&id, is_lost, Job::lose_server));
        }
    }

    /// Removes finished jobs that have expired, and the oldest ones if there are too many.
    fn sweep(&self) {
        let now = SystemTime::now();
        self.store.sweep(now);
        self.uploads.sweep(now);
        let is_old = |at: SystemTime| now.duration_since(at).is_ok_and(|age| age > self.keep);
        let removable = self.shared().removable(is_old, MAX_FINISHED);
        for id in removable {
            // Another server may have received the file again.
            if self.read(&id).is_ok_and(|there| there.is_some_and(|there| there.job.state.is_finished())) {
                self.store.remove(&id);
                self.shared().jobs.remove(&id);
            }
        }
    }

    /// The ids of the jobs for which `is_wanted`.
    fn ids(&self, is_wanted: impl Fn(&Entry) -> bool) -> Vec<String> {
        let shared = self.shared();
        shared.jobs.iter().filter(|(_, entry)| is_wanted(entry)).map(|(id, _)| id.clone()).collect()
    }
}

impl Shared {
    /// The finished jobs that are old, and the oldest of the others, so that those that stay have at most `max` bytes.
    fn removable(&self, is_old: impl Fn(SystemTime) -> bool, max: usize) -> Vec<String> {
        let finished = self.jobs.values().filter_map(|entry| Some((entry.job.finished?.0, entry)));
        let mut finished: Vec<_> = finished.collect();
        finished.sort_unstable_by_key(|(at, entry)| (*at, &entry.job.id));
        let mut left: usize = finished.iter().map(|(_, entry)| entry.size).sum();
        let mut removable = Vec::new();
        for (at, entry) in finished {
            if left > max || is_old(at) {
                left -= entry.size;
                removable.push(entry.job.id.clone());
            }
        }
        removable
    }
}

/// A job that cannot be written now is written at the next refresh, or when the server starts again.
pub(super) fn log_unwritten<T>(id: &str, written: Result<T, JobStoreError>) {
    if let Err(error) = written {
        tracing::error!(%error, job = id, "a job cannot be read or written");
    }
}

#[cfg(test)]
mod tests {
    use super::super::job::{Timestamp, id_of};
    use super::super::queue::tests::{job, shared};
    use super::*;

    #[test]
    fn the_oldest_finished_jobs_are_removed_when_all_have_too_many_bytes() {
        let at = |seconds| Timestamp(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
        let finished =
            (0..10).map(|number| Job { finished: Some(at(100 - number as u64)), ..job(number, "a") });
        let shared = shared(finished.chain([job(10, "a")]));
        let size = shared.jobs.values().next().expect("a job").size;
        let removed = |max| shared.removable(|_| false, max);
        assert_eq!(removed(10 * size), [""; 0], "the one that is unfinished does not count");
        let ids = [9, 8].map(|number| id_of(&job(number, "a").sha256));
        assert_eq!(removed(8 * size), ids);
        assert_eq!(shared.removable(|finished| finished <= at(92).0, usize::MAX), ids);
    }
}
