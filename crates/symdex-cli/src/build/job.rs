//! One job of a build: the indexes of a debug file.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use symdex::{ImageId, Index};
use symdex_audit::{ADDR2LINE, AuditOptions, AuditReport};
use symdex_build::debug_files::{BuildJob, FileError, ImageGroups, JobImage};
use symdex_build::{BuildOptions, BuildReport, Companions, Image, SymbolMaps, TextCoverage};
use symdex_pipeline::isolate::build::{BuiltImage, Coverage, IsolatedIndex, TaskResult, Verified};
use symdex_pipeline::isolate::child::Channel;
use symdex_store::{IndexBuffer, IndexBytes};

use super::AUDIT_MEMORY;
use crate::failure::Failure;
use crate::progress::Progress;

/// The inputs that all jobs share.
pub(super) struct Work<'a> {
    pub(super) archs: &'a [String],
    pub(super) debug_dirs: &'a [PathBuf],
    pub(super) maps: &'a SymbolMaps,
    pub(super) groups: &'a ImageGroups,
    /// The share of `--max-memory` for each image that is built at one time.
    pub(super) max_memory: usize,
    pub(super) max_seconds: Option<u64>,
    pub(super) verify: bool,
    /// Whether the image of an id is to be built.
    pub(super) wants: &'a (dyn Fn(&ImageId) -> bool + Sync),
    /// The index of an id that exists already, if it may be used.
    pub(super) existing: &'a (dyn Fn(&ImageId) -> Option<IndexBytes> + Sync),
    pub(super) progress: JobProgress<'a>,
}

/// Where the progress of a job goes.
#[derive(Clone, Copy)]
pub(super) enum JobProgress<'a> {
    Bar(&'a Progress),
    Parent(&'a Channel<TaskResult>),
}

/// An index that is not published yet.
pub(super) struct FinishedIndex {
    pub(super) image: BuiltImage,
    pub(super) bytes: BuiltBytes,
}

/// The bytes of an index that is not published yet.
pub(super) enum BuiltBytes {
    Here(IndexBytes),
    InChild(IsolatedIndex),
}

impl AsRef<[u8]> for BuiltBytes {
    fn as_ref(&self) -> &[u8] {
        match self {
            Self::Here(bytes) => bytes,
            Self::InChild(bytes) => bytes.as_ref(),
        }
    }
}

/// Builds the index of every wanted image of the job, in file order.
pub(super) fn build_job(job: &BuildJob<'_>, work: &Work<'_>) -> Vec<Result<FinishedIndex, Failure>> {
    let mut finished = Vec::new();
    each_index(job, work, |index| finished.push(index));
    finished
}

/// Builds the index of every wanted image of the job, in file order, and calls `each` with it.
pub(super) fn each_index(
    job: &BuildJob<'_>,
    work: &Work<'_>,
    mut each: impl FnMut(Result<FinishedIndex, Failure>),
) {
    let mut begun = Instant::now();
    let companions =
        Companions::new(work.debug_dirs.to_vec()).max_memory(work.max_memory).max_seconds(work.max_seconds);
    job.for_each_image(work.archs, work.groups, &companions, |image| {
        if image.as_ref().is_ok_and(|image| !(work.wants)(&image.image.info().id)) {
            return;
        }
        each(image.map_err(Failure::from).and_then(|image| build_image(image, begun, work)));
        begun = Instant::now();
    });
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
    let audit = work.verify.then(|| verify(&image, bytes.as_ref(), begun, work)).transpose();
    let unverified = format!("{part}; its index cannot be verified and is not published");
    let audit = audit.map_err(|error| FileError::new(&file, error).in_part(unverified))?;
    let image = built_image(&file, joined, &image, &bytes, (warnings, report, audit), begun.elapsed());
    Ok(FinishedIndex { image, bytes: BuiltBytes::Here(bytes) })
}

/// What is known of a new index.
fn built_image(
    file: &Path,
    joined: Vec<PathBuf>,
    image: &Image<'_>,
    bytes: &[u8],
    (warnings, report, audit): (Vec<String>, BuildReport, Option<AuditReport>),
    time: Duration,
) -> BuiltImage {
    let BuildReport { has_dwarf, failed_units, dropped, hidden_names, coverage, .. } = report;
    let TextCoverage { executable, dwarf, dwarf_function, symbol_table, .. } = coverage;
    BuiltImage {
        id: image.info().id.to_string(),
        file: file.into(),
        joined: joined.into_iter().map(Into::into).collect(),
        debug_size: image.debug_size(),
        index_size: bytes.len() as u64,
        warnings,
        has_dwarf,
        failed_units,
        dropped: dropped.into_iter().map(|(reason, count)| (reason.to_owned(), count)).collect(),
        hidden_names,
        coverage: Coverage { executable, dwarf, dwarf_function, symbol_table },
        verified: audit.as_ref().map(verified),
        time,
    }
}

fn verified(report: &AuditReport) -> Verified {
    let AuditReport { addresses, unexplained_len, wrong_len, .. } = *report;
    let addr2line = report.peers.get(ADDR2LINE);
    let classes = addr2line.into_iter().flat_map(|peer| &peer.classes);
    Verified {
        addresses,
        agreements: addr2line.map_or(0, |peer| peer.agreements),
        explained: classes.map(|(class, counted)| (class.name().to_owned(), counted.count)).collect(),
        unexplained: unexplained_len - wrong_len,
        wrong: report.wrong(),
    }
}

/// Returns the index of `image`, the warnings and the report of its build. The index is the existing one if that
/// is up to date, otherwise a new one.
fn index_of(
    image: &Image<'_>,
    work: &Work<'_>,
) -> Result<(IndexBuffer, Vec<String>, BuildReport), symdex_build::Error> {
    let size = image.debug_size();
    let options = BuildOptions::new().max_memory(work.max_memory).max_seconds(work.max_seconds);
    let build = |progress: &(dyn Fn(u64, u64) + Sync)| {
        if let Some((bytes, report)) = existing_index(image, work, IndexBuffer::new()) {
            return Ok((bytes, Vec::new(), report));
        }
        let built = options.progress(progress).build_into(image, IndexBuffer::new())?;
        Ok((built.bytes, built.warnings, built.report))
    };
    match work.progress {
        JobProgress::Bar(bar) => {
            let progress = bar.of_image(size);
            build(&|done, total| progress.set(done, total))
        }
        JobProgress::Parent(parent) => build(&|done, total| parent.progress(size, done, total)),
    }
}

/// Writes to `out` the index of `image` that exists already, if it need not be built again. Returns `None` if the image
/// has to be built.
fn existing_index<W: Write>(image: &Image<'_>, work: &Work<'_>, mut out: W) -> Option<(W, BuildReport)> {
    let index = Index::open((work.existing)(&image.info().id)?).ok()?;
    let report = match image.has_dwarf() {
        true => symdex_build::built_before(image, &index),
        false => symdex_build::up_to_date(image, &index),
    }?;
    out.write_all(index.as_bytes()).ok()?;
    Some((out, report))
}

/// Checks a new index as `symdex verify --against` checks a published one.
fn verify(
    image: &Image<'_>,
    index: &[u8],
    begun: Instant,
    work: &Work<'_>,
) -> Result<AuditReport, symdex_build::Error> {
    let index = Index::open(index)?;
    index.verify()?;
    let options = AuditOptions::new().max_memory(AUDIT_MEMORY.saturating_mul(work.max_memory));
    options.max_seconds(work.max_seconds).time_spent(begun.elapsed()).audit(image, &index)
}
