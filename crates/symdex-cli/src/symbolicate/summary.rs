//! The summary of all reports.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::{Path, PathBuf};

use symdex::{Grade, ImageId};
use symdex_answer::Symbolicator;
use symdex_report::{
    AnsweredBy, Base, ImageOutcome, KnownImage, KnownImageMap, MatchedBy, Nearness, ReportImage,
    SymbolDetail, Symbolicated, Totals, Unanswered, apple_uuid,
};

use super::events::report_notes;
use super::stores::report_stores;
use crate::failure::{Cause, complain, note};
use crate::text;

/// Counts of the frames and images of one report, or of all reports.
#[derive(Default)]
pub(super) struct ReportCounts {
    /// The format of the report; empty for several reports.
    format: &'static str,
    totals: Totals,
    /// Frames whose address or image cannot be read.
    malformed: u64,
    /// Bytes after the end of reports, and reports that have some.
    unread_bytes: u64,
    followed: u64,
    /// Reports that are cut.
    cut: u64,
    /// Symbolicated frames whose image was not matched by its id.
    not_by_id: u64,
    images: BTreeMap<ImageKey, CountedImage>,
    /// Frames of the app without an answer although their image was found, by image and reason. If the report lists no
    /// images, also the frames in none.
    reasons: BTreeMap<(String, String), u64>,
}

/// The key by which images of several reports are the same: file name, id and architecture.
type ImageKey = (String, Option<ImageId>, Option<String>);

#[derive(Clone)]
pub(super) struct CountedImage {
    pub(super) image: ReportImage,
    pub(super) outcome: ImageOutcome,
    /// Frames without an answer.
    pub(super) frames: u64,
    answered: u64,
    /// Reports with a frame in this image to answer.
    pub(super) reports: u64,
}

impl CountedImage {
    /// Adds the counts of the same image in another report. If either report found damage, the sum has it.
    fn add(&mut self, other: &Self) {
        self.frames += other.frames;
        self.answered += other.answered;
        self.reports += other.reports;
        match (&mut self.outcome, &other.outcome) {
            (ImageOutcome::Found(by), ImageOutcome::Found(other)) => {
                let new = other.passed_over.iter().filter(|why| !by.passed_over.contains(why));
                let new: Vec<_> = new.cloned().collect();
                by.passed_over.extend(new);
                by.grade = by.grade.max(other.grade);
            }
            (outcome, other) if cause(outcome) < cause(other) => *outcome = other.clone(),
            _ => {}
        }
    }
}

impl ReportCounts {
    pub(super) fn of(symbolicated: &Symbolicated<'_, '_>) -> Self {
        let report = symbolicated.report;
        let unread_bytes = report.unread_bytes();
        let mut counted = Self {
            totals: symbolicated.totals(),
            malformed: report.malformed_frames(),
            unread_bytes,
            format: report.format_name(),
            followed: u64::from(unread_bytes != 0 && !report.is_cut()),
            cut: u64::from(report.is_cut()),
            ..Self::default()
        };
        let (mut frames, mut answered) = (vec![0; report.images().len()], vec![0; report.images().len()]);
        let lists_none = report.images().iter().all(|image| image.is_unlisted);
        for (thread, number) in symbolicated.frames() {
            let place = symbolicated.image_of(thread, number);
            let Some(why) = symbolicated.unresolved(thread, number) else {
                if let Some((place, by)) = place.zip(symbolicated.matched_by(thread, number)) {
                    answered[place] += 1;
                    counted.not_by_id += u64::from(by != MatchedBy::Id);
                }
                continue;
            };
            let mut count = |image: &str, reason: Cow<'_, str>| {
                let key = (image.to_owned(), reason.into_owned());
                *counted.reasons.entry(key).or_default() += 1;
            };
            let image =
                place.and_then(|place| Some((report.images().get(place)?, &symbolicated.images()[place])));
            if let Some((image, outcome)) = image {
                if image.is_app() && matches!(outcome, ImageOutcome::Found(_)) {
                    count(image.file_name(), why.reason(Some(outcome)));
                }
            } else if lists_none
                && report.threads()[thread].frames[number].detail == SymbolDetail::AddressOnly
            {
                count(
                    "no image",
                    format!("the report states no images; add {}", report.format().image_list()).into(),
                );
            }
            if let Some(count) = place.and_then(|place| frames.get_mut(place)) {
                *count += 1;
            }
        }
        let images = report.images().iter().zip(symbolicated.images()).zip(frames.into_iter().zip(answered));
        let used = images.filter(|((_, outcome), _)| **outcome != ImageOutcome::Unused);
        for ((image, outcome), (frames, answered)) in used {
            let (image, outcome) = (image.clone(), outcome.clone());
            counted.add(CountedImage { image, outcome, frames, answered, reports: 1 });
        }
        // Some reports list an image twice.
        counted.images.values_mut().for_each(|image| image.reports = 1);
        counted
    }

    fn add(&mut self, image: CountedImage) {
        let arch = image.image.arch.as_ref().map(|arch| arch.name.clone());
        let key = (image.image.file_name().to_owned(), image.image.id.clone(), arch);
        match self.images.entry(key) {
            Entry::Occupied(mut known) => known.get_mut().add(&image),
            Entry::Vacant(new) => {
                new.insert(image);
            }
        }
    }
}

