//! `symdex upload`: indexes that are built here, for a server.

mod args;
mod client;
mod debug_files;
mod discover;
mod found;
mod parcel;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde::Serialize;
use symdex::ImageId;
use symdex_pipeline::archive::TemporaryFolder;
use symdex_pipeline::{Pipeline, in_order, pool};
use symdex_store::{IndexFolder, PublishOutcome, PutOptions, ReaderOptions, Store, StoreReader};

pub(crate) use self::args::Args;
use self::client::Server;
use self::found::Known;
use self::parcel::{Image, Parcel};
use crate::build::{BuildHost, BuildOutput, build};
use crate::failure::{Cause, CommandError, CommandResult, Failure, note};
use crate::interrupt;
use crate::output::Output;
use crate::progress::Progress;
use crate::text;

/// How many uploads are sent at one time.
const AT_ONCE: usize = 4;

/// An image, and what has become of it. With `--json`, it is one line.
#[derive(Serialize)]
struct Row<'i> {
    id: &'i str,
    arch: &'i str,
    name: &'i str,
    file: &'i str,
    index_size: Option<u64>,
    debug_size: Option<u64>,
    outcome: &'static str,
    /// How many bytes were sent for it. For several images of one upload, the first one has all.
    sent: u64,
    job: Option<&'i str>,
}

/// The file of a failure, in JSON.
#[derive(Serialize)]
struct Of<'i> {
    file: Option<&'i str>,
}

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
    if args.dry_run {
        for parcel in &parcels {
            report.parcel(parcel, "planned", parcel.size(), |_| true)?;
        }
        return report.finish(|_, _| "nothing was sent (--dry-run)".to_owned());
    }
    send(args, &server, &parcels, &progress, &mut report)?;
    drop(progress);
    report.finish(|answered, images| match args.no_wait {
        true => format!("{server} was not asked what it answers (--no-wait)"),
        false => format!("{server} answers {answered} of {}", text::count(images, "image")),
    })
}

/// The inputs of the command line, or what is found below them.
fn inputs(args: &Args) -> Result<Vec<PathBuf>, Failure> {
    let reporting = &args.build.reporting;
    let inputs = args.build.inputs.list()?;
    match (args.discover, &inputs[..]) {
        (true, []) => discover::discover(&[".".into()], reporting.is_quiet()),
        (true, roots) => discover::discover(roots, reporting.is_quiet()),
        (false, []) => {
            reporting.warn("there is nothing to send: no input is listed, or none is in this shard");
            Ok(inputs)
        }
        (false, _) => Ok(inputs),
    }
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
    let stores: Vec<Box<dyn Store>> = vec![Box::new(IndexFolder::new(folder))];
    let stores = StoreReader::new(stores, &ReaderOptions::of_one_run());
    let pipeline = Pipeline::new(args.build.pipeline_options(Some(folder))?)?;
    let host = BuildHost::new(&args.build, &stores, PutOptions::new(), progress);
    let (built, output) = {
        let (output, _) = build(&pipeline, inputs, &host, output, |plan| known.ask(plan))?;
        output.into_collected()
    };
    // Several files of an image make one index, which the last one that was written describes.
    let mut indexes = BTreeMap::new();
    for image in built {
        let is_kept = image.outcome.as_ref().is_some_and(PublishOutcome::keeps_existing);
        if !is_kept || !indexes.contains_key(&image.published.id) {
            indexes.insert(image.published.id.clone(), image.published);
        }
    }
    let mut parcels = Vec::new();
    for index in indexes.into_values() {
        let Some(path) = index.location else { continue };
        let image = Image {
            id: index.id,
            arch: index.arch,
            name: index.name,
            file: index.file,
            grade: index.grade,
            sizes: Some((index.index_size, index.debug_size)),
        };
        if known.needs(&image) {
            parcels.push(Parcel::of_index(image, path.as_ref())?);
        } else {
            known.answered.push(image);
        }
    }
    Ok((parcels, output))
}

