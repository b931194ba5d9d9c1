//! The answers of several sources for one image, combined.

use symdex::{Cause, Grade};

use crate::engine::source::{Answer, AnsweredBy, Answers, MatchedBy, Unanswered};

/// What one index or debug file has answered for an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceAnswers {
    /// An answer for each offset of the question, in their order.
    pub answers: Vec<Answer>,
    /// The path or the name of the source, for messages.
    pub source: String,
    /// The most that the source answers: [`Metadata::grade`](symdex::Metadata::grade) of an index.
    pub grade: Grade,
    /// Why files that belong to the source could not be read.
    pub failures: Vec<Unanswered>,
}

/// The answers for one image from the sources that were asked so far. A [`Source`](crate::Source) with several indexes
/// of an image uses it: each address gets the best answer, by [`Answer::grade`]. Addresses that are damaged in one
/// index are answered by the next one that has them, and an index without lines does not hide one with lines.
///
/// ```
/// use symdex::Grade;
/// use symdex_report::{Answer, GatheredAnswers, MatchedBy, SourceAnswers, Unanswered};
///
/// let mut gathered = GatheredAnswers::default();
/// let (answers, failures) = (vec![Answer::NoFunction], Vec::new());
/// gathered.add(Ok(SourceAnswers { answers, source: "app.symdex".into(), grade: Grade::Lines, failures }));
/// assert!(!gathered.lacks(Grade::Lines), "no other index knows more");
/// let answers = gathered.finish(MatchedBy::Id)?;
/// assert_eq!(answers.by.source.as_deref(), Some("app.symdex"));
/// # Ok::<(), Unanswered>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct GatheredAnswers {
    best: Option<BestAnswers>,
    passed_over: Vec<Unanswered>,
    /// The first reason why an index of the image, which is not damaged, has no answers.
    no_match: Option<Unanswered>,
}

/// The best answers so far.
#[derive(Clone, Debug)]
struct BestAnswers {
    answers: Vec<Answer>,
    /// The source that gave all of them; `None` if several sources gave them, or if some cannot be read.
    source: Option<String>,
    /// The greatest grade of the sources.
    grade: Grade,
    /// Whether all of them can be read.
    is_whole: bool,
}

impl BestAnswers {
    fn new(answers: Vec<Answer>, source: String, grade: Grade) -> Self {
        let is_whole = !answers.iter().any(Answer::is_unreadable);
        Self { answers, source: is_whole.then_some(source), grade, is_whole }
    }

    /// Adds the answers of a source that was asked later. If two answers for an address have the same grade, the one
    /// that counts is that of the source which answers more on the whole, so that most often one source gave all.
    fn add(&mut self, mut other: Self) {
        if other.is_whole && (other.grade, true) > (self.grade, self.is_whole) {
            std::mem::swap(self, &mut other);
        }
        let mut is_mixed = false;
        for (answer, other) in self.answers.iter_mut().zip(other.answers) {
            if other.rank() > answer.rank() {
                *answer = other;
                is_mixed = true;
            }
        }
        if is_mixed {
            self.source = None;
            self.is_whole = !self.answers.iter().any(Answer::is_unreadable);
        }
        self.grade = self.grade.max(other.grade);
    }
}

impl GatheredAnswers {
    /// Adds what one source has answered.
    pub fn add(&mut self, answered: Result<SourceAnswers, Unanswered>) {
        let SourceAnswers { answers, source, grade, failures } = match answered {
            Ok(new) => new,
            Err(Unanswered::Missing) => return,
            Err(why @ Unanswered::NoMatch(_)) => {
                self.no_match.get_or_insert(why);
                return;
            }
            Err(why) => {
                self.passed_over.push(why);
                return;
            }
        };
        self.passed_over.extend(failures);
        // The messages do not name the damaged pages and the lost values, so that they are the same for every report.
        // Frames without an answer name them.
        if answers.iter().any(|answer| matches!(answer, Answer::Unreadable(Cause::Damaged, _))) {
            let message =
                format!("{source}: parts of it are damaged (see `symdex verify`); build or copy it again");
            self.passed_over.push(Unanswered::Failed(Cause::Damaged, message));
        }
        if answers.iter().any(|answer| matches!(answer, Answer::Unreadable(Cause::Lost, _))) {
            let message =
                format!("{source}: the store has lost parts of it; put the index into the store again");
            self.passed_over.push(Unanswered::Failed(Cause::Lost, message));
        }
        let new = BestAnswers::new(answers, source, grade);
        match &mut self.best {
            Some(best) => best.add(new),
            best => *best = Some(new),
        }
    }

