//! `symdex build`: indexes from debug files.

mod intake;
mod required;
mod shard;
mod summary;
mod totals;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rayon::ThreadPool;
use symdex::Index;
use symdex_audit::{AuditReport, audit};
use symdex_build::debug_files::{
    BuildInputs, BuildJob, BuildPlan, FileError, ImageGroups, JobError, JobImage, NoSuchArch, UnreadArchives,
};
use symdex_build::{BuildOptions, BuildReport, Companions, Image, SymbolMaps};
use symdex_store::{IndexBuffer, IndexBytes, IndexFolder};

use self::intake::{Batch, InputArgs, Intake};
use self::required::{Required, RequiredArgs};
use self::totals::BuildTotals;
use crate::failure::{self, CommandError, Failure, FailureKind, complain};
use crate::in_order::in_order;
use crate::progress::Progress;
use crate::{number, text};

/// Make an index of every image in debug files
///
/// An INPUT is one of these:
///
/// * a dSYM bundle, the DWARF file in one, or another Mach-O file, thin or universal;
///
/// * an ELF file: an executable, a library, or a .debug file;
///
/// * the main file of a dyld shared cache, such as dyld_shared_cache_arm64e, with the cache's other files beside it;
///
/// * a folder or an .xcarchive, which is searched for all of these;
///
/// * an archive of these, told by its content: zip (.xcarchive.zip, .ipa, .aar, .apk), tar, tar compressed by gzip or
///   zstd, and archives in such an archive. - is an archive on standard input.
///
/// Each architecture of each file is an image. It becomes one index, which is named by the image's id:
/// DIR/0c37c502aba03641a08f84c794684f36.symdex. If several files have the same image, such as a stripped binary and its
/// debug file, their symbols are joined in one index.
///
/// An index is published whole or not at all. If DIR already has a different index of the same id, the one with more
/// functions stays, and the summary says `conflict`. An image whose whole index is in DIR already is `unchanged`: its
/// debug information is not read, unless --force is given.
///
/// Names in archives are never used as paths. Entries that lead out of the archive, that exceed a limit, or that are
/// damaged are skipped and named. Archives in a folder are not read. Standard error names them. For more than two files,
/// standard error ends with totals: how many indexes were written, unchanged or in conflict, and how many inputs failed,
/// by reason.
///
/// With --json, standard output has one object a line: one for each image, with its id, architecture, index, sizes and
/// outcome; {"input", "error": {"kind", "message"}} for each input that failed; and {"totals": {...}} as the last line.
/// A kind is damaged, unsupported, missing, other, usage or not_found. docs/schema/build.schema.json describes the
/// objects.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    inputs: InputArgs,
    #[command(flatten)]
    required: RequiredArgs,
    /// The folder for the indexes. It is created if it does not exist
    #[arg(short, long, value_name = "DIR", default_value = ".")]
    output: PathBuf,
    /// Build only images of this architecture: arm64, arm64e, armv7, x86_64, ... May be repeated. Files without such an
    /// image are skipped. If all files are skipped, that is an error
    #[arg(long, value_name = "ARCH")]
    arch: Vec<String>,
    /// The number of threads. The default is one for each core. The indexes do not depend on it
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
    /// Memory for compile units that wait for others, for example because an order file mixes the functions of all
    /// units. Beyond it, units wait in a temporary file. The indexes do not depend on it
    #[arg(long, value_name = "SIZE", default_value = "1GB", value_parser = number::parse_size)]
    max_memory: usize,
    /// Seconds that the index of one image may take. The build of an image that takes longer fails; the others go on
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    max_seconds: Option<u64>,
    /// A symbol map, <UUID>.bcsymbolmap, or a folder of them. It resolves the hidden names of a bitcode build. May be
    /// repeated
    #[arg(long, value_name = "FILE|DIR")]
    symbol_map: Vec<PathBuf>,
    /// A folder that is searched for files that a debug file refers to, such as /usr/lib/debug: the debug files of
    /// stripped ELF files, .dwo files, dwz files. May be repeated
    #[arg(long, value_name = "DIR")]
    debug_dir: Vec<PathBuf>,
    /// Build images whose index is in DIR already, too
    #[arg(long)]
    force: bool,
    /// Compare every answer of an index with its debug file. An index with a wrong answer is not published
    #[arg(long)]
    verify: bool,
    /// Print JSON, one object a line: each image, each input that failed, and the totals
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  symdex build MyApp.app.dSYM
  symdex build MyApp.xcarchive other/dSYMs -o indexes --jobs 8
  symdex build MyApp.app.dSYM --arch arm64 --json | jq -r 'select(.index).index'
  symdex build MyApp.xcarchive --arch arm64 --arch arm64e -o indexes
  symdex build MyApp.xcarchive --symbol-map MyApp.xcarchive/BCSymbolMaps
  symdex build libapp.so symbols/libapp.so.debug -o indexes
  symdex build /usr/lib --debug-dir /usr/lib/debug -o indexes
  symdex build MyApp.app.dSYM --max-memory 256MB
  symdex build MyApp.ipa appDsyms.zip --require-all -o indexes
  curl https://example.com/dsyms.tar.gz | symdex build - -o indexes
  find dsyms -name '*.zip' -print0 | symdex build --inputs-from - -0 --shard 0/16

