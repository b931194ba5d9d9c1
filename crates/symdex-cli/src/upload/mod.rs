//! `symdex upload`: indexes that are built here, for a server.

mod args;
mod client;
mod debug_files;
mod discover;
mod known;
mod parcel;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde::Serialize;
use symdex_pipeline::archive::TemporaryFolder;
use symdex_pipeline::{Pipeline, in_order, pool};
use symdex_store::{IndexFolder, PublishOutcome, PutOptions, ReaderOptions, Store, StoreReader};

pub(crate) use self::args::Args;
use self::client::Server;
pub(crate) use self::client::configure;
use self::known::Known;
use self::parcel::{Image, Job, Parcel};
use crate::build::{BuildHost, BuildOutput, build};
use crate::failure::{Cause, CommandError, CommandResult, Failure, note};
use crate::interrupt;
use crate::output::Output;
use crate::progress::Progress;
use crate::text;

/// How far the command follows what it sends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Goal {
    /// `--dry-run`: nothing is sent.
    Planned,
    /// `--no-wait`.
    Received,
    /// The server answers the images.
    Answered,
}

impl Goal {
    /// The outcome of an image for which it is reached.
    fn outcome(self) -> &'static str {
        match self {
            Self::Planned => "planned",
            Self::Received => "received",
            Self::Answered => "answered",
        }
    }
}

/// How many uploads are sent at one time.
const AT_ONCE: usize = 4;

pub(crate) fn run(args: &Args) -> CommandResult {
    let server = Server::new(&args.server)?;
    let inputs = inputs(args)?;
    interrupt::delete_temporary_folders();
    let folder = TemporaryFolder::new_in(&std::env::temp_dir())
        .map_err(|error| Failure::no_temporary_folder(&error))?;
    let progress = Progress::unless(args.build.reporting.is_quiet());
    let mut known = Known::new(&server, &args.build.required, args.force);
    let mut output = BuildOutput::collecting(&args.build.reporting);
    let (parcels, output) = if args.debug_files {
        let parcels = debug_files::collect(args, &inputs, &mut known, folder.path(), &mut output)?;
        (parcels, output.into_collected().1)
    } else {
        indexes(args, &inputs, &mut known, folder.path(), (output, &progress))?
    };
    let mut report = Report { output, is_quiet: args.build.reporting.is_quiet(), images: 0, answered: 0 };
    for image in &known.answered {
        report.image(image, "unchanged", 0, None)?;
    }
    let goal = match (args.dry_run, args.no_wait) {
        (true, _) => Goal::Planned,
        (_, true) => Goal::Received,
        _ => Goal::Answered,
    };
    let sent: Vec<_> = match goal {
        Goal::Planned => parcels.iter().map(|parcel| Ok(parcel.size())).collect(),
        Goal::Received | Goal::Answered => send(&server, &parcels, &progress)?,
    };
    let waits = goal == Goal::Answered;
    let until = Instant::now().checked_add(args.wait);
    let follow = |parcel: &Parcel| if waits { parcel.follow(&server, until) } else { Ok(Job::default()) };
    let followed = parcels.iter().zip(sent).map(|(parcel, sent)| {
        let result = sent.map(|sent| (sent, follow(parcel)));
        (parcel, result)
    });
    let followed: Vec<_> = followed.collect();
    let ended = followed.iter().filter(|(_, result)| waits && matches!(result, Ok((_, Ok(_)))));
    let ids = ended.flat_map(|(parcel, _)| &parcel.images).filter_map(|image| image.id.parse().ok());
    let grades = known::grades(&server, &ids.collect());
    for (parcel, result) in followed {
        let is_answered = |image: &Image| {
            let grade = image.id.parse().ok().and_then(|id| grades.as_ref().ok()?.get(&id));
            !waits || grade.is_some_and(|grade| *grade >= image.grade)
        };
        let lost = grades.as_ref().err().cloned().map_or(Ok(()), Err);
        let result = result.map(|(sent, job)| (sent, job.and_then(|job| lost.map(|()| job))));
        progress.suspend(|| report.parcel(parcel, goal, result, is_answered))?;
    }
    drop(progress);
    report.finish(|answered, images| match goal {
        Goal::Planned => "nothing was sent (--dry-run)".to_owned(),
        Goal::Received => format!("{server} was not asked what it answers (--no-wait)"),
        Goal::Answered => format!("{server} answers {answered} of {}", text::count(images, "image")),
    })
}

/// The inputs of the command line, or what is found below them.
fn inputs(args: &Args) -> Result<Vec<PathBuf>, Failure> {
    let reporting = &args.build.reporting;
    let mut inputs = args.build.inputs.list()?;
    if args.discover {
        if inputs.is_empty() {
            inputs.push(".".into());
        }
        return discover::discover(&inputs, reporting.is_quiet());
    }
    if inputs.is_empty() {
        reporting.warn("there is nothing to send: no input is listed, or none is in this shard");
    }
    Ok(inputs)
}

