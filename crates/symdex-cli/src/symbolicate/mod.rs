//! `symdex symbolicate`: whole crash reports.

mod args;
mod compressed;
mod events;
mod fetch;
mod formats;
mod input;
mod needs;
mod output;
mod stores;
mod summary;
mod walks;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use symdex_answer::fetch::{FetchingSource, Misses};
use symdex_answer::{Event, SourceError, Symbolicator};
use symdex_build::debug_files::DebugFile;
use symdex_build::slices;
use symdex_pipeline::{Batch, in_order};
use symdex_report::{Addresses, Options, OutputFormat, Report, symbolicate};

pub(crate) use self::args::{NameArgs, QuietOption, SourceArgs};
use self::events::{Events, failure_of};
use self::input::{Input, Inputs};
pub(crate) use self::output::{Layout, StackwalkFormat};
use self::output::{Output, Text, is_process_file};
use self::summary::{ReportCounts, RunSummary};
use self::walks::{is_process, walk};
use crate::archive;
use crate::failure::{self, Cause, Failure, complain};
use crate::progress::Progress;

/// Add functions, files and lines to crash reports, with every inlined function
///
/// REPORT is a report of Apple's systems, Android, HarmonyOS or a crash reporter, or a list of `image address load`
/// lines. Its format is recognised by its content. --list-formats prints all formats. A REPORT may also be a folder of
/// reports, a zip archive of reports or Xcode's .xccrashpoint. Reports may be compressed with gzip or zstd. Debug files
/// and indexes among the reports answer as those of --dsym and --index do. Other files of folders and archives are
/// counted.
///
/// MINIDUMPS. A REPORT may also be a minidump, or a log with a microdump of Breakpad and without other frames. Its
/// stacks are walked first; see `symdex minidump --help`. Its own format is then the JSON of minidump-stackwalk. A
/// symdex built without the feature `minidump`, such as symdex-slim, reads neither.
///
/// SOURCES. Images are matched by id. Indexes are searched in the folders given with --index and in the folders
/// below them, then in the stores given with --store, in their order; without --store, in the user's cache folder. An
/// image without an index is answered from the debug files given with --dsym: up to 200 addresses directly, from the
/// compile units that have them. For more addresses, or with --store, its index is built into the first store. If the
/// store cannot be written, the index is kept in memory, and a warning says so. A damaged source is reported, and the
/// next one answers. A store that cannot be reached is reported and not asked again; images that no other source
/// answers are listed, and the exit code is 1. A new index replaces a damaged one in the store.
///
/// FETCHING. The debug files of images that none of these sources has with lines are fetched from those given with
/// --debug-source; without it, from the debuginfod servers in the environment variable DEBUGINFOD_URLS. Their indexes
/// are built into the first store, so that an image is fetched once. A fetched file of another image is not used.
///
/// IMAGES WITHOUT IDS. The reports of GCC's sanitizers, old tombstones, and stacks copied from a report state
/// no ids. Their frames are answered only with --match-by-name or --assume. Such an answer may be of another build:
/// JSON and the summary mark it. --match-by-name uses the only index or debug file of the image's name and
/// architecture. If there are several, it lists them and uses none. --assume says which one to use, even for an image
/// with an id.
///
/// ADDRESSES. For a return address, the byte before it is looked up, in the call. The innermost frame of a thread, and
/// the frame that a signal interrupted, are looked up unchanged. So are the frames of Android, HarmonyOS and
/// sanitizers, whose addresses are already adjusted. In a list, consecutive lines are a stack, innermost frame first.
/// If they are not, give --addresses as-given. The image in a list is an id, or a name with the id in a further column.
/// Both numbers have 0x.
///
/// OUTPUT. Every byte that is not part of a frame's answer stays. A frame that has a name and no line gets its
/// line. A frame that has both is not changed. An inlined function gets a separate frame before the frame into which it
/// is inlined, marked `[inlined]`, in JSON "inline": true (KSCrash: "inlined"). In call trees it is between the frame
/// and its callees. Frames of Android and HarmonyOS get `(function+offset)`, and after them one line `file:line
/// (function)` for each function. Frames of sanitizers get `in function file:line` in place of the image.
///
/// Frames of PLCrashReporter's binary reports, of Android's binary tombstones and of profiles of the Firefox Profiler
/// have fields for one function only. They get the concrete function; the other output formats have the rest.
///
/// With --format text, a JSON or binary report is written in the layout of a .crash: header, exception,
/// threads, registers, images. MetricKit's crashes become stacks, and its hangs, CPU and disk-write exceptions become
/// call trees with numbers of samples.
///
/// LIMITS. The answers of one report may add 64 MiB, or 16 times its size if that is more. Frames past this limit stay
/// unchanged; JSON marks them too_large, the summary counts them, and the command exits with code 3. The frames, stacks
/// and images of a report may take 256 KiB of memory, and 16 bytes for each byte of the report. Frames past this limit
/// are not read. Up to 64 functions may stand for missing load addresses. Frames whose address is not a whole number,
/// and text after the end of a report, such as a second report in a file, are not read; the summary counts them, and
/// the command exits with code 3.
///
/// The summary on standard error lists the images that were found, the missing ones (with id, architecture and path),
/// and near matches of a missing image: another build of its name, or its id for another architecture.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Crash reports, folders or zip archives of reports. They may be compressed (.gz, .zst). `-`, or no report, stands
    /// for standard input
    #[arg(value_name = "REPORT")]
    reports: Vec<PathBuf>,
    #[command(flatten)]
    sources: SourceArgs,
    /// Only list the images that the reports need, and where they are found. With --format json, as JSON. Nothing is
    /// fetched
    #[arg(long, conflicts_with = "output")]
    needs: bool,
    /// Only list the formats of reports, with an example line of each. With --json, as JSON
    #[arg(long, conflicts_with_all = ["reports", "needs", "output"])]
    list_formats: bool,
    /// The output file, or for several reports the output folder. In a folder, each report keeps its name. The
    /// extension becomes .json with --format json, and .crash with --format text if the report is JSON or binary.
    /// Reports of the same name keep their folders, too. A file that is not a report of a known format is copied
    /// unchanged. No report is overwritten. On standard output, a line `==> PATH <==` begins
    /// each of several reports
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// The format of the output
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "native")]
    format: OutputFormat,
    /// The same as --format json
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// Do not change frames that have a function's name, even if they have no file and line
    #[arg(long)]
    only_missing: bool,
    #[command(flatten)]
    names: NameArgs,
    /// How return addresses are looked up
    #[arg(long, value_enum, value_name = "HOW", default_value = "adjusted")]
    addresses: Addresses,
    #[command(flatten)]
    quiet: QuietOption,
}

