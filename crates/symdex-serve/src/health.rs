//! Which stores can be asked.

use std::sync::Arc;
use std::time::Duration;

use symdex_answer::Symbolicator;
use tokio::sync::{Mutex, oneshot};
use tokio::time::Instant;

/// How long the answer of the stores counts.
const FRESH: Duration = Duration::from_secs(5);

/// Asks the stores whether they can be asked.
#[derive(Clone, Debug)]
pub(crate) struct StoreHealth {
    symbolicator: Arc<Symbolicator>,
    /// Which stores could not be asked, and when that was tried last. It is locked while they are asked.
    last: Arc<Mutex<Option<(Instant, Vec<String>)>>>,
}

impl StoreHealth {
    /// The health of the stores of `symbolicator`.
    pub(crate) fn new(symbolicator: Arc<Symbolicator>) -> Self {
        Self { symbolicator, last: Arc::default() }
    }

    /// The URLs of the stores that cannot be asked, as of the last seconds. The stores are asked by one request at a time, to
    /// the end even if nobody waits.
    pub(crate) async fn failed_stores(&self) -> Vec<String> {
        let mut last = Arc::clone(&self.last).lock_owned().await;
        if let Some((at, failed)) = &*last
            && at.elapsed() < FRESH
        {
            return failed.clone();
        }
        let health = self.clone();
        let (sender, answer) = oneshot::channel();
        // The runtime waits for its own threads when the server stops.
        let asking = move || {
            let before = last.take().map(|(_, failed)| failed).unwrap_or_default();
            let failed = health.ask_stores(&before);
            *last = Some((Instant::now(), failed.clone()));
            let _ = sender.send(failed);
        };
        let started = std::thread::Builder::new().name("symdex-health".to_owned()).spawn(asking);
        match started {
            Ok(_) => answer.await.unwrap_or_default(),
            Err(error) => vec![format!("the stores ({error})")],
        }
    }

    /// The URLs of the stores that cannot be asked. The log says what has changed since `before`. This blocks.
    fn ask_stores(&self, before: &[String]) -> Vec<String> {
        let mut failed = Vec::new();
        for store in self.symbolicator.stores().stores() {
            let url = store.url().to_string();
            match store.check() {
                Err(error) => {
                    if !before.contains(&url) {
                        tracing::warn!(store = url, %error, "a store cannot be asked");
                    }
                    failed.push(url);
                }
                Ok(()) if before.contains(&url) => tracing::info!(store = url, "a store can be asked again"),
                Ok(()) => {}
            }
        }
        failed
    }
}
