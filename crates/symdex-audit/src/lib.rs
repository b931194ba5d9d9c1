//! Checks an index against the debug file that it was built from.
//!
//! # What to call first
//!
//! * [`audit`] compares an index with a loaded image. [`AuditReport::failures`] lists the reasons why the index does
//!   not pass. [`AuditReport::wrong`] lists only wrong answers of the index itself.
//! * [`AuditOptions`] adds random addresses, takes a sample, or adds a symbolizer to compare with.
//! * To compare with another symbolizer, implement [`Peer`] for it, and give it as an [`AskedPeer`].
//!
//! # What is compared
//!
//! The addresses come from the debug file: every line row, both ends of every range of a function or an inlined
//! subroutine, the addresses beside them, and random ones. Three answers are compared at each address: the one of
//! symdex, the one of a peer (addr2line, or another [`Peer`]), and the one that follows from the rules. The rules are
//! those of docs/DEBUG-INFO.md. A naive reading of the debug file applies them. It shares only the loading of the file
//! with the builder.
//!
//! symdex must answer as the rules say. If a peer answers differently, a [`Class`] must explain the difference. A class
//! is recognised by facts of the debug file. One check needs no rule: in each inline instance, the `statement` policy
//! may answer only files and lines that `exact` answers in the same instance.
//!
//! Unwind rows are not compared, and neither are the places and names of symbol stubs. Tests of `symdex-build` compare
//! unwind rows with those of other readers.

#![warn(missing_debug_implementations)]

mod addr2line_peer;
mod addresses;
mod around;
mod budget;
mod classes;
mod comparison;
mod dies;
mod expected;
mod explain;
mod facts;
mod go;
mod image;
mod intervals;
mod lines;
mod matches;
mod names;
mod peer;
mod pieces;
mod report;
mod rows;
mod statements;
mod symbol_names;
mod symbol_table;
mod symbols;
mod text;
mod units;
mod unwound;

use std::time::{Duration, Instant};

use rayon::prelude::*;
use symdex::{Index, LinePolicy, Scratch, Table};
use symdex_build::audit_access::Deadline;
use symdex_build::{BuildOptions, Error, Image, StopFlag};

pub use self::addr2line_peer::ADDR2LINE;
use self::budget::{Budget, check_limits};
pub use self::classes::Class;
use self::comparison::{compare_batch, our_frames};
pub use self::expected::{Expected, Frame, Position};
use self::facts::Facts;
pub use self::names::Link;
pub use self::peer::{Ask, AskedPeer, FramePair, Peer, PeerFrames, Question};
pub use self::report::{AuditReport, ClassCount, Coverage, Difference, PeerReport};
use self::statements::InstanceLines;
pub use self::units::Unit;

/// Addresses that one thread compares at a time. Each batch has its own peers, which parse the units that they read.
const BATCH_LEN: usize = 1 << 18;

/// The options of an audit.
///
/// [`audit`] uses the default options: all addresses that the debug file states, and addr2line as the only peer.
///
/// ```
/// # use std::path::Path;
/// use symdex::Index;
/// use symdex_audit::AuditOptions;
/// use symdex_build::{Companions, Image, build, slices};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let path = "../../testdata/dsyms/inline-dwarf4.dSYM/Contents/Resources/DWARF/inline-dwarf4";
/// # let path = &Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
/// let bytes = symdex::map_file(path)?;
/// let companions = Companions::default();
/// let image = Image::load(&slices(&bytes)?[0], path, &companions)?;
/// let index = Index::open(build(&image)?.bytes)?;
///
/// let report = AuditOptions::new().random(100, 1).audit(&image, &index)?;
/// assert_eq!(report.failures(), Vec::<String>::new());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct AuditOptions<'a> {
    random: u64,
    seed: u64,
    /// One of this many blocks of the stated addresses is compared.
    every: usize,
    max_memory: usize,
    max_seconds: Option<u64>,
    stop: StopFlag,
    time_spent: Duration,
    pub(crate) peer: Option<AskedPeer<'a>>,
}

impl<'a> AuditOptions<'a> {
    /// The default options.
    #[must_use]
    pub fn new() -> Self {
        let (max_memory, max_seconds, time_spent) = (usize::MAX / 4, None, Duration::ZERO);
        Self { random: 0, seed: 0, every: 1, max_memory, max_seconds, stop: None, time_spent, peer: None }
    }

    /// Adds `count` random addresses to those that the debug file states. The same seed gives the same addresses.
    #[must_use]
    pub fn random(self, count: u64, seed: u64) -> Self {
        Self { random: count, seed, ..self }
    }

    /// Compares one block of addresses of each `every` blocks; 1, the default, compares all. Coverage is measured only
    /// if all are compared.
    #[must_use]
    pub fn every(self, every: usize) -> Self {
        Self { every: every.max(1), ..self }
    }

    /// About how many bytes of memory the audit may take. A file that needs more fails with [`Error::TooLarge`]. The
    /// default is no limit: memory is in proportion to the size of the file.
    #[must_use]
    pub fn max_memory(self, bytes: usize) -> Self {
        Self { max_memory: bytes, ..self }
    }

    /// How many seconds the audit may take. A longer audit fails with [`Error::TooSlow`]. `None`, the
    /// default, is no limit.
    #[must_use]
    pub fn max_seconds(self, seconds: Option<u64>) -> Self {
        Self { max_seconds: seconds, ..self }
    }

    /// Ends with [`Error::Stopped`] once the flag is set. The default is no flag.
    #[must_use]
    pub fn stop(self, stop: StopFlag) -> Self {
        Self { stop, ..self }
    }

