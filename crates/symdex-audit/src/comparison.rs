//! The comparison of a batch of addresses.

use std::borrow::Cow;

use symdex::{ImageOffset, Index, LinePolicy, Scratch, Table};
use symdex_build::Error;
use symdex_build::audit_access::Deadline;

use crate::addr2line_peer::{self, ADDR2LINE, Addr2line};
use crate::expected::{Expected, Frame, Position, SearchBuffer};
use crate::explain::explain;
use crate::facts::Facts;
use crate::image::Reader;
use crate::peer::{AskedPeer, Peer, PeerAnswer, PeerFrames, Question};
use crate::report::{AuditReport, Difference};
use crate::statements::InstanceLines;
use crate::{AuditOptions, around, text};

/// Compares one address after the other.
struct Comparison<'f, 'd, B> {
    facts: &'f Facts<'f, 'd>,
    index: &'f Index<B>,
    addr2line: addr2line::Context<Reader<'d>>,
    /// The peer that the caller adds, and its answers at the next addresses.
    asked: Option<(&'f dyn Peer, PeerFrames<'f>)>,
    buffer: SearchBuffer,
    exact: Scratch,
    statement: Scratch,
    report: AuditReport,
    instance_lines: InstanceLines,
}

/// Compares `batch` until `deadline`; `next` is the first address after it.
pub(crate) fn compare_batch<B: AsRef<[u8]>>(
    facts: &Facts<'_, '_>,
    index: &Index<B>,
    options: &AuditOptions<'_>,
    batch: &[u64],
    next: Option<u64>,
    deadline: Deadline,
) -> Result<(AuditReport, InstanceLines), Error> {
    let svma = |offset: &u64| facts.image.info().base + offset;
    let asked = match options.peer {
        Some(AskedPeer { peer, ask }) => Some((peer, ask(batch.iter().map(svma).collect())?)),
        None => None,
    };
    let mut comparison = Comparison {
        facts,
        index,
        addr2line: addr2line_peer::context(facts)?,
        asked,
        buffer: SearchBuffer::default(),
        exact: Scratch::default(),
        statement: Scratch::default(),
        report: AuditReport::default(),
        instance_lines: InstanceLines::default(),
    };
    let executable = &facts.image.info().executable;
    for (number, &offset) in batch.iter().enumerate() {
        if number.is_multiple_of(1 << 8) {
            deadline.check()?;
        }
        // Answers change only at compared addresses, so each answer holds up to the next address.
        let section = executable.partition_point(|section| section.0 <= offset);
        let end = section.checked_sub(1).map_or(offset, |section| executable[section].1);
        let next = batch.get(number + 1).copied().or(next).unwrap_or(end);
        comparison.compare(offset, next.min(end) - offset)?;
    }
    Ok((comparison.report, comparison.instance_lines))
}

impl<B: AsRef<[u8]>> Comparison<'_, '_, B> {
    /// Compares the answers at `offset`, which hold for `size` bytes.
    fn compare(&mut self, offset: u64, size: u64) -> Result<(), Error> {
        let Self { facts, index, addr2line, asked, buffer, exact, statement, report, instance_lines, .. } =
            self;
        if let Some(expected) = facts.go.as_ref().and_then(|go| go.expected(offset)) {
            return compare_go(facts, index, (offset, size), expected, report);
        }
        let position = facts.position(offset, buffer);
        let question = Question { facts, offset, position: &position };
        let addr2line = addr2line_peer::ask(facts, addr2line, offset);
        let mut peers = vec![(&Addr2line as &dyn Peer, addr2line)];
        if let Some((peer, answers)) = asked {
            let frames = answers.next().transpose()?;
            peers.extend(frames.map(|frames| (*peer, PeerAnswer::Frames(frames))));
        }
        let compared = Compared::new(&question, index, exact, statement)?;
        report.addresses += 1;
        report.cover(&position, size);
        report.statement_differs += u64::from(compared.statement_differs());

        let wrong = compared.wrong();
        // An answer that is wrong by the rules counts once.
        let by_the_rules = if wrong.is_none() { &compared.our_statement[..] } else { &[] };
        instance_lines.add(&position, offset, compared.ours.as_ref(), by_the_rules);
        if let Some(wrong) = wrong {
            report.wrong_len += 1;
            report.unexplained(|| compared.difference(&question, wrong, ADDR2LINE, &peers[0].1));
            return Ok(());
        }
        let expected = &compared.expected;
        let symbol_only = expected.as_ref().is_some_and(|expected| expected.table == Table::SymbolTable);
        report.symbol_table_only += u64::from(symbol_only);
        for (peer, theirs) in peers {
            compare_peer(peer, question, &theirs, &compared, buffer, report);
        }
        Ok(())
    }
}

