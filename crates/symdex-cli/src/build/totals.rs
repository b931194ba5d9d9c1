//! The output of a build: images, failures and totals.

use serde::Serialize;
use symdex_store::PublishOutcome;

use super::common::Reporting;
use super::summary::{self, ImageSummary};
use crate::failure::{Cause, CommandError, CommandResult, Failure};
use crate::output::Output;
use crate::text::count;

/// Prints images and failures, and counts them.
pub(crate) struct BuildOutput<'a> {
    reporting: &'a Reporting,
    output: Output,
    /// Losses that were not printed, and the images that have them.
    unreported_losses: u64,
    images_with_losses: u64,
}

/// The input that has failed, in JSON.
#[derive(Serialize)]
struct Input {
    /// `None` if the failure concerns no single file.
    file: Option<String>,
}

impl<'a> BuildOutput<'a> {
    pub(crate) fn new(reporting: &'a Reporting) -> Self {
        let output = Output::of_build(reporting.json);
        Self { reporting, output, unreported_losses: 0, images_with_losses: 0 }
    }

    /// Counts `files` files without a wanted image.
    pub(crate) fn skip(&mut self, files: u64) {
        self.output.add("skipped", files);
    }

    /// Whether files were skipped.
    pub(crate) fn has_skipped(&self) -> bool {
        self.output.number(Some("skipped")) != 0
    }

    /// Whether no image was built.
    pub(crate) fn has_no_image(&self) -> bool {
        self.output.number(None) == 0
    }

    /// Prints and counts an image. If `are_many`, only the totals say that it has no debug information.
    pub(crate) fn image(&mut self, image: &ImageSummary, are_many: bool) -> Result<(), CommandError> {
        self.output.count(image.published.index_size);
        self.output.add(image.outcome.as_ref().map_or("rejected", PublishOutcome::name), 1);
        self.output.add("in_conflict", image.published.conflict.into());
        self.output.add("partial", (!image.partial.is_empty()).into());
        self.output.add("without_debug_information", (!image.published.has_dwarf).into());
        if image.outcome.is_none() {
            self.output.graver(Cause::Other);
        }
        let losses = summary::report(image, &self.output, self.reporting, are_many)?;
        self.unreported_losses = self.unreported_losses.saturating_add(losses);
        self.images_with_losses += u64::from(losses != 0);
        Ok(())
    }

    /// Reports and counts a failure.
    pub(crate) fn fail(&mut self, failure: &Failure) -> Result<(), CommandError> {
        let file = failure.path.as_ref().map(|path| path.display().to_string());
        self.output.fail(&Input { file }, failure)
    }

    /// Prints the totals: in JSON, or if there are many images. Returns the gravest failure.
    pub(crate) fn finish(self, are_many: bool) -> CommandResult {
        let Self { reporting, output, unreported_losses: losses, images_with_losses: images } = self;
        let is_printed = reporting.json || are_many && !reporting.is_quiet();
        let gravest = if is_printed { output.finish()? } else { output.gravest() };
        if losses != 0 {
            let (losses, images) = (count(losses, "detail"), count(images, "image"));
            reporting.warn(&format!(
                "partial: {losses} of the debug information of {images} could not be read; -v names them"
            ));
        }
        Ok(gravest)
    }
}
