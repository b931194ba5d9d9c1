//! Sources of answers for reports.

use symdex::{Cause, ImageOffset, Index, OwnedUnwindRow, Table};
use symdex_report::{Answer, Answers, Function, Question, ReportImage, Source, Unanswered};

use crate::input;

/// The id of the app's image in the seeds.
const APP: &str = "6dcd4e9dd3b13a0e8dff6a5a4be1b1b0";

/// A source without answers.
pub fn nothing(_: &Question<'_>) -> Result<Answers, Unanswered> {
    Err(Unanswered::Missing)
}

/// A source that answers offsets of the app, and of images without an id: with one function, with an inlined one in
/// addition, with a symbol, with nothing or with damage.
pub fn app(question: &Question<'_>) -> Result<Answers, Unanswered> {
    let Question { image, offsets, .. } = *question;
    match &image.id {
        Some(id) if id.to_string() != APP => Err(Unanswered::Missing),
        _ => Ok(offsets.iter().map(|offset| answer(*offset)).collect::<Vec<_>>().into()),
    }
}

/// Answers as [`app`] does, and has an unwind row for any offset of any image.
pub struct Unwound {
    rows: Vec<OwnedUnwindRow>,
}

impl Unwound {
    /// The rows of the [`input::indexes`].
    #[must_use]
    pub fn of_indexes() -> Self {
        let rows = |bytes: Vec<u8>| {
            let index = Index::open(bytes).expect("an index");
            let rows = index.unwind_rows().expect("whole");
            rows.map(|row| OwnedUnwindRow::from(row.expect("whole"))).collect::<Vec<_>>()
        };
        Self { rows: input::indexes().into_iter().flat_map(rows).collect() }
    }
}

impl Source for Unwound {
    fn answer(&mut self, questions: &[Question<'_>]) -> Vec<Result<Answers, Unanswered>> {
        questions.iter().map(app).collect()
    }

    fn unwind_row(
        &mut self,
        _: &ReportImage,
        offset: ImageOffset,
    ) -> Result<Option<OwnedUnwindRow>, Unanswered> {
        let row = usize::try_from(offset.0).ok().and_then(|offset| offset.checked_rem(self.rows.len()));
        Ok(row.and_then(|row| self.rows.get(row)).cloned())
    }
}

fn answer(offset: ImageOffset) -> Answer {
    let function = |name: &str, table, line| {
        let file = "/src/\u{e4}\"\\/main.c";
        let mut function = Function::new(table, Some(name.as_bytes()), Some(file.as_bytes()));
        (function.line, function.start) = (line, Some(ImageOffset(offset.0 & !0xff)));
        function
    };
    let dwarf = |name, line| function(name, Table::Dwarf, Some(line));
    match offset.0 >> 4 & 7 {
        0 => Answer::NoFunction,
        1 => Answer::Unreadable(Cause::Damaged, "damaged here".to_owned()),
        2 => Answer::functions(vec![function("symbol", Table::SymbolTable, None)]),
        3 | 4 => Answer::functions(vec![dwarf("_ZN3app5innerEv", 0), dwarf("outer", 7)]),
        line => Answer::functions(vec![dwarf("-[App \"run\"\n:]", u32::try_from(line).unwrap_or(0))]),
    }
}
