//! `symdex build`: indexes from debug files.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rayon::ThreadPool;
use serde::Serialize;
use symdex::{Index, Partial, Table};
use symdex_build::publish::{self, Outcome, Published};
use symdex_build::{Built, Image, Options, Slice};

use crate::failure::{self, Failure, Kind, Stop, complain};
use crate::in_order::in_order;
use crate::progress::Progress;
use crate::text;

/// Make an index of every image in debug files
///
/// INPUT is a .dSYM bundle, the DWARF file inside one, another Mach-O file (thin or universal), or a folder or .xcarchive that
/// holds several; folders are searched. Each image, that is each architecture of each file, becomes one index, named by the
/// image's id: DIR/0c37c502aba03641a08f84c794684f36.symdex.
///
/// An index is published whole or not at all. Where DIR has another index of that id already, the one with more functions
/// stays, and the summary says `conflict`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Debug files, bundles, archives or folders
    #[arg(required = true, value_name = "INPUT")]
    inputs: Vec<PathBuf>,
    /// The folder for the indexes; it is made where it is missing
    #[arg(short, long, value_name = "DIR", default_value = ".")]
    output: PathBuf,
    /// Only this architecture: arm64, arm64e, armv7, x86_64, ...
    #[arg(long, value_name = "ARCH")]
    arch: Option<String>,
    /// How many threads work; every core unless given. The indexes are the same for any number
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
    /// Print one JSON object per image and line
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  symdex build MyApp.app.dSYM
  symdex build MyApp.xcarchive other/dSYMs -o indexes --jobs 8
  symdex build MyApp.app.dSYM --arch arm64 --json | jq .index

A debug file that cannot be read is reported on standard error, the others are still built, and the exit code tells:
4 damaged, 6 not a debug file, 5 missing, 1 not written, 3 no such architecture (the first of these that applies).";

pub(crate) fn run(args: &Args) -> failure::Outcome {
    let pool = pool(args.jobs)?;
    let files: Vec<_> = args.inputs.iter().flat_map(|input| found(input)).collect();
    let size = files.iter().flatten().filter_map(|path| path.metadata().ok()).map(|file| file.len()).sum();
    let progress = Progress::new(size);
    let mut gravest = None;
    in_order(
        &pool,
        pool.current_num_threads(),
        files,
        |file| file.map_or_else(|failure| vec![Err(failure)], |path| images_of(&path, args, &progress)),
        |images| {
            for image in images {
                let published = image.and_then(|image| publish(image, &args.output));
                progress.suspend(|| match published {
                    Ok(image) => report(&image, args.json),
                    Err(failure) => {
                        complain(&failure.message);
                        gravest = gravest.max(Some(failure.kind));
                        Ok(())
                    }
                })?;
            }
            Ok::<(), Stop>(())
        },
    )?;
    Ok(gravest)
}

fn found(input: &Path) -> Vec<Result<PathBuf, Failure>> {
    let found = symdex_build::find(input).into_iter();
    found.map(|found| found.map_err(|error| Failure::debug_file(input, &error))).collect()
}

/// The threads that do all the work.
fn pool(jobs: Option<u16>) -> Result<ThreadPool, Failure> {
    // rayon takes 0 for every core.
    let threads = jobs.map_or(0, usize::from);
    rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()
        .map_err(|error| Failure::new(Kind::Other, format!("cannot start {threads} threads: {error}")))
}

/// An index that is not published yet.
struct Finished {
    file: PathBuf,
    debug_size: u64,
    built: Built,
    time: Duration,
}

/// The index of every image in the file that is wanted, in file order.
fn images_of(file: &Path, args: &Args, progress: &Progress) -> Vec<Result<Finished, Failure>> {
    let failed = |error: &symdex_build::Error| vec![Err(Failure::debug_file(file, error))];
    let bytes = match symdex::map_file(file) {
        Ok(bytes) => bytes,
        Err(error) => return vec![Err(Failure::unreadable(file, &error))],
    };
    let slices = match symdex_build::slices_for(&bytes, args.arch.as_deref()) {
        Ok(slices) => slices,
        Err(error) => return failed(&error),
    };
    slices.iter().map(|slice| finish(file, slice, progress)).collect()
}

