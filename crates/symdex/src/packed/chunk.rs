//! A chunk.
//!
//! ```text
//! varints   runs, triples, names, how many there are; 1: the triples are names alone, else 0; bytes of the runs, the triples and the names
//! 8 bytes   the bits of the columns of the tables below: four of the first, two of the second, two of the third
//! rows      for every 16th run: its start, in bytes from the chunk's; where the run begins, in bits; where its body begins, in bits; the first
//!           triple that no run before it uses
//! runs      one behind the other, see below
//! rows      for every 64th triple: where it begins, in bits; the next number that no triple before it has for its name
//! triples   see `triples.rs`
//! rows      for every 32nd name: where it begins, in bits; one more than the id of the name before
//! names     see `triples.rs`
//! bodies    see `body.rs`
//! ```
//!
//! A run is:
//!
//! ```text
//! function  0: a gap; 1: line rows without a function; 2: the function of the last run that was no gap;
//!           k: a function that starts k - 3 bytes before this run
//! span      bytes; a run begins where the one before it ends
//! ranges    how many it has, less one
//! triples   how many it is the first to use
//! 4 bits    n: how many bits the number of its body's bits has; 15: more than 14
//! bits      that number, without its highest bit, which is one; 32 bits where n is 15
//! ```
//!
//! A gap is the first two alone.

use super::bits::{BitReader, BitWriter, Rows, encode_rows};
use super::body::{Body, BodyOf, RunLoc, RunState, chain};
use super::codes::{Codes, Encoder};
use super::contexts::{FUNCTION, GAP_SPAN, NEW_TRIPLES, RANGES, RUN_SPAN};
use super::tokens::{self, BODY, FIRST_TRIPLE, RUN, TRIPLES, Token, TokenReader};
use super::{NAME_GROUP, RUN_GROUP, TRIPLE_GROUP};
use crate::format::{Cursor, MAX_CHUNK_LOCS, MAX_RUN_RANGES, put_varint};

/// The bits of the number of bits of a body's size.
const SIZE_BITS: u32 = 4;
/// What they say where it has more bits than they can say.
const LARGE: u32 = (1 << SIZE_BITS) - 1;

/// What a chunk says of its triples and its names.
#[derive(Clone, Copy, Default)]
pub(super) struct Lens {
    pub(super) triples: usize,
    pub(super) names: usize,
    /// Whether the triples are names alone.
    pub(super) plain: bool,
}

/// The chunk of `tokens`.
pub(super) fn encode_chunk(tokens: &[Token], lens: Lens, encoder: &Encoder) -> Vec<u8> {
    let [mut runs, mut triples, mut names, mut bodies]: [BitWriter; 4] = Default::default();
    let (mut run_rows, mut triple_rows, mut name_rows) = (Vec::new(), Vec::new(), Vec::new());
    let (mut run_len, mut group_start, mut body_start) = (0, 0, None);
    let mut reader = TokenReader::new(tokens);
    while let Some((mark, number)) = reader.mark() {
        match mark {
            tokens::RUN_GROUP => group_start = number,
            FIRST_TRIPLE => run_rows.push([group_start, runs.position(), bodies.position(), number]),
            BODY => {
                body_start = Some(bodies.position());
                reader.put(encoder, &mut bodies);
            }
            RUN => {
                run_len += 1;
                reader.put(encoder, &mut runs);
                put_size(&mut runs, body_start.take(), bodies.position());
            }
            TRIPLES => {
                triple_rows.push([triples.position(), number]);
                reader.put(encoder, &mut triples);
            }
            _ => {
                name_rows.push([names.position(), number]);
                reader.put(encoder, &mut names);
            }
        }
    }
    let mut out = Vec::new();
    let lens = [run_len, lens.triples as u64, lens.names as u64, lens.plain.into()];
    let ((a, run_rows), (b, triple_rows), (c, name_rows)) =
        (encode_rows(&run_rows), encode_rows(&triple_rows), encode_rows(&name_rows));
    let [runs, triples, names, bodies] = [runs, triples, names, bodies].map(BitWriter::finish);
    lens.into_iter().for_each(|len| put_varint(&mut out, len));
    [&runs, &triples, &names].into_iter().for_each(|part| put_varint(&mut out, part.len() as u64));
    [a.as_slice(), &b, &c].into_iter().for_each(|widths| out.extend_from_slice(widths));
    [run_rows, runs, triple_rows, triples, name_rows, names, bodies].iter().for_each(|part| out.extend(part));
    out
}

