//! Checking an index against the debug file it was built from.
//!
//! The addresses come from the debug file: every line row, both ends of every range of a function or an inlined subroutine,
//! and the addresses beside them. At each of them three answers must fit together: symdex's, addr2line's, and the one
//! that follows from the rules (DESIGN.md, "How ranges are made") read from the debug file naively, without the builder's
//! code. symdex must answer as the rules say; where addr2line does not, a [`Class`] recognised from the debug file's own facts
//! has to explain it.

mod around;
mod classes;
mod dies;
mod expected;
mod explain;
mod facts;
mod intervals;
mod lines;
mod names;
mod report;
mod rows;

use std::borrow::Cow;

use rayon::prelude::*;
use symdex::{ImageOffset, Index, LinePolicy, Scratch, Table};

pub use self::classes::Class;
use self::expected::{Expected, Frame, Place};
use self::explain::{Theirs, explain};
use self::facts::Facts;
pub use self::report::{AuditReport, ClassCount, Coverage, Difference};
use crate::error::Error;
use crate::image::{Image, Reader};

/// Addresses that one thread compares at a time. Each batch has an addr2line of its own, which parses the units it meets.
const BATCH_LEN: usize = 1 << 18;

/// Compares `index` with the debug file `image`, on the threads of the rayon pool it is called in.
///
/// # Errors
///
/// [`Error::Malformed`] where the debug file cannot be read at all, [`Error::Index`] where the index is damaged.
pub fn audit<B: AsRef<[u8]> + Sync>(image: &Image<'_>, index: &Index<B>) -> Result<AuditReport, Error> {
    let facts = Facts::read(image)?;
    let addresses = addresses(&facts);
    let batches: Vec<&[u64]> = addresses.chunks(BATCH_LEN).collect();
    let next = |batch: usize| batches.get(batch + 1).and_then(|next| next.first()).copied();
    let compare = |(number, batch): (usize, &&[u64])| compare_batch(&facts, index, batch, next(number));
    let compared: Vec<Result<AuditReport, Error>> = batches.par_iter().enumerate().map(compare).collect();
    let mut report = AuditReport { coverage: own_coverage(image, index)?, ..AuditReport::default() };
    for batch in compared {
        report.add(batch?);
    }
    Ok(report)
}

/// The image offsets to compare, sorted.
fn addresses(facts: &Facts<'_, '_>) -> Vec<u64> {
    let info = &facts.image.info;
    let in_code = |svma: u64| {
        let offset = svma.checked_sub(info.base)?;
        let section = info.executable.partition_point(|section| section.0 <= offset).checked_sub(1)?;
        (offset < info.executable[section].1).then_some(offset)
    };
    let mut addresses: Vec<u64> = facts
        .units
        .par_iter()
        .flat_map_iter(|unit| {
            let declared = unit.dies.declared.iter().flat_map(|(start, end)| [*start, *end]);
            let stated = unit.dies.addresses.iter().chain(&unit.lines.addresses).copied();
            let beside =
                |svma: u64| [svma.saturating_sub(2), svma.saturating_sub(1), svma, svma.saturating_add(1)];
            let mut unit: Vec<u64> = stated.chain(declared).flat_map(beside).filter_map(in_code).collect();
            unit.sort_unstable();
            unit.dedup();
            unit
        })
        .collect();
    addresses.extend(info.executable.iter().map(|section| section.0));
    addresses.par_sort_unstable();
    addresses.dedup();
    addresses
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
    peer: addr2line::Context<Reader<'d>>,
    scratch: expected::Scratch,
    exact: Scratch,
    statement: Scratch,
    report: AuditReport,
}

/// Compares `batch`; `next` is the address behind its last.
fn compare_batch<B: AsRef<[u8]>>(
    facts: &Facts<'_, '_>,
    index: &Index<B>,
    batch: &[u64],
    next: Option<u64>,
) -> Result<AuditReport, Error> {
    let peer = peer(facts.image);
    let mut comparison = Comparison {
        facts,
        index,
        peer: peer.map_err(|error| Error::Malformed { what: format!("addr2line says: {error}") })?,
        scratch: expected::Scratch::default(),
        exact: Scratch::default(),
        statement: Scratch::default(),
        report: AuditReport::default(),
    };
    let executable = &facts.image.info.executable;
    for (number, &offset) in batch.iter().enumerate() {
        // Every border is an address, so the answers hold up to the next one.
        let section = executable.partition_point(|section| section.0 <= offset);
        let end = section.checked_sub(1).map_or(offset, |section| executable[section].1);
        let next = batch.get(number + 1).copied().or(next).unwrap_or(end);
        comparison.compare(offset, next.min(end) - offset)?;
    }
    Ok(comparison.report)
}

