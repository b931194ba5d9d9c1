//! `symdex verify`: whether indexes are whole, and whether their answers are those of a debug file.

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::Serialize;
use symdex::{Index, Metadata, Partial, VerifiedCounts};
use symdex_audit::{AuditReport, audit};
use symdex_build::debug_files::JoinedImage;
use symdex_build::{Companions, Image, SymbolMaps};

use crate::build::{pool, symbol_maps};
use crate::failure::{self, Failure, Kind, Stop, complain};
use crate::in_order::in_order;
use crate::open;
use crate::text::count;
use symdex_store::{IdPrefix, IndexFolder, IndexList};

/// Check all of an index: every checksum, and that all of it decodes and makes sense
///
/// Of a folder, every index in it and in the folders below it is checked. Of more than one index, the last line on standard error says how many are whole; with --json
/// it is the last line on standard output, an object named `totals`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Index files, or folders of indexes
    #[arg(required = true, value_name = "INDEX")]
    indexes: Vec<PathBuf>,
    /// Only this image's index in the folder: its UUID, with or without dashes, or its build id, or the first digits
    /// of one, at least four
    #[arg(long, value_name = "ID")]
    id: Option<IdPrefix>,
    /// Compare every answer with this debug file (a dSYM, an ELF file) or, where the image is in several files, or of
    /// several indexes, with the folder of them
    #[arg(long, value_name = "DEBUGFILE")]
    against: Option<PathBuf>,
    /// The symbol maps the index was built with: <UUID>.bcsymbolmap, or a folder of them; may be repeated
    #[arg(long, value_name = "FILE|DIR", requires = "against")]
    symbol_map: Vec<PathBuf>,
    /// The folders of debug files the index was built with; may be repeated
    #[arg(long, value_name = "DIR", requires = "against")]
    debug_dir: Vec<PathBuf>,
    /// Print one JSON object per index and line, and one with totals
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  symdex verify 0c37c502aba03641a08f84c794684f36.symdex
  symdex verify indexes
  symdex verify 0c37c502aba03641a08f84c794684f36.symdex --against App.dSYM

