//! `symdex verify`: checks indexes, and compares their answers with debug files.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use serde::Serialize;
use symdex::{Grade, Index, Metadata, Partial, VerifiedCounts};
use symdex_audit::{AuditOptions, AuditReport};
use symdex_build::debug_files::{DebugFile, JoinedImage};
use symdex_build::{Companions, SymbolMaps};
use symdex_pipeline::{Batch, in_order, pool, section_of};
use symdex_store::{EMBEDDED_FOLDER, IdPrefix, IndexFolder, IndexList};

use crate::archive;
use crate::failure::{self, Cause, CommandError, Failure, complain, failure_as_json};
use crate::number;
use crate::output::Output;
use crate::{open, text};

/// Check that indexes are intact: every checksum is right, and everything decodes
///
/// In a folder, every index in it and in the folders below it is checked. With --against, every answer is compared with
/// a debug file. The index that a dSYM or an ELF file carries (`symdex build --embed`) is compared with that file. For
/// several indexes, the last line on standard error has totals. With --json, the last line on standard output is an
/// object with `totals`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Index files, folders of indexes, or debug files that carry their index
    #[arg(required = true, value_name = "INDEX")]
    indexes: Vec<PathBuf>,
    /// Check only the index of this image in the folder: its UUID, with or without dashes, its build id, or the first
    /// digits of one, at least four
    #[arg(long, value_name = "ID")]
    id: Option<IdPrefix>,
    #[command(flatten)]
    access: open::AccessOption,
    /// Compare every answer with this debug file: a dSYM, an ELF file, an archive. Give a folder of debug files for
    /// several indexes, or if several files have the image
    #[arg(long, value_name = "DEBUGFILE")]
    against: Option<PathBuf>,
    /// A symbol map with which the index was built, <UUID>.bcsymbolmap, or a folder of them. May be repeated
    #[arg(long, value_name = "FILE|DIR", requires = "against")]
    symbol_map: Vec<PathBuf>,
    /// A folder that was given with --debug-dir when the index was built. May be repeated
    #[arg(long, value_name = "DIR", requires = "against")]
    debug_dir: Vec<PathBuf>,
    /// The memory limit of the comparison with the debug file, not counting the file itself. A comparison that needs
    /// more fails
    #[arg(long, value_name = "SIZE", default_value = "4GB", requires = "against", value_parser = number::parse_size)]
    max_memory: usize,
    /// The time limit for comparing one index, in seconds. A comparison that takes longer fails
    #[arg(
        long,
        value_name = "SECONDS",
        requires = "against",
        value_parser = clap::value_parser!(u64).range(1..)
    )]
    max_seconds: Option<u64>,
    /// Print JSON, one object per line: each index, and the totals
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  symdex verify 0c37c502aba03641a08f84c794684f36.symdex
  symdex verify indexes
  symdex verify 0c37c502aba03641a08f84c794684f36.symdex --against App.dSYM
  symdex verify App.dSYM

