//! Counts refused requests, so that strangers do not fill the audit log.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::limits::Client;

/// The refusals of a client are logged once in this time.
pub(crate) const PERIOD: Duration = Duration::from_secs(60);
/// How many clients are told apart. The others count as one.
const MAX_CLIENTS: usize = 4096;

/// Whose refusals count together: the address, the name of a valid token, and the status.
pub(crate) type Refused = (Client, Option<String>, u16);

/// The refusals of each client that are not logged yet.
#[derive(Clone, Debug, Default)]
pub(crate) struct Refusals(Arc<Mutex<HashMap<Refused, u64>>>);

impl Refusals {
    /// Counts a refusal. Returns whether it is the first one of its client for a while, which the caller logs. `log` is
    /// called with the number of further ones after each minute that has some. Needs a runtime of tokio.
    pub(crate) fn add(&self, refused: Refused, log: impl Fn(u64) + Send + 'static) -> bool {
        let mut counts = self.lock();
        let is_known = counts.contains_key(&refused);
        let refused =
            if is_known || counts.len() < MAX_CLIENTS { refused } else { (Client::Unknown, None, refused.2) };
        if let Some(count) = counts.get_mut(&refused) {
            *count += 1;
            return false;
        }
        counts.insert(refused.clone(), 0);
        drop(counts);
        let refusals = self.clone();
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(PERIOD).await;
                match refusals.take(&refused) {
                    0 => return,
                    count => log(count),
                }
            }
        });
        true
    }

    /// The refusals since the last call. Without any, the client is forgotten.
    fn take(&self, refused: &Refused) -> u64 {
        let mut counts = self.lock();
        let count = counts.get_mut(refused).map(std::mem::take).unwrap_or_default();
        if count == 0 {
            counts.remove(refused);
        }
        count
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Refused, u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;
    use std::sync::mpsc;

    use super::*;

    // Time is that of the test: it passes while everybody waits.

    #[tokio::test(start_paused = true)]
    async fn a_client_is_logged_at_once_and_then_once_a_minute_with_a_count() {
        let (refusals, (sender, logged)) = (Refusals::default(), mpsc::channel());
        let add = |client: IpAddr, status| {
            let sender = sender.clone();
            let log = move |count| sender.send((client, status, count)).expect("the test receives");
            refusals.add((Client::at(client), None, status), log)
        };
        let (one, other) = ([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
        assert!(add(one, 401) && add(other, 401) && add(one, 403));
        assert!((0..1000).all(|_| !add(one, 401)) && !add(other, 401));
        tokio::time::sleep(PERIOD + Duration::from_secs(1)).await;
        let mut all: Vec<_> = logged.try_iter().collect();
        all.sort_unstable();
        assert_eq!(all, [(one, 401, 1000), (other, 401, 1)]);
        assert!(!add(one, 401), "its minute is not over");
        tokio::time::sleep(2 * PERIOD).await;
        assert_eq!(logged.try_iter().collect::<Vec<_>>(), [(one, 401, 1)]);
        assert!(refusals.lock().is_empty());
        assert!(add(one, 401));
    }

    #[tokio::test(start_paused = true)]
    async fn clients_beyond_the_limit_count_as_one() {
        let refusals = Refusals::default();
        let number = u32::try_from(MAX_CLIENTS).expect("few");
        let add =
            |number: u32| refusals.add((Client::at(IpAddr::from(number.to_be_bytes())), None, 401), |_| ());
        assert!((0..number).all(add));
        assert_eq!((add(number), add(number + 1), add(number + 2)), (true, false, false));
        assert_eq!(refusals.lock().len(), MAX_CLIENTS + 1);
    }
}
