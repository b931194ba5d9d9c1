//! `symdex symbolicate`: whole crash reports.

mod events;
mod needs;
mod output;
mod summary;

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use symdex::LinePolicy;
use symdex_report::{Options, Report, symbolicate};
use symdex_store::symbolicator::{Assumption, Event, Symbolicator, SymbolicatorOptions};

use self::events::Events;
use self::output::Output;
use self::summary::{ReportCounts, Summary};
use crate::failure::{self, Failure, Kind, complain};
use crate::in_order::in_order;
use crate::lookup::{Lines, stdin_failed};
use crate::progress::Progress;

/// Put functions, files and lines into crash reports, with every inlined function
///
/// REPORT is a crash report of Apple's (.crash, .ips), what `sample`, `spindump` or `leaks` printed, MetricKit's diagnostics, a report of
/// PLCrashReporter's (as text) or of KSCrash's, a Sentry event, an Android tombstone or what logcat has of it, a HarmonyOS cppcrash log,
/// what a sanitizer printed, or a list of `image address load` lines; what it is, its content tells. Its frames are answered from
/// indexes, matched by the images' ids, and everything else in it comes out byte for byte as it went in.
///
/// With --format text a report in JSON comes out as text that people read. An .ips, a KSCrash report and a Sentry event
/// are laid out as Apple lays out a .crash: header, exception, threads with their names, registers of the thread that
/// crashed, images. MetricKit's crashes are stacks too; its hangs, CPU and disk-write exceptions are call trees, with
/// the number of samples before each frame.
///
/// Indexes are searched in the folders given with --index and the folders below them, then in the local store. For images that have
/// none there, --dsym gives the debug files. Up to 200 addresses of an image are answered from its debug file, of which only the units
/// with these addresses are read. For more addresses, or with --store, its index is built into the store once, and is there the next
/// time. If the store cannot be written, these indexes are kept in memory, and a warning says so. A damaged index is reported, and the
/// next source is asked: another index, then the debug file, whose new index replaces the damaged one in the store.
///
/// Some reports do not state the ids of their images: GCC's sanitizers, old tombstones, stacks that were cut out of a report. Their
/// frames stay as they are, unless --match-by-name or --assume allows another match; such an answer may be of another build, and JSON
/// and the summary mark it. --match-by-name takes the only index or debug file of the image's name and architecture; if there are
/// several, it names them and takes none. --assume names the one to take, also for an image with an id.
///
/// Return addresses are looked up one byte before, in the call; the innermost frame of a thread and the one that a signal interrupted
/// as they are. A frame that has a name and no line gets its line, one that has both stays. What is inlined into a frame gets frames of
/// its own before it, with its number and `[inlined]`, in JSON with "inline": true (of KSCrash's "inlined"); in call trees it lies between
/// the frame and what that calls.
///
/// Frames of Android, HarmonyOS and sanitizers have addresses that are adjusted already. Android's and HarmonyOS's get `(function+offset)`, and
/// behind them a line `file:line (function)` for each function; a sanitizer's get `in function file:line` instead of the image.
///
/// In a list the image is an id (UUID or build id), or a name with the id in a column behind; both numbers have 0x. Lines that follow each
/// other are a stack, innermost frame first; of addresses that are no stack, say so with --addresses as-given.
///
/// The summary on standard error says which images were found, which are missing (id, architecture and path, as the report has
/// them), and what is near a missing one: another build of the same name, or its id for another architecture.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Crash reports; - or none: standard input
    #[arg(value_name = "REPORT")]
    reports: Vec<PathBuf>,
    /// A folder of indexes, searched with the folders below it, or an index; may be repeated
    #[arg(long, value_name = "DIR")]
    index: Vec<PathBuf>,
    /// Debug files to answer from where an index is missing: a dSYM bundle, a folder of them, an .xcarchive, a library; may be repeated
    #[arg(long, value_name = "PATH")]
    dsym: Vec<PathBuf>,
    /// A folder with files that a debug file refers to, such as /usr/lib/debug; may be repeated
    #[arg(long, value_name = "DIR")]
    debug_dir: Vec<PathBuf>,
    /// The local store, where indexes of --dsym are put, also those for few addresses; the user's cache folder unless given
    #[arg(long, value_name = "DIR")]
    store: Option<PathBuf>,
    /// Answer images whose ids the report does not state from the one index or debug file of the same name
    #[arg(long)]
    match_by_name: bool,
    /// Answer the image NAME from this index or debug file, or from the image of this id or these first digits
    /// of one, whatever id the report states; may be repeated
    #[arg(long, value_name = "NAME=FILE|ID")]
    assume: Vec<Assumption>,
    /// Only print which images the reports need and which of them are at hand, and where; with --format json as JSON
    #[arg(long, conflicts_with = "output")]
    needs: bool,
    /// Where the output goes; for several reports a folder. In a folder each report keeps its name, with the extension .json for
    /// --format json, and .crash for --format text of a report in JSON. If some have the same name, they keep their folders too. No
    /// report is overwritten. On standard output, a line `==> PATH <==` begins each of several reports
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// What is written
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "native")]
    format: OutputFormat,
    /// Leave frames alone that have a function's name already, though file and line are missing
    #[arg(long)]
    only_missing: bool,
    /// One frame an address, as atos prints it: only the concrete function, at the line it calls what is inlined
    #[arg(long)]
    no_inlines: bool,
    /// Write names as the linker knows them
    #[arg(long)]
    no_demangle: bool,
    /// Which line rows count: those that begin a statement, which reads better, or every one, as in atos
    #[arg(long, value_enum, value_name = "POLICY", default_value = "statement")]
    lines: Lines,
    /// Whether return addresses are looked up one byte before, or as they are given, as when they are pasted into atos
    #[arg(long, value_enum, value_name = "HOW", default_value = "adjusted")]
    addresses: Addresses,
}

