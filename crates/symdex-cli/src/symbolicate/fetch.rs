//! Debug files of images that no source has: they are fetched and built while reports are answered.

use std::sync::Arc;
use std::time::Duration;

use symdex::Grade;
use symdex_answer::Symbolicator;
use symdex_answer::fetch::{
    DebugSources, FetchOptions, FetchOutcome, FetchedFile, MissOptions, Misses, SourceUrl, Verdict,
    WantedImage,
};

use super::events::Events;
use crate::debug_sources::cannot_fetch;
use crate::failure::Failure;

/// How many debug files are fetched and built at one time.
const THREADS: usize = 4;

/// Fetches missing images from the sources at `urls`, and builds their indexes into the store of `symbolicator`. `None`
/// if there are no sources.
pub(super) fn misses(
    urls: &[SourceUrl],
    symbolicator: &Arc<Symbolicator>,
    events: &Arc<Events>,
) -> Result<Option<Misses>, Failure> {
    let bar = events.bar().clone();
    let options = FetchOptions::new().on_bytes(move |expected, arrived| {
        bar.add(expected);
        bar.done(arrived);
    });
    let sources = DebugSources::open(urls, &options).map_err(|error| cannot_fetch(&error))?;
    if sources.is_empty() {
        return Ok(None);
    }
    // Each image is tried once in a run.
    let options = MissOptions::new()
        .threads(THREADS)
        .queue(usize::MAX)
        .built(Duration::MAX)
        .absent(Duration::MAX)
        .failed(Duration::MAX);
    let (stores, symbolicator, events) =
        (Arc::clone(symbolicator), Arc::clone(symbolicator), Arc::clone(events));
    let build = move |wanted: &WantedImage, file: &FetchedFile| {
        let on_event = |event: symdex_answer::Event<'_>| events.on(event);
        let name = wanted.name.as_deref().unwrap_or("debuginfo");
        events.bar().add(file.size());
        match symbolicator.build_fetched(file.path(), &wanted.id, name, file.location(), &on_event) {
            Ok(Some(Grade::Lines)) => Verdict::Used(FetchOutcome::Built),
            Ok(Some(_)) => Verdict::Poor(FetchOutcome::Built),
            Ok(None) => Verdict::Refused(format!("this is the file of another image, not of {}", wanted.id)),
            Err(why) => Verdict::Refused(why.reason().into_owned()),
        }
    };
    let work = move |wanted: &WantedImage| {
        if wanted.has_index && stores.was_fetched(&wanted.id) {
            return FetchOutcome::Absent;
        }
        match sources.fetch(wanted, |file| build(wanted, &file)) {
            Ok(Some(outcome)) => outcome,
            Ok(None) => FetchOutcome::Absent,
            Err(error) => FetchOutcome::Failed(error.to_string()),
        }
    };
    Ok(Some(Misses::new(&options, work)))
}