/// Appends the size of the body that began at `start`, if one did.
fn put_size(out: &mut BitWriter, start: Option<u64>, end: u64) {
    let Some(size) = start.map(|start| end - start) else { return };
    let bits = (64 - size.leading_zeros()).min(LARGE);
    out.put(bits.into(), SIZE_BITS);
    match bits {
        LARGE => out.put(size, 32),
        _ => out.put(size & !(1 << bits >> 1), bits.saturating_sub(1)),
    }
}

/// A chunk as it lies in the index.
#[derive(Clone, Copy)]
pub(crate) struct PackedChunk<'a> {
    pub(super) start: u64,
    pub(super) span: u32,
    pub(super) codes: Codes<'a>,
    runs: usize,
    run_rows: Rows<'a, 4>,
    run_bits: &'a [u8],
    pub(super) triples: usize,
    pub(super) plain: bool,
    pub(super) triple_rows: Rows<'a, 2>,
    pub(super) triple_bits: &'a [u8],
    pub(super) names: usize,
    pub(super) name_rows: Rows<'a, 2>,
    pub(super) name_bits: &'a [u8],
    bodies: &'a [u8],
}

/// A run that is no gap.
struct Run {
    start: u32,
    end: u32,
    function_start: Option<u64>,
    ranges: u32,
    /// Where its body begins, in bits.
    body: usize,
    new_triples: std::ops::Range<u32>,
}

/// Reads runs from the first of a group on.
struct RunReader<'a> {
    chunk: PackedChunk<'a>,
    reader: BitReader<'a>,
    at: u32,
    body: usize,
    triple: u32,
    /// That of the last run that was no gap; `None` before there is one.
    function: Option<Option<u64>>,
}

/// The run that holds an address, read up to its answer.
pub(crate) struct Found<'s> {
    pub(super) function_start: Option<u64>,
    locs: &'s [RunLoc],
    link: u32,
}

impl Found<'_> {
    /// The triples of the answer, innermost first, and `None` where it has more than the format allows.
    pub(super) fn triples(&self) -> impl Iterator<Item = Option<u32>> {
        chain(self.locs, self.link)
    }
}

impl<'a> PackedChunk<'a> {
    /// The chunk in `bytes` that covers `span` bytes from `start`; `None` where it makes no sense.
    pub(super) fn new(bytes: &'a [u8], start: u64, span: u32, codes: Codes<'a>) -> Option<Self> {
        let mut cursor = Cursor::new(bytes);
        let mut count = || usize::try_from(cursor.varint()?).ok();
        let [runs, triples, names] = [count()?, count()?, count()?];
        let plain = count()?;
        let [run_size, triple_size, name_size] = [count()?, count()?, count()?];
        let (a, b, c) = (cursor.array()?, cursor.array()?, cursor.array()?);
        if runs > span as usize || triples > MAX_CHUNK_LOCS || names > triples || plain > 1 {
            return None;
        }
        let run_rows = Rows { bytes: cursor.bytes(Rows::size(a, runs.div_ceil(RUN_GROUP))?)?, widths: a };
        let run_bits = cursor.bytes(run_size)?;
        let triple_rows =
            Rows { bytes: cursor.bytes(Rows::size(b, triples.div_ceil(TRIPLE_GROUP))?)?, widths: b };
        let triple_bits = cursor.bytes(triple_size)?;
        let name_rows = Rows { bytes: cursor.bytes(Rows::size(c, names.div_ceil(NAME_GROUP))?)?, widths: c };
        let name_bits = cursor.bytes(name_size)?;
        let bodies = bytes.get(cursor.position(bytes)..)?;
        Some(Self {
            start,
            span,
            codes,
            runs,
            run_rows,
            run_bits,
            triples,
            plain: plain == 1,
            triple_rows,
            triple_bits,
            names,
            name_rows,
            name_bits,
            bodies,
        })
    }

