//! The answers for one report: each image is asked of its sources in order, until one answers all of it.

use std::path::Path;

use symdex::{ImageId, ImageOffset, Index, LinePolicy, Scratch};
use symdex_report::{Answer, AnsweredBy, Answers, Image, MatchedBy, Source, Unanswered, answer_from_index};

use super::debug_files::{Built, DebugFiles, DebugImage};
use super::indexes::{Candidate, Indexes};
use crate::failure::{Failure, Kind};
use crate::open;

/// Answers from indexes and debug files.
pub(super) struct Lookups<'a> {
    indexes: &'a Indexes<'a>,
    scratch: Scratch,
}

impl<'a> Lookups<'a> {
    pub(super) fn new(indexes: &'a Indexes<'a>) -> Self {
        Self { indexes, scratch: Scratch::default() }
    }

    /// What `candidate` has at `offsets` of the image that is wanted by `id`.
    fn ask(
        &mut self,
        candidate: &Candidate<'_>,
        id: &ImageId,
        image: &Image,
        offsets: &[ImageOffset],
        lines: LinePolicy,
    ) -> Result<Vec<Answer>, Unanswered> {
        let Self { indexes, scratch } = self;
        let mut from_file = |path: &Path| {
            let index = open::index(path, Some(&id.into())).map_err(unanswered)?;
            answer_from_index(&index, image, offsets, lines, scratch)
        };
        match candidate {
            Candidate::Index(path) => indexes.unless_damaged(path, || from_file(path)),
            Candidate::DebugFile(file) if indexes.is_enough(id, file, offsets.len()) => {
                let answer =
                    |index: &Index<Vec<u8>>| answer_from_index(index, image, offsets, lines, scratch);
                DebugFiles::directly(file, image, offsets, answer)
            }
            Candidate::DebugFile(file) => {
                match indexes.debug_files().index(file, indexes.progress()).map_err(unanswered)? {
                    Built::Stored(path) => from_file(path),
                    Built::Memory(index) => answer_from_index(index, image, offsets, lines, scratch),
                }
            }
        }
    }
}

impl Source for Lookups<'_> {
    fn answer(
        &mut self,
        image: &Image,
        offsets: &[ImageOffset],
        lines: LinePolicy,
    ) -> Result<Answers, Unanswered> {
        let indexes = self.indexes;
        first_whole(indexes, image, |candidate, id| self.ask(candidate, id, image, offsets, lines))
    }
}

/// Says of each image which source has it. Indexes are asked for all addresses, so that damage in them is found.
pub(super) struct AtHand<'a>(pub(super) &'a Indexes<'a>);

impl Source for AtHand<'_> {
    fn answer(
        &mut self,
        image: &Image,
        offsets: &[ImageOffset],
        lines: LinePolicy,
    ) -> Result<Answers, Unanswered> {
        let indexes = self.0;
        first_whole(indexes, image, |candidate, id| match candidate {
            Candidate::Index(_) => {
                let answers = Lookups::new(indexes).ask(candidate, id, image, offsets, lines)?;
                // Only damage counts: frames that are answered would not be counted as needing the image.
                Ok(answers
                    .into_iter()
                    .map(|answer| if answer.is_damaged() { answer } else { Answer::NoFunction })
                    .collect())
            }
            Candidate::DebugFile(file) => {
                check_arch(file, image)?;
                Ok(vec![Answer::NoFunction; offsets.len()])
            }
        })
    }
}

fn check_arch(file: &DebugImage, image: &Image) -> Result<(), Unanswered> {
    let fits = file.known().fits(image);
    fits.then_some(()).ok_or_else(|| Unanswered::OtherArch(file.known().arch))
}

