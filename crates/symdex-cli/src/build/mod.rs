//! `symdex build`: indexes from debug files.

mod summary;
mod totals;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rayon::ThreadPool;
use symdex::Index;
use symdex_audit::{AuditReport, audit};
use symdex_build::debug_files::{
    BuildInputs, BuildJob, BuildPlan, FileError, ImageGroups, JoinedImage, UnreadArchives, is_wanted,
};
use symdex_build::{Built, Companions, Image, Options, Slice, SymbolMaps};
use symdex_store::{IndexBuffer, IndexBytes, IndexFolder};

use self::totals::Totals;
use crate::failure::{self, Failure, Kind, Stop, complain};
use crate::in_order::in_order;
use crate::progress::Progress;
use crate::{number, text};

/// Make an index of every image in debug files
///
/// INPUT is a .dSYM bundle, the DWARF file inside one, another Mach-O file (thin or universal), an ELF file (an executable, a
/// library, a .debug file), or a folder or .xcarchive that holds several; folders are searched. Each image, that is each architecture of each file, becomes one index, named by the
/// image's id: DIR/0c37c502aba03641a08f84c794684f36.symdex.
///
/// Where one image is in several of the files, its stripped binary and its debug file say, the index has the symbols of all.
///
/// An index is published whole or not at all. Where DIR has another index of that id already, the one with more functions
/// stays, then the one with more symbols, and the summary says `conflict`. An image without debug information is not built again
/// if its index in DIR is up to date.
///
/// INPUT may also be the main file of a dyld shared cache (dyld_shared_cache_arm64e): each image in it becomes an index, by its
/// own id. The cache's other files must lie beside it. Archives (.zip, .tgz, ...) in a folder are not read; standard error names them.
/// Of more than two files, the last lines on standard error say how many indexes were written, unchanged or in conflict and what
/// failed, by reason.
///
/// With --json standard output is for machines. Each image is an object with its id, architecture, index, sizes and
/// outcome. An input that failed is {"input", "error": {"kind", "message"}}; the kinds are damaged, unsupported,
/// missing, other, usage and not_found, as the exit codes have them. The last line is {"totals": {...}}.
/// docs/schema/build.schema.json describes all three.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Debug files, bundles, archives or folders
    #[arg(required = true, value_name = "INPUT")]
    inputs: Vec<PathBuf>,
    /// The folder for the indexes; it is made where it is missing
    #[arg(short, long, value_name = "DIR", default_value = ".")]
    output: PathBuf,
    /// Only images of this architecture: arm64, arm64e, armv7, x86_64, ...; may be repeated. Files without such an
    /// image are skipped; it is an error if all are
    #[arg(long, value_name = "ARCH")]
    arch: Vec<String>,
    /// How many threads work; every core unless given. The indexes are the same for any number
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
    /// How much memory units may take that wait for others, as where an order file lays out functions of all units among each other;
    /// what is more goes to a temporary file. The indexes are the same for any size
    #[arg(long, value_name = "SIZE", default_value = "1GB", value_parser = number::parse_size)]
    max_memory: usize,
    /// How many seconds the index of one image may take; a build that takes longer fails, the others go on
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    max_seconds: Option<u64>,
    /// A symbol map, <UUID>.bcsymbolmap, or a folder of them, for names that a build from bitcode has hidden; may be repeated
    #[arg(long, value_name = "FILE|DIR")]
    symbol_map: Vec<PathBuf>,
    /// A folder of debug files, such as /usr/lib/debug, for ELF files that were stripped, or of what debug files refer to
    /// (.dwo and dwz files that are not below the debug file's folder); may be repeated
    #[arg(long, value_name = "DIR")]
    debug_dir: Vec<PathBuf>,
    /// Compare every answer of an index with its debug file before it is published; one that is not right is not published
    #[arg(long)]
    verify: bool,
    /// Print one JSON object a line: one for each image, one for each input that failed, and the totals last
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

A debug file that cannot be read is reported on standard error, the others are still built, and the exit code tells:
4 damaged, 6 not a debug file, 5 missing, 1 not written or not right, 3 no such architecture (the first of these that
applies).";

