//! Counts the work of reading and writing reports, in the tests of this crate: bytes that are scanned, and values of
//! JSON that are visited. Times would differ from run to run.

/// Counts that this many bytes were scanned, or values visited.
#[inline(always)]
pub(crate) fn count(steps: usize) {
    #[cfg(test)]
    tests::STEPS.with(|all| all.set(all.get() + steps));
    #[cfg(not(test))]
    let _ = steps;
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use crate::test_reports::shapes::{Shape, shapes};
    use crate::{Answers, Options, Question, Report, Unanswered, symbolicate};

    thread_local! {
        pub(crate) static STEPS: Cell<usize> = const { Cell::new(0) };
    }

    /// The size of the smallest report.
    const SIZE: usize = 8 << 10;

    fn nothing(_: &Question<'_>) -> Result<Answers, Unanswered> {
        Err(Unanswered::Missing)
    }

    /// The steps of reading a report of about `size` bytes, and of writing it in each way.
    fn steps(shape: &Shape, size: usize) -> usize {
        let text = shape.text(size);
        STEPS.set(0);
        let report = Report::parse(&text).unwrap_or_else(|error| panic!("{}: {error}", shape.name()));
        let symbolicated = symbolicate(&report, &mut nothing, &Options::new());
        symbolicated.write(std::io::sink()).expect("no error");
        symbolicated.write_text(&mut std::io::sink()).expect("no error");
        serde_json::to_writer(std::io::sink(), &symbolicated.view(&[])).expect("no error");
        STEPS.get()
    }

    #[test]
    fn the_work_for_a_report_of_any_format_is_linear() {
        let mut wrong = Vec::new();
        for shape in shapes() {
            let [once, twice, four_times] = [1, 2, 4].map(|times| steps(&shape, times * SIZE));
            // What does not depend on the size, such as the first lines that all formats look at, counts once. A text
            // that is read in several ways has a limit of memory in each, which it may reach at one size and not at
            // another.
            if twice > 2 * once + once / 16 + SIZE || four_times > 4 * once + once / 4 + SIZE {
                wrong.push(format!("{once} {twice} {four_times}: {}", shape.name()));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}
