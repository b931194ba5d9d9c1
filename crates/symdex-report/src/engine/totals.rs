//! How many frames of a report are answered.

use serde::Serialize;

use crate::engine::symbolicate::Symbolicated;
use crate::report::{ReportImage, SymbolDetail};

/// The numbers of frames in reports, and of those that are answered. The names are those in JSON.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// The frames that are read. Each counts in one of the numbers after [`unread`](Self::unread).
    pub frames: u64,
    /// As [`Report::unread_frames`](crate::Report::unread_frames). JSON has it if it is not 0.
    #[serde(skip_serializing_if = "is_zero")]
    pub unread: u64,
    /// Frames that the source answers.
    pub symbolicated: u64,
    /// Frames that have a name in the report, and keep it.
    pub kept: u64,
    /// Frames of the app without an answer.
    pub unresolved_app: u64,
    /// Frames of the system, or in no image, without an answer or a name.
    pub unresolved_system: u64,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Symbolicated<'_, '_> {
    /// Counts the frames of the report.
    ///
    /// ```
    /// # use symdex_report::{Answers, Options, Question, Report, Unanswered, symbolicate};
    /// # fn nothing(_: &Question<'_>) -> Result<Answers, Unanswered> {
    /// #     Err(Unanswered::Missing)
    /// # }
    /// let report = Report::parse(b"Thread 0 Crashed:\n0   App   0x104a343d0 (Missing)\n")?;
    /// let totals = symbolicate(&report, &mut nothing, &Options::new()).totals();
    /// assert_eq!((totals.frames, totals.unresolved_app), (1, 1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn totals(&self) -> Totals {
        let mut totals = Totals { unread: self.report.unread_frames(), ..Totals::default() };
        for (thread, frame) in self.frames() {
            let image = || self.report.images.get(self.image_of(thread, frame)?);
            let is_named = || self.report.threads[thread].frames[frame].detail != SymbolDetail::AddressOnly;
            let count = match self.unresolved(thread, frame) {
                None if self.resolution(thread, frame).is_some() => &mut totals.symbolicated,
                None => &mut totals.kept,
                Some(_) if image().is_some_and(ReportImage::is_app) => &mut totals.unresolved_app,
                // Most frames of the system have names in the report, and usually no index.
                Some(_) if is_named() => &mut totals.kept,
                Some(_) => &mut totals.unresolved_system,
            };
            *count += 1;
            totals.frames += 1;
        }
        totals
    }
}