    /// Whether a source of this grade may answer more than those that were asked. If none has [`Grade::Lines`], a
    /// source with lines does.
    #[must_use]
    pub fn lacks(&self, grade: Grade) -> bool {
        self.best.as_ref().is_none_or(|best| !best.is_whole || best.grade < grade)
    }

    /// The combined answers.
    ///
    /// # Errors
    ///
    /// The gravest reason if no source has answered. [`Unanswered::Missing`] if there was none.
    pub fn finish(self, matched: MatchedBy) -> Result<Answers, Unanswered> {
        let Self { best, passed_over, no_match } = self;
        if let Some(BestAnswers { answers, source, grade, .. }) = best {
            let mut by = AnsweredBy::new(matched);
            (by.source, by.grade, by.passed_over) = (source, Some(grade), passed_over);
            by.is_partly_lost =
                answers.iter().any(|answer| matches!(answer, Answer::Unreadable(Cause::Lost, _)));
            return Ok(Answers { answers, by });
        }
        let all: Vec<_> = passed_over.iter().map(Unanswered::reason).collect();
        let all = all.join("; ");
        Err(match Unanswered::gravest(&passed_over) {
            Some(why) => Unanswered::Failed(why.cause(), all),
            None => no_match.unwrap_or(Unanswered::Missing),
        })
    }
}

#[cfg(test)]
mod tests {
    use symdex::Table;

    use super::*;
    use crate::engine::function::Function;

    fn damaged(what: &str) -> Answer {
        Answer::Unreadable(Cause::Damaged, what.to_owned())
    }

    fn from(source: &str, answers: Vec<Answer>) -> Result<SourceAnswers, Unanswered> {
        of_grade(Grade::Lines, source, answers)
    }

    fn of_grade(grade: Grade, source: &str, answers: Vec<Answer>) -> Result<SourceAnswers, Unanswered> {
        Ok(SourceAnswers { answers, source: source.to_owned(), grade, failures: Vec::new() })
    }

    /// An answer of this grade.
    fn answer(grade: Grade) -> Answer {
        let name = (grade >= Grade::Names).then_some(&b"f"[..]);
        let mut function = Function::new(Table::Dwarf, name, None);
        function.line = (grade == Grade::Lines).then_some(1);
        Answer::functions(vec![function])
    }

    /// Adds what a source has answered. Returns whether no further source may answer more.
    fn add(gathered: &mut GatheredAnswers, answered: Result<SourceAnswers, Unanswered>) -> bool {
        gathered.add(answered);
        !gathered.lacks(Grade::Lines)
    }