pub(crate) fn run(args: &Args) -> failure::Outcome {
    let begun = Instant::now();
    let pool = pool(args.jobs)?;
    let maps = symbol_maps(&args.symbol_map)?;
    let inputs = BuildInputs::find(&args.inputs);
    complain_of_archives(&inputs);
    let BuildPlan { jobs, skipped, .. } = inputs.plan(&args.arch);
    // Where there are so few, each is read.
    let are_many = jobs.len() > 2;
    let progress = Progress::new(jobs.iter().map(BuildJob::size).sum());
    let groups = pool.install(|| ImageGroups::of(&inputs));
    let max_memory = args.max_memory / pool.current_num_threads().min(jobs.len()).max(1);
    let output = IndexFolder::new(&args.output);
    let work = Work { args, output, maps, groups, max_memory, progress: &progress };
    let mut totals = Totals::new(skipped);
    in_order(
        &pool,
        pool.current_num_threads(),
        jobs,
        |job| images_of(job, &work),
        |images| {
            for image in images {
                let published = image.and_then(|image| summary::publish(image, &work.output));
                progress.suspend(|| {
                    totals.count(&published);
                    match published {
                        Ok(image) => summary::report(&image, args.json, are_many),
                        Err(failure) => summary::report_failure(&failure, args.json),
                    }
                })?;
            }
            Ok::<(), Stop>(())
        },
    )?;
    match args.json {
        true => totals.print_json(begun.elapsed())?,
        false if are_many || skipped != 0 => progress.suspend(|| totals.report(begun.elapsed())),
        false => {}
    }
    Ok(totals.gravest())
}

/// Warns of archives in folders of debug files.
fn complain_of_archives(inputs: &BuildInputs) {
    for UnreadArchives { folder, archives, .. } in inputs.unread_archives() {
        let names = archives.iter().map(|path| path.strip_prefix(folder).unwrap_or(path).display());
        complain(&format!(
            "warning: {}: holds archives that are not read yet: {}; unpack them first",
            folder.display(),
            text::list(names)
        ));
    }
}

/// The threads that do all the work.
pub(crate) fn pool(jobs: Option<u16>) -> Result<ThreadPool, Failure> {
    // rayon takes 0 for every core.
    let threads = jobs.map_or(0, usize::from);
    rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()
        .map_err(|error| Failure::new(Kind::Other, format!("cannot start {threads} threads: {error}")))
}

/// The symbol maps among `paths`.
pub(crate) fn symbol_maps(paths: &[PathBuf]) -> Result<SymbolMaps, Failure> {
    SymbolMaps::find(paths).map_err(|error| Failure::debug_file(Path::new("--symbol-map"), &error))
}

/// What work on every image needs.
struct Work<'a> {
    args: &'a Args,
    output: IndexFolder,
    maps: SymbolMaps,
    groups: ImageGroups,
    /// What each of the images worked on at one time may take of it.
    max_memory: usize,
    progress: &'a Progress,
}

/// An index that is not published yet.
struct Finished {
    file: PathBuf,
    /// Other files of the image, whose symbols are in the index too.
    joined: Vec<PathBuf>,
    debug_size: u64,
    built: Built<IndexBytes>,
    /// How it compares with the debug file, if that was asked for.
    audit: Option<AuditReport>,
    time: Duration,
}

/// The index of every image of the job that is wanted, in file order.
fn images_of(job: BuildJob<'_>, work: &Work<'_>) -> Vec<Result<Finished, Failure>> {
    let begun = Instant::now();
    let companions = Companions::new(work.args.debug_dir.clone());
    let file = match job {
        BuildJob::File(file) => file,
        BuildJob::CachedImage { cache, image } => {
            let failed = |error| Failure::from(FileError::new(cache, error).in_part(&image.path));
            let loaded = image.load().map_err(failed);
            return vec![loaded.and_then(|loaded| finish(cache, &image.path, loaded, begun, work))];
        }
        BuildJob::Failed(error) => return vec![Err(error.into())],
        BuildJob::NoSuchArch(error) => {
            let reason = "without the architecture";
            return vec![Err(Failure { reason, ..Failure::new(Kind::NotFound, error.to_string()) })];
        }
    };
    let bytes = match symdex::map_file(file) {
        Ok(bytes) => bytes,
        Err(error) => return vec![Err(Failure::unreadable(file, &error))],
    };
    let slices = match symdex_build::slices(&bytes) {
        Ok(slices) => slices,
        Err(error) => return vec![Err(Failure::debug_file(file, &error))],
    };
    let wanted = slices.iter().filter(|slice| is_wanted(&slice.arch.name, &work.args.arch));
    wanted.flat_map(|slice| finish_slice(file, slice, &companions, work)).collect()
}

