//! Images that no source answers, because a store could not be queried for them.

use serde::Serialize;
use symdex::{Cause, ImageId};
use symdex_report::{AnsweredBy, ImageOutcome, Symbolicated, Unanswered};
use utoipa::ToSchema;

use crate::problem::{Problem, ProblemKind};

/// How many images a problem lists, and how many characters of their names.
const MAX_LISTED: usize = 100;
const MAX_NAME: usize = 100;

/// An image that no source answers, because a store could not be queried for it.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct UnaskedImage {
    /// The `LC_UUID` or the build id.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    /// The name of the image, if the request states it.
    #[serde(skip_serializing_if = "String::is_empty")]
    name: String,
    /// `unavailable`.
    status: &'static str,
    /// Which store could not be queried, and why.
    reason: String,
}

/// The failures of stores while a request was answered.
#[derive(Debug, Default)]
pub(crate) struct StoreFailures {
    /// The first images without an answer.
    images: Vec<UnaskedImage>,
    unanswered: usize,
    /// How many of these the answer must have.
    needed: usize,
    /// How many images are answered, and how many of these after a store has failed.
    found: usize,
    answered: usize,
    /// The first reason.
    reason: Option<String>,
}

impl StoreFailures {
    /// The failures for the images of an answered report, which needs those of the app: most images of the system are
    /// in no store.
    pub(crate) fn of(symbolicated: &Symbolicated<'_, '_>) -> Self {
        let mut failures = Self::default();
        for (image, outcome) in symbolicated.report.images().iter().zip(symbolicated.images()) {
            match outcome {
                ImageOutcome::Found(by) => failures.add_answered(by),
                ImageOutcome::Unanswered(why) => {
                    failures.add(image.id.as_ref(), &image.name, why);
                    failures.needed += usize::from(why.cause() == Cause::Unavailable && image.is_app());
                }
                ImageOutcome::Unused | ImageOutcome::NoId | ImageOutcome::NotLoaded(_) => {}
            }
        }
        failures
    }

    /// Adds an image without an answer, if a store could not be queried for it.
    pub(crate) fn add(&mut self, id: Option<&ImageId>, name: &str, why: &Unanswered) {
        if why.cause() != Cause::Unavailable {
            return;
        }
        self.unanswered += 1;
        let reason = why.reason().into_owned();
        self.reason.get_or_insert_with(|| reason.clone());
        if self.images.len() < MAX_LISTED {
            let (id, name) = (id.map(ToString::to_string), name.chars().take(MAX_NAME).collect());
            self.images.push(UnaskedImage { id, name, status: why.status(), reason });
        }
    }

    /// Adds an image that was answered, perhaps after a store could not be queried for it.
    pub(crate) fn add_answered(&mut self, by: &AnsweredBy) {
        self.found += 1;
        if let Some(why) = by.passed_over.iter().find(|why| why.cause() == Cause::Unavailable) {
            self.answered += 1;
            self.reason.get_or_insert_with(|| why.reason().into_owned());
        }
    }

    /// Writes the failures to the log.
    pub(crate) fn log(&self) {
        let Self { unanswered, answered, reason, .. } = self;
        match reason {
            Some(error) if *unanswered != 0 => {
                tracing::warn!(
                    error,
                    unanswered,
                    answered,
                    "a store cannot be queried, and images are not answered"
                );
            }
            Some(error) => tracing::warn!(error, answered, "a store cannot be queried; others have answered"),
            None => {}
        }
    }

    /// The same failures, for an answer that cannot say which images are not answered, and needs all of them.
    pub(crate) fn of_all(self) -> Self {
        Self { needed: self.unanswered, ..self }
    }

    /// Logs the failures. Returns whether some images are not answered because a store could not be queried for them.
    ///
    /// # Errors
    ///
    /// A problem that lists these images, if one of them is needed, or if no image is answered.
    pub(crate) fn check(self) -> Result<bool, Problem> {
        self.log();
        if self.unanswered == 0 || (self.needed == 0 && self.found != 0) {
            return Ok(self.unanswered != 0);
        }
        let detail = format!(
            "a store could not be queried for {} of the images, and no other source has them; try again later",
            self.unanswered
        );
        Err(Problem::new(ProblemKind::StoreFailed, detail).with_images(self.images))
    }
}