/// Builds the indexes of images that the server does not answer with lines into `folder`. Returns those that may
/// answer more than the server.
fn indexes<'a>(
    args: &'a Args,
    inputs: &[PathBuf],
    known: &mut Known<'_>,
    folder: &Path,
    (output, progress): (BuildOutput<'a>, &Progress),
) -> Result<(Vec<Parcel>, Output), CommandError> {
    let store: Box<dyn Store> = Box::new(IndexFolder::new(folder));
    let stores = StoreReader::new(vec![store], &ReaderOptions::of_one_run());
    let pipeline = Pipeline::new(args.build.pipeline_options(Some(folder))?)?;
    let host = BuildHost::new(&args.build, &stores, PutOptions::new(), progress);
    let (built, output) = build(&pipeline, inputs, &host, output, |plan| known.ask(plan))?.0.into_collected();
    // Several files of an image make one index, which the last one that was written describes.
    let mut indexes = BTreeMap::new();
    for image in built {
        let is_kept = image.outcome.as_ref().is_some_and(PublishOutcome::keeps_existing);
        if !is_kept || !indexes.contains_key(&image.published.id) {
            indexes.insert(image.published.id.clone(), image.published);
        }
    }
    let mut parcels = Vec::new();
    for mut index in indexes.into_values() {
        let path = index.location.take().unwrap_or_default();
        let image = Image::from(index);
        if known.needs(&image) {
            parcels.push(Parcel::of_index(image, path.as_ref())?);
        } else {
            known.answered.push(image);
        }
    }
    Ok((parcels, output))
}

/// Sends `parcels`, several at one time. Returns how many bytes were sent of each.
fn send(
    server: &Server,
    parcels: &[Parcel],
    progress: &Progress,
) -> Result<Vec<Result<u64, Failure>>, Failure> {
    progress.add(parcels.iter().map(Parcel::size).sum());
    let mut results = Vec::new();
    let send = |parcel: &Parcel| parcel.send(server, progress.bar());
    in_order(&pool(AT_ONCE)?, AT_ONCE, parcels, send, |sent| {
        results.push(sent);
        Ok::<_, Failure>(())
    })?;
    Ok(results)
}

/// What is printed of images.
struct Report {
    output: Output,
    is_quiet: bool,
    images: u64,
    answered: u64,
}

/// An image, and what has become of it. With `--json`, it is one line.
#[derive(Serialize)]
struct Row<'i> {
    #[serde(flatten)]
    image: &'i Image,
    outcome: &'static str,
    /// How many bytes were sent for it. For several images of one upload, the first one has all.
    sent: u64,
    job: Option<&'i str>,
}

impl Report {
    /// An image that the server answers, as far as is known.
    fn image(
        &mut self,
        image: &Image,
        outcome: &'static str,
        sent: u64,
        job: Option<&str>,
    ) -> Result<(), CommandError> {
        self.images += 1;
        self.answered += 1;
        self.output.count(sent);
        self.output.add(outcome, 1);
        let row = Row { image, outcome, sent, job };
        if self.is_quiet {
            return self.output.json(&row);
        }
        let Image { id, arch, name, debug_size, .. } = image;
        self.output.line(&row, || {
            let before = debug_size.map(|size| format!("{} -> ", text::size(size))).unwrap_or_default();
            let sizes = if sent == 0 { String::new() } else { format!(", {before}{}", text::size(sent)) };
            format!("{id}  {arch}  {}: {outcome}{sizes}", text::printable(name.into()))
        })
    }

    /// The images of a parcel: how many bytes of it were sent, and its job, or why that is not known; or why it was not
    /// sent.
    fn parcel(
        &mut self,
        parcel: &Parcel,
        goal: Goal,
        result: Result<(u64, Result<Job, Failure>), Failure>,
        is_answered: impl Fn(&Image) -> bool,
    ) -> Result<(), CommandError> {
        let file = parcel.images.first().map_or(Path::new(""), |image| image.file.as_ref());
        let (what, failure) = match result {
            Ok((sent, Ok(job))) => return self.ended(parcel, goal, sent, job, is_answered),
            Ok((sent, Err(failure))) => {
                self.output.add_size(sent);
                ("not confirmed", failure)
            }
            Err(failure) => ("not sent", failure),
        };
        self.images += parcel.images.len() as u64;
        let message = format!("{}: {what}: {}", text::printable((&parcel.name).into()), failure.message);
        self.output.fail_input(&Failure { message, ..failure }.because(what).of_path(file))
    }

    /// The images of a parcel of which `sent` bytes were sent, and whose job has ended.
    fn ended(
        &mut self,
        parcel: &Parcel,
        goal: Goal,
        mut sent: u64,
        job: Job,
        is_answered: impl Fn(&Image) -> bool,
    ) -> Result<(), CommandError> {
        let file = parcel.images.first().map_or(Path::new(""), |image| image.file.as_ref());
        for (cause, message) in job.failures() {
            let message = format!("{}: the server: {message}", text::printable((&parcel.name).into()));
            self.output.fail_input(&Failure::new(cause, message).of_path(file))?;
        }
        // If nothing was sent, the server has it from an earlier run, or from another one.
        let outcome = if sent == 0 && goal == Goal::Answered { "unchanged" } else { goal.outcome() };
        for image in &parcel.images {
            if is_answered(image) {
                self.image(image, outcome, std::mem::take(&mut sent), Some(parcel.job()))?;
                continue;
            }
            self.images += 1;
            let Image { id, arch, name, .. } = image;
            let message = format!(
                "{}: {} ({arch}, {id}): the server's answers for it are worse than the local index; see job {}",
                file.display(),
                text::printable(name.into()),
                parcel.job()
            );
            let failure = Failure::new(Cause::Other, message).because("not answered").of_path(file);
            self.output.fail_input(&failure)?;
        }
        Ok(())
    }

    /// Prints the totals, and as text the last line of numbers of images: those that are answered, and all.
    fn finish(self, verdict: impl FnOnce(u64, u64) -> String) -> CommandResult {
        let Self { output, is_quiet, images, answered } = self;
        if is_quiet {
            return output.finish_quietly();
        }
        let is_text = !output.is_json();
        let gravest = output.finish()?;
        if is_text {
            note(&verdict(answered, images));
        }
        Ok(gravest)
    }
}