/// The summary at the end of a run.
#[derive(Default)]
pub(super) struct RunSummary {
    reports: u64,
    total: ReportCounts,
    /// Reports without frames, by format.
    without_frames: BTreeMap<&'static str, u64>,
    /// Files that are not reports and were copied unchanged to the output folder.
    copied: u64,
    /// The files in folders and archives that are not reports.
    others: Vec<PathBuf>,
    gravest: Option<Cause>,
}

impl RunSummary {
    pub(super) fn count(&mut self, counted: ReportCounts) {
        self.reports += 1;
        if counted.totals.frames == 0 {
            *self.without_frames.entry(counted.format).or_default() += 1;
        }
        let total = &mut self.total;
        let Totals { frames, unread, symbolicated, kept, unresolved_app, unresolved_system, .. } =
            counted.totals;
        let sums = &mut total.totals;
        sums.frames += frames;
        sums.unread += unread;
        sums.symbolicated += symbolicated;
        sums.kept += kept;
        sums.unresolved_app += unresolved_app;
        sums.unresolved_system += unresolved_system;
        total.malformed += counted.malformed;
        total.unread_bytes += counted.unread_bytes;
        total.followed += counted.followed;
        total.cut += counted.cut;
        total.not_by_id += counted.not_by_id;
        for (key, count) in counted.reasons {
            *total.reasons.entry(key).or_default() += count;
        }
        counted.images.into_values().for_each(|image| total.add(image));
        let damaged = total.images.values().filter_map(|image| cause(&image.outcome)).max();
        self.gravest = self.gravest.max(damaged);
        let is_whole = unread + counted.malformed + counted.unread_bytes == 0;
        if unresolved_app != 0 || !is_whole || symbolicated + kept == 0 {
            self.graver(Cause::NotFound);
        }
    }

    /// Counts a file that was copied unchanged.
    pub(super) fn count_copied(&mut self) {
        self.copied += 1;
    }

    /// Counts a file that was found among reports and is none.
    pub(super) fn not_a_report(&mut self, path: &Path) {
        self.others.push(path.to_owned());
    }

    /// Prints on standard error which files are not reports.
    pub(super) fn report_others(&self) {
        if !self.others.is_empty() {
            let files = text::count(self.others.len() as u64, "file");
            let names = text::list(self.others.iter().map(|path| path.display()));
            note(&format!("{files} not read as a report: {}", text::printable(names.into())));
        }
    }

    pub(super) fn graver(&mut self, cause: Cause) {
        self.gravest = self.gravest.max(Some(cause));
    }

    /// The images that the reports need, and the number of reports.
    pub(super) fn images(&self) -> (impl Iterator<Item = &CountedImage>, u64) {
        (self.total.images.values(), self.reports)
    }

    pub(super) fn gravest(&self) -> Option<Cause> {
        let has_only_others = self.reports == 0 && !self.others.is_empty();
        self.gravest.max(has_only_others.then_some(Cause::Unsupported))
    }

