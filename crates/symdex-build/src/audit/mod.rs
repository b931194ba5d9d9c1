//! Checking an index against the debug file it was built from.
//!
//! The addresses come from the debug file: every line row, both ends of every range of a function or an inlined subroutine,
//! the addresses beside them, and random ones. At each of them the answers must fit together: symdex's, those of its peers
//! (addr2line and, where the caller can run it, llvm-symbolizer), and the one that follows from the rules
//! (docs/ARCHITECTURE.md, "Invariants") read from the debug file naively, without the builder's code. symdex must answer
//! as the rules say; where a peer does not, a [`Class`] recognised from the debug file's own facts has to explain it. Without any
//! rule, every file and line that the `statement` policy answers in an inline instance has to be one that `exact` answers there.

mod addresses;
mod around;
mod classes;
mod dies;
mod expected;
mod explain;
mod facts;
mod intervals;
mod lines;
mod matches;
mod names;
mod peers;
mod report;
mod rows;
mod statements;
mod symbol_table;
mod symbols;
mod unwound;

use std::borrow::Cow;

use rayon::prelude::*;
use symdex::{ImageOffset, Index, LinePolicy, Scratch, Table};

pub use self::classes::Class;
pub use self::expected::Frame;
use self::expected::{Expected, Place};
use self::explain::explain;
use self::facts::Facts;
use self::peers::Theirs;
pub use self::peers::{LlvmAnswers, LlvmSymbolizer, Peer};
pub use self::report::{AuditReport, ClassCount, Coverage, Difference, PeerReport};
use self::statements::InstanceLines;
use crate::error::Error;
use crate::image::{Image, Reader};

/// Addresses that one thread compares at a time. Each batch has peers of its own, which parse the units they meet.
const BATCH_LEN: usize = 1 << 18;

/// What is compared.
pub struct Options<'a> {
    /// How many random addresses are added to those that the debug file states.
    pub random: u64,
    /// Where the random numbers begin.
    pub seed: u64,
    /// Of every so many runs of addresses, one is compared; 1 for all of them. Coverage is measured only where all are.
    pub every: usize,
    /// A peer beside addr2line.
    pub llvm_symbolizer: Option<&'a LlvmSymbolizer<'a>>,
}

impl Default for Options<'_> {
    fn default() -> Self {
        Self { random: 0, seed: 0, every: 1, llvm_symbolizer: None }
    }
}

/// Compares `index` with the debug file `image` and with addr2line at every address that the debug file states, on the threads
/// of the rayon pool it is called in.
///
/// # Errors
///
/// [`Error::Malformed`] where the debug file cannot be read at all, [`Error::Index`] where the index is damaged.
pub fn audit<B: AsRef<[u8]> + Sync>(image: &Image<'_>, index: &Index<B>) -> Result<AuditReport, Error> {
    audit_with(image, index, &Options::default())
}

