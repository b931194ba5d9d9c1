//! A source of answers that fetches what another source does not have.

use std::fmt;
use std::time::Instant;

use symdex::{Cause, Grade, ImageOffset, OwnedUnwindRow};
use symdex_report::{Answer, Answers, Question, ReportImage, Source, Unanswered};

use super::layout::WantedImage;
use super::misses::{FetchOutcome, Misses};

/// Answers as another source. Images that it does not have, or has lost, or of which it has a damaged index or one
/// without lines, are asked of [`Misses`], all together.
pub struct FetchingSource<'m, S> {
    inner: S,
    misses: Option<&'m Misses>,
    deadline: Option<Instant>,
    client: u64,
}

impl<'m, S: Source> FetchingSource<'m, S> {
    /// Answers as `inner`. Images that are not built until `deadline` are [`Unanswered::Fetching`]; without a deadline,
    /// they are waited for. Without `misses`, nothing is fetched.
    pub fn new(inner: S, misses: Option<&'m Misses>, deadline: Option<Instant>) -> Self {
        Self { inner, misses, deadline, client: 0 }
    }

    /// Sets the number of the client that asks. Clients take turns. The default is 0.
    #[must_use]
    pub fn client(self, client: u64) -> Self {
        Self { client, ..self }
    }
}

impl<S: Source> Source for FetchingSource<'_, S> {
    fn answer(&mut self, questions: &[Question<'_>]) -> Vec<Result<Answers, Unanswered>> {
        let mut answered = self.inner.answer(questions);
        let Some(misses) = self.misses else { return answered };
        let missing = questions.iter().zip(&mut answered);
        let missing = missing.filter(|(_, answered)| is_lacking(answered));
        let missing = missing.filter_map(|(question, answered)| {
            let mut wanted = WantedImage::of(question.image)?;
            wanted.has_index = answered.as_ref().is_ok_and(|Answers { answers, .. }| is_whole(answers));
            Some((wanted, (question, answered)))
        });
        let (wanted, missing): (Vec<_>, Vec<_>) = missing.unzip();
        if wanted.is_empty() {
            return answered;
        }
        let outcomes = misses.ask_for(self.client, &wanted, self.deadline);
        let (mut built, mut again) = (Vec::new(), Vec::new());
        for ((question, answered), outcome) in missing.into_iter().zip(outcomes) {
            match outcome {
                None if has_nothing(answered) => *answered = Err(Unanswered::Fetching),
                Some(FetchOutcome::Failed(why)) if *answered == Err(Unanswered::Missing) => {
                    *answered = Err(Unanswered::FetchFailed(why));
                }
                None | Some(FetchOutcome::Absent | FetchOutcome::Failed(_)) => {}
                Some(FetchOutcome::Built) => {
                    again.push(question.clone());
                    built.push(answered);
                }
            }
        }
        if !again.is_empty() {
            let new = self.inner.answer(&again);
            built.into_iter().zip(new).for_each(|(answered, new)| *answered = new);
        }
        answered
    }

    fn unwind_row(
        &mut self,
        image: &ReportImage,
        offset: ImageOffset,
    ) -> Result<Option<OwnedUnwindRow>, Unanswered> {
        self.inner.unwind_row(image, offset)
    }
}

/// Whether a new index of the image would answer more.
fn is_lacking(answered: &Result<Answers, Unanswered>) -> bool {
    match answered {
        Ok(Answers { answers, by }) => {
            by.grade.is_some_and(|grade| grade < Grade::Lines) || !is_whole(answers)
        }
        Err(why) => *why == Unanswered::Missing || why.cause().is_damage(),
    }
}

fn is_whole(answers: &[Answer]) -> bool {
    !answers.iter().any(Answer::is_unreadable)
}

/// Whether a client has to ask again for any answer. Damage is said at once.
fn has_nothing(answered: &Result<Answers, Unanswered>) -> bool {
    matches!(answered, Err(Unanswered::Missing | Unanswered::Failed(Cause::Lost, _)))
}

impl<S: fmt::Debug> fmt::Debug for FetchingSource<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FetchingSource").field("inner", &self.inner).finish_non_exhaustive()
    }
}