A debug file that cannot be read is reported on standard error, and the others are built.

Exit codes:
  0  every index was built
  4  a debug file or an archive is damaged
  6  a file is not a debug file, or an entry of an archive is refused
  5  a file is missing
  1  an index could not be written, or has a wrong answer
  3  no image has the architecture, an image of --id is missing, or --require-all lacks debug information
If several apply, the first of these after 0 counts.";

pub(crate) fn run(args: &Args) -> failure::CommandResult {
    let begun = Instant::now();
    let pool = pool(args.jobs)?;
    let maps = symbol_maps(&args.symbol_map)?;
    let inputs = args.inputs.list()?;
    if inputs.is_empty() {
        complain("warning: there is nothing to build: no input is listed, or none is in this shard");
    }
    let progress = Progress::new(0);
    let mut intake = Intake::new(&args.inputs, inputs, maps);
    let (totals, required) = (BuildTotals::default(), Required::new(&args.required));
    let mut done = Done { totals, required, jobs: 0, without_arch: Vec::new() };
    while let Some(batch) = intake.next_batch(&progress)? {
        build_batch(args, &pool, batch, &progress, &mut done)?;
    }
    let Done { mut totals, required, jobs, mut without_arch } = done;
    // If an image was built, files without a wanted architecture are skipped.
    let without_arch = match totals.has_no_image() {
        true => without_arch.pop().map(|error| Failure::from(JobError::NoSuchArch(&error))),
        false => {
            totals.skip(without_arch.iter().map(|error| error.files).sum());
            None
        }
    };
    for failure in without_arch.into_iter().chain(required.failures()) {
        progress.suspend(|| summary::report_failure(&failure, args.json))?;
        totals.count(&Err(failure));
    }
    match args.json {
        true => totals.print_json(begun.elapsed())?,
        // The output of one or two files needs no totals.
        false if jobs > 2 || totals.has_skipped() => progress.suspend(|| totals.report(begun.elapsed())),
        false => {}
    }
    Ok(totals.gravest())
}

/// What is built so far.
struct Done<'a> {
    totals: BuildTotals,
    required: Required<'a>,
    /// How many jobs were run.
    jobs: usize,
    /// Batches without a file of a wanted architecture.
    without_arch: Vec<NoSuchArch>,
}

/// Builds and publishes the indexes of `batch`.
fn build_batch(
    args: &Args,
    pool: &ThreadPool,
    batch: Batch,
    progress: &Progress,
    done: &mut Done<'_>,
) -> Result<(), CommandError> {
    let Batch { inputs, maps, failures, warnings, .. } = &batch;
    progress.suspend(|| {
        warn_about_archives(inputs);
        warnings.iter().for_each(|fault| complain(&format!("warning: {fault}")));
        failures.iter().try_for_each(|failure| summary::report_failure(failure, args.json))
    })?;
    warnings.iter().for_each(|fault| done.required.not_read(fault));
    failures.iter().for_each(|failure| done.totals.count(&Err(failure.clone())));
    done.required.mentioned(inputs);
    let BuildPlan { mut jobs, skipped, .. } = inputs.plan(&args.arch);
    done.totals.skip(skipped);
    if let Some(BuildJob::NoSuchArch(error)) = jobs.pop_if(|job| matches!(job, BuildJob::NoSuchArch(_))) {
        done.without_arch.push(error);
    }
    done.jobs += jobs.len();
    let are_many = done.jobs > 2;
    progress.add(jobs.iter().map(BuildJob::size).sum());
    let groups = pool.install(|| ImageGroups::of(inputs));
    let max_memory = args.max_memory / pool.current_num_threads().min(jobs.len()).max(1);
    let output = IndexFolder::new(&args.output);
    let Done { totals, required, .. } = done;
    let work = Work { args, output, maps, groups, max_memory, progress, required };
    in_order(
        pool,
        pool.current_num_threads(),
        jobs,
        |job| build_job(&job, &work),
        |images| {
            for image in images {
                let image = image.and_then(|image| summary::publish(image, &work.output));
                progress.suspend(|| {
                    totals.count(&image);
                    match &image {
                        Ok(image) => {
                            work.required.built(image);
                            summary::report(image, args.json, are_many)
                        }
                        Err(failure) => summary::report_failure(failure, args.json),
                    }
                })?;
            }
            Ok::<(), CommandError>(())
        },
    )?;
    Ok(())
}

/// Warns about archives in folders of debug files.
fn warn_about_archives(inputs: &BuildInputs) {
    for UnreadArchives { folder, archives, .. } in inputs.unread_archives() {
        let names = archives.iter().map(|path| path.strip_prefix(folder).unwrap_or(path).display());
        complain(&format!(
            "warning: {}: archives in a folder are not read: {}; give them to symdex build as inputs",
            folder.display(),
            text::list(names)
        ));
    }
}