const EXAMPLES: &str = "\
Examples:
  symdex symbolicate MyApp.ips --dsym MyApp.xcarchive --format text > MyApp.crash
  symdex symbolicate MyApp.ips --dsym MyApp.xcarchive > MyApp.symbolicated.ips
  symdex symbolicate crashes/*.crash --index indexes -o symbolicated
  symdex symbolicate MyApp.crash --index indexes --format json | jq '.threads[].frames[].functions'
  symdex symbolicate crashes/*.crash --index indexes --needs
  symdex symbolicate gcc-asan.txt --dsym build/app --match-by-name
  symdex symbolicate pasted.txt --assume MyApp=MyApp.app.dSYM
  symdex symbolicate tombstone_00 --debug-source gdb+/srv/symbols --debug-source s3://bucket/symbols
  adb logcat -d | symdex symbolicate --dsym app/build/obj/arm64-v8a
To answer as atos does:
  symdex symbolicate old.crash --dsym App.dSYM --lines exact --no-inlines --addresses as-given

JSON, one object per line for each report:
  {\"report\", \"format\", \"header\": {\"os\", \"process\", \"version\", \"incident\", \"exception\", ...},
   \"images\": [{\"name\", \"path\", \"arch\", \"id\", \"load_address\", \"size\", \"is_app\", \"status\",
     \"reason\", \"matched_by\", \"source\", \"grade\", \"near\"}],
   \"threads\": [{\"name\", \"id\", \"label\", \"queue\", \"crashed\", \"registers\", \"frames\": [{
     \"address\", \"image\", \"status\", \"reason\", \"matched_by\", \"found_by\",
     \"functions\": [{\"function\", \"name\", \"file\", \"line\", \"inlined\", \"function_offset\", \"table\"}], \"reported\"}]}],
   \"totals\", \"unread\": {\"frames\", \"malformed_frames\", \"bytes\"}}
  {\"report\", \"error\": {\"kind\", \"message\"}} for a report that cannot be read
The image of a frame is its index in images. The status of a frame is symbolicated, missing_symbol (no function, or \
one without a name), unknown_image, missing, damaged, lost, unavailable or limit (see LIMITS). The grade of an image \
is the most that its sources answer: lines, names, bounds or nothing. The status of an image is found, unused, \
missing, damaged, lost, unsupported, limit, unavailable, fetching_failed or other; it is damaged if one of its sources \
is damaged, even if another source answers. It is lost if a store has lost its index, or parts of it, and no other \
source answers, and unavailable if a store cannot be queried and no other source answers; then so are its frames. \
matched_by is id, name or assumed; frames have it only if it is not id. found_by is context, cfi, \
frame_pointer, scan or other; frames of minidumps, microdumps and minidump-stackwalk have it. \
docs/schema/symbolicate.schema.json describes every member.

JSON with --needs, one object per line for each image:
  {\"name\", \"path\", \"arch\", \"id\", \"is_app\", \"frames\", \"reports\", \"status\", \"reason\",
   \"matched_by\", \"source\", \"grade\", \"near\"}

Exit codes:
  0  every frame of the app is answered; with --needs, every image of the app is found
  3  some are not, or no frame of a report has an answer or a name
  4  a report, an index or a debug file is damaged, or a store has lost an index that no other source has
  5  a file is missing
  6  a file that was named is not a crash report, or no file of the folders and archives is one
  1  a store cannot be queried for an image that no other source has, or another error
If several apply, the first of 4, 6, 5, 1, 3 counts.";

pub(crate) fn run(args: &Args) -> failure::CommandResult {
    let format = if args.json { OutputFormat::Json } else { args.format };
    if args.list_formats {
        return formats::list(format == OutputFormat::Json);
    }
    let options = args.names.options().addresses(args.addresses).only_missing(args.only_missing);
    let options = options.output(format);
    let work = Work {
        reports: &args.reports,
        sources: &args.sources,
        options: &options,
        layout: Layout::Report(format),
        output: args.output.as_deref(),
        needs: args.needs,
        is_quiet: args.quiet.quiet,
    };
    work.run()
}

/// Reports to answer, and how.
pub(crate) struct Work<'a> {
    pub(crate) reports: &'a [PathBuf],
    pub(crate) sources: &'a SourceArgs,
    pub(crate) options: &'a Options,
    pub(crate) layout: Layout,
    pub(crate) output: Option<&'a Path>,
    /// Whether only the images that the reports need are listed.
    pub(crate) needs: bool,
    /// Whether there is no summary and no progress.
    pub(crate) is_quiet: bool,
}

impl Work<'_> {
    /// Answers all reports, and writes them.
    pub(crate) fn run(&self) -> failure::CommandResult {
        let Inputs { reports, has_folder, failures, unpacker: _unpacker, debug_files: beside, indexes } =
            Inputs::find(self.reports);
        let mut summary = RunSummary::default();
        failures.iter().for_each(|failure| summary.failure(failure));
        let progress = Progress::unless(self.is_quiet);
        let (debug_files, _unpackers) = debug_files(&self.sources.dsym, &progress, &mut summary);
        let sources = self.sources.options()?.unwind_rows(reports.iter().any(is_process_file));
        let sources = indexes.iter().fold(sources, |sources, index| sources.index(index));
        let sources =
            debug_files.into_iter().chain(beside).fold(sources, |sources, file| match file.archive_entry() {
                Some(_) => sources.unpacked(file),
                None => sources.debug_files(file.path()),
            });
        let symbolicator = Symbolicator::open(&sources, &mut |skipped| {
            progress.suspend(|| match skipped {
                SourceError::Special(files) => complain(&format!("warning: {files}")),
                error => summary.failure(&failure_of(error)),
            });
        });
        let symbolicator = Arc::new(symbolicator.map_err(failure_of)?);
        progress.add(reports.iter().map(Input::size).sum::<u64>() + symbolicator.debug_files_size());
        let events = Arc::new(Events::new(progress.bar().clone()));
        let misses = if self.needs {
            None
        } else {
            fetch::misses(&self.sources.debug_sources.urls_or_debuginfod()?, &symbolicator, &events)?
        };
        let answering =
            Answering { work: self, symbolicator: &symbolicator, events: &events, misses: misses.as_ref() };
        let is_json = self.layout == Layout::Report(OutputFormat::Json);
        let mut output = Output::open(self.output, &reports, has_folder, self.layout)?;
        let pool = rayon::ThreadPoolBuilder::new()
            .build()
            .map_err(|error| Failure::new(Cause::Other, format!("cannot start threads: {error}")))?;
        // A thread takes the next report while its last one waits to be written.
        let in_flight = 2 * pool.current_num_threads();
        in_order(
            &pool,
            in_flight,
            &reports,
            |input| {
                let _counts = progress.of_image(input.size());
                (input, answering.one(input))
            },
            |(input, result)| {
                progress.suspend(|| match result {
                    Ok((text, counted)) => {
                        summary.count(counted);
                        text.map_or(Ok(()), |text| output.write(input.path(), text))
                    }
                    Err(Refused { failure, text }) => {
                        if input.is_named() || text.is_none() || failure.cause != Cause::Unsupported {
                            summary.failure(&failure);
                        } else {
                            summary.not_a_report(input.path());
                        }
                        match text {
                            _ if is_json => {
                                output.write(input.path(), output::json_failure(input.path(), &failure))
                            }
                            Some(text) if output.is_folder() => {
                                summary.count_copied();
                                output.write(input.path(), Text::Memory(text))
                            }
                            _ => Ok(()),
                        }
                    }
                })
            },
        )?;
        output.finish()?;
        symbolicator.finish_refills();
        if !self.is_quiet {
            progress.suspend(|| summary.report_others());
        }
        if self.needs {
            return progress.suspend(|| needs::report(&summary, &symbolicator, is_json));
        }
        if !self.is_quiet {
            progress.suspend(|| summary.report(&symbolicator));
        }
        Ok(summary.gravest())
    }
}

/// What --dsym names: debug files of archives, which are unpacked, and other paths. The batches own the former.
fn debug_files(
    paths: &[PathBuf],
    progress: &Progress,
    summary: &mut RunSummary,
) -> (Vec<DebugFile>, Vec<Batch>) {
    let (mut files, mut archives) = (Vec::new(), Vec::new());
    for path in paths {
        match archive::debug_files(path, progress) {
            Ok(None) => files.push(DebugFile::on_disk(path)),
            Ok(Some(mut archive)) => {
                progress.suspend(|| archive.failures.iter().for_each(|failure| summary.failure(failure)));
                for file in std::mem::take(&mut archive.files).into_files() {
                    match file {
                        Ok(file) => files.push(file),
                        Err(error) => progress.suspend(|| summary.failure(&error.into())),
                    }
                }
                archives.push(archive);
            }
            Err(failure) => progress.suspend(|| summary.failure(&failure)),
        }
    }
    (files, archives)
}

/// The output of a report, `None` with `--needs`, and its counts.
type Done = (Option<Text>, ReportCounts);

/// A report without an output of its own.
struct Refused {
    failure: Failure,
    /// The text of the report, if it could be read.
    text: Option<Vec<u8>>,
}

impl From<Failure> for Refused {
    fn from(failure: Failure) -> Self {
        Self { failure, text: None }
    }
}

/// What the answers of all reports share.
struct Answering<'a> {
    work: &'a Work<'a>,
    symbolicator: &'a Symbolicator,
    events: &'a Events,
    /// Fetches debug files of missing images.
    misses: Option<&'a Misses>,
}

impl Answering<'_> {
    fn one(&self, input: &Input) -> Result<Done, Refused> {
        let Self { work: Work { options, layout, needs, .. }, symbolicator, events, misses } = self;
        let path = input.path();
        let file = input.read()?;
        if let Some(what) = misplaced(&file, *layout) {
            let failure = Failure::new(Cause::Unsupported, format!("{}: {what}", shown(path)));
            return Err(Refused { failure, text: Some(file) });
        }
        let on_event = |event: Event<'_>| events.on(event);
        let mut source = FetchingSource::new(symbolicator.session(&on_event), *misses, None);
        let parsed = match walk(&file, &mut source) {
            Some(Ok(walked)) => Ok((walked.report, Some(walked.process))),
            Some(Err(error)) => Err((error.cause(), error.to_string())),
            None => Report::parse(&file)
                .map(|report| (report, None))
                .map_err(|error| (error.cause(), error.to_string())),
        };
        let (report, process) = match parsed {
            Ok(parsed) => parsed,
            Err((cause, error)) => {
                let failure = Failure::new(cause, format!("{}: {error}", shown(path)));
                return Err(Refused { failure, text: Some(file) });
            }
        };
        if *needs {
            let available = symbolicate(&report, &mut symbolicator.availability(), options);
            return Ok((None, ReportCounts::of(&available)));
        }
        let symbolicated = symbolicate(&report, &mut source, options);
        let counted = ReportCounts::of(&symbolicated);
        let text = Text::of(report.text().len(), |mut out| match (layout, process) {
            (Layout::Report(OutputFormat::Native), None) => symbolicated.write(out),
            (Layout::Report(OutputFormat::Json), _) => {
                let mut images = report.images().iter().zip(symbolicated.images());
                let is_any_missing = images.any(|(image, outcome)| outcome.lacks_index_of(image));
                let known = if is_any_missing { symbolicator.known() } else { Default::default() };
                output::json(path, &symbolicated, &known, out)
            }
            (Layout::Stackwalk(StackwalkFormat::Text), Some(mut process)) => {
                process.write_text(&symbolicated, out)
            }
            (
                Layout::Report(OutputFormat::Native) | Layout::Stackwalk(StackwalkFormat::Json),
                Some(mut process),
            ) => process.write_json(&symbolicated, out),
            (Layout::Report(OutputFormat::Text) | Layout::Stackwalk(_), _) => {
                symbolicated.write_text(&mut out)
            }
        })?;
        Ok((Some(text), counted))
    }
}

/// The kind of a file that was wrongly given as a report, and the option for it. `None` for any other file.
fn misplaced(file: &[u8], layout: Layout) -> Option<&'static str> {
    if input::is_index(file) {
        return Some("an index, not a report; pass it with --index");
    }
    let is_debug_file = !matches!(slices(file), Err(symdex_build::Error::NotADebugFile { .. }));
    if is_debug_file {
        return Some(input::DEBUG_FILE);
    }
    let is_other_report = matches!(layout, Layout::Stackwalk(_)) && !is_process(file);
    is_other_report.then_some(
        "not a minidump (which begins with `MDMP`) and not a log with a microdump and without frames; \
         pass a report to `symdex symbolicate`",
    )
}

/// The name of a report in messages.
fn shown(path: &Path) -> String {
    if path.as_os_str() == "-" { "standard input".to_owned() } else { path.display().to_string() }
}

impl RunSummary {
    /// Reports a failure on standard error, and counts it.
    fn failure(&mut self, failure: &Failure) {
        complain(&failure.message);
        self.graver(failure.cause);
    }
}
