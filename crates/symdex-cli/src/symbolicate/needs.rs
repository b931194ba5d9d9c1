//! `symdex symbolicate --needs`: the images that reports need, and where they are found.

use std::cmp::Reverse;
use std::io::{self, BufWriter, Write as _};

use serde::Serialize;
use symdex::Grade;
use symdex_answer::Symbolicator;
use symdex_report::{ImageOutcome, KnownImageMap, MatchedBy, ReportImageView, Unanswered};

use super::events::report_notes;
use super::summary::{CountedImage, Hints, RunSummary, described};
use crate::failure::{self, Cause, complain};
use crate::text;

/// An image that reports need, as JSON.
#[derive(Serialize)]
struct NeededImage<'s> {
    #[serde(flatten)]
    image: ReportImageView<'s>,
    frames: u64,
    reports: u64,
}

/// Prints the images that the reports of `summary` need: the images of the app first, each group by number of frames.
pub(super) fn report(
    summary: &RunSummary,
    symbolicator: &Symbolicator,
    is_json: bool,
) -> failure::CommandResult {
    let (images, reports) = summary.images();
    let mut images: Vec<_> = images.collect();
    images.sort_by_key(|image| Reverse((image.image.is_app(), image.frames)));
    let mut out = BufWriter::new(io::stdout().lock());
    let is_any_missing = images.iter().any(|image| image.outcome.lacks_index_of(&image.image));
    let known = if is_any_missing { symbolicator.known() } else { Default::default() };
    let known = KnownImageMap::new(&known);
    let mut hints = Hints::default();
    for image in &images {
        if is_json {
            let CountedImage { image, outcome, frames, reports, .. } = *image;
            let image = ReportImageView::new(image, outcome, &known);
            let needed = NeededImage { image, frames: *frames, reports: *reports };
            serde_json::to_writer(&mut out, &needed).map_err(io::Error::from)?;
        } else {
            image.write(&mut out)?;
        }
        if image.outcome.lacks_index_of(&image.image) {
            let near = hints.near(&image.image, &image.outcome, &known);
            if !is_json {
                near.iter().try_for_each(|near| write!(out, "\n    {near}"))?;
            }
        }
        writeln!(out)?;
    }
    out.flush()?;
    let missing = |is_app| {
        let missing = images.iter().filter(|image| image.outcome.answered_by().is_none());
        missing.filter(|image| image.image.is_app() == is_app).count()
    };
    let (of_app, of_system) = (missing(true), missing(false));
    let found = images.len() - of_app - of_system;
    if reports != 0 {
        let images = text::count(images.len() as u64, "image");
        let verb = if reports == 1 { "needs" } else { "need" };
        let reports = text::count(reports, "report");
        complain(&format!(
            "{reports} {verb} {images}: {found} found; not found: {of_app} of the app, {of_system} of system libraries"
        ));
        hints.report();
        report_notes(&symbolicator.notes());
    }
    let missing = (of_app != 0).then_some(Cause::NotFound);
    let gravest = summary.gravest().filter(|cause| *cause != Cause::NotFound);
    Ok(gravest.max(missing))
}

impl CountedImage {
    /// Writes a line for the image, and indented lines for its source and the reason of its status.
    fn write(&self, out: &mut impl io::Write) -> io::Result<()> {
        let Self { image, outcome, .. } = self;
        let of = if image.is_app() { "app" } else { "system" };
        let (status, frames) = (outcome.status(), text::count(self.frames, "frame"));
        write!(out, "{status:<9} {of:<6} {frames:>10}  {}", described(image))?;
        let mut say = |what: &str, said: &str| write!(out, "\n    {what}{}", text::printable(said.into()));
        if let Some(by) = outcome.answered_by() {
            let how = match by.matched {
                MatchedBy::Id => "in ".to_owned(),
                how => format!("by {}: ", how.name()),
            };
            by.source.as_deref().map_or(Ok(()), |source| say(&how, source))?;
            if let Some(grade) = by.grade.filter(|grade| *grade < Grade::Lines) {
                say("the most that it answers: ", grade.name())?;
            }
        }
        let is_plain = matches!(outcome, ImageOutcome::NoId | ImageOutcome::Unanswered(Unanswered::Missing));
        match outcome.reason() {
            Some(reason) if !is_plain => say("", &reason),
            _ => Ok(()),
        }
    }
}
