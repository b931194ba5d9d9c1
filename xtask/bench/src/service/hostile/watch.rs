//! What others notice of a load: two clients that ask again and again, and the memory of the server.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use serde::Serialize;

use crate::service::client::Connection;
use crate::service::server::Server;

/// The time between two questions of a client, and between two looks at the memory.
const INTERVAL: Duration = Duration::from_millis(100);
const LOOK: Duration = Duration::from_millis(20);

/// How long a client has waited for its answers. Times are in seconds.
#[derive(Serialize)]
pub struct Waits {
    pub answered: usize,
    /// Questions that got an error, another status than 200, or no answer.
    pub failed: usize,
    pub p50: f64,
    pub p99: f64,
    pub max: f64,
}

/// What was noticed.
#[derive(Serialize)]
pub struct Watched {
    pub seconds: f64,
    /// `GET /healthz`.
    pub probe: Waits,
    /// A lookup of 100 addresses, by a client with a token of its own.
    pub lookup: Waits,
    /// Resident memory in bytes: at its peak during the load, and at its end.
    pub peak_rss: u64,
    pub last_rss: u64,
}

/// Does `work` while others ask. `probe` and `lookup` are the requests of these clients.
///
/// # Errors
/// The work fails, or the server has ended.
pub fn during<T>(
    server: &Server,
    [probe, lookup]: &[Vec<u8>; 2],
    work: impl FnOnce() -> Result<T>,
) -> Result<(T, Watched)> {
    let (is_done, begun) = (AtomicBool::new(false), Instant::now());
    std::thread::scope(|threads| {
        let clients = [probe, lookup].map(|request| threads.spawn(|| ask(server, request, &is_done)));
        let memory = threads.spawn(|| peak_memory(server, &is_done));
        let done = {
            let _end = EndOnDrop(&is_done);
            work()
        };
        let [probe, lookup] = clients.map(|client| waits(client.join().unwrap_or_default()));
        let seconds = begun.elapsed().as_secs_f64();
        let peak_rss = memory.join().unwrap_or_default();
        let last_rss = server.memory("VmRSS")?;
        Ok((done?, Watched { seconds, probe, lookup, peak_rss, last_rss }))
    })
}

/// Ends the other threads, also if the work panics.
struct EndOnDrop<'f>(&'f AtomicBool);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The seconds that each answer took; `None` for one that failed.
fn ask(server: &Server, request: &[u8], is_done: &AtomicBool) -> Vec<Option<f64>> {
    let mut connection = None;
    let mut times = Vec::new();
    while !is_done.load(Ordering::Relaxed) {
        let begun = Instant::now();
        let answered = exchange(server, &mut connection, request).is_ok_and(|status| status == 200);
        times.push(answered.then(|| begun.elapsed().as_secs_f64()));
        std::thread::sleep(INTERVAL.saturating_sub(begun.elapsed()));
    }
    times
}

fn exchange(server: &Server, connection: &mut Option<Connection>, request: &[u8]) -> Result<u16> {
    let mut open = match connection.take() {
        Some(open) => open,
        None => Connection::open(&server.address)?,
    };
    open.send(request)?;
    let (status, _) = open.answer()?;
    *connection = Some(open);
    Ok(status)
}

fn waits(times: Vec<Option<f64>>) -> Waits {
    let failed = times.iter().filter(|time| time.is_none()).count();
    let mut times: Vec<f64> = times.into_iter().flatten().collect();
    times.sort_by(f64::total_cmp);
    let at = |share: f64| times.get((times.len() as f64 * share) as usize).or(times.last());
    let [p50, p99, max] = [0.5, 0.99, 1.0].map(|share| at(share).copied().unwrap_or(f64::NAN));
    Waits { answered: times.len(), failed, p50, p99, max }
}

fn peak_memory(server: &Server, is_done: &AtomicBool) -> u64 {
    let mut peak = 0;
    while !is_done.load(Ordering::Relaxed) {
        peak = peak.max(server.memory("VmRSS").unwrap_or_default());
        std::thread::sleep(LOOK);
    }
    peak
}
