//! The answers of several sources for one image, combined.

use crate::source::{Answer, AnsweredBy, Answers, MatchedBy, Unanswered};

/// What one index or debug file has answered for an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceAnswers {
    /// An answer for each offset of the question, in their order.
    pub answers: Vec<Answer>,
    /// The path or the name of the source, for messages.
    pub source: String,
    /// Why files that belong to the source could not be read.
    pub failures: Vec<Unanswered>,
}

/// The answers for one image from the sources that were asked so far. A [`Source`](crate::Source) with several indexes
/// of an image uses it: addresses that are damaged in one index are answered by the next one that has them.
///
/// ```
/// use symdex_report::{Answer, GatheredAnswers, MatchedBy, SourceAnswers, Unanswered};
///
/// let mut gathered = GatheredAnswers::default();
/// let answers = vec![Answer::NoFunction];
/// let is_whole =
///     gathered.add(Ok(SourceAnswers { answers, source: "app.symdex".into(), failures: Vec::new() }));
/// assert!(is_whole);
/// let answers = gathered.finish(MatchedBy::Id)?;
/// assert_eq!(answers.by.source.as_deref(), Some("app.symdex"));
/// # Ok::<(), Unanswered>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct GatheredAnswers {
    /// The answers so far, and the source that gave all of them; `None` if several sources gave them.
    answers: Option<(Vec<Answer>, Option<String>)>,
    passed_over: Vec<Unanswered>,
    /// The first reason why an index of the image, which is not damaged, has no answers.
    no_match: Option<Unanswered>,
}

impl GatheredAnswers {
    /// Adds what one source has answered. Returns whether every address is answered.
    pub fn add(&mut self, answered: Result<SourceAnswers, Unanswered>) -> bool {
        let SourceAnswers { answers: new, source, failures } = match answered {
            Ok(new) => new,
            Err(Unanswered::Missing) => return false,
            Err(why @ (Unanswered::OtherArch(_) | Unanswered::NoStart(_))) => {
                self.no_match.get_or_insert(why);
                return false;
            }
            Err(why) => {
                self.passed_over.push(why);
                return false;
            }
        };
        self.passed_over.extend(failures);
        // The messages do not name the damaged pages and the lost values, so that they are the same for every report.
        // Frames without an answer name them.
        if new.iter().any(|answer| matches!(answer, Answer::Damaged(_))) {
            let message =
                format!("{source}: parts of it are damaged (see `symdex verify`); build or copy it again");
            self.passed_over.push(Unanswered::Damaged(message));
        }
        if new.iter().any(|answer| matches!(answer, Answer::Lost(_))) {
            let message =
                format!("{source}: the store has lost parts of it; put the index into the store again");
            self.passed_over.push(Unanswered::Lost(message));
        }
        let is_whole = !new.iter().any(Answer::is_unreadable);
        match &mut self.answers {
            Some((answers, _)) if !is_whole => {
                let unreadable = answers.iter_mut().zip(new).filter(|(answer, _)| answer.is_unreadable());
                unreadable.for_each(|(answer, new)| *answer = new);
                !answers.iter().any(Answer::is_unreadable)
            }
            answers => {
                *answers = Some((new, is_whole.then_some(source)));
                is_whole
            }
        }
    }

    /// Notes why a source was not waited for, if it was not.
    pub fn pass_over(&mut self, why: Option<Unanswered>) {
        self.passed_over.extend(why);
    }