    /// The answer at `offset`; `Some(None)` for a gap, `None` where the bytes are damaged.
    pub(super) fn find<'s>(
        &self,
        offset: u64,
        statement: bool,
        state: &'s mut RunState,
    ) -> Option<Option<Found<'s>>> {
        let at = offset.checked_sub(self.start).and_then(|at| u32::try_from(at).ok())?;
        // The last group that starts at the address or before.
        let (mut low, mut high) = (0, self.runs.div_ceil(RUN_GROUP));
        while high - low > 1 {
            let middle = low.midpoint(high);
            if self.run_rows.first(middle) <= at.into() { low = middle } else { high = middle }
        }
        let mut runs = self.group(low)?;
        for _ in low * RUN_GROUP..self.runs.min((low + 1) * RUN_GROUP) {
            let run = runs.next()?;
            if at >= runs.at {
                continue;
            }
            let Some(run) = run.filter(|run| run.start <= at) else { return Some(None) };
            let function_start = run.function_start;
            let answer = self.body(run, state).find(at)?;
            let link = if statement { answer.statement } else { answer.exact };
            return Some(Some(Found { function_start, locs: &state.locs, link }));
        }
        Some(None)
    }

    fn group(&self, group: usize) -> Option<RunReader<'a>> {
        let [start, at, body, triple] = self.run_rows.get(group);
        let [at, body] = [at, body].map(usize::try_from);
        let reader = BitReader::new(self.run_bits, at.ok()?);
        let (at, triple) = (u32::try_from(start).ok()?, u32::try_from(triple).ok()?);
        Some(RunReader { chunk: *self, reader, at, body: body.ok()?, triple, function: None })
    }

    fn body<'s>(&self, run: Run, state: &'s mut RunState) -> Body<'s>
    where
        'a: 's,
    {
        let Run { start, end, ranges, new_triples, .. } = run;
        Body::new(
            self.codes,
            BitReader::new(self.bodies, run.body),
            BodyOf { ranges, start, end, new_triples },
            state,
        )
    }

    /// Gives all of the chunk to `each`: a range, its function and its locs, which are whole behind the last range of a run. `None` where the
    /// bytes are damaged.
    pub(super) fn walk(
        &self,
        state: &mut RunState,
        mut each: impl FnMut(Walked<'_>) -> Option<()>,
    ) -> Option<()> {
        let (mut end_of_last, mut next_triple, mut locs) = (0, 0, 0);
        for group in 0..self.runs.div_ceil(RUN_GROUP) {
            let mut runs = self.group(group)?;
            if runs.at != end_of_last && group != 0 || runs.triple != next_triple {
                return None;
            }
            for _ in group * RUN_GROUP..self.runs.min((group + 1) * RUN_GROUP) {
                let Some(run) = runs.next()? else { continue };
                let function_start = run.function_start;
                let mut start = run.start;
                let mut body = self.body(run, state);
                while let Some(answer) = body.next_range()? {
                    each(Walked::Range {
                        start,
                        end: answer.end,
                        function_start,
                        exact: answer.exact,
                        statement: answer.statement,
                    })?;
                    start = answer.end;
                }
                locs += state.locs.len();
                if locs > MAX_CHUNK_LOCS {
                    return None;
                }
                each(Walked::Run(&state.locs))?;
            }
            (end_of_last, next_triple) = (runs.at, runs.triple);
        }
        (next_triple as usize == self.triples).then_some(())
    }
}

/// What [`PackedChunk::walk`] gives.
pub(super) enum Walked<'w> {
    /// A range, in bytes from the chunk's start, and its answers by their links in the run.
    Range { start: u32, end: u32, function_start: Option<u64>, exact: u32, statement: u32 },
    /// The locs of the run whose ranges were given.
    Run(&'w [RunLoc]),
}

impl RunReader<'_> {
    /// The next run; `Some(None)` for a gap, `None` where the bytes are damaged.
    fn next(&mut self) -> Option<Option<Run>> {
        let codes = self.chunk.codes;
        let mut number = |context: u8| codes.number(&mut self.reader, context);
        let function = number(FUNCTION)?;
        let start = self.at;
        let span = number(if function == 0 { GAP_SPAN } else { RUN_SPAN })?;
        let span = u32::try_from(span).ok().filter(|span| *span != 0)?;
        self.at = start.checked_add(span).filter(|end| *end <= self.chunk.span)?;
        if function == 0 {
            return (!self.reader.overran()).then_some(None);
        }
        let ranges = u32::try_from(number(RANGES)?).ok().filter(|ranges| *ranges < MAX_RUN_RANGES)? + 1;
        let new_triples = u32::try_from(number(NEW_TRIPLES)?).ok()?;
        let size = match u32::try_from(self.reader.bits(SIZE_BITS)).ok()? {
            0 => 0,
            LARGE => self.reader.bits(32),
            bits => 1 << (bits - 1) | self.reader.bits(bits - 1),
        };
        let function_start = match function {
            1 => None,
            2 => self.function?,
            back => Some((self.chunk.start + u64::from(start)).checked_sub(back - 3)?),
        };
        self.function = Some(function_start);
        let (body, first) = (self.body, self.triple);
        self.body = body.checked_add(usize::try_from(size).ok()?)?;
        self.triple = first.checked_add(new_triples).filter(|end| *end as usize <= self.chunk.triples)?;
        let run = Run { start, end: self.at, function_start, ranges, body, new_triples: first..self.triple };
        (!self.reader.overran()).then_some(Some(run))
    }
}