const EXAMPLES: &str = "\
Examples:
  symdex symbolicate MyApp.ips --dsym MyApp.xcarchive --format text > MyApp.crash
  symdex symbolicate MyApp.ips --dsym MyApp.xcarchive > MyApp.symbolicated.ips
  symdex symbolicate crashes/*.crash --index indexes -o symbolicated
  symdex symbolicate MyApp.crash --index indexes --format json | jq '.threads[] | select(.crashed).frames[].functions[0]'
  symdex symbolicate crashes/*.crash --index indexes --needs
  symdex symbolicate gcc-asan.txt --dsym build/app --match-by-name
  symdex symbolicate pasted.txt --assume MyApp=MyApp.app.dSYM
  adb logcat -d | symdex symbolicate --dsym app/build/obj/arm64-v8a
  symdex symbolicate old.crash --dsym App.dSYM --lines exact --no-inlines --addresses as-given      as atos answers

JSON, one object a line for each report:
  {\"report\", \"format\", \"header\": {\"os\", \"process\", \"version\", \"incident\", \"exception\", ...},
   \"images\": [{\"name\", \"path\", \"arch\", \"id\", \"load_address\", \"size\", \"is_app\", \"status\", \"reason\",
     \"matched_by\", \"source\", \"near\"}],
   \"threads\": [{\"name\", \"id\", \"label\", \"queue\", \"crashed\", \"frames\": [{\"address\", \"image\", \"status\",
     \"matched_by\", \"functions\": [{\"function\", \"name\", \"file\", \"line\", \"inlined\", \"function_offset\", \"table\"}]}]}],
   \"totals\"}
A report that cannot be read is {\"report\", \"error\": {\"kind\", \"message\"}}. A frame's image is its
place in the list, from 0. Frames are symbolicated, missing_symbol, unknown_image, missing, malformed or
too_large (the answers of one report may have 32 MiB and 4 KiB for each frame); images are found, unused, missing, malformed, unsupported or other. An image is malformed if
one of its indexes is damaged, even if another source answers its frames. matched_by is id, name or
assumed; frames have it only if it is not id. docs/schema/symbolicate.schema.json describes every member.
JSON of --needs, an object for each image: {\"name\", \"path\", \"arch\", \"id\", \"is_app\", \"frames\", \"reports\",
\"status\", \"reason\", \"matched_by\", \"source\", \"near\"}.

Exit codes: 0 every frame of the app is resolved (with --needs: every image of the app is at hand), 3 some are not, 4 a report
or an index is damaged, 5 a file is missing, 6 not a crash report, 1 other errors.";

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum OutputFormat {
    /// The report in the format it came in, as it was but for its frames
    Native,
    /// Text for people: .ips and other JSON as Apple lays out a .crash; what is text already as in native
    Text,
    /// One JSON object a line, for each report
    Json,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Addresses {
    Adjusted,
    AsGiven,
}

pub(crate) fn run(args: &Args) -> failure::Outcome {
    let reports = match &args.reports[..] {
        [] => vec![PathBuf::from("-")],
        reports => reports.to_vec(),
    };
    let mut summary = Summary::default();
    let symbolicator = Symbolicator::open(&args.sources(), &mut |skipped| summary.failure(&skipped.into()))
        .map_err(Failure::from)?;
    let size = |path: &PathBuf| path.metadata().map_or(0, |file| file.len());
    let progress = Progress::new(reports.iter().map(size).sum::<u64>() + symbolicator.debug_files_size());
    let events = Events::new(&progress);
    let is_json = args.format == OutputFormat::Json;
    let mut output = Output::open(args.output.as_deref(), &reports, args.format)?;
    let pool = rayon::ThreadPoolBuilder::new()
        .build()
        .map_err(|error| Failure::new(Kind::Other, format!("cannot start threads: {error}")))?;
    in_order(
        &pool,
        pool.current_num_threads(),
        &reports,
        |path| {
            let _counts = progress.of_image(size(path));
            one(args, path, &symbolicator, &events)
        },
        |(path, result)| {
            progress.suspend(|| match result {
                Ok((text, counted)) => {
                    summary.count(counted);
                    text.map_or(Ok(()), |text| output.write(path, &text))
                }
                Err(failure) => {
                    summary.failure(&failure);
                    match args.format {
                        OutputFormat::Json => output.write(path, &output::json_failure(path, &failure)),
                        OutputFormat::Native | OutputFormat::Text => Ok(()),
                    }
                }
            })
        },
    )?;
    output.finish()?;
    if args.needs {
        return progress.suspend(|| needs::report(&summary, &symbolicator, is_json));
    }
    progress.suspend(|| summary.report(&symbolicator));
    Ok(summary.gravest())
}

/// A report's output, if any is wanted, and what became of it.
type Done = (Option<Vec<u8>>, ReportCounts);

fn one<'p>(
    args: &Args,
    path: &'p Path,
    symbolicator: &Symbolicator,
    events: &Events<'_>,
) -> (&'p Path, Result<Done, Failure>) {
    let failed = |error: symdex_report::Error| {
        let kind = match &error {
            symdex_report::Error::Malformed { .. } => Kind::Damaged,
            _ => Kind::Unsupported,
        };
        Failure::new(kind, format!("{}: {error}", shown(path)))
    };
    let done = read(path).and_then(|text| {
        let report = Report::parse(&text).map_err(failed)?;
        if args.needs {
            let available = symbolicate(&report, &mut symbolicator.availability(), &args.options());
            return Ok((None, ReportCounts::of(&available)));
        }
        let on_event = |event: Event<'_>| events.on(event);
        let symbolicated = symbolicate(&report, &mut symbolicator.session(&on_event), &args.options());
        let counted = ReportCounts::of(&symbolicated);
        let text = match args.format {
            OutputFormat::Native => output::native(&symbolicated),
            OutputFormat::Text => output::text(&symbolicated),
            OutputFormat::Json => {
                let mut images = report.images.iter().zip(symbolicated.images());
                let is_any_missing = images.any(|(image, outcome)| outcome.lacks_index_of(image));
                let known = if is_any_missing { symbolicator.known() } else { &[] };
                output::json(path, &symbolicated, &counted, known)
            }
        };
        Ok((Some(text), counted))
    });
    (path, done)
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    if path.as_os_str() != "-" {
        return std::fs::read(path).map_err(|error| Failure::unreadable(path, &error));
    }
    let mut text = Vec::new();
    io::stdin().lock().read_to_end(&mut text).map_err(|error| stdin_failed(&error))?;
    Ok(text)
}

/// What a report is called in messages.
fn shown(path: &Path) -> String {
    if path.as_os_str() == "-" { "standard input".to_owned() } else { path.display().to_string() }
}

/// The user's cache folder has the local store; `None` where there is no such folder.
fn default_store() -> Option<PathBuf> {
    use etcetera::BaseStrategy as _;
    Some(etcetera::base_strategy::choose_native_strategy().ok()?.cache_dir().join("symdex"))
}

impl Args {
    /// Where answers are searched.
    fn sources(&self) -> SymbolicatorOptions {
        let mut sources =
            SymbolicatorOptions::new().always_store(self.store.is_some()).match_by_name(self.match_by_name);
        for path in &self.index {
            sources = sources.index(path);
        }
        for path in &self.dsym {
            sources = sources.debug_files(path);
        }
        for folder in &self.debug_dir {
            sources = sources.debug_dir(folder);
        }
        for assumption in &self.assume {
            sources = sources.assume(assumption.clone());
        }
        match self.store.clone().or_else(default_store) {
            Some(store) => sources.store(store),
            None => sources,
        }
    }

    fn options(&self) -> Options {
        Options::new()
            .lines(LinePolicy::from(self.lines))
            .as_given(matches!(self.addresses, Addresses::AsGiven))
            .inlines(!self.no_inlines)
            .demangle(!self.no_demangle)
            .only_missing(self.only_missing)
    }
}

impl Summary {
    /// Reports a failure, and remembers how grave it is.
    fn failure(&mut self, failure: &Failure) {
        complain(&failure.message);
        self.graver(failure.kind);
    }
}
