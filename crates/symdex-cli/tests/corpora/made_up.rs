//! A source that answers for every image with made-up functions.

use symdex::{ImageOffset, Table};
use symdex_report::{Answer, Answers, Function, Question, Source, Unanswered};

/// What the answers have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// There are no answers.
    Nothing,
    /// A function with a line, and two functions inlined into it.
    Inlined,
    /// A function without a line, as from a symbol table.
    Symbol,
    /// A function without a line and without a start.
    Name,
    /// A file and a line without a function.
    Line,
}

impl Shape {
    pub(crate) const ALL: [Self; 4] = [Self::Inlined, Self::Symbol, Self::Name, Self::Line];
}

pub(crate) struct MadeUp {
    shape: Shape,
    pub(crate) asked: usize,
}

impl MadeUp {
    pub(crate) fn new(shape: Shape) -> Self {
        Self { shape, asked: 0 }
    }
}

impl MadeUp {
    fn answer_one(&mut self, question: &Question<'_>) -> Result<Answers, Unanswered> {
        let Question { offsets, .. } = *question;
        self.asked += offsets.len();
        let function = |name: Option<&str>, line: Option<u32>, offset: Option<u64>| {
            let file = line.map(|_| &b"/src/made up/file.cc"[..]);
            let mut function = Function::new(Table::Dwarf, name.map(str::as_bytes), file);
            (function.line, function.start) = (line, offset.map(ImageOffset));
            function
        };
        let of_offset = |offset: u64| {
            let (start, line) = (Some(offset & !0xff), Some(u32::try_from(offset % 9999).expect("small")));
            match self.shape {
                Shape::Nothing => vec![],
                Shape::Inlined => vec![
                    function(Some("_ZN1a5innerERKSsi"), line, None),
                    function(Some("-[Middle a:b:]"), Some(0), None),
                    function(Some("outer"), line, start),
                ],
                Shape::Symbol => vec![function(Some("_ZN1a6symbolEv"), None, start)],
                Shape::Name => vec![function(Some("operator name"), None, None)],
                Shape::Line => vec![function(None, line, start)],
            }
        };
        match self.shape {
            Shape::Nothing => Err(Unanswered::Missing),
            _ => {
                let answers = offsets.iter().map(|offset| Answer::functions(of_offset(offset.0)));
                Ok(answers.collect::<Vec<_>>().into())
            }
        }
    }
}

impl Source for MadeUp {
    fn answer(&mut self, questions: &[Question<'_>]) -> Vec<Result<Answers, Unanswered>> {
        questions.iter().map(|question| self.answer_one(question)).collect()
    }
}