impl<B: AsRef<[u8]>> Comparison<'_, '_, B> {
    /// Compares the answers at `offset`, which stand for `size` bytes.
    fn compare(&mut self, offset: u64, size: u64) -> Result<(), Error> {
        let Self { facts, index, peer, scratch, exact, statement, report } = self;
        let place = facts.place(offset, scratch);
        let expected = facts.expected(&place, offset);
        let theirs = theirs(facts.image, peer, offset);
        let ours = ours(index, offset, LinePolicy::Exact, exact)?;
        let ours_statement = ours_frames(index, offset, LinePolicy::Statement, statement)?;

        let weight = |counts: bool| if counts { size } else { 0 };
        let coverage = &mut report.coverage;
        coverage.expected_function += weight(place.function.is_some());
        coverage.expected += weight(place.unit().is_some());
        if let Theirs::Frames(frames) = &theirs {
            coverage.theirs_function += weight(frames.iter().any(|frame| frame.name.is_some()));
            coverage.theirs += weight(!frames.is_empty());
        }
        report.addresses += 1;

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
        let same = match (&theirs, &expected) {
            (Theirs::Frames(theirs), Some(Expected { frames, table: Table::Dwarf, .. })) => theirs == frames,
            (Theirs::Frames(theirs), _) => theirs.is_empty(),
            (Theirs::Error(_), _) => false,
        };
        let classes = if same { None } else { Some(explain(facts, offset, &place, &theirs, scratch)) };
        let what = match (wrong, &classes) {
            (None, None) => {
                report.agreements += 1;
                let symbol_only = expected.is_some_and(|expected| expected.table == Table::SymbolTable);
                report.symbol_table_only += u64::from(symbol_only);
                return Ok(());
            }
            (None, Some(Some(_))) => "",
            (None, Some(None)) => "addr2line does not answer as the rules say",
            (Some(wrong), _) => wrong,
        };
        let statement = what.ends_with("policy");
        let difference = || Difference {
            offset,
            what,
            ours: if statement { text(&ours_statement) } else { text_of(&ours) },
            expected: if statement { text(&statement_frames) } else { text_of(&expected) },
            theirs: theirs_text(&theirs),
            around: if what.is_empty() { String::new() } else { around::around(facts, &place, offset) },
        };
        match classes {
            Some(Some(classes)) if wrong.is_none() => {
                classes.into_iter().for_each(|class| report.count(class, difference));
            }
            _ => {
                report.unexplained_len += 1;
                if report.unexplained.len() < report::MAX_SHOWN {
                    let difference = difference();
                    report.unexplained.push(difference);
                }
            }
        }
        Ok(())
    }
}

/// An addr2line of the image's sections; it shares nothing with others, and parses units as it meets them.
fn peer<'d>(image: &Image<'d>) -> gimli::Result<addr2line::Context<Reader<'d>>> {
    let dwarf = &image.dwarf;
    addr2line::Context::from_sections(
        dwarf.debug_abbrev,
        dwarf.debug_addr,
        image.aranges,
        dwarf.debug_info,
        dwarf.debug_line,
        dwarf.debug_line_str,
        *dwarf.ranges.debug_ranges(),
        *dwarf.ranges.debug_rnglists(),
        dwarf.debug_str,
        dwarf.debug_str_offsets,
        Reader::default(),
    )
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

/// addr2line's answer; it knows nothing of symbol maps, so hidden names are resolved in it.
fn theirs<'c>(image: &'c Image<'_>, peer: &'c addr2line::Context<Reader<'_>>, offset: u64) -> Theirs<'c> {
    let frames = || {
        let mut found = peer.find_frames(image.info.base + offset).skip_all_loads()?;
        let mut frames = Vec::new();
        while let Some(frame) = found.next()? {
            let location = frame.location.as_ref();
            frames.push(Frame {
                name: frame.function.map(|function| Cow::Borrowed(image.resolve(function.name.slice()))),
                file: location.and_then(|location| location.file).map(|file| resolved_path(image, file)),
                line: location.and_then(|location| location.line),
            });
        }
        Ok::<_, gimli::Error>(frames)
    };
    frames().map_or_else(|error| Theirs::Error(error.to_string()), Theirs::Frames)
}

/// `path` with each of its parts resolved, from the last absolute one on.
fn resolved_path<'p>(image: &'p Image<'_>, path: &'p str) -> Cow<'p, [u8]> {
    if image.symbol_map.is_none() {
        return Cow::Borrowed(path.as_bytes());
    }
    let parts: Vec<&[u8]> = path.split('/').map(|part| image.resolve(part.as_bytes())).collect();
    let is_absolute = |part: &&[u8]| part.starts_with(b"/");
    let first = parts.iter().rposition(is_absolute).unwrap_or(0);
    Cow::Owned(parts[first..].join(&b"/"[..]))
}

fn theirs_text(theirs: &Theirs<'_>) -> String {
    match theirs {
        Theirs::Frames(frames) => text(frames),
        Theirs::Error(error) => format!("error: {error}"),
    }
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
