//! Checks an index against the debug file it was built from.
//!
//! Call [`audit`] with a loaded image and its index; [`AuditReport::failures`] says whether the index passes.
//!
//! The addresses to compare come from the debug file: every line row, both ends of every range of a function or an
//! inlined subroutine, the addresses beside them, and random ones. Three answers are compared at each address: the one
//! of symdex, the one of a peer (addr2line, or another [`Peer`]), and the one that follows from the rules. The rules
//! are those of docs/ARCHITECTURE.md, "Invariants". They are applied by a naive reading of the debug file, which shares
//! no code with the builder beyond loading the file.
//!
//! symdex must answer as the rules say. Where a peer does not, a [`Class`] must explain it, which is recognised from
//! the debug file. One check needs no rule: every file and line that the `statement` policy answers in an inline
//! instance must be one that `exact` answers in the same instance.

mod addr2line_peer;
mod addresses;
mod around;
mod classes;
mod comparison;
mod dies;
mod expected;
mod explain;
mod facts;
mod image;
mod intervals;
mod lines;
mod matches;
mod names;
mod peer;
mod report;
mod rows;
mod statements;
mod symbol_table;
mod text;
mod units;
mod unwound;

use rayon::prelude::*;
use symdex::{Index, LinePolicy, Scratch, Table};
use symdex_build::{Error, Image};

pub use self::addr2line_peer::ADDR2LINE;
pub use self::classes::Class;
use self::comparison::{compare_batch, our_frames};
pub use self::expected::{Expected, Frame, Position};
use self::facts::Facts;
pub use self::names::Link;
pub use self::peer::{Answers, Ask, AskedPeer, FramePair, Peer, Question};
pub use self::report::{AuditReport, ClassCount, Coverage, Difference, PeerReport};
use self::statements::InstanceLines;
pub use self::units::Unit;

/// Addresses that one thread compares at a time. Each batch has its own peers, which parse the units they look into.
const BATCH_LEN: usize = 1 << 18;

/// What is compared.
pub struct AuditOptions<'a> {
    /// How many random addresses are added to those that the debug file states.
    pub random: u64,
    /// The seed of the random addresses.
    pub seed: u64,
    /// One run of addresses is compared of this many; 1 compares all. Coverage is measured only if all are compared.
    pub every: usize,
    /// A peer beside addr2line.
    pub peer: Option<AskedPeer<'a>>,
}

impl Default for AuditOptions<'_> {
    fn default() -> Self {
        Self { random: 0, seed: 0, every: 1, peer: None }
    }
}

/// Compares `index` with the debug file `image` and with addr2line at every address that the debug file states, on the
/// threads of the rayon pool it is called in.
///
/// # Errors
///
/// [`Error::Malformed`] if the debug file cannot be read at all, [`Error::Index`] if the index is damaged.
pub fn audit<B: AsRef<[u8]> + Sync>(image: &Image<'_>, index: &Index<B>) -> Result<AuditReport, Error> {
    audit_with(image, index, &AuditOptions::default())
}

/// As [`audit`], with `options`.
///
/// # Errors
///
/// As [`audit`], and the error of a peer.
pub fn audit_with<B: AsRef<[u8]> + Sync>(
    image: &Image<'_>,
    index: &Index<B>,
    options: &AuditOptions<'_>,
) -> Result<AuditReport, Error> {
    let facts = Facts::read(image)?;
    let mut addresses = addresses::stated(&facts);
    if options.every > 1 {
        addresses = addresses::sampled(&addresses, options.every);
    }
    let addresses = addresses::with_random(&facts, addresses, options.random, options.seed);
    let batches: Vec<&[u64]> = addresses.chunks(BATCH_LEN).collect();
    let next = |batch: usize| batches.get(batch + 1).and_then(|next| next.first()).copied();
    let compare =
        |(number, batch): (usize, &&[u64])| compare_batch(&facts, index, options, batch, next(number));
    let compared: Vec<_> = batches.par_iter().enumerate().map(compare).collect();
    let mut report = AuditReport { coverage: own_coverage(image, index)?, ..AuditReport::default() };
    report.wrong_symbols.extend(symbol_table::difference(image, &facts.table));
    let mut instance_lines = InstanceLines::default();
    for batch in compared {
        let (of_batch, lines) = batch?;
        report.add(of_batch);
        instance_lines.merge(lines);
    }
    if options.every > 1 {
        // An instance may have more addresses than were compared.
        report.coverage = Coverage::default();
    } else {
        add_foreign(&mut report, &facts, index, &instance_lines)?;
    }
    Ok(report)
}

/// Counts the answers of `statement` that `exact` gives nowhere in the same inline instance as wrong.
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
    let executable = image.info.executable.iter().map(|(start, end)| end - start).sum();
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