    #[test]
    fn addresses_that_are_damaged_in_one_source_are_answered_by_another() {
        let mut gathered = GatheredAnswers::default();
        assert!(!add(&mut gathered, from("a", vec![Answer::NoFunction, damaged("page 1")])));
        assert!(!add(&mut gathered, Err(Unanswered::Failed(Cause::Damaged, "b: cut".to_owned()))));
        assert!(
            add(&mut gathered, from("c", vec![damaged("page 0"), Answer::functions(Vec::new())])),
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
        assert!(!add(&mut gathered, from("a", vec![Answer::NoFunction, damaged("page 1")])));
        assert!(add(&mut gathered, from("b", vec![Answer::functions(Vec::new()), Answer::NoFunction])));
        let Answers { answers, by } = gathered.finish(MatchedBy::Id).expect("answers");
        assert_eq!(
            (answers, by.source),
            (vec![Answer::functions(Vec::new()), Answer::NoFunction], Some("b".to_owned()))
        );
    }

    #[test]
    fn each_address_gets_the_answer_of_the_greatest_grade() {
        use Grade::{Bounds, Lines, Names};

        let [bounds, name, line] = [Bounds, Names, Lines].map(answer);
        let none = || Answer::NoFunction;
        let answered = |sources: Vec<(Grade, Vec<Answer>)>| {
            let mut gathered = GatheredAnswers::default();
            for (number, (grade, answers)) in sources.into_iter().enumerate() {
                gathered.add(of_grade(grade, &number.to_string(), answers));
            }
            let Answers { answers, by } = gathered.finish(MatchedBy::Id).expect("answers");
            (answers, by.source, by.grade)
        };
        let stripped = (Names, vec![bounds.clone(), name.clone(), none()]);
        let full = (Lines, vec![line.clone(), name.clone(), none()]);
        let of = |source: &str| Some(source.to_owned());
        // Where both know as much, the answer is that of the full one, so that it has answered all.
        let all = (full.1.clone(), of("1"), Some(Lines));
        assert_eq!(answered(vec![stripped.clone(), full.clone()]), all);
        assert_eq!(answered(vec![full.clone(), stripped.clone()]), (full.1.clone(), of("0"), Some(Lines)));
        // Two equal ones: the first.
        assert_eq!(answered(vec![stripped.clone(), stripped.clone()]).1, of("0"));
        // The full index may lack a symbol, or have a damaged page.
        let other = (Lines, vec![line.clone(), none(), none()]);
        assert_eq!(
            answered(vec![stripped.clone(), other]),
            (vec![line.clone(), name.clone(), none()], None, Some(Lines))
        );
        let damaged = (Lines, vec![line.clone(), damaged("page 1"), damaged("page 1")]);
        let best = vec![line, name, none()];
        assert_eq!(answered(vec![stripped.clone(), damaged.clone()]), (best.clone(), None, Some(Lines)));
        assert_eq!(answered(vec![damaged, stripped]), (best, None, Some(Lines)));
    }

    #[test]
    fn an_index_without_lines_does_not_end_the_search() {
        let mut gathered = GatheredAnswers::default();
        assert!(gathered.lacks(Grade::Nothing), "nothing was asked");
        gathered.add(of_grade(Grade::Names, "a", vec![answer(Grade::Names)]));
        assert!(gathered.lacks(Grade::Lines) && !gathered.lacks(Grade::Names));
        gathered.add(of_grade(Grade::Lines, "b", vec![damaged("page 1")]));
        assert!(!gathered.lacks(Grade::Lines), "the damaged address has an answer");
    }

    #[test]
    fn files_that_a_source_could_not_read_are_reported_with_its_answers() {
        let mut gathered = GatheredAnswers::default();
        let failures = vec![Unanswered::Failed(Cause::Damaged, "a: cut".to_owned())];
        let answers = vec![Answer::NoFunction];
        let source = "b".to_owned();
        let failures_of_b = failures.clone();
        gathered.add(Ok(SourceAnswers { answers, source, grade: Grade::Lines, failures: failures_of_b }));
        let by = gathered.finish(MatchedBy::Id).expect("answers").by;
        assert_eq!((by.source, by.passed_over), (Some("b".to_owned()), failures));
    }

    #[test]
    fn without_an_answer_the_gravest_reason_counts() {
        let gathered = |said: Vec<Unanswered>| {
            let mut gathered = GatheredAnswers::default();
            said.into_iter().for_each(|why| assert!(!add(&mut gathered, Err(why))));
            gathered.finish(MatchedBy::Id).expect_err("no answers")
        };
        let other = Unanswered::other_arch("arm64");
        assert_eq!(gathered(vec![]), Unanswered::Missing);
        assert_eq!(gathered(vec![Unanswered::Missing, other.clone()]), other);
        let lost = Unanswered::Failed(Cause::Unavailable, "lost".to_owned());
        assert_eq!(gathered(vec![other.clone(), lost.clone()]), lost, "the store may have the image");
        let no_start = Unanswered::NoMatch("no function f".to_owned());
        assert_eq!(gathered(vec![no_start.clone(), Unanswered::Missing]), no_start);
        let [x, y] = ["x", "y"].map(str::to_owned);
        assert_eq!(
            gathered(vec![other, Unanswered::Failed(Cause::Other, x), Unanswered::Failed(Cause::Damaged, y)]),
            Unanswered::Failed(Cause::Damaged, "x; y".to_owned())
        );
    }
}