    /// Prints on standard error how many frames are symbolicated, which images were found, and which are missing.
    pub(super) fn report(&self, symbolicator: &Symbolicator) {
        if self.copied != 0 {
            let files = text::count(self.copied, "file");
            complain(&format!("{files} copied unchanged: not read as a report"));
        }
        if self.reports == 0 {
            return;
        }
        let Totals { frames, symbolicated, kept, unresolved_app, unresolved_system, .. } = self.total.totals;
        let doubt = match self.total.not_by_id {
            0 => String::new(),
            count => format!(" ({count} not by id: they may be of another build)"),
        };
        complain(&format!(
            "{}: {symbolicated} of {} symbolicated{doubt}, {kept} already had names; unresolved: \
             {unresolved_app} in the app, {unresolved_system} in system libraries",
            text::count(self.reports, "report"),
            text::count(frames, "frame"),
        ));
        self.report_missing(symbolicator);
        self.report_unread();
        let found = self.total.images.values();
        let found = found.filter_map(|image| Some((image, image.outcome.answered_by()?)));
        let mut said = Vec::new();
        say_each(found, |(image, by)| report_found(image, by, &mut said));
        report_stores(&symbolicator.store_counts());
        report_notes(&symbolicator.notes());
    }

    /// Prints what of the reports is not read, and which reports have no frames.
    fn report_unread(&self) {
        if self.total.totals.unread != 0 {
            let frames = text::count(self.total.totals.unread, "frame");
            complain(&format!(
                "{frames} not read: the report has too many frames or functions without a load address (split it), \
                 or parts of its stacks are missing or past a limit"
            ));
        }
        if self.total.malformed != 0 {
            let frames = text::count(self.total.malformed, "frame");
            complain(&format!("{frames} not read: the address or the image is not a whole number"));
        }
        if self.total.followed != 0 {
            let reports = text::count(self.total.followed, "report");
            let bytes = text::count(self.total.unread_bytes, "byte");
            complain(&format!(
                "{bytes} after the end of {reports} not read: put each report in its own file"
            ));
        }
        if self.total.cut != 0 {
            let reports = text::count(self.total.cut, "report");
            complain(&format!("{reports} cut: frames and images that are whole are read; copy all of it"));
        }
        for (format, count) in &self.without_frames {
            let reports = text::count(*count, "report");
            complain(&format!("{reports} of the format {format} without frames that have an address"));
        }
    }

    fn report_missing(&self, symbolicator: &Symbolicator) {
        let without = self.total.images.values().filter(|image| image.outcome.answered_by().is_none());
        // Usually there are no indexes of the system. Its images are only counted, unless an index of them is unusable,
        // or nothing is answered.
        let Totals { symbolicated, kept, .. } = self.total.totals;
        let is_expected =
            |image: &&CountedImage| symbolicated + kept != 0 && !image.outcome.lacks_index_of(&image.image);
        let (of_system, mut missing): (Vec<_>, Vec<_>) = without.partition(is_expected);
        missing.sort_by_key(|image| Reverse(image.frames));
        let known = if missing.is_empty() { Default::default() } else { symbolicator.known() };
        let known = KnownImageMap::new(&known);
        let mut hints = Hints::default();
        say_each(missing.into_iter(), |CountedImage { image, outcome, frames, .. }| {
            let reason = outcome.reason().unwrap_or_default();
            let (frames, reason) = (text::count(*frames, "frame"), text::printable(reason));
            complain(&format!("{}: {}: {frames}: {reason}", outcome.status(), described(image)));
            for near in hints.near(image, outcome, &known) {
                complain(&format!("  {near}"));
            }
        });
        hints.report();
        say_each(self.total.reasons.iter(), |((image, reason), count)| {
            let frames = text::count(*count, "frame");
            let image = text::printable(image.into());
            complain(&format!("unresolved: {frames} in {image}: {}", text::printable(reason.into())));
        });
        let unasked = self
            .total
            .images
            .values()
            .filter(|image| image.outcome.cause() == Some(Cause::Unavailable))
            .count();
        if unasked != 0 {
            let images = text::count(unasked as u64, "image");
            complain(&format!(
                "{images} not answered because a store could not be queried; it may have them"
            ));
        }
        if !of_system.is_empty() {
            let frames: u64 = of_system.iter().map(|image| image.frames).sum();
            let libraries = match of_system.len() {
                1 => "1 system library".to_owned(),
                len => format!("{len} system libraries"),
            };
            complain(&format!("no indexes of {libraries} ({})", text::count(frames, "frame")));
        }
    }
}

/// Which options may help with missing images.
#[derive(Default)]
pub(super) struct Hints {
    /// Nothing has the id of an image.
    is_missing: bool,
    /// A known image has the name of a missing one, for which the report states no id.
    is_doubtful: bool,
    /// Several known images have the name of a missing one.
    is_ambiguous: bool,
}