fn finish(file: &Path, slice: &Slice<'_>, progress: &Progress) -> Result<Finished, Failure> {
    let begun = Instant::now();
    let image = Image::load(slice, &text::file_name(file));
    let built = image.and_then(|image| {
        let progress = progress.of_image(image.debug_size);
        let built = symdex_build::build(&image, &Options::default(), &|done, all| progress.set(done, all))?;
        Ok((built, image.debug_size))
    });
    let (built, debug_size) = built.map_err(|error| {
        let Failure { kind, message } = Failure::debug_file(file, &error);
        Failure { kind, message: format!("{message} ({} slice)", slice.arch.name) }
    })?;
    Ok(Finished { file: file.to_owned(), debug_size, built, time: begun.elapsed() })
}

/// What there is to say of an image; with `--json` the line for it.
#[derive(Serialize)]
struct Summary {
    image: String,
    id: String,
    arch: String,
    /// The debug file.
    file: String,
    index: String,
    index_size: u64,
    debug_size: u64,
    units: u64,
    functions: u64,
    ranges: u64,
    symbols: u64,
    chunks: u64,
    partial: Vec<Partial>,
    warnings: Vec<String>,
    outcome: &'static str,
    /// The outcome in a sentence.
    #[serde(skip)]
    fate: &'static str,
    conflict: bool,
    seconds: f64,
}

fn publish(finished: Finished, folder: &Path) -> Result<Summary, Failure> {
    let Finished { file, debug_size, built, time } = finished;
    let index = Index::open(built.bytes).map_err(|error| Failure::index(&file, &error))?;
    let Published { path, outcome } =
        publish::publish(folder, &index).map_err(|error| Failure::debug_file(&file, &error))?;
    let mut warnings = built.warnings;
    if let Outcome::Repaired { damage } = &outcome {
        warnings.push(format!("the index that was there is replaced: {damage}"));
    }
    let (word, fate) = words(&outcome);
    let metadata = index.metadata();
    let counts = metadata.counts;
    Ok(Summary {
        image: metadata.image_name.clone(),
        id: metadata.id.to_string(),
        arch: metadata.arch.name.clone(),
        file: file.display().to_string(),
        index: path.display().to_string(),
        index_size: index.as_bytes().len() as u64,
        debug_size,
        units: counts.units,
        functions: counts.functions,
        ranges: counts.ranges,
        symbols: counts.symbols,
        chunks: Table::ALL.map(|table| metadata.chunk_len(table)).iter().sum(),
        partial: metadata.partial.clone(),
        warnings,
        outcome: word,
        fate,
        conflict: outcome.is_conflict(),
        seconds: time.as_secs_f64(),
    })
}

/// What became of the index, in a word and in a sentence.
fn words(outcome: &Outcome) -> (&'static str, &'static str) {
    match outcome {
        Outcome::Written => ("written", "written"),
        Outcome::Unchanged => ("unchanged", "unchanged, the same index was there"),
        Outcome::Repaired { .. } => ("repaired", "written in the place of a damaged index"),
        Outcome::ConflictKept => ("kept", "conflict: another index of this id was there, and stays"),
        Outcome::ConflictReplaced => {
            ("replaced", "conflict: another index of this id was there, and is replaced")
        }
    }
}

/// Prints the summary, and on standard error what may cost answers.
fn report(summary: &Summary, json: bool) -> Result<(), Stop> {
    let mut out = io::stdout().lock();
    match json {
        true => writeln!(out, "{}", serde_json::to_string(summary).map_err(io::Error::from)?)?,
        false => write!(out, "{}", human(summary))?,
    }
    let Summary { file, arch, partial, warnings, .. } = summary;
    let warn =
        |what: String| complain(&format!("warning: {file} ({arch}): {}", text::printable(what.into())));
    warnings.iter().for_each(|warning| warn(warning.clone()));
    partial.iter().for_each(|partial| warn(format!("partial: {} x {}", partial.count, partial.reason)));
    Ok(())
}

fn human(summary: &Summary) -> String {
    let Summary { image, id, arch, index, index_size, debug_size, .. } = summary;
    let Summary { units, functions, ranges, symbols, seconds, fate, .. } = summary;
    let [debug_size, index_size] = [*debug_size, *index_size].map(text::size);
    let image = text::printable(image.into());
    format!(
        "{id}  {arch}  {image}\n    \
         {debug_size} -> {index_size}, {units} units, {functions} functions, {ranges} ranges, {symbols} symbols, \
         {seconds:.2} s\n    {index}: {fate}\n"
    )
}