JSON, for an index that is whole: {\"index\", \"id\", \"arch\", \"image\", \"chunks\", \"ranges\", \"pages\", \"partial\",
\"against\": {\"equal\", \"addresses\", \"different\", \"unexplained\", \"failures\"}}; for one that is not:
{\"index\", \"error\": {\"kind\", \"message\"}}; all of these if only the comparison failed. The last line is
{\"totals\": {\"indexes\", \"whole\", \"equal\", \"different\", \"failures\", \"seconds\"}}.
Exit codes: 0 all are whole, 1 answers are not those of the debug file, 3 the debug file or the folder has no
such image, 4 an index is damaged, 5 one is missing, 6 one was made for a newer symdex. If several apply, the first
of 4, 6, 5, 1, 3.";

/// An index, or why there is none.
type Found = Result<PathBuf, (PathBuf, Failure)>;

pub(crate) fn run(args: &Args) -> failure::Outcome {
    let begun = Instant::now();
    let pool = pool(None)?;
    let maps = symbol_maps(&args.symbol_map)?;
    let indexes: Vec<Found> = args.indexes.iter().flat_map(|path| indexes_of(path, args)).collect();
    let are_many = indexes.len() > 1;
    let mut totals = Totals::default();
    in_order(
        &pool,
        pool.current_num_threads(),
        indexes,
        |found| check(found, args, &maps),
        |checked| {
            totals.count(&checked);
            checked.report(args.json)
        },
    )?;
    if are_many || args.json {
        totals.report(args.json, begun.elapsed())?;
    }
    Ok(totals.gravest)
}

/// The indexes that `path` stands for.
fn indexes_of(path: &Path, args: &Args) -> Vec<Found> {
    if args.id.is_some() || !path.is_dir() {
        let index = open::index_path(path, args.id.as_ref());
        return vec![index.map_err(|failure| (path.to_owned(), failure))];
    }
    let IndexList { paths: indexes, is_cut, .. } = IndexFolder::new(path).list();
    if is_cut {
        open::complain_of_cut(path);
    }
    if indexes.is_empty() {
        let message =
            format!("{}: no index in this folder (a dSYM needs `symdex build` first)", path.display());
        return vec![Err((path.to_owned(), Failure::new(Kind::Missing, message)))];
    }
    indexes.into_iter().map(Ok).collect()
}

/// What there is to say of an index; with `--json` the line for it.
#[derive(Serialize)]
struct Checked {
    index: String,
    /// Nothing if the index is not whole.
    #[serde(flatten)]
    whole: Option<Whole>,
    #[serde(skip_serializing_if = "Option::is_none")]
    against: Option<Against>,
    /// Why it is not whole, or could not be compared.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_text")]
    error: Option<Failure>,
}

fn as_text<S: serde::Serializer>(failure: &Option<Failure>, serializer: S) -> Result<S::Ok, S::Error> {
    failure.as_ref().map(Failure::view).serialize(serializer)
}

/// An index that is whole.
#[derive(Serialize)]
struct Whole {
    id: String,
    arch: String,
    image: String,
    chunks: u64,
    ranges: u64,
    pages: u64,
    partial: Vec<Partial>,
}

/// How an index compares with a debug file.
#[derive(Serialize)]
struct Against {
    equal: bool,
    addresses: u64,
    different: u64,
    /// Addresses at which only addr2line answers otherwise, for no known reason.
    unexplained: u64,
    failures: Vec<String>,
    #[serde(skip)]
    report: AuditReport,
}

/// Checks an index and compares it with the debug file, if one is given.
fn check(found: Found, args: &Args, maps: &SymbolMaps) -> Checked {
    let (path, index) = match found {
        Ok(path) => {
            let index = open::index(&path, args.id.as_ref());
            (path, index)
        }
        Err((path, failure)) => (path, Err(failure)),
    };
    let mut checked = Checked { index: path.display().to_string(), whole: None, against: None, error: None };
    let verified = index.and_then(|index| {
        let verified = index.verify().map_err(|error| Failure::index(&path, &error))?;
        checked.whole = Some(Whole::new(index.metadata(), verified));
        let Some(debug_file) = &args.against else { return Ok(()) };
        let companions = Companions::new(args.debug_dir.clone());
        checked.against = Some(Against::new(audit_against(&path, &index, debug_file, maps, &companions)?));
        Ok(())
    });
    checked.error = verified.err();
    checked
}

impl Whole {
    fn new(metadata: &Metadata, VerifiedCounts { chunks, ranges, pages, .. }: VerifiedCounts) -> Self {
        let Metadata { id, arch, image_name, partial, .. } = metadata;
        let (id, arch, image) = (id.to_string(), arch.name.clone(), image_name.clone());
        Self { id, arch, image, chunks, ranges, pages, partial: partial.clone() }
    }
}

impl Against {
    fn new(report: AuditReport) -> Self {
        let AuditReport { addresses, wrong_len: different, unexplained_len, .. } = report;
        let failures = report.failures();
        let unexplained = unexplained_len - different;
        Self { equal: report.wrong().is_empty(), addresses, different, unexplained, failures, report }
    }

    /// How the index compares, in a sentence.
    fn verdict(&self) -> String {
        let Self { equal, addresses, different, unexplained, .. } = self;
        let all = count(*addresses, "address");
        match (equal, different, unexplained) {
            (true, _, 0) => format!(
                "every answer of the index equals what the debug file says ({all}, both line policies)"
            ),
            (true, ..) => format!(
                "every answer of the index equals what the debug file says ({all}, both line policies), but addr2line \
                 answers otherwise at {unexplained} of them, for no known reason"
            ),
            (false, 0, _) => "the index does not hold what the debug file says".to_owned(),
            (false, ..) => format!("{different} of {addresses} answers differ from what the debug file says"),
        }
    }
}

impl Checked {
    fn report(&self, json: bool) -> Result<(), Stop> {
        let mut out = io::stdout().lock();
        let Self { index, whole, against, error } = self;
        if json {
            writeln!(out, "{}", serde_json::to_string(self).map_err(io::Error::from)?)?;
        } else {
            if let Some(against) = against {
                writeln!(out, "{index}: {}", against.verdict())?;
            }
            if let Some(Whole { chunks, ranges, pages, .. }) = whole {
                let [chunks, ranges, pages] = [(chunks, "chunk"), (ranges, "range"), (pages, "page")]
                    .map(|(number, noun)| count(*number, noun));
                writeln!(out, "{index}: whole: {chunks}, {ranges}, {pages}")?;
            }
            if let Some(against) = against {
                write!(out, "{}", against.report)?;
            }
        }
        error.iter().for_each(|failure| complain(&failure.message));
        let failures = against.iter().flat_map(|against| &against.failures);
        failures.for_each(|failure| complain(&format!("{index}: {failure}")));
        Ok(())
    }
}

/// What became of all indexes together.
#[derive(Default, Serialize)]
struct Totals {
    indexes: u64,
    whole: u64,
    equal: u64,
    different: u64,
    /// By kind.
    failures: BTreeMap<&'static str, u64>,
    seconds: f64,
    #[serde(skip)]
    gravest: Option<Kind>,
}

impl Totals {
    fn count(&mut self, Checked { whole, against, error, .. }: &Checked) {
        self.indexes += 1;
        self.whole += u64::from(whole.is_some());
        if let Some(Against { failures, .. }) = against {
            let is_equal = failures.is_empty();
            self.equal += u64::from(is_equal);
            self.different += u64::from(!is_equal);
            self.gravest = self.gravest.max((!is_equal).then_some(Kind::Other));
        }
        if let Some(failure) = error {
            *self.failures.entry(failure.kind.name()).or_default() += 1;
            self.gravest = self.gravest.max(Some(failure.kind));
        }
    }

    fn report(&mut self, json: bool, time: Duration) -> Result<(), Stop> {
        self.seconds = time.as_secs_f64();
        if json {
            let totals = serde_json::to_string(self).map_err(io::Error::from)?;
            writeln!(io::stdout(), "{{\"totals\":{totals}}}")?;
            return Ok(());
        }
        let Self { indexes, whole, equal, different, failures, seconds, .. } = self;
        let words = [(*whole, "whole"), (*equal, "equal"), (*different, "different")].into_iter();
        let words = words.filter(|(number, word)| *word == "whole" || *number != 0);
        let failures = failures.iter().map(|(word, number)| (*number, *word));
        let words: Vec<_> = words.chain(failures).map(|(number, word)| format!("{number} {word}")).collect();
        complain(&format!("{} in {seconds:.1} s: {}", count(*indexes, "index"), words.join(", ")));
        Ok(())
    }
}

fn audit_against<B: AsRef<[u8]> + Sync>(
    path: &Path,
    index: &Index<B>,
    debug_file: &Path,
    maps: &SymbolMaps,
    companions: &Companions,
) -> Result<AuditReport, Failure> {
    let arch = &index.metadata().arch.name;
    // A slice that cannot be read may be another architecture's: it counts only where nothing else is found.
    let mut joined = JoinedImage::default();
    for found in symdex_build::find(debug_file) {
        let file = found.map_err(|error| Failure::debug_file(debug_file, &error))?;
        match Image::find(&file, index.id(), arch, companions) {
            Ok(None) | Err(symdex_build::Error::NoSuchArch { .. }) => {}
            Ok(Some(image)) => joined.add(&file, Ok(image)),
            Err(error) => joined.add(&file, Err(error)),
        }
    }
    if let (Some(image), Some(file)) = (joined.image, joined.paths.first()) {
        let of_file = |error| Failure::debug_file(file, &error);
        let map = maps.of(&image.info.id, file).map_err(of_file)?;
        let image = match &map {
            Some(map) => image.with_symbol_map(map),
            None => image,
        };
        return audit(&image, index).map_err(|error| match error {
            symdex_build::Error::Index(error) => Failure::index(path, &error),
            error => of_file(error),
        });
    }
    if let Some(failure) = joined.failures.into_iter().next() {
        return Err(failure.into());
    }
    let message = format!("{}: no image {} in it", debug_file.display(), index.id());
    Err(Failure::new(Kind::NotFound, message))
}