impl Hints {
    /// A line for each known image that is near a missing one. None for an ambiguous image: its reason names them.
    pub(super) fn near(
        &mut self,
        image: &ReportImage,
        outcome: &ImageOutcome,
        known: &KnownImageMap<'_>,
    ) -> Vec<String> {
        if matches!(outcome, ImageOutcome::Unanswered(Unanswered::Ambiguous { .. })) {
            self.is_ambiguous = true;
            return Vec::new();
        }
        // An index does not help.
        if matches!(outcome, ImageOutcome::NotLoaded(_)) {
            return Vec::new();
        }
        self.is_missing |= matches!(outcome, ImageOutcome::Unanswered(Unanswered::Missing));
        let near = known.nearest(image);
        self.is_doubtful |= near.iter().any(|(nearness, _)| *nearness == Nearness::SameName);
        near.into_iter()
            .map(|(nearness, other)| format!("near: {}", described_near(nearness, other)))
            .collect()
    }

    /// Prints on standard error the options that answer the images.
    pub(super) fn report(&self) {
        if self.is_missing {
            complain(
                "give the debug files of missing images with --dsym, or have them fetched with --debug-source",
            );
        }
        if self.is_doubtful {
            complain(
                "frames of images without an id are answered only with --match-by-name, if one image has the name, or \
                 with --assume NAME=FILE",
            );
        }
        if self.is_ambiguous {
            complain("choose one of several images with --assume NAME=ID");
        }
    }
}

/// Prints that an image was found, how it was matched unless by its id, what its index lacks, and which of its sources
/// failed. Each failure is printed once for all images; `said` has those that were.
fn report_found<'c>(image: &CountedImage, by: &'c AnsweredBy, said: &mut Vec<&'c Unanswered>) {
    let found = match by.matched {
        MatchedBy::Id => "found",
        MatchedBy::Name => "matched by name",
        other => other.name(),
    };
    let source = by.source.as_deref().map(|source| format!(" from {source}")).unwrap_or_default();
    let answered = match by.matched {
        MatchedBy::Id => String::new(),
        _ => format!(
            ": {} answered{}",
            text::count(image.answered, "frame"),
            text::printable(source.as_str().into())
        ),
    };
    let lacking = match by.grade {
        Some(Grade::Names) => " (without lines)",
        Some(Grade::Bounds) => " (without names)",
        Some(Grade::Nothing) => " (without functions)",
        Some(Grade::Lines) | None => "",
    };
    complain(&format!("{found}: {}{answered}{lacking}", described(&image.image)));
    for why in &by.passed_over {
        if !said.contains(&why) {
            said.push(why);
            let instead = if source.is_empty() { String::new() } else { format!("; answered{source}") };
            let reason = format!("{}{instead}", why.reason());
            complain(&format!("  {}: {}", why.status(), text::printable(reason.into())));
        }
    }
}

/// The most lines of one kind. Thousands of reports may miss thousands of builds.
const MAX_LINES: usize = 100;

/// Calls `say` for the first 100 of `items`, and prints how many more there are.
fn say_each<T>(mut items: impl Iterator<Item = T>, say: impl FnMut(T)) {
    items.by_ref().take(MAX_LINES).for_each(say);
    let more = items.count();
    if more != 0 {
        complain(&format!("... and {more} more"));
    }
}

fn described_near(nearness: Nearness, known: &KnownImage) -> String {
    let how = nearness.description();
    let KnownImage { name, arch, id } = known;
    format!("{} {arch} {}: {how}", text::printable(name.into()), apple_uuid(id))
}

/// The cause of a failure of an image or of one of its sources; `None` if nothing failed.
fn cause(outcome: &ImageOutcome) -> Option<Cause> {
    outcome.cause().filter(|cause| *cause != Cause::NotFound)
}

/// `MyApp arm64 6DCD4E9D-D3B1-3A0E-8DFF-6A5A4BE1B1B0 /private/var/.../MyApp`, as far as the report states it.
pub(super) fn described(image: &ReportImage) -> String {
    if image.base == Base::Unknown {
        return text::printable(image.file_name().into()).into_owned();
    }
    let arch = image.arch.as_ref().map_or("?", |arch| arch.name.as_str());
    let id = image.id.as_ref().map_or_else(|| "without an id".to_owned(), apple_uuid);
    let described = format!("{} {arch} {id} {}", image.file_name(), image.path);
    text::printable(described.trim_end().into()).into_owned()
}