    /// Counts `time`, which was already spent, for example on building the index, as time of the audit.
    #[must_use]
    pub fn time_spent(self, time: Duration) -> Self {
        Self { time_spent: time, ..self }
    }

    /// Compares with this peer, in addition to addr2line.
    #[must_use]
    pub fn peer(self, peer: AskedPeer<'a>) -> Self {
        Self { peer: Some(peer), ..self }
    }

    /// Compares `index` with the debug file `image`, on the threads of the current rayon pool.
    ///
    /// # Errors
    ///
    /// [`Error::Malformed`] if the debug file cannot be read at all, or exceeds a limit of the builder, so it is
    /// not read in full. [`Error::TooLarge`] and [`Error::TooSlow`] past the limits of the audit. [`Error::Index`] if
    /// the index is damaged, and the error of the peer.
    pub fn audit<B: AsRef<[u8]> + Sync>(
        &self,
        image: &Image<'_>,
        index: &Index<B>,
    ) -> Result<AuditReport, Error> {
        let begun = Instant::now();
        let build =
            BuildOptions::new().max_memory(self.max_memory).max_seconds(self.max_seconds).stop(self.stop);
        check_limits(image, build)?;
        let spent = self.time_spent + begun.elapsed();
        let deadline = Deadline::after(self.max_seconds).stopped_by(self.stop).less(spent);
        let facts = Facts::read(image, &Budget::new(image.debug_size(), self.max_memory, deadline))?;
        let addresses = addresses::sampled(&addresses::stated(&facts), self.every);
        let addresses = addresses::with_random(&facts, addresses, self.random, self.seed);
        let batches: Vec<&[u64]> = addresses.chunks(BATCH_LEN).collect();
        let next = |batch: usize| batches.get(batch + 1).and_then(|next| next.first()).copied();
        let compare = |(number, batch): (usize, &&[u64])| {
            compare_batch(&facts, index, self, batch, next(number), deadline)
        };
        let compared: Vec<_> = batches.par_iter().enumerate().map(compare).collect();
        let mut report = AuditReport { coverage: own_coverage(image, index)?, ..AuditReport::default() };
        report.wrong_symbols.extend(symbol_table::difference(image, &facts.table));
        let mut instance_lines = InstanceLines::default();
        for batch in compared {
            let (of_batch, lines) = batch?;
            report.add(of_batch);
            instance_lines.merge(lines);
        }
        let is_all = self.every == 1;
        if is_all {
            add_foreign(&mut report, &facts, index, &instance_lines)?;
        } else {
            // An instance may have more addresses than were compared.
            report.coverage = Coverage::default();
        }
        let is_answered =
            report.symbol_table_only != 0 || report.coverage.ours + report.coverage.expected != 0;
        // An image without code has nothing to compare.
        let is_nothing = report.addresses == 0 && facts.has_code();
        if is_nothing || is_all && !is_answered && facts.states_code() && facts.has_code() {
            report.nothing_compared.push(facts.why_nothing_is_compared());
        }
        Ok(report)
    }
}

impl Default for AuditOptions<'_> {
    fn default() -> Self {
        Self::new()
    }
}

/// Compares `index` with the debug file `image` and with addr2line, with the default [`AuditOptions`].
///
/// ```
/// # use std::path::Path;
/// use symdex::Index;
/// use symdex_audit::audit;
/// use symdex_build::{Companions, Image, build, slices};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let path = "../../testdata/dsyms/inline-dwarf4.dSYM/Contents/Resources/DWARF/inline-dwarf4";
/// # let path = &Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
/// let bytes = symdex::map_file(path)?;
/// let companions = Companions::default();
/// let image = Image::load(&slices(&bytes)?[0], path, &companions)?;
/// let index = Index::open(build(&image)?.bytes)?;
///
/// let report = audit(&image, &index)?;
/// assert!(report.failures().is_empty(), "{report}");
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// As [`AuditOptions::audit`].
pub fn audit<B: AsRef<[u8]> + Sync>(image: &Image<'_>, index: &Index<B>) -> Result<AuditReport, Error> {
    AuditOptions::new().audit(image, index)
}

/// Counts the answers of `statement` that `exact` gives nowhere in the same inline instance, as wrong.
fn add_foreign<B: AsRef<[u8]>>(
    report: &mut AuditReport,
    facts: &Facts<'_, '_>,
    index: &Index<B>,
    lines: &InstanceLines,
) -> Result<(), Error> {
    let mut scratch = Scratch::default();
    for offset in lines.foreign() {
        let position = facts.position(offset, &mut Default::default());
        let ours = text::of_frames(&our_frames(index, offset, LinePolicy::Statement, &mut scratch)?);
        report.wrong_len += 1;
        report.unexplained(|| Difference {
            offset,
            what: "the statement policy answers a line that exact answers nowhere in the inline instance"
                .to_owned(),
            expected: ours.clone(),
            ours,
            peer: ADDR2LINE,
            theirs: "not asked".to_owned(),
            around: around::around(facts, &position, offset),
        });
    }
    Ok(())
}

/// Bytes that the index's own ranges cover.
fn own_coverage<B: AsRef<[u8]>>(image: &Image<'_>, index: &Index<B>) -> Result<Coverage, Error> {
    let executable = image.info().executable.iter().map(|(start, end)| end - start).sum();
    let mut coverage = Coverage { executable, ..Coverage::default() };
    for chunk in index.chunks(Table::Dwarf) {
        for range in chunk?.1.ranges {
            let size = range.end - range.start;
            coverage.ours += size;
            coverage.ours_function += if range.function_start.is_some() { size } else { 0 };
        }
    }
    Ok(coverage)
}