/// Compares the answers at `offset`, which hold for `size` bytes, with those that the tables of a Go program state
/// under both line policies. No peer reads these.
fn compare_go<B: AsRef<[u8]>>(
    facts: &Facts<'_, '_>,
    index: &Index<B>,
    (offset, size): (u64, u64),
    expected: Expected<'_>,
    report: &mut AuditReport,
) -> Result<(), Error> {
    report.addresses += 1;
    report.coverage.expected += size;
    report.coverage.expected_function += size;
    for policy in [LinePolicy::Exact, LinePolicy::Statement] {
        let mut scratch = Scratch::default();
        let ours = our_answer(index, offset, policy, &mut scratch)?;
        if ours.as_ref() != Some(&expected) {
            report.wrong_len += 1;
            report.unexplained(|| Difference {
                offset,
                what: "symdex does not answer as the tables of the Go runtime say".to_owned(),
                ours: text::of_frames(ours.as_ref().map_or(&[][..], |ours| &ours.frames)),
                expected: text::of_frames(&expected.frames),
                peer: ADDR2LINE,
                theirs: "not asked".to_owned(),
                around: around::around(facts, &Position::default(), offset),
            });
            break;
        }
    }
    Ok(())
}

/// Compares the answer of `peer` with the one by the rules, which is also symdex's.
fn compare_peer(
    peer: &dyn Peer,
    question: Question<'_, '_>,
    theirs: &PeerAnswer<'_>,
    compared: &Compared<'_>,
    buffer: &mut SearchBuffer,
    report: &mut AuditReport,
) {
    let name = peer.name();
    if theirs.is(&peer.frames(compared.expected.clone())) {
        report.peer(name).agreements += 1;
        return;
    }
    let difference = |what: &str| compared.difference(&question, what, name, theirs);
    match explain(peer, question, theirs, buffer) {
        Some(classes) => {
            classes.into_iter().for_each(|class| report.peer(name).count(class, || difference("")));
        }
        None => report.unexplained(|| difference(&format!("{name} does not answer as the rules say"))),
    }
}

/// symdex's answers at an address, and those by the rules.
struct Compared<'c> {
    ours: Option<Expected<'c>>,
    expected: Option<Expected<'c>>,
    /// The frames under the `statement` policy.
    our_statement: Vec<Frame<'c>>,
    expected_statement: Vec<Frame<'c>>,
}

impl<'c> Compared<'c> {
    fn new<B: AsRef<[u8]>>(
        question: &Question<'c, '_>,
        index: &Index<B>,
        exact: &'c mut Scratch,
        statement: &'c mut Scratch,
    ) -> Result<Self, Error> {
        let Question { facts, offset, position } = *question;
        let expected = facts.expected(position, offset);
        let mut expected_statement = expected.as_ref().map_or(Vec::new(), |expected| expected.frames.clone());
        // Only the innermost line depends on the policy.
        if let (Some(innermost), Some(_)) = (expected_statement.first_mut(), position.unit()) {
            (innermost.file, innermost.line) = facts.innermost_line(position, offset, LinePolicy::Statement);
        }
        let ours = our_answer(index, offset, LinePolicy::Exact, exact)?;
        let our_statement = our_frames(index, offset, LinePolicy::Statement, statement)?;
        Ok(Self { ours, expected, our_statement, expected_statement })
    }

    /// Whether the two policies have different answers by the rules.
    fn statement_differs(&self) -> bool {
        let exact = self.expected.as_ref().map_or(&[][..], |expected| &expected.frames);
        self.expected_statement != exact
    }

    /// What is wrong with symdex's answers.
    fn wrong(&self) -> Option<&'static str> {
        if self.ours != self.expected {
            Some("symdex does not answer as the rules say")
        } else if self.our_statement != self.expected_statement {
            Some("symdex does not answer as the rules say under the statement policy")
        } else {
            None
        }
    }

    /// A difference between the answers of symdex, the rules and `peer`; `what` is empty if a class explains it.
    fn difference(
        &self,
        question: &Question<'_, '_>,
        what: &str,
        peer: &'static str,
        theirs: &PeerAnswer<'_>,
    ) -> Difference {
        let Question { facts, offset, position } = *question;
        let is_statement = self.ours == self.expected && self.our_statement != self.expected_statement;
        let (ours, expected) = if is_statement {
            (text::of_frames(&self.our_statement), text::of_frames(&self.expected_statement))
        } else {
            (text::of_answer(&self.ours), text::of_answer(&self.expected))
        };
        let around = if what.is_empty() { String::new() } else { around::around(facts, position, offset) };
        Difference { offset, what: what.to_owned(), ours, expected, peer, theirs: theirs.to_string(), around }
    }
}

/// The answer of the index; `None` for a gap.
fn our_answer<'s, B: AsRef<[u8]>>(
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

/// The frames of the index's answer; none for a gap.
pub(crate) fn our_frames<'s, B: AsRef<[u8]>>(
    index: &Index<B>,
    offset: u64,
    policy: LinePolicy,
    scratch: &'s mut Scratch,
) -> Result<Vec<Frame<'s>>, Error> {
    Ok(our_answer(index, offset, policy, scratch)?.map_or(Vec::new(), |answer| answer.frames))
}