/// The index of the image in `slice`, joined with what other files have of it, and what could not be joined. Nothing where another
/// file's image takes this one in.
fn finish_slice(
    file: &Path,
    slice: &Slice<'_>,
    companions: &Companions,
    work: &Work<'_>,
) -> Vec<Result<Finished, Failure>> {
    let begun = Instant::now();
    let part = format!("{} slice", slice.arch.name);
    let Some(joined) = work.groups.join(file, slice, companions) else { return Vec::new() };
    let JoinedImage { image, paths, failures, .. } = joined;
    let finished = image.zip(paths.split_first()).map(|(image, (file, joined))| {
        let finished = finish(file, &part, image, begun, work)?;
        Ok(Finished { joined: joined.to_vec(), ..finished })
    });
    failures.into_iter().map(|error| Err(error.in_part(&part).into())).chain(finished).collect()
}

/// The index of `image`, which is `part` of the file.
fn finish(
    file: &Path,
    part: &str,
    image: Image<'_>,
    begun: Instant,
    work: &Work<'_>,
) -> Result<Finished, Failure> {
    let failed = |error| Failure::from(FileError::new(file, error).in_part(part));
    let map = work.maps.of(&image.info.id, file).map_err(failed)?;
    let image = match &map {
        Some(map) => image.with_symbol_map(map),
        None => image,
    };
    let built = {
        let progress = work.progress.of_image(image.debug_size);
        match existing(&image, &work.output, IndexBuffer::new()) {
            Some(built) => built,
            None => {
                let options = Options { max_memory: work.max_memory, max_seconds: work.args.max_seconds };
                let progress = |done, all| progress.set(done, all);
                symdex_build::build_into(&image, &options, &progress, IndexBuffer::new()).map_err(failed)?
            }
        }
    };
    let Built { bytes, mut warnings, report } = built;
    let bytes = bytes.into_bytes().map_err(|error| failed(symdex::Error::from(error).into()))?;
    if map.is_none() && report.hidden_names != 0 {
        let wanted = work.maps.wanted(&image.info.id, file);
        warnings.push(format!("its names are hidden: give {wanted} with --symbol-map"));
    }
    let audit = work.args.verify.then(|| verify(&image, bytes.as_ref())).transpose();
    let unverified = format!("{part}; its index cannot be verified and is not published");
    let audit = audit.map_err(|error| FileError::new(file, error).in_part(unverified))?;
    let debug_size = image.debug_size;
    Ok(Finished {
        file: file.to_owned(),
        joined: Vec::new(),
        debug_size,
        built: Built { bytes, warnings, report },
        audit,
        time: begun.elapsed(),
    })
}

/// Writes to `out` the index of `image` that is in `folder`, if a build would make it again. Returns `None` if the image
/// has to be built.
fn existing<W: Write>(image: &Image<'_>, folder: &IndexFolder, mut out: W) -> Option<Built<W>> {
    // An image with debug information is always built.
    let index = (!image.has_dwarf()).then(|| folder.open(&image.info.id).ok().flatten()).flatten()?;
    let report = symdex_build::up_to_date(image, &index)?;
    out.write_all(index.as_bytes()).ok()?;
    Some(Built { bytes: out, warnings: Vec::new(), report })
}

/// Does to a new index what `symdex verify --against` does to a published one.
fn verify(image: &Image<'_>, index: &[u8]) -> Result<AuditReport, symdex_build::Error> {
    let index = Index::open(index)?;
    index.verify()?;
    audit(image, &index)
}
