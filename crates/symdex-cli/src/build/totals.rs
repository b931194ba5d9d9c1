//! The totals of a build.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::time::Duration;

use serde::Serialize;
use symdex_store::PublishOutcome;

use super::common::Reporting;
use super::summary::{ImageSummary, outcome_words, print_line};
use crate::failure::{CommandError, CommandResult, Failure, FailureKind, complain};
use crate::text::count;

/// Counts of images by outcome, and of failures by reason.
#[derive(Default, Serialize)]
pub(crate) struct BuildTotals {
    images: u64,
    /// New indexes in the output folder, including those that replaced another one.
    written: u64,
    /// Images whose index existed already, with the same bytes.
    unchanged: u64,
    /// Inputs and images that failed.
    failed: u64,
    /// Images of which a part of the debug file could not be read.
    partial: u64,
    /// The size of the indexes of all images.
    bytes: u64,
    seconds: f64,
    /// By the outcome of each image.
    outcomes: BTreeMap<&'static str, u64>,
    conflicts: u64,
    /// Images without debug information. Only their symbols are indexed.
    without_dwarf: u64,
    /// Files without an image of a wanted architecture.
    skipped: u64,
    failures: BTreeMap<Cow<'static, str>, u64>,
    #[serde(skip)]
    gravest: Option<FailureKind>,
    /// Losses that were not printed, and the images that have them.
    #[serde(skip)]
    unreported_losses: u64,
    #[serde(skip)]
    images_with_losses: u64,
}

impl BuildTotals {
    /// Counts `files` files without a wanted image.
    pub(crate) fn skip(&mut self, files: u64) {
        self.skipped += files;
    }

    /// Whether files were skipped.
    pub(crate) fn has_skipped(&self) -> bool {
        self.skipped != 0
    }

    /// Whether no image was built.
    pub(crate) fn has_no_image(&self) -> bool {
        self.images == 0
    }

    pub(crate) fn count(&mut self, image: &Result<ImageSummary, Failure>) {
        match image {
            Ok(image) => {
                self.images += 1;
                match &image.outcome {
                    Some(PublishOutcome::Unchanged) => self.unchanged += 1,
                    Some(outcome) if outcome.keeps_existing() => {}
                    Some(_) => self.written += 1,
                    None => self.gravest = self.gravest.max(Some(FailureKind::Other)),
                }
                self.partial += u64::from(image.is_partial());
                self.bytes += image.index_size;
                *self.outcomes.entry(outcome_words(image.outcome.as_ref()).0).or_default() += 1;
                self.conflicts += u64::from(image.conflict);
                self.without_dwarf += u64::from(!image.has_dwarf);
            }
            Err(failure) => {
                self.failed += 1;
                *self.failures.entry(failure.reason.clone()).or_default() += 1;
                self.gravest = self.gravest.max(Some(failure.kind));
            }
        }
    }

    /// Counts losses of an image that were not printed.
    pub(crate) fn count_losses(&mut self, losses: u64) {
        self.unreported_losses = self.unreported_losses.saturating_add(losses);
        self.images_with_losses += u64::from(losses != 0);
    }

    /// Prints the totals: in JSON, or if there are many images. Returns the gravest failure.
    pub(crate) fn finish(mut self, reporting: &Reporting, are_many: bool, time: Duration) -> CommandResult {
        match reporting.json {
            true => self.print_json(time)?,
            false if reporting.is_quiet() => {}
            false if are_many => self.report(time),
            false => {}
        }
        if let Some(losses) = self.losses() {
            reporting.warn(&losses);
        }
        // It decides the exit code.
        Ok(self.gravest)
    }

    /// The losses that were not printed, in words; `None` if there are none.
    fn losses(&self) -> Option<String> {
        let (losses, images) = (self.unreported_losses, self.images_with_losses);
        let (losses, images) = (count((losses != 0).then_some(losses)?, "detail"), count(images, "image"));
        Some(format!(
            "partial: {losses} of the debug information of {images} could not be read; -v names them"
        ))
    }

    /// Prints `{"totals": {...}}` on standard output.
    fn print_json(&mut self, time: Duration) -> Result<(), CommandError> {
        #[derive(Serialize)]
        struct Last<'t> {
            totals: &'t BuildTotals,
        }
        self.seconds = time.as_secs_f64();
        Ok(print_line(&Last { totals: self })?)
    }

    /// Prints the totals on standard error.
    fn report(&mut self, time: Duration) {
        self.seconds = time.as_secs_f64();
        let Self { images, outcomes, conflicts, without_dwarf, skipped, failed, failures, seconds, .. } =
            self;
        let outcomes = if outcomes.is_empty() { String::new() } else { format!(": {}", list(outcomes)) };
        complain(&format!("{} in {seconds:.1} s{outcomes}", count(*images, "image")));
        if *conflicts != 0 {
            let conflicts = count(*conflicts, "conflict");
            complain(&format!("{conflicts}: two files have one id; the index with more functions is kept"));
        }
        if *without_dwarf != 0 {
            let (images, have) =
                (count(*without_dwarf, "image"), if *without_dwarf == 1 { "has" } else { "have" });
            complain(&format!("{images} {have} no debug information: only symbols are indexed"));
        }
        if *skipped != 0 {
            complain(&format!("{} skipped: no image of the wanted architecture", count(*skipped, "file")));
        }
        if *failed != 0 {
            complain(&format!("{}: {}", count(*failed, "failure"), list(failures)));
        }
    }
}

/// The counts in words: `3 written, 1 unchanged`.
fn list<W: Display>(counts: &BTreeMap<W, u64>) -> String {
    let counts = counts.iter().map(|(word, number)| format!("{number} {word}"));
    counts.collect::<Vec<_>>().join(", ")
}
