//! Counts and latencies, as Prometheus reads them.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::Response;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::{encode_eof, encode_registry};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Metric, Registry, Unit};
use symdex_store::StoreUrl;
use tokio::time::Instant;

use crate::app::App;
use crate::auth::KnownToken;
use crate::jobs::{BuildResults, JobState};
use crate::misses::MissCounts;
use crate::problem::Reason;
use crate::process;
use crate::tls::Tls;

/// The labels of a request. The route is a pattern, such as `/v1/images/{id}`, so that there are few.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    method: String,
    route: String,
    status: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TokenLabels {
    token: String,
    status: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct LackLabels {
    reason: &'static str,
}

/// A gauge that is absent until it is set.
type OptionalGauge = Family<[(&'static str, &'static str); 0], Gauge>;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RouteLabels {
    route: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct BuildLabels {
    outcome: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StoreLabels {
    store: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StoreAnswerLabels {
    store: String,
    result: &'static str,
}

/// The route that supervisors ask.
const READY: &str = "/readyz";

/// The counters of a server.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    requests: Family<RequestLabels, Counter>,
    latency: Family<RouteLabels, Histogram>,
    /// Requests by the token that has allowed them.
    of_tokens: Family<TokenLabels, Counter>,
    /// Requests with the status 503.
    unavailable: Family<LackLabels, Counter>,
    running: Gauge,
    waiting: Gauge,
    certificate_expiry: OptionalGauge,
    job_age: Gauge,
    pub(crate) connections: Gauge,
    allocated: OptionalGauge,
    free_memory: Gauge,
    index_memory: Gauge,
    stores: Family<StoreAnswerLabels, Counter>,
    stores_up: Family<StoreLabels, Gauge>,
    store_calls: Family<StoreLabels, Histogram>,
    pub(crate) misses: MissCounts,
    pub(crate) upload_bytes: Counter,
    pub(crate) jobs_waiting: Gauge,
    pub(crate) jobs_running: Gauge,
    jobs_unpublished: Gauge,
    builds: Family<BuildLabels, Counter>,
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let registry = &mut Registry::with_prefix("symdex");
        // 0.5 ms to 16 s.
        let times = || Histogram::new(exponential_buckets(0.0005, 2.0, 16));
        let latency = Family::<RouteLabels, Histogram>::new_with_constructor(times);
        let help = "The time from the head of a request to the head of its answer";
        registry.register_with_unit("http_request_duration", help, Unit::Seconds, latency.clone());
        let store_calls = Family::<StoreLabels, Histogram>::new_with_constructor(times);
        let help = "The time of a call of a store, which may ask for several images or values";
        registry.register_with_unit("store_call_duration", help, Unit::Seconds, store_calls.clone());
        let version = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
        registry.register("build", "The version of the server", version);
        Self {
            requests: register(registry, "http_requests", "Requests that were answered"),
            latency,
            of_tokens: register(registry, "token_requests", "Requests that a token has allowed, by its name"),
            unavailable: register(
                registry,
                "http_unavailable",
                "Requests and connections that were refused with 503, by what was lacking",
            ),
            running: register(registry, "http_requests_running", "Requests that are being answered"),
            waiting: register(registry, "http_requests_waiting", "Requests that wait for a thread"),
            connections: register(registry, "http_connections", "Open connections"),
            certificate_expiry: register_with_unit(
                registry,
                "tls_certificate_expiry_timestamp",
                Unit::Seconds,
                "When the certificate for TLS expires, since 1970",
            ),
            allocated: register_with_unit(
                registry,
                "memory_allocated",
                Unit::Bytes,
                "The memory that the program has allocated; its allocator may keep more from the system",
            ),
            free_memory: register_with_unit(
                registry,
                "request_memory_free",
                Unit::Bytes,
                "The memory that is free for reports and answers",
            ),
            index_memory: register_with_unit(
                registry,
                "index_memory",
                Unit::Bytes,
                "The memory of open indexes and values; mapped files do not count",
            ),
            stores: register(
                registry,
                "store_answers",
                "Images and values that were asked for, by store and result; calls, failed and skipped count calls",
            ),
            stores_up: register(registry, "store_up", "1 if the store can be queried, otherwise 0"),
            store_calls,
            misses: register(
                registry,
                "misses",
                "Images that no store had and that were looked for in the sources of debug files, by outcome",
            ),
            upload_bytes: register_with_unit(
                registry,
                "uploads_received",
                Unit::Bytes,
                "Bytes of uploads that were received",
            ),
            jobs_waiting: register(registry, "jobs_waiting", "Uploads that wait for their build"),
            jobs_running: register(registry, "jobs_running", "Uploads that are being built"),
            jobs_unpublished: register(
                registry,
                "jobs_unpublished",
                "Uploads whose indexes no store accepts, and that wait for an operator",
            ),
            job_age: register_with_unit(
                registry,
                "jobs_oldest_age",
                Unit::Seconds,
                "The time since the oldest upload was received that waits for its build or is being built",
            ),
            builds: register(
                registry,
                "builds",
                "Images that were built, by outcome, and files that were not, by the kind of failure or the limit",
            ),
            registry: std::mem::take(registry),
        }
    }

    /// Counts what was built.
    pub(crate) fn built(&self, results: &BuildResults) {
        for image in &results.images {
            let outcome = match image {
                Ok(image) => image.outcome.clone(),
                Err(failure) => failure.limit.as_deref().unwrap_or(failure.cause.name()).to_owned(),
            };
            self.builds.get_or_create(&BuildLabels { outcome }).inc();
        }
    }

    /// Makes `call` of the store at `url`, and measures its time.
    pub(crate) fn time_store_call(&self, url: &StoreUrl, call: impl FnOnce()) {
        let started = Instant::now();
        call();
        let labels = StoreLabels { store: url.to_string() };
        self.store_calls.get_or_create(&labels).observe(started.elapsed().as_secs_f64());
    }

    /// Sets whether the store at `url` can be queried.
    pub(crate) fn set_up(&self, url: &StoreUrl, is_up: bool) {
        self.stores_up.get_or_create(&StoreLabels { store: url.to_string() }).set(is_up.into());
    }

    /// Takes over when the certificate of `tls` expires.
    pub(crate) fn set_certificate(&self, tls: &Tls) {
        match tls.expires() {
            Some(expires) => _ = self.certificate_expiry.get_or_create(&[]).set(gauge(expires.as_secs())),
            None => self.certificate_expiry.clear(),
        }
    }

    /// Counts a refusal with 503 for want of `lack`.
    pub(crate) fn lacks(&self, lack: &'static str) {
        self.unavailable.get_or_create(&LackLabels { reason: lack }).inc();
    }

    /// Takes over what others count: allocated bytes, the free bytes of the budget, what waits, jobs, and calls of stores.
    pub(crate) fn refresh(&self, app: &App) {
        if let Some(bytes) = (app.options.allocated)() {
            self.allocated.get_or_create(&[]).set(gauge(bytes));
        }
        self.free_memory.set(gauge(app.budget.free()));
        self.waiting.set(gauge(app.workers.waiting() as u64));
        self.index_memory.set(gauge(app.symbolicator.stores().memory_in_use()));
        if let Ok(jobs) = app.jobs() {
            self.jobs_unpublished.set(gauge(jobs.count(JobState::Unpublished) as u64));
            let age = |created: SystemTime| created.elapsed().unwrap_or_default();
            self.job_age.set(gauge(jobs.oldest_unfinished().map_or(0, |created| age(created).as_secs())));
        }
        for counts in app.symbolicator.store_counts() {
            for (result, count) in [
                ("calls", counts.calls),
                ("found", counts.found),
                ("from_memory", counts.from_memory),
                ("absent", counts.absent),
                ("lost_values", counts.lost_values),
                ("failed", counts.failed),
                ("skipped", counts.skipped),
            ] {
                let labels = StoreAnswerLabels { store: counts.url.to_string(), result };
                self.stores.get_or_create(&labels).inner().store(count, Ordering::Relaxed);
            }
        }
    }

    /// All counts and latencies in the text format of OpenMetrics.
    pub(crate) fn to_text(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = encode_registry(&mut text, &self.registry);
        let _ = encode_registry(&mut text, &process::registry());
        let _ = encode_eof(&mut text);
        text
    }

    fn request(&self, labels: RequestLabels, time: Duration) {
        let route = RouteLabels { route: labels.route.clone() };
        self.latency.get_or_create(&route).observe(time.as_secs_f64());
        self.requests.get_or_create(&labels).inc();
    }
}

/// Counts a request.
pub(crate) async fn measure(State(metrics): State<Arc<Metrics>>, request: Request, next: Next) -> Response {
    let method = match request.method().as_str() {
        known @ ("GET" | "HEAD" | "POST" | "PUT" | "DELETE" | "OPTIONS") => known.to_owned(),
        // Clients choose other methods.
        _ => "other".to_owned(),
    };
    let route = request.extensions().get::<MatchedPath>().map_or("none", MatchedPath::as_str).to_owned();
    let started = Instant::now();
    let running = Running::new(&metrics.running);
    let response = next.run(request).await;
    drop(running);
    let (status, extensions) = (response.status().as_u16(), response.extensions());
    if let Some(token) = extensions.get::<KnownToken>() {
        let labels = TokenLabels { token: token.name.clone(), status };
        metrics.of_tokens.get_or_create(&labels).inc();
    }
    // A server that is not ready has refused nobody.
    if let Some(lack) = extensions.get::<Reason>().and_then(|reason| reason.lack)
        && route != READY
    {
        metrics.lacks(lack);
    }
    metrics.request(RequestLabels { method, route, status }, started.elapsed());
    response
}

fn gauge(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A new metric in `registry`.
fn register<M: Metric + Clone + Default>(registry: &mut Registry, name: &str, help: &str) -> M {
    let metric = M::default();
    registry.register(name, help, metric.clone());
    metric
}

/// As [`register`], for numbers of `unit`.
fn register_with_unit<M: Metric + Clone + Default>(
    registry: &mut Registry,
    name: &str,
    unit: Unit,
    help: &str,
) -> M {
    let metric = M::default();
    registry.register_with_unit(name, help, unit, metric.clone());
    metric
}

/// Counts a request as running until it is dropped, also if its client goes away.
struct Running<'g>(&'g Gauge);

impl<'g> Running<'g> {
    fn new(gauge: &'g Gauge) -> Self {
        gauge.inc();
        Self(gauge)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.dec();
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::misses::MissLabels;

    #[test]
    fn alerts_and_the_dashboard_name_metrics_that_are_exported() {
        let metrics = Metrics::new();
        // A metric with labels is absent until something is counted.
        let url: StoreUrl = "dir:/indexes".parse().expect("a store");
        let route = "/v1/lookup".to_owned();
        metrics.request(RequestLabels { method: "GET".to_owned(), route, status: 200 }, Duration::ZERO);
        metrics.of_tokens.get_or_create(&TokenLabels { token: "ci".to_owned(), status: 200 }).inc();
        metrics.lacks("memory");
        metrics.set_up(&url, true);
        metrics.time_store_call(&url, || ());
        let answers = StoreAnswerLabels { store: url.to_string(), result: "found" };
        metrics.stores.get_or_create(&answers).inc();
        metrics.misses.get_or_create(&MissLabels { outcome: "built" }).inc();
        metrics.builds.get_or_create(&BuildLabels { outcome: "written".to_owned() }).inc();
        metrics.certificate_expiry.get_or_create(&[]).set(1);
        metrics.allocated.get_or_create(&[]).set(1);
        let text = metrics.to_text();
        let samples = text.lines().filter(|line| !line.starts_with('#'));
        let exported: BTreeSet<_> = samples.filter_map(|line| line.split(['{', ' ']).next()).collect();
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/deploy");
        for file in ["alerts.yaml", "grafana.json"] {
            let file = std::fs::read_to_string(folder.join(file)).expect("the file");
            let words = file.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
            let named = words.filter(|word| word.starts_with("symdex_") || word.starts_with("process_"));
            let named: BTreeSet<_> = named.collect();
            assert!(named.len() > 5, "{named:?}");
            for name in named {
                assert!(exported.contains(name), "{name} is not one of {exported:?}");
            }
        }
    }
}
