//! Whether the stores can be queried.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use symdex_answer::Symbolicator;
use symdex_store::{SharedStore, StoreUrl};
use tokio::sync::{Mutex, oneshot};
use tokio::time::{Instant, timeout};

/// How long the answer of a store counts.
const FRESH: Duration = Duration::from_secs(5);
/// How long a request waits for the stores. A supervisor would give up soon after.
const WAIT: Duration = Duration::from_secs(2);

/// Asks the stores whether they can be queried.
#[derive(Clone, Debug)]
pub(crate) struct StoreHealth(Arc<[AskedStore]>);

#[derive(Debug)]
struct AskedStore {
    store: Arc<SharedStore>,
    /// Whether the store could be queried, and when that was tried last. It is locked while the store is asked.
    last: Arc<Mutex<Option<(Instant, bool)>>>,
}

impl StoreHealth {
    /// The health of the stores of `symbolicator`.
    pub(crate) fn new(symbolicator: &Symbolicator) -> Self {
        let stores = symbolicator.stores().stores().iter();
        Self(stores.map(|store| AskedStore { store: Arc::clone(store), last: Arc::default() }).collect())
    }

    /// Each store, and what is wrong with it as of the last seconds. All stores are asked at the same time.
    pub(crate) async fn stores(&self) -> Vec<(&StoreUrl, Option<String>)> {
        let asked = self.0.iter().map(async |asked| {
            let url = asked.store.url();
            let wrong = match timeout(WAIT, asked.is_reached()).await {
                Err(_) => Some(format!("{url} has not answered within {} seconds", WAIT.as_secs())),
                Ok(false) => Some(format!("{url} cannot be queried")),
                Ok(true) => None,
            };
            (url, wrong)
        });
        join_all(asked).await
    }
}

impl AskedStore {
    /// Whether the store could be queried in the last seconds. It is asked by one request at a time, to the end even if
    /// nobody waits.
    async fn is_reached(&self) -> bool {
        let mut last = Arc::clone(&self.last).lock_owned().await;
        if let Some((at, is_reached)) = *last
            && at.elapsed() < FRESH
        {
            return is_reached;
        }
        let store = Arc::clone(&self.store);
        let (sender, answer) = oneshot::channel();
        // The runtime waits for its own threads when the server stops.
        let asking = move || {
            let is_reached = ask(&store, last.is_none_or(|(_, was_reached)| was_reached));
            *last = Some((Instant::now(), is_reached));
            let _ = sender.send(is_reached);
        };
        let started = std::thread::Builder::new().name("symdex-health".to_owned()).spawn(asking);
        // Without a thread, the store cannot be queried either.
        started.is_ok() && answer.await.unwrap_or(false)
    }
}

/// Whether `store` can be queried. The log says what has changed. This blocks.
fn ask(store: &SharedStore, was_reached: bool) -> bool {
    let (checked, url) = (store.check(), store.url());
    match &checked {
        Err(error) if was_reached => tracing::warn!(store = %url, %error, "a store cannot be queried"),
        Ok(()) if !was_reached => tracing::info!(store = %url, "a store can be queried again"),
        _ => {}
    }
    checked.is_ok()
}
