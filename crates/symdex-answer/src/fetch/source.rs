//! A source of answers that fetches what another source lacks.

use std::collections::HashMap;
use std::fmt;
use std::time::Instant;

use symdex::{ImageId, ImageOffset, LinePolicy};
use symdex_report::{Answers, Image, Source, Unanswered};

use super::layout::WantedImage;
use super::misses::{Misses, Outcome};

/// Answers as another source. Images that it lacks are asked of [`Misses`] before the first answer of a report.
pub struct FetchingSource<'m, S, F> {
    inner: S,
    misses: Option<&'m Misses>,
    deadline: Option<Instant>,
    is_missing: F,
    outcomes: HashMap<ImageId, Option<Outcome>>,
}

impl<'m, S: Source, F: Fn(&Image) -> bool> FetchingSource<'m, S, F> {
    /// Answers as `inner`. `is_missing` states whether `inner` lacks an image. Images that are not built until `deadline`
    /// are [`Unanswered::Fetching`]; without a deadline, they are waited for. Without `misses`, nothing is fetched.
    pub fn new(inner: S, misses: Option<&'m Misses>, deadline: Option<Instant>, is_missing: F) -> Self {
        Self { inner, misses, deadline, is_missing, outcomes: HashMap::new() }
    }

    /// The images among `requests` that are missing and can be fetched.
    fn missing(&self, requests: &[(&Image, &[ImageOffset])]) -> Vec<WantedImage> {
        let missing = requests.iter().filter(|(image, _)| (self.is_missing)(image));
        missing.filter_map(|(image, _)| WantedImage::of(image)).collect()
    }
}

impl<S: Source, F: Fn(&Image) -> bool> Source for FetchingSource<'_, S, F> {
    fn prepare(&mut self, requests: &[(&Image, &[ImageOffset])]) {
        self.inner.prepare(requests);
        let Some(misses) = self.misses else { return };
        let missing = self.missing(requests);
        if missing.is_empty() {
            return;
        }
        let outcomes = misses.ask(&missing, self.deadline);
        self.outcomes = missing.into_iter().map(|wanted| wanted.id).zip(outcomes).collect();
        let is_built = |image: &Image| {
            let outcome = image.id.as_ref().and_then(|id| self.outcomes.get(id));
            matches!(outcome, Some(Some(Outcome::Built)))
        };
        let built: Vec<_> = requests.iter().filter(|(image, _)| is_built(image)).copied().collect();
        if !built.is_empty() {
            self.inner.prepare(&built);
        }
    }

    fn answer(
        &mut self,
        image: &Image,
        offsets: &[ImageOffset],
        lines: LinePolicy,
    ) -> Result<Answers, Unanswered> {
        let answered = self.inner.answer(image, offsets, lines);
        let Err(Unanswered::Missing) = answered else { return answered };
        Err(match image.id.as_ref().and_then(|id| self.outcomes.get(id)) {
            Some(None) => Unanswered::Fetching,
            Some(Some(Outcome::Failed(why))) => Unanswered::FetchFailed(why.clone()),
            _ => Unanswered::Missing,
        })
    }
}

impl<S: fmt::Debug, F> fmt::Debug for FetchingSource<'_, S, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FetchingSource").field("inner", &self.inner).finish_non_exhaustive()
    }
}
