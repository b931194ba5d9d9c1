//! `symdex symbolicate --needs`: the images that reports need, and where they are found.

use std::cmp::Reverse;
use std::io::{self, BufWriter, Write as _};

use serde::Serialize;
use symdex::Grade;
use symdex_answer::Symbolicator;
use symdex_report::{ImageOutcome, KnownImageMap, NearView, Unanswered};

use super::events::report_notes;
use super::summary::{CountedImage, Hints, RunSummary, described};
use crate::failure::{self, Cause, CommandError, complain};
use crate::text;

/// An image that reports need, as JSON.
#[derive(Serialize)]
struct NeededImage<'s> {
    name: &'s str,
    path: &'s str,
    arch: Option<&'s str>,
    id: Option<String>,
    is_app: bool,
    frames: u64,
    reports: u64,
    status: &'static str,
    reason: Option<String>,
    matched_by: Option<&'static str>,
    source: Option<&'s str>,
    grade: Option<Grade>,
    /// Near matches of this image, as in the JSON of a report.
    #[serde(skip_serializing_if = "Option::is_none")]
    near: Option<Vec<NearView<'s>>>,
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
    let known = KnownImageMap::new(if is_any_missing { symbolicator.known() } else { &[] });
    let mut hints = Hints::default();
    for image in &images {
        let needed = NeededImage::of(image, &known);
        match is_json {
            true => serde_json::to_writer(&mut out, &needed)
                .map_err(io::Error::from)
                .map_err(CommandError::from)?,
            false => needed.write(image, &mut out)?,
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
            "{reports} {verb} {images}: {found} found; not found: {of_app} of the app, {of_system} of the system"
        ));
        hints.report();
        report_notes(&symbolicator.notes());
    }
    let missing = (of_app != 0).then_some(Cause::NotFound);
    let gravest = summary.gravest().filter(|cause| *cause != Cause::NotFound);
    Ok(gravest.max(missing))
}

impl<'s> NeededImage<'s> {
    fn of(image: &'s CountedImage, known: &KnownImageMap<'s>) -> Self {
        let CountedImage { image, outcome, frames, reports, .. } = image;
        let by = outcome.answered_by();
        Self {
            name: &image.name,
            path: &image.path,
            arch: image.arch.as_ref().map(|arch| arch.name.as_str()),
            id: image.id.as_ref().map(ToString::to_string),
            is_app: image.is_app(),
            frames: *frames,
            reports: *reports,
            status: outcome.status(),
            reason: outcome.reason().map(|reason| reason.into_owned()),
            matched_by: by.map(|by| by.matched.name()),
            source: by.and_then(|by| by.source.as_deref()),
            grade: by.and_then(|by| by.grade),
            near: outcome.lacks_index_of(image).then(|| NearView::nearest(image, known)),
        }
    }

    /// Writes a line for the image, and indented lines for its source and the reason of its status.
    fn write(&self, image: &CountedImage, out: &mut impl io::Write) -> io::Result<()> {
        let of = if self.is_app { "app" } else { "system" };
        let frames = text::count(self.frames, "frame");
        write!(out, "{:<9} {of:<6} {frames:>10}  {}", self.status, described(&image.image))?;
        let mut say = |what: &str, said: &str| write!(out, "\n    {what}{}", text::printable(said.into()));
        if let Some(source) = self.source {
            let how = match self.matched_by {
                Some("id") | None => "in ".to_owned(),
                Some(how) => format!("by {how}: "),
            };
            say(&how, source)?;
        }
        if let Some(grade) = self.grade.filter(|grade| *grade < Grade::Lines) {
            say("the most that it answers: ", grade.name())?;
        }
        let is_plain =
            matches!(image.outcome, ImageOutcome::NoId | ImageOutcome::Unanswered(Unanswered::Missing));
        match &self.reason {
            Some(reason) if !is_plain => say("", reason),
            _ => Ok(()),
        }
    }
}
