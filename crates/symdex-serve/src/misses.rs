//! Images that no store has: their debug files are fetched, built in child processes and published.

use std::sync::Arc;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use symdex::{Cause, Grade};
use symdex_answer::fetch::{
    DebugSources, FetchError, FetchOptions, FetchOutcome, FetchedFile, MissOptions, Misses, Verdict,
    WantedImage,
};
use symdex_pipeline::{Failure, Indexes, Input};
use symdex_store::Provenance;

use crate::jobs::{BuildResults, Builder};
use crate::options::ServerOptions;

/// After how many seconds a client should ask again for an image that is being fetched.
pub(crate) const RETRY_AFTER: u64 = 5;

/// How many images may wait until they are fetched.
const QUEUE: usize = 4096;

/// What has become of missing images.
pub(crate) type MissCounts = Family<MissLabels, Counter>;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct MissLabels {
    pub(crate) outcome: &'static str,
}

/// Starts to fetch and build missing images when requests ask for them. Their debug files are fetched as `fetch` says.
///
/// # Errors
///
/// [`FetchError`] if a source of `options` cannot be used.
pub(crate) fn start(
    options: &ServerOptions,
    fetch: &FetchOptions,
    builder: Arc<Builder>,
    counts: MissCounts,
) -> Result<Misses, FetchError> {
    let sources = DebugSources::open(&options.debug_sources, fetch)?;
    let miss_options = MissOptions::new()
        // Some fetch while others build.
        .threads(2 * options.build_jobs.max(1))
        .queue(QUEUE)
        // The other threads answer requests whose images are there.
        .waiting((options.threads / 2).max(1))
        .absent(options.absent);
    Ok(Misses::new(&miss_options, move |wanted| {
        if wanted.has_index && builder.symbolicator().was_fetched(&wanted.id) {
            return FetchOutcome::Absent;
        }
        let fetched = sources.fetch(wanted, |file| build(&builder, wanted, &file));
        let outcome = match fetched {
            Ok(Some(outcome)) => outcome,
            Ok(None) => FetchOutcome::Absent,
            Err(error) => FetchOutcome::Failed(error.to_string()),
        };
        let (id, name) = (&wanted.id, name_of(&outcome));
        counts.get_or_create(&MissLabels { outcome: name }).inc();
        match &outcome {
            FetchOutcome::Failed(error) => tracing::warn!(%id, outcome = name, error, "a missing image"),
            _ => tracing::info!(%id, outcome = name, "a missing image"),
        }
        outcome
    }))
}

fn name_of(outcome: &FetchOutcome) -> &'static str {
    match outcome {
        FetchOutcome::Built => "built",
        FetchOutcome::Absent => "absent",
        FetchOutcome::Failed(_) => "failed",
    }
}

/// Builds and publishes the index of `wanted`, if `file` has it.
fn build(builder: &Builder, wanted: &WantedImage, file: &FetchedFile) -> Verdict<FetchOutcome> {
    let name = wanted.name.clone().unwrap_or_else(|| "debuginfo".to_owned());
    let (path, origin) = (file.path().to_owned(), file.location().to_owned());
    let input = (Input::Named { path, name, origin }, Indexes::Refused("sources have debug files"));
    let put = builder.put_options(false, Some(Provenance::fetched()));
    let BuildResults { images, .. } = builder.build(input, Some(&wanted.id), &put, &());
    match images.iter().flatten().map(|image| image.grade).max() {
        Some(Grade::Lines) => return Verdict::Used(FetchOutcome::Built),
        Some(_) => return Verdict::Poor(FetchOutcome::Built),
        None => {}
    }
    let failures: Vec<_> = images.into_iter().filter_map(Result::err).collect();
    let messages: Vec<_> = failures.iter().map(|failure| failure.message.as_str()).collect();
    match &failures[..] {
        [] => Verdict::Refused(format!("this is the file of another image, not of {}", wanted.id)),
        // The disk is full, for example. Other sources would not help.
        [Failure { cause: Cause::Other | Cause::Limit, limit: None, .. }, ..] => {
            Verdict::Used(FetchOutcome::Failed(messages.join("; ")))
        }
        _ => Verdict::Refused(messages.join("; ")),
    }
}
