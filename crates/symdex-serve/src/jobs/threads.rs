//! The threads that run jobs, and the choice of the next job.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::{Arc, PoisonError};
use std::thread;
use std::time::Duration;

use super::job::JobState;
use super::queue::{Entry, JobClient, Jobs, Shared, client_of};
use super::run::Claim;
use super::store::Record;

/// How often a server renews the leases of its jobs.
const RENEW: Duration = Duration::from_secs(15);

impl Jobs {
    /// Starts `threads` threads that run jobs until [`stop`](Self::stop), and those that keep leases and copies fresh.
    ///
    /// # Errors
    ///
    /// The system's error if no thread can be started.
    pub(crate) fn start(self: &Arc<Self>, threads: usize) -> io::Result<()> {
        self.start_thread("symdex-jobs", Self::keep_fresh)?;
        if self.store.is_shared() {
            self.start_thread("symdex-leases", |jobs| {
                while jobs.pause(RENEW) {
                    jobs.claims().iter().for_each(|claim| claim.renew(jobs));
                }
            })?;
        }
        (0..threads.max(1)).try_for_each(|_| {
            self.start_thread("symdex-job", |jobs| {
                while let Some(claim) = jobs.next_waiting() {
                    claim.run(jobs);
                }
            })
        })
    }

    fn start_thread(self: &Arc<Self>, name: &str, work: fn(&Self)) -> io::Result<()> {
        let jobs = Arc::clone(self);
        self.shared().threads += 1;
        let run = move || {
            work(&jobs);
            jobs.shared().threads -= 1;
            jobs.wakes.notify_all();
        };
        let started = thread::Builder::new().name(name.to_owned()).spawn(run);
        started.map(|_| ()).inspect_err(|_| self.shared().threads -= 1)
    }

    /// Starts no more jobs, ends those that run, and ends the streams of followers. The jobs are queued again, for the
    /// next start of a server.
    pub(crate) fn stop(&self) {
        self.shared().is_stopping = true;
        self.builder.stop();
        self.wakes.notify_all();
        self.stopping.send_replace(true);
    }

    /// Waits until all threads have ended, at most for `patience`. The jobs of threads that are left are given back.
    pub(crate) fn join(&self, patience: Duration) {
        let waits = |shared: &mut Shared| shared.threads != 0;
        drop(self.wakes.wait_timeout_while(self.shared(), patience, waits));
        for claim in self.claims() {
            claim.give_back(self);
        }
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.shared().is_stopping
    }

    /// Waits for `time`. Returns `false` at once when the server stops.
    pub(super) fn pause(&self, time: Duration) -> bool {
        self.pause_while(time, |_| true)
    }

    /// Waits for `time`. Returns `false` at once when the server stops, or when it is not `wanted` any more.
    pub(super) fn pause_while(&self, time: Duration, wanted: impl Fn(&mut Shared) -> bool) -> bool {
        let goes_on = |shared: &mut Shared| !shared.is_stopping && wanted(shared);
        let waited = self.wakes.wait_timeout_while(self.shared(), time, goes_on);
        goes_on(&mut waited.unwrap_or_else(PoisonError::into_inner).0)
    }

    /// Claims the next queued job, or waits for one. Returns `None` when the server stops.
    pub(super) fn next_waiting(&self) -> Option<Arc<Claim>> {
        let mut shared = self.shared();
        loop {
            if shared.is_stopping {
                return None;
            }
            if let Some(claim) = shared.claim_next() {
                self.wake(shared);
                return Some(claim);
            }
            shared.idle += 1;
            shared = self.wakes.wait(shared).unwrap_or_else(PoisonError::into_inner);
            shared.idle -= 1;
        }
    }
}

impl Entry {
    /// Whether the job waits for a thread of any server.
    pub(super) fn waits(&self) -> bool {
        self.job.state == JobState::Queued && self.claim.is_none()
    }
}

impl Shared {
    /// Claims the next queued job: the last one that was put first, if there is one. Otherwise, clients take turns:
    /// first those of whose jobs fewer run here, then those whose last turn is longer ago. The oldest job of a client
    /// is first.
    fn claim_next(&mut self) -> Option<Arc<Claim>> {
        let mut running = HashMap::<JobClient, usize>::new();
        for entry in self.jobs.values().filter(|entry| entry.claim.is_some()) {
            *running.entry(client_of(&entry.job)).or_default() += 1;
        }
        let turn = |entry: &Entry| {
            let client = client_of(&entry.job);
            let of = |counts: &HashMap<JobClient, usize>| counts.get(&client).copied().unwrap_or(0);
            (
                Reverse(entry.job.first),
                of(&running),
                self.turns.get(&client).copied().unwrap_or(0),
                entry.job.created,
                entry.job.id.clone(),
            )
        };
        let (.., id) = self.jobs.values().filter(|entry| entry.waits()).map(turn).min()?;
        let entry = self.jobs.get_mut(&id)?;
        let claim = Claim::new(Record { job: entry.job.clone(), version: entry.version.clone() });
        entry.claim = Some(Arc::clone(&claim));
        let client = client_of(&entry.job);
        let waiting = self.jobs.values().filter(|entry| entry.waits());
        let waiting: HashSet<_> = waiting.map(|entry| client_of(&entry.job)).collect();
        self.turns.retain(|client, _| waiting.contains(client));
        self.last_turn += 1;
        self.turns.insert(client, self.last_turn);
        Some(claim)
    }
}

#[cfg(test)]
mod tests {
    use super::super::queue::tests::{job, shared};
    use super::*;

    #[test]
    fn clients_take_turns_for_builds() {
        let tokens = ["a", "a", "a", "a", "b", "c", "b"];
        let mut shared = shared(tokens.into_iter().enumerate().map(|(number, token)| job(number, token)));
        let mut next = || {
            let claim = shared.claim_next()?;
            let entry = shared
                .jobs
                .values_mut()
                .find(|entry| entry.claim.as_ref().is_some_and(|one| Arc::ptr_eq(one, &claim)))?;
            // It has ended at once.
            (entry.claim, entry.job.state) = (None, JobState::Done);
            entry.job.token.clone()
        };
        let turns: Vec<_> = std::iter::from_fn(&mut next).collect();
        assert_eq!(turns, ["a", "b", "c", "a", "b", "a", "a"]);
    }

    #[test]
    fn a_client_without_a_running_job_is_first() {
        let mut shared = shared((0..3).map(|number| job(number, "a")).chain([job(3, "b")]));
        shared.turns.insert((Some("b".to_owned()), None), 7);
        let mut next = || {
            let claim = shared.claim_next().expect("a job waits");
            let of = |entry: &&Entry| entry.claim.as_ref().is_some_and(|one| Arc::ptr_eq(one, &claim));
            shared.jobs.values().find(of).and_then(|entry| entry.job.token.clone())
        };
        assert_eq!([next(), next(), next()].map(Option::unwrap_or_default), ["a", "b", "a"]);
    }
}
