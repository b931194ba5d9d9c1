//! The output of a build: images, failures and totals.

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
    /// The images that were built, if the command reports them itself.
    collected: Option<Vec<ImageSummary>>,
    /// Losses that were not printed, and the images that have them.
    unreported_losses: u64,
    images_with_losses: u64,
}

impl<'a> BuildOutput<'a> {
    pub(crate) fn new(reporting: &'a Reporting) -> Self {
        let output = Output::of_build(reporting.json);
        Self { reporting, output, collected: None, unreported_losses: 0, images_with_losses: 0 }
    }

    /// The output of a command that reports the images itself.
    #[cfg(feature = "stores")]
    pub(crate) fn collecting(reporting: &'a Reporting) -> Self {
        Self { collected: Some(Vec::new()), ..Self::new(reporting) }
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
        self.output.number(None) == 0 && self.collected.as_ref().is_none_or(Vec::is_empty)
    }

    /// Prints and counts an image. If `are_many`, only the totals say that it has no debug information.
    pub(crate) fn image(&mut self, image: ImageSummary, are_many: bool) -> Result<(), CommandError> {
        let collected = self.collected.as_mut().filter(|_| image.outcome.is_some());
        if collected.is_none() {
            self.output.count(image.published.index_size);
            self.output.add(image.outcome.as_ref().map_or("rejected", PublishOutcome::name), 1);
            self.output.add("with_two_debug_files", image.published.conflict.into());
            summary::print(&image, &self.output, self.reporting)?;
        }
        self.output.add("partial", (!image.partial.is_empty()).into());
        self.output.add("without_debug_information", (!image.published.has_dwarf).into());
        if image.outcome.is_none() {
            self.output.graver(Cause::Other);
        }
        let losses = summary::warn(&image, self.reporting, are_many);
        self.unreported_losses = self.unreported_losses.saturating_add(losses);
        self.images_with_losses += u64::from(losses != 0);
        if let Some(collected) = collected {
            collected.push(image);
        }
        Ok(())
    }

    /// Reports and counts a failure.
    pub(crate) fn fail(&mut self, failure: &Failure) -> Result<(), CommandError> {
        self.output.fail_input(failure)
    }

    /// Prints the totals: in JSON, or if there are many images. Returns the gravest failure.
    pub(crate) fn finish(self, are_many: bool) -> CommandResult {
        let is_printed = self.reporting.json || are_many && !self.reporting.is_quiet();
        self.warn_of_losses();
        if is_printed { self.output.finish() } else { Ok(self.output.gravest()) }
    }

    /// The images that were built, and the output for what becomes of them.
    #[cfg(feature = "stores")]
    pub(crate) fn into_collected(self) -> (Vec<ImageSummary>, Output) {
        self.warn_of_losses();
        (self.collected.unwrap_or_default(), self.output)
    }

    fn warn_of_losses(&self) {
        if self.unreported_losses != 0 {
            let losses = count(self.unreported_losses, "detail");
            let images = count(self.images_with_losses, "image");
            self.reporting.warn(&format!(
                "partial: {losses} of the debug information of {images} could not be read; -v names them"
            ));
        }
    }
}