JSON:
  {\"location\", \"id\", \"name\", \"arch\", \"chunks\", \"ranges\", \"pages\", \"partial\",
   \"against\": {\"equal\", \"addresses\", \"different\", \"unexplained\", \"failures\"}} for a whole index
  {\"location\", \"error\": {\"kind\", \"message\"}} for an index that is not whole
  {\"totals\": {\"indexes\", \"size\", \"outcomes\": {\"whole\", \"equal\", \"different\"}, \"failures\", \"seconds\"}}
   as the last line
If only the comparison failed, an object has the members of a whole index and an error.

Exit codes:
  0  every index is whole
  4  an index or debug file is damaged
  6  an index was made by a newer symdex
  5  an index or debug file is missing
  1  answers differ from the debug file, or nothing was compared
  3  the debug file or the folder has no such image, or an index is empty although its image has code
If several apply, the first of these after 0 counts.";

/// An index, or the failure for a path without one.
pub(crate) type IndexPath = Result<PathBuf, (PathBuf, Failure)>;

pub(crate) fn run(args: &Args) -> failure::CommandResult {
    let pool = pool(0)?;
    let unpacked = args.against.as_deref().map(archive::only_debug_files).transpose()?.flatten();
    let maps = symdex_build::SymbolMaps::find(&args.symbol_map)
        .map_err(|error| Failure::debug_file(Path::new("--symbol-map"), &error))?;
    let indexes: Vec<IndexPath> =
        args.indexes.iter().flat_map(|path| indexes_of(&embedded_in(path), args.id.as_ref())).collect();
    let are_many = indexes.len() > 1;
    let mut output = Output::new(args.json);
    in_order(
        &pool,
        pool.current_num_threads(),
        indexes,
        |found| check(found, args, unpacked.as_ref(), &maps),
        |checked| checked.report(&mut output),
    )?;
    if are_many { output.finish() } else { output.finish_quietly() }
}

/// The folder with the indexes that the debug files of the bundle `path` carry; otherwise `path`.
fn embedded_in(path: &Path) -> Cow<'_, Path> {
    let folder = path.join(EMBEDDED_FOLDER);
    if folder.is_dir() { folder.into() } else { path.into() }
}

/// The bundle that carries the index at `path`, if one does.
fn carrier_of(path: &Path) -> Option<&Path> {
    path.ancestors().find(|folder| folder.ends_with(EMBEDDED_FOLDER))?.ancestors().nth(3)
}

/// The indexes at `path`: the index itself, or those of the folder, only that of `id` if it is given.
pub(crate) fn indexes_of(path: &Path, id: Option<&IdPrefix>) -> Vec<IndexPath> {
    if id.is_some() || !path.is_dir() {
        let index = open::index_path(path, id);
        return vec![index.map_err(|failure| (path.to_owned(), failure))];
    }
    let IndexList { paths: indexes, is_cut, .. } = IndexFolder::new(path).files();
    if is_cut {
        open::report_incomplete_search(path);
    }
    if indexes.is_empty() {
        let message =
            format!("{}: no index in this folder (a dSYM needs `symdex build` first)", path.display());
        return vec![Err((path.to_owned(), Failure::new(Cause::Missing, message)))];
    }
    indexes.into_iter().map(Ok).collect()
}

/// The result for one index. With `--json`, it is one line.
#[derive(Serialize)]
struct CheckedIndex {
    location: String,
    /// `None` if the index is not whole.
    #[serde(flatten)]
    whole: Option<IndexContents>,
    #[serde(skip_serializing_if = "Option::is_none")]
    against: Option<Comparison>,
    /// Why the index is not whole, or could not be compared.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "failure_as_json")]
    error: Option<Failure>,
    #[serde(skip)]
    size: u64,
}

/// The contents of a whole index.
#[derive(Serialize)]
pub(crate) struct IndexContents {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) arch: String,
    pub(crate) chunks: u64,
    pub(crate) ranges: u64,
    pub(crate) pages: u64,
    partial: Vec<Partial>,
}

/// The comparison of an index with a debug file.
#[derive(Serialize)]
struct Comparison {
    equal: bool,
    addresses: u64,
    different: u64,
    /// The number of addresses at which only addr2line differs, for no known reason.
    unexplained: u64,
    failures: Vec<String>,
    #[serde(skip)]
    report: AuditReport,
}

/// Checks an index and compares it with the debug file, if one is given. `unpacked` has its files if it is an archive
/// or a pipe.
fn check(found: IndexPath, args: &Args, unpacked: Option<&Batch>, maps: &SymbolMaps) -> CheckedIndex {
    let mut carrier = None;
    let (path, index) = match found {
        Ok(path) => {
            let section = section_of(&path).ok().flatten();
            carrier = carrier_of(&path).or(section.as_ref().map(|_| &*path)).map(Path::to_owned);
            let index = match section {
                Some(bytes) => Index::open(bytes).map_err(|error| Failure::index(&path, &error)),
                None => open::index(&path, args.id.as_ref(), args.access),
            };
            (path, index)
        }
        Err((path, failure)) => (path, Err(failure)),
    };
    let location = path.display().to_string();
    let mut checked = CheckedIndex { location, whole: None, against: None, error: None, size: 0 };
    let verified = index.and_then(|index| {
        checked.size = index.as_bytes().len() as u64;
        let verified = index.verify().map_err(|error| Failure::index(&path, &error))?;
        checked.whole = Some(IndexContents::new(index.metadata(), verified));
        if index.metadata().grade() == Grade::Nothing && !index.metadata().executable.is_empty() {
            let what = "the index is empty: its image has code, and no address has an answer";
            return Err(Failure::of_file(&path, Cause::NotFound, what));
        }
        let Some(debug_file) = args.against.as_ref().or(carrier.as_ref()) else { return Ok(()) };
        let beside: Vec<_> =
            symdex_build::search(debug_file).companions.into_iter().map(DebugFile::on_disk).collect();
        let companions = Companions::new(args.debug_dir.clone()).files(&beside);
        let companions = companions.max_memory(args.max_memory).max_seconds(args.max_seconds);
        let options = AuditOptions::new().max_memory(args.max_memory).max_seconds(args.max_seconds);
        let against = (&**debug_file, unpacked);
        let report = audit_against(&path, &index, against, maps, &companions, options)?;
        checked.against = Some(Comparison::new(report));
        Ok(())
    });
    checked.error = verified.err();
    checked
}

impl IndexContents {
    pub(crate) fn new(
        metadata: &Metadata,
        VerifiedCounts { chunks, ranges, pages, .. }: VerifiedCounts,
    ) -> Self {
        let Metadata { id, arch, image_name, partial, .. } = metadata;
        let (id, name, arch) = (id.to_string(), image_name.clone(), arch.name.clone());
        Self { id, name, arch, chunks, ranges, pages, partial: partial.clone() }
    }

    /// `2 chunks, 52 ranges, 3 pages`
    pub(crate) fn counts(&self) -> String {
        let counts = [(self.chunks, "chunk"), (self.ranges, "range"), (self.pages, "page")];
        text::list(counts.map(|(number, noun)| text::count(number, noun)))
    }
}

impl Comparison {
    fn new(report: AuditReport) -> Self {
        let AuditReport { addresses, wrong_len: different, unexplained_len, .. } = report;
        let mut failures = report.failures();
        if addresses == 0 && failures.is_empty() {
            failures.push("nothing was compared: the image has no code".to_owned());
        }
        let unexplained = unexplained_len - different;
        let equal = report.wrong().is_empty() && addresses != 0;
        Self { equal, addresses, different, unexplained, failures, report }
    }

    /// The result of the comparison, as text.
    fn verdict(&self) -> String {
        let Self { equal, addresses, different, unexplained, .. } = self;
        let all = text::count(*addresses, "address");
        match (equal, different, unexplained) {
            (true, _, 0) => format!(
                "every answer of the index equals what the debug file says ({all}, both line policies)"
            ),
            (true, ..) => format!(
                "every answer of the index equals what the debug file says ({all}, both line policies), but addr2line \
                 differs at {unexplained} of them for no known reason"
            ),
            (false, 0, _) if !self.report.nothing_compared.is_empty() || *addresses == 0 => {
                "nothing was compared".to_owned()
            }
            (false, 0, _) => "the index does not hold what the debug file says".to_owned(),
            (false, ..) => format!("{different} of {addresses} answers differ from what the debug file says"),
        }
    }
}

impl CheckedIndex {
    fn report(&self, output: &mut Output) -> Result<(), CommandError> {
        let Self { location, whole, against, error, size } = self;
        output.count(*size);
        output.add("whole", whole.is_some().into());
        if let Some(Comparison { failures, .. }) = against {
            output.add(if failures.is_empty() { "equal" } else { "different" }, 1);
            failures.iter().for_each(|_| output.graver(Cause::Other));
        }
        error.iter().for_each(|failure| output.count_failure(failure));
        let mut text = String::new();
        if let Some(against) = against {
            text += &format!("{location}: {}\n", against.verdict());
        }
        if let Some(whole) = whole {
            text += &format!("{location}: whole: {}\n", whole.counts());
        }
        if let Some(against) = against {
            text += &against.report.to_string();
        }
        output.json(self)?;
        if !text.is_empty() {
            output.text(text.trim_end_matches('\n'))?;
        }
        error.iter().for_each(|failure| complain(&failure.message));
        let failures = against.iter().flat_map(|against| &against.failures);
        failures.for_each(|failure| complain(&format!("{location}: {failure}")));
        Ok(())
    }
}

/// Compares `index` with the debug files at or below `debug_file`, or with those that were unpacked of it.
fn audit_against<B: AsRef<[u8]> + Sync>(
    path: &Path,
    index: &Index<B>,
    (debug_file, unpacked): (&Path, Option<&Batch>),
    maps: &SymbolMaps,
    companions: &Companions,
    options: AuditOptions<'_>,
) -> Result<AuditReport, Failure> {
    let arch = &index.metadata().arch.name;
    let JoinedImage { image, paths, failures, .. } = match unpacked {
        Some(unpacked) => {
            JoinedImage::among(unpacked.files.files().iter().flatten(), index.id(), arch, companions)
        }
        None => JoinedImage::find(debug_file, index.id(), arch, companions)?,
    };
    // An unreadable slice may belong to another image. It is reported only if no file has the image.
    let Some((image, file)) = image.zip(paths.first()) else {
        let not_found = || {
            let message = format!("{}: no image {} in it", debug_file.display(), index.id());
            Failure::new(Cause::NotFound, message)
        };
        return Err(failures.into_iter().next().map_or_else(not_found, Failure::from));
    };
    let failed = |error| Failure::debug_file(file, &error);
    let map = maps.load(&image.info().id, file, None).map_err(failed)?;
    let image = match &map {
        Some(map) => image.with_symbol_map(map),
        None => image,
    };
    options.audit(&image, index).map_err(|error| match error {
        symdex_build::Error::Index(error) => Failure::index(path, &error),
        error => failed(error),
    })
}