/// As [`audit`], with what `options` say.
///
/// # Errors
///
/// As [`audit`], and what llvm-symbolizer ends with.
pub fn audit_with<B: AsRef<[u8]> + Sync>(
    image: &Image<'_>,
    index: &Index<B>,
    options: &Options<'_>,
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
        let place = facts.place(offset, &mut Default::default());
        let ours = text(&ours_frames(index, offset, LinePolicy::Statement, &mut scratch)?);
        report.wrong_len += 1;
        report.unexplained(|| Difference {
            offset,
            what: "the statement policy answers a line that exact answers nowhere in the inline instance"
                .to_owned(),
            expected: ours.clone(),
            ours,
            peer: Peer::Addr2line,
            theirs: "not asked".to_owned(),
            around: around::around(facts, &place, offset),
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

/// What compares one address after the other.
struct Comparison<'f, 'd, B> {
    facts: &'f Facts<'f, 'd>,
    index: &'f Index<B>,
    addr2line: addr2line::Context<Reader<'d>>,
    llvm_symbolizer: Option<LlvmAnswers<'f>>,
    scratch: expected::Scratch,
    exact: Scratch,
    statement: Scratch,
    report: AuditReport,
    lines: InstanceLines,
}

/// Compares `batch`; `next` is the address behind its last.
fn compare_batch<B: AsRef<[u8]>>(
    facts: &Facts<'_, '_>,
    index: &Index<B>,
    options: &Options<'_>,
    batch: &[u64],
    next: Option<u64>,
) -> Result<(AuditReport, InstanceLines), Error> {
    let svmas = || batch.iter().map(|offset| facts.image.info.base + offset).collect();
    let mut comparison = Comparison {
        facts,
        index,
        addr2line: peers::addr2line(facts.image)?,
        llvm_symbolizer: options.llvm_symbolizer.map(|ask| ask(svmas())).transpose()?,
        scratch: expected::Scratch::default(),
        exact: Scratch::default(),
        statement: Scratch::default(),
        report: AuditReport::default(),
        lines: InstanceLines::default(),
    };
    let executable = &facts.image.info.executable;
    for (number, &offset) in batch.iter().enumerate() {
        // Every border is an address, so the answers hold up to the next one.
        let section = executable.partition_point(|section| section.0 <= offset);
        let end = section.checked_sub(1).map_or(offset, |section| executable[section].1);
        let next = batch.get(number + 1).copied().or(next).unwrap_or(end);
        comparison.compare(offset, next.min(end) - offset)?;
    }
    Ok((comparison.report, comparison.lines))
}

impl<B: AsRef<[u8]>> Comparison<'_, '_, B> {
    /// Compares the answers at `offset`, which stand for `size` bytes.
    fn compare(&mut self, offset: u64, size: u64) -> Result<(), Error> {
        let Self { facts, index, addr2line, llvm_symbolizer, scratch, exact, statement, report, lines } =
            self;
        let place = facts.place(offset, scratch);
        let expected = facts.expected(&place, offset);
        let addr2line = peers::ask_addr2line(facts, addr2line, offset);
        let llvm_symbolizer = llvm_symbolizer.as_mut().and_then(Iterator::next).transpose()?;
        let ours = ours(index, offset, LinePolicy::Exact, exact)?;
        let ours_statement = ours_frames(index, offset, LinePolicy::Statement, statement)?;
        report.addresses += 1;
        report.cover(&place, &addr2line, size);

        let exact_frames = expected.as_ref().map_or(&[][..], |expected| &expected.frames);
        let statement_frames = statement_frames(facts, &place, offset, exact_frames);
        report.statement_differs += u64::from(statement_frames != exact_frames);
        let wrong = if ours != expected {
            Some("symdex does not answer as the rules say")
        } else if ours_statement != statement_frames {
            Some("symdex does not answer as the rules say under the statement policy")
        } else {
            None
        };
        let is_statement = wrong.is_some() && ours == expected;
        let describe = |what: &str, peer: Peer, theirs: &Theirs<'_>| Difference {
            offset,
            what: what.to_owned(),
            ours: if is_statement { text(&ours_statement) } else { text_of(&ours) },
            expected: if is_statement { text(&statement_frames) } else { text_of(&expected) },
            peer,
            theirs: theirs.to_string(),
            around: if what.is_empty() { String::new() } else { around::around(facts, &place, offset) },
        };
        // An answer that is wrong by the rules counts once.
        let by_the_rules = if wrong.is_none() { &ours_statement[..] } else { &[] };
        lines.add(&place, offset, ours.as_ref(), by_the_rules);
        if let Some(wrong) = wrong {
            report.wrong_len += 1;
            report.unexplained(|| describe(wrong, Peer::Addr2line, &addr2line));
            return Ok(());
        }
        let symbol_only = expected.as_ref().is_some_and(|expected| expected.table == Table::SymbolTable);
        report.symbol_table_only += u64::from(symbol_only);
        let llvm_symbolizer = llvm_symbolizer.map(|frames| (Peer::LlvmSymbolizer, Theirs::Frames(frames)));
        for (peer, theirs) in std::iter::once((Peer::Addr2line, addr2line)).chain(llvm_symbolizer) {
            if theirs.are(&facts.answer_for(peer, &place, offset)) {
                report.peer(peer).agreements += 1;
                continue;
            }
            match explain(facts, peer, offset, &place, &theirs, scratch) {
                Some(classes) => classes
                    .into_iter()
                    .for_each(|class| report.peer(peer).count(class, || describe("", peer, &theirs))),
                None => {
                    let what = format!("{} does not answer as the rules say", peer.name());
                    report.unexplained(|| describe(&what, peer, &theirs));
                }
            }
        }
        Ok(())
    }
}

fn ours<'s, B: AsRef<[u8]>>(
    index: &Index<B>,
    offset: u64,
    policy: LinePolicy,
    scratch: &'s mut Scratch,
) -> Result<Option<Expected<'s>>, Error> {
    let Some(frames) = index.lookup(ImageOffset(offset), policy, scratch)? else { return Ok(None) };
    let frame = |frame: symdex::Frame<'s>| Frame {
        name: frame.name.map(Cow::Borrowed),
        file: frame.file.map(Cow::Borrowed),
        line: frame.line,
    };
    let last = frames.iter().next_back();
    let function_start = last.and_then(|frame| frame.function_start).map(|start| start.0);
    let table = last.map_or(Table::Dwarf, |frame| frame.table);
    Ok(Some(Expected { frames: frames.iter().map(frame).collect(), function_start, table }))
}

fn ours_frames<'s, B: AsRef<[u8]>>(
    index: &Index<B>,
    offset: u64,
    policy: LinePolicy,
    scratch: &'s mut Scratch,
) -> Result<Vec<Frame<'s>>, Error> {
    Ok(ours(index, offset, policy, scratch)?.map_or(Vec::new(), |answer| answer.frames))
}

/// What the rules say under the `statement` policy: the frames of `exact` but for the innermost line.
fn statement_frames<'f>(
    facts: &'f Facts<'_, '_>,
    place: &Place,
    offset: u64,
    exact: &[Frame<'f>],
) -> Vec<Frame<'f>> {
    let mut frames = exact.to_vec();
    if let (Some(innermost), Some(_)) = (frames.first_mut(), place.unit()) {
        (innermost.file, innermost.line) = facts.innermost_line(place, offset, LinePolicy::Statement);
    }
    frames
}

fn text_of(answer: &Option<Expected<'_>>) -> String {
    let Some(Expected { frames, function_start, table }) = answer else { return text(&[]) };
    let table = if *table == Table::Dwarf { "" } else { " (symbol_table)" };
    match function_start {
        Some(start) => format!("{}{table}, function at {start:#x}", text(frames)),
        None => format!("{}{table}", text(frames)),
    }
}

/// The frames in one line, innermost first.
fn text(frames: &[Frame<'_>]) -> String {
    if frames.is_empty() {
        return "nothing".to_owned();
    }
    let string = |bytes: &Option<Cow<'_, [u8]>>| match bytes {
        Some(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        None => "-".to_owned(),
    };
    let frame = |frame: &Frame<'_>| {
        let line = frame.line.map_or("-".to_owned(), |line| line.to_string());
        format!("{} ({}:{line})", string(&frame.name), string(&frame.file))
    };
    frames.iter().map(frame).collect::<Vec<_>>().join(" < ")
}
