//! What became of all images together.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use super::summary::{Summary, print_line};
use crate::failure::{Failure, Kind, Stop, complain};

/// How many images there were of each outcome, and what failed, by reason.
#[derive(Default, Serialize)]
pub(super) struct Totals {
    images: u64,
    /// Indexes that are new in the output folder, those that replaced another one included.
    written: u64,
    /// Images whose very index was there already.
    unchanged: u64,
    /// Inputs, or images of them, without an index.
    failed: u64,
    /// Images of which the debug file could not be read whole.
    partial: u64,
    /// The size of the indexes of all images.
    bytes: u64,
    seconds: f64,
    /// By the word that each image's own line has.
    outcomes: BTreeMap<&'static str, u64>,
    conflicts: u64,
    /// Images of which only symbols are indexed.
    without_dwarf: u64,
    failures: BTreeMap<&'static str, u64>,
    #[serde(skip)]
    gravest: Option<Kind>,
}

impl Totals {
    pub(super) fn count(&mut self, image: &Result<Summary, Failure>) {
        match image {
            Ok(image) => {
                self.images += 1;
                self.written += u64::from(matches!(image.outcome, "written" | "repaired" | "replaced"));
                self.unchanged += u64::from(image.outcome == "unchanged");
                self.partial += u64::from(image.is_partial());
                self.bytes += image.index_size;
                *self.outcomes.entry(image.outcome).or_default() += 1;
                self.conflicts += u64::from(image.conflict);
                self.without_dwarf += u64::from(!image.has_dwarf);
                self.gravest = self.gravest.max(image.is_rejected().then_some(Kind::Other));
            }
            Err(failure) => {
                self.failed += 1;
                *self.failures.entry(failure.reason).or_default() += 1;
                self.gravest = self.gravest.max(Some(failure.kind));
            }
        }
    }

    /// The gravest of all failures.
    pub(super) fn gravest(&self) -> Option<Kind> {
        self.gravest
    }

    /// Prints what became of all images as one object, `{"totals": {...}}`, on standard output.
    pub(super) fn print_json(&mut self, time: Duration) -> Result<(), Stop> {
        #[derive(Serialize)]
        struct Last<'t> {
            totals: &'t Totals,
        }
        self.seconds = time.as_secs_f64();
        Ok(print_line(&Last { totals: self })?)
    }

    /// Says on standard error what became of all images.
    pub(super) fn report(&mut self, time: Duration) {
        self.seconds = time.as_secs_f64();
        let list = |counts: &BTreeMap<&'static str, u64>| {
            let counts = counts.iter().map(|(word, count)| format!("{count} {word}"));
            counts.collect::<Vec<_>>().join(", ")
        };
        let Self { images, outcomes, conflicts, without_dwarf, failed, failures, seconds, .. } = self;
        complain(&format!("{images} images in {seconds:.1} s: {}", list(outcomes)));
        if *conflicts != 0 {
            complain(&format!("{conflicts} conflicts: two files of one id; the index that knows more stays"));
        }
        if *without_dwarf != 0 {
            complain(&format!(
                "{without_dwarf} images have no debug information: only their symbol tables are indexed"
            ));
        }
        if *failed != 0 {
            complain(&format!("{failed} failures: {}", list(failures)));
        }
    }
}
