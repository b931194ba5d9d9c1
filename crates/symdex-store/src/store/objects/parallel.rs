//! Several requests at the same time.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;

use symdex::ImageId;

use crate::error::Error;

/// How many images are asked for at the same time. Each has a thread, and a connection while its request runs.
pub(super) const AT_ONCE: usize = 64;

/// The answers of `ask` for `ids`, in the order of `ids`. Up to [`AT_ONCE`] threads ask. Once the store could not be
/// reached, the other images are not asked for, and have the same error.
pub(super) fn in_parallel<T: Send>(
    ids: &[ImageId],
    ask: impl Fn(&ImageId) -> Result<T, Error> + Sync,
) -> Vec<Result<T, Error>> {
    let (next, lost) = (AtomicUsize::new(0), OnceLock::new());
    let answers: Vec<_> = ids.iter().map(|_| Mutex::new(None)).collect();
    let work = || {
        while let at = next.fetch_add(1, Ordering::Relaxed)
            && let Some(id) = ids.get(at)
            && lost.get().is_none()
        {
            let answer = ask(id);
            if let Err(Error::Store { location, action, reason, is_unavailable: true }) = &answer {
                _ = lost.set((location.clone(), *action, reason.clone()));
            }
            *answers[at].lock().unwrap_or_else(PoisonError::into_inner) = Some(answer);
        }
    };
    thread::scope(|scope| {
        // This thread asks, too.
        for _ in 1..AT_ONCE.min(ids.len()) {
            // With fewer threads it takes longer.
            _ = thread::Builder::new().spawn_scoped(scope, work);
        }
        work();
    });
    let not_asked = || {
        let (location, action, reason) = lost.get().cloned().unwrap_or_default();
        Err(Error::Store { location, action, reason, is_unavailable: true })
    };
    let answer = |answer: Mutex<Option<_>>| answer.into_inner().unwrap_or_else(PoisonError::into_inner);
    answers.into_iter().map(|one| answer(one).unwrap_or_else(not_asked)).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;
    use crate::test_stores::id;

    #[test]
    fn images_are_asked_for_together_and_the_answers_are_in_order() {
        let ids: Vec<_> = (1..=u8::MAX).map(id).take(AT_ONCE).collect();
        let together = Barrier::new(AT_ONCE);
        let answers = in_parallel(&ids, |id| {
            // Ends only if all threads are here at the same time.
            together.wait();
            Ok(id.clone())
        });
        assert_eq!(answers.into_iter().collect::<Result<Vec<_>, _>>().expect("all answer"), ids);
        assert!(in_parallel(&[], |_| Ok(())).is_empty());
    }

    #[test]
    fn a_store_that_cannot_be_reached_is_not_asked_for_the_rest() {
        let ids: Vec<_> = (0..250).map(id).cycle().take(1000).collect();
        let (asked, together) = (AtomicUsize::new(0), Barrier::new(AT_ONCE));
        let answers = in_parallel(&ids, |_| -> Result<(), _> {
            asked.fetch_add(1, Ordering::Relaxed);
            together.wait();
            let (location, reason) = ("s3://bucket/key".to_owned(), "no answer".to_owned());
            Err(Error::Store { location, action: "read", reason, is_unavailable: true })
        });
        assert_eq!((answers.len(), asked.into_inner()), (1000, AT_ONCE));
        for answer in answers {
            assert_eq!(answer.expect_err("lost").to_string(), "s3://bucket/key: cannot read: no answer");
        }
    }
}