    /// The combined answers.
    ///
    /// # Errors
    ///
    /// The gravest reason if no source has answered. [`Unanswered::Missing`] if there was none.
    pub fn finish(self, matched: MatchedBy) -> Result<Answers, Unanswered> {
        let Self { answers, passed_over, no_match } = self;
        if let Some((answers, source)) = answers {
            let mut by = AnsweredBy::new(matched);
            (by.source, by.passed_over) = (source, passed_over);
            by.is_partly_lost = answers.iter().any(|answer| matches!(answer, Answer::Lost(_)));
            return Ok(Answers { answers, by });
        }
        let all: Vec<_> = passed_over.iter().map(Unanswered::reason).collect();
        let all = all.join("; ");
        Err(match Unanswered::gravest(&passed_over) {
            Some(Unanswered::Damaged(_)) => Unanswered::Damaged(all),
            Some(Unanswered::Lost(_)) => Unanswered::Lost(all),
            Some(Unanswered::Unsupported(_)) => Unanswered::Unsupported(all),
            Some(Unanswered::StoreFailed(_)) => Unanswered::StoreFailed(all),
            Some(_) => Unanswered::Failed(all),
            None => no_match.unwrap_or(Unanswered::Missing),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn damaged(what: &str) -> Answer {
        Answer::Damaged(what.to_owned())
    }

    fn from(source: &str, answers: Vec<Answer>) -> Result<SourceAnswers, Unanswered> {
        Ok(SourceAnswers { answers, source: source.to_owned(), failures: Vec::new() })
    }

    #[test]
    fn addresses_that_are_damaged_in_one_source_are_answered_by_another() {
        let mut gathered = GatheredAnswers::default();
        assert!(!gathered.add(from("a", vec![Answer::NoFunction, damaged("page 1")])));
        assert!(!gathered.add(Err(Unanswered::Damaged("b: cut".to_owned()))));
        assert!(
            gathered.add(from("c", vec![damaged("page 0"), Answer::functions(Vec::new())])),
            "nothing is left to ask"
        );
        let Answers { answers, by } = gathered.finish(MatchedBy::Id).expect("answers");
        assert_eq!(answers, [Answer::NoFunction, Answer::functions(Vec::new())]);
        let passed_over: Vec<_> = by.passed_over.iter().map(Unanswered::reason).collect();
        assert_eq!((by.source, passed_over.len()), (None, 3));
        assert!(passed_over[0].starts_with("a: parts of it are damaged"), "{}", passed_over[0]);
        assert_eq!(passed_over[1], "b: cut");
    }

    #[test]
    fn a_whole_source_answers_everything() {
        let mut gathered = GatheredAnswers::default();
        assert!(!gathered.add(from("a", vec![Answer::NoFunction, damaged("page 1")])));
        assert!(gathered.add(from("b", vec![Answer::functions(Vec::new()), Answer::NoFunction])));
        let Answers { answers, by } = gathered.finish(MatchedBy::Id).expect("answers");
        assert_eq!(
            (answers, by.source),
            (vec![Answer::functions(Vec::new()), Answer::NoFunction], Some("b".to_owned()))
        );
    }

    #[test]
    fn files_that_a_source_could_not_read_are_reported_with_its_answers() {
        let mut gathered = GatheredAnswers::default();
        let failures = vec![Unanswered::Damaged("a: cut".to_owned())];
        let answers = vec![Answer::NoFunction];
        assert!(gathered.add(Ok(SourceAnswers {
            answers,
            source: "b".to_owned(),
            failures: failures.clone()
        })));
        let by = gathered.finish(MatchedBy::Id).expect("answers").by;
        assert_eq!((by.source, by.passed_over), (Some("b".to_owned()), failures));
    }

    #[test]
    fn without_an_answer_the_gravest_reason_counts() {
        let gathered = |said: Vec<Unanswered>| {
            let mut gathered = GatheredAnswers::default();
            said.into_iter().for_each(|why| assert!(!gathered.add(Err(why))));
            gathered.finish(MatchedBy::Id).expect_err("no answers")
        };
        let other = Unanswered::OtherArch("arm64".to_owned());
        assert_eq!(gathered(vec![]), Unanswered::Missing);
        assert_eq!(gathered(vec![Unanswered::Missing, other.clone()]), other);
        let lost = Unanswered::StoreFailed("lost".to_owned());
        assert_eq!(gathered(vec![other.clone(), lost.clone()]), lost, "the store may have the image");
        let no_start = Unanswered::NoStart("no function f".to_owned());
        assert_eq!(gathered(vec![no_start.clone(), Unanswered::Missing]), no_start);
        let [x, y] = ["x", "y"].map(str::to_owned);
        assert_eq!(
            gathered(vec![other, Unanswered::Failed(x), Unanswered::Damaged(y)]),
            Unanswered::Damaged("x; y".to_owned())
        );
    }
}