/// Sends `parcels`, several at one time, waits for their jobs, and asks the server for their images.
fn send(
    args: &Args,
    server: &Server,
    parcels: &[Parcel],
    progress: &Progress,
    report: &mut Report,
) -> Result<(), CommandError> {
    progress.add(parcels.iter().map(Parcel::size).sum());
    let mut sent = Vec::new();
    in_order(
        &pool(AT_ONCE)?,
        AT_ONCE,
        parcels,
        |parcel| (parcel, parcel.send(server, progress.bar())),
        |result| {
            sent.push(result);
            Ok::<_, Failure>(())
        },
    )?;
    if args.no_wait {
        for (parcel, sent) in sent {
            match sent {
                Ok(sent) => progress.suspend(|| report.parcel(parcel, "received", sent, |_| true))?,
                Err(failure) => progress.suspend(|| report.not_sent(parcel, failure))?,
            }
        }
        return Ok(());
    }
    let until = Instant::now().checked_add(args.wait);
    let followed = sent.into_iter().map(|(parcel, sent)| {
        let job = sent.and_then(|sent| Ok((sent, parcel.follow(server, until)?)));
        (parcel, job)
    });
    let followed: Vec<_> = followed.collect();
    let ended = followed.iter().filter(|(_, job)| job.is_ok()).flat_map(|(parcel, _)| &parcel.images);
    let ids: BTreeSet<_> = ended.filter_map(|image| image.id.parse().ok()).collect();
    let grades = found::grades(server, &ids)?;
    for (parcel, job) in followed {
        progress.suspend(|| match job {
            Ok((sent, job)) => {
                let failures = job.failures();
                let is_answered = |image: &Image| {
                    let id: Option<ImageId> = image.id.parse().ok();
                    id.and_then(|id| grades.get(&id)).is_some_and(|grade| *grade >= image.grade)
                };
                for (cause, message) in failures {
                    let message = format!("{}: {server}: {message}", parcel.name);
                    report.fail(parcel, &Failure::new(cause, message))?;
                }
                report.parcel(parcel, "answered", sent, is_answered)
            }
            Err(failure) => report.not_sent(parcel, failure),
        })?;
    }
    Ok(())
}

/// What is printed of images.
struct Report {
    output: Output,
    is_quiet: bool,
    images: u64,
    answered: u64,
}

impl Report {
    /// An image of which `sent` bytes were sent, and what has become of it.
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
        let Image { id, arch, name, file, sizes, .. } = image;
        let (index_size, debug_size) = sizes.unzip();
        let row = Row { id, arch, name, file, index_size, debug_size, outcome, sent, job };
        if self.is_quiet {
            return self.output.json(&row);
        }
        self.output.line(&row, || {
            let sizes = match debug_size {
                Some(debug_size) if sent != 0 => {
                    format!(", {} -> {}", text::size(debug_size), text::size(sent))
                }
                None if sent != 0 => format!(", {}", text::size(sent)),
                _ => String::new(),
            };
            format!("{id}  {arch}  {}: {outcome}{sizes}", text::printable(name.into()))
        })
    }

    /// The images of a parcel of which `sent` bytes were sent. Those that are not `answered` have failed.
    fn parcel(
        &mut self,
        parcel: &Parcel,
        outcome: &'static str,
        sent: u64,
        answered: impl Fn(&Image) -> bool,
    ) -> Result<(), CommandError> {
        // The server has it from an earlier run.
        let outcome = if sent == 0 { "unchanged" } else { outcome };
        let mut sent = sent;
        for image in &parcel.images {
            if answered(image) {
                self.image(image, outcome, std::mem::take(&mut sent), Some(parcel.job()))?;
                continue;
            }
            self.images += 1;
            let Image { id, arch, name, file, .. } = image;
            let message = format!(
                "{file}: {} ({arch}, {id}): the server does not answer it as the index here does; its job {} says why",
                text::printable(name.into()),
                parcel.job()
            );
            self.fail(parcel, &Failure::new(Cause::Other, message).because("not answered"))?;
        }
        Ok(())
    }

    fn not_sent(&mut self, parcel: &Parcel, failure: Failure) -> Result<(), CommandError> {
        self.images += parcel.images.len() as u64;
        let message = format!("{}: not sent: {}", parcel.name, failure.message);
        self.fail(parcel, &Failure { message, ..failure }.because("not sent"))
    }

    fn fail(&mut self, parcel: &Parcel, failure: &Failure) -> Result<(), CommandError> {
        self.output.fail(&Of { file: parcel.images.first().map(|image| &*image.file) }, failure)
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