/// A pool of `jobs` threads; of one for each core if `jobs` is `None`.
pub(crate) fn pool(jobs: Option<u16>) -> Result<ThreadPool, Failure> {
    // In rayon, 0 means one thread for each core.
    let threads = jobs.map_or(0, usize::from);
    rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()
        .map_err(|error| Failure::new(FailureKind::Other, format!("cannot start {threads} threads: {error}")))
}

/// The symbol maps at `paths` and in the folders there.
pub(crate) fn symbol_maps(paths: &[PathBuf]) -> Result<SymbolMaps, Failure> {
    SymbolMaps::find(paths).map_err(|error| Failure::debug_file(Path::new("--symbol-map"), &error))
}

/// The inputs that all jobs share.
struct Work<'a> {
    args: &'a Args,
    output: IndexFolder,
    maps: &'a SymbolMaps,
    groups: ImageGroups,
    required: &'a Required<'a>,
    /// The share of `--max-memory` for each image that is built at one time.
    max_memory: usize,
    progress: &'a Progress,
}

/// An index that is not published yet.
struct FinishedIndex {
    file: PathBuf,
    /// Other files of the image, whose symbols are in the index too.
    joined: Vec<PathBuf>,
    debug_size: u64,
    bytes: IndexBytes,
    warnings: Vec<String>,
    report: BuildReport,
    /// The comparison with the debug file, if `--verify` is given.
    audit: Option<AuditReport>,
    time: Duration,
}

/// Builds the index of every wanted image of the job, in file order.
fn build_job(job: &BuildJob<'_>, work: &Work<'_>) -> Vec<Result<FinishedIndex, Failure>> {
    let mut begun = Instant::now();
    let mut finished = Vec::new();
    let companions = Companions::new(work.args.debug_dir.clone());
    job.for_each_image(&work.args.arch, &work.groups, &companions, |image| {
        if image.as_ref().is_ok_and(|image| !work.required.wants(&image.image.info().id)) {
            return;
        }
        let index = image.map_err(Failure::from).and_then(|image| build_image(image, begun, work));
        finished.push(index);
        begun = Instant::now();
    });
    finished
}

/// Builds the index of `image`, and compares both if `--verify` is given.
fn build_image(image: JobImage<'_>, begun: Instant, work: &Work<'_>) -> Result<FinishedIndex, Failure> {
    let JobImage { file, part, joined, image, .. } = image;
    let (path, file) = (file.path(), file.name().to_owned());
    let failed = |error| Failure::from(FileError::new(&file, error).in_part(&part));
    let map = work.maps.load(&image.info().id, path).map_err(failed)?;
    let image = match &map {
        Some(map) => image.with_symbol_map(map),
        None => image,
    };
    let (bytes, mut warnings, report) = index_of(&image, work).map_err(failed)?;
    let bytes = bytes.into_bytes().map_err(|error| failed(symdex::Error::from(error).into()))?;
    if map.is_none() && report.hidden_names != 0 {
        let wanted = work.maps.file_name(&image.info().id, path);
        warnings.push(format!("its names are hidden: give {wanted} with --symbol-map"));
    }
    let audit = work.args.verify.then(|| verify(&image, bytes.as_ref())).transpose();
    let unverified = format!("{part}; its index cannot be verified and is not published");
    let audit = audit.map_err(|error| FileError::new(&file, error).in_part(unverified))?;
    let debug_size = image.debug_size();
    Ok(FinishedIndex { file, joined, debug_size, bytes, warnings, report, audit, time: begun.elapsed() })
}

/// Returns the index of `image`, the warnings and the report of its build. The index is the one in the output folder if
/// that is up to date, otherwise a new one.
fn index_of(
    image: &Image<'_>,
    work: &Work<'_>,
) -> Result<(IndexBuffer, Vec<String>, BuildReport), symdex_build::Error> {
    let progress = work.progress.of_image(image.debug_size());
    if !work.args.force
        && let Some((bytes, report)) = existing_index(image, &work.output, IndexBuffer::new())
    {
        return Ok((bytes, Vec::new(), report));
    }
    let progress = |done, all| progress.set(done, all);
    let options = BuildOptions::new()
        .max_memory(work.max_memory)
        .max_seconds(work.args.max_seconds)
        .progress(&progress);
    let built = options.build_into(image, IndexBuffer::new())?;
    Ok((built.bytes, built.warnings, built.report))
}

/// Writes to `out` the index of `image` that is in `folder`, if it need not be built again. Returns `None` if the image
/// has to be built.
fn existing_index<W: Write>(image: &Image<'_>, folder: &IndexFolder, mut out: W) -> Option<(W, BuildReport)> {
    let index = folder.open(&image.info().id).ok().flatten()?;
    let report = match image.has_dwarf() {
        true => symdex_build::built_before(image, &index),
        false => symdex_build::up_to_date(image, &index),
    }?;
    out.write_all(index.as_bytes()).ok()?;
    Some((out, report))
}

/// Checks a new index as `symdex verify --against` checks a published one.
fn verify(image: &Image<'_>, index: &[u8]) -> Result<AuditReport, symdex_build::Error> {
    let index = Index::open(index)?;
    index.verify()?;
    audit(image, &index)
}