/// Asks the sources of `image` in order until one answers everything. What is damaged in one is answered by the next that has it.
fn first_whole(
    indexes: &Indexes<'_>,
    image: &Image,
    mut ask: impl FnMut(&Candidate<'_>, &ImageId) -> Result<Vec<Answer>, Unanswered>,
) -> Result<Answers, Unanswered> {
    let (id, matched) = indexes.wanted(image)?;
    let mut gathered = Gathered::default();
    for candidate in indexes.candidates(&id) {
        let is_whole = match candidate.map_err(unanswered) {
            Ok(candidate) => gathered.add(&name(&candidate), ask(&candidate, &id)),
            Err(why) => gathered.add("", Err(why)),
        };
        if is_whole {
            break;
        }
    }
    gathered.finish(matched)
}

/// What a source is called.
fn name(candidate: &Candidate<'_>) -> String {
    match candidate {
        Candidate::Index(path) => path.display().to_string(),
        Candidate::DebugFile(image) => image.file().display().to_string(),
    }
}

/// What the sources that were asked have said.
#[derive(Default)]
struct Gathered {
    /// The answers so far, and the source that gave all of them; `None` where it is damaged itself.
    answers: Option<(Vec<Answer>, Option<String>)>,
    passed_over: Vec<Unanswered>,
    other_arch: Option<Unanswered>,
}

impl Gathered {
    /// Takes in what a source has said; whether there is nothing left to ask.
    fn add(&mut self, source: &str, said: Result<Vec<Answer>, Unanswered>) -> bool {
        let new = match said {
            Ok(new) => new,
            Err(Unanswered::Missing) => return false,
            Err(why @ Unanswered::OtherArch(_)) => {
                self.other_arch.get_or_insert(why);
                return false;
            }
            Err(why) => {
                self.passed_over.push(why);
                return false;
            }
        };
        let is_whole = !new.iter().any(Answer::is_damaged);
        if !is_whole {
            // The same for every report, whichever pages it needs: frames without another answer say what is wrong there.
            let message =
                format!("{source}: parts of it are damaged (see `symdex verify`); build or copy it again");
            self.passed_over.push(Unanswered::Damaged(message));
        }
        match &mut self.answers {
            Some((answers, _)) if !is_whole => {
                let damaged = answers.iter_mut().zip(new).filter(|(answer, _)| answer.is_damaged());
                damaged.for_each(|(answer, new)| *answer = new);
                !answers.iter().any(Answer::is_damaged)
            }
            answers => {
                *answers = Some((new, is_whole.then(|| source.to_owned())));
                is_whole
            }
        }
    }

    fn finish(self, matched: MatchedBy) -> Result<Answers, Unanswered> {
        let Self { answers, passed_over, other_arch } = self;
        if let Some((answers, source)) = answers {
            let mut by = AnsweredBy::new(matched);
            (by.source, by.passed_over) = (source, passed_over);
            return Ok(Answers { answers, by });
        }
        let all: Vec<_> = passed_over.iter().map(Unanswered::reason).collect();
        let all = all.join("; ");
        Err(match Unanswered::gravest(&passed_over) {
            Some(Unanswered::Damaged(_)) => Unanswered::Damaged(all),
            Some(Unanswered::Unsupported(_)) => Unanswered::Unsupported(all),
            Some(_) => Unanswered::Failed(all),
            None => other_arch.unwrap_or(Unanswered::Missing),
        })
    }
}

pub(super) fn unanswered(failure: Failure) -> Unanswered {
    match failure.kind {
        Kind::Damaged => Unanswered::Damaged(failure.message),
        Kind::Unsupported => Unanswered::Unsupported(failure.message),
        _ => Unanswered::Failed(failure.message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn damaged(what: &str) -> Answer {
        Answer::Damaged(what.to_owned())
    }

    #[test]
    fn what_is_damaged_in_one_source_is_answered_by_another() {
        let mut gathered = Gathered::default();
        assert!(!gathered.add("a", Ok(vec![Answer::NoFunction, damaged("page 1")])));
        assert!(!gathered.add("b", Err(Unanswered::Damaged("b: cut".to_owned()))));
        assert!(
            gathered.add("c", Ok(vec![damaged("page 0"), Answer::Functions(Vec::new())])),
            "nothing is left to ask"
        );
        let Answers { answers, by } = gathered.finish(MatchedBy::Id).expect("answers");
        assert_eq!(answers, [Answer::NoFunction, Answer::Functions(Vec::new())]);
        let passed_over: Vec<_> = by.passed_over.iter().map(Unanswered::reason).collect();
        assert_eq!((by.source, passed_over.len()), (None, 3));
        assert!(passed_over[0].starts_with("a: parts of it are damaged"), "{}", passed_over[0]);
        assert_eq!(passed_over[1], "b: cut");
    }

    #[test]
    fn a_whole_source_answers_everything() {
        let mut gathered = Gathered::default();
        assert!(!gathered.add("a", Ok(vec![Answer::NoFunction, damaged("page 1")])));
        assert!(gathered.add("b", Ok(vec![Answer::Functions(Vec::new()), Answer::NoFunction])));
        let Answers { answers, by } = gathered.finish(MatchedBy::Id).expect("answers");
        assert_eq!(
            (answers, by.source),
            (vec![Answer::Functions(Vec::new()), Answer::NoFunction], Some("b".to_owned()))
        );
    }

    #[test]
    fn without_an_answer_the_gravest_reason_counts() {
        let gathered = |said: Vec<Unanswered>| {
            let mut gathered = Gathered::default();
            said.into_iter().for_each(|why| assert!(!gathered.add("a", Err(why))));
            gathered.finish(MatchedBy::Id).expect_err("no answers")
        };
        let other = Unanswered::OtherArch("arm64".to_owned());
        assert_eq!(gathered(vec![]), Unanswered::Missing);
        assert_eq!(gathered(vec![Unanswered::Missing, other.clone()]), other);
        let [x, y] = ["x", "y"].map(str::to_owned);
        assert_eq!(
            gathered(vec![other, Unanswered::Failed(x), Unanswered::Damaged(y)]),
            Unanswered::Damaged("x; y".to_owned())
        );
    }
}
