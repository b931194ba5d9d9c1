//! What a supervisor asks: is the process alive, can it answer.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use tokio::sync::{Mutex, oneshot};
use tokio::time::{Instant, timeout};

use crate::app::{App, SharedApp};
use crate::problem::{Problem, ProblemDetails, ProblemKind};

/// How long the answer of the stores counts.
const FRESH: Duration = Duration::from_secs(5);
/// How long a request waits for the stores. A supervisor would give up soon after.
const WAIT: Duration = Duration::from_secs(2);

/// Which stores could not be asked, and when that was tried last. It is locked while they are asked.
pub(crate) type StoreHealth = Arc<Mutex<Option<(Instant, Vec<String>)>>>;

/// The process is alive.
#[utoipa::path(get, path = "/healthz", tag = "operation", responses((status = 200, description = "The process is alive")))]
pub(crate) async fn alive() -> &'static str {
    "ok\n"
}

/// The server can answer: every store can be asked, a thread of the pool is free within the time-out, and it is not told
/// to stop.
#[utoipa::path(get, path = "/readyz", tag = "operation", responses(
    (status = 200, description = "The server can answer"),
    (status = 503, body = ProblemDetails,
        description = "A store cannot be asked, or the server is stopping or overloaded")))]
pub(crate) async fn ready(State(app): State<SharedApp>) -> Result<&'static str, Problem> {
    if app.is_stopping() {
        return Err(Problem::overloaded("the server is stopping"));
    }
    let failed = |detail: String| Problem::new(ProblemKind::StoreFailed, detail);
    match timeout(WAIT, failed_stores(&app)).await {
        Err(_) => Err(failed(format!("the stores have not answered within {} seconds", WAIT.as_secs()))),
        Ok(stores) if !stores.is_empty() => Err(failed(format!("cannot be asked: {}", stores.join(", ")))),
        Ok(_) => app.run(|_| "ready\n").await,
    }
}

/// The URLs of the stores that cannot be asked, as of the last seconds. The stores are asked by one request at a time, to
/// the end even if nobody waits.
pub(crate) async fn failed_stores(app: &SharedApp) -> Vec<String> {
    let mut last = Arc::clone(&app.store_health).lock_owned().await;
    if let Some((at, failed)) = &*last
        && at.elapsed() < FRESH
    {
        return failed.clone();
    }
    let app = SharedApp::clone(app);
    let (sender, answer) = oneshot::channel();
    // The runtime waits for its own threads when the server stops.
    let asking = move || {
        let before = last.take().map(|(_, failed)| failed).unwrap_or_default();
        let failed = app.ask_stores(&before);
        *last = Some((Instant::now(), failed.clone()));
        let _ = sender.send(failed);
    };
    let started = std::thread::Builder::new().name("symdex-health".to_owned()).spawn(asking);
    match started {
        Ok(_) => answer.await.unwrap_or_default(),
        Err(error) => vec![format!("the stores ({error})")],
    }
}

impl App {
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
