//! Functions with their inlined calls and lines, made of the answers of an index.

use std::collections::HashMap;
use std::ops::Range;

use symdex::{Index, LinePolicy, NonMaxU32};

use crate::Error;
use crate::pieces::{Piece, SourceFrame, each_piece};
use crate::strings::Allowance;

/// Code of one function without a hole.
#[derive(Debug, Default)]
pub(crate) struct Function {
    pub(crate) range: Range<u64>,
    function_start: Option<u64>,
    pub(crate) name: Option<NonMaxU32>,
    /// Calls that are inlined, each after the one that it is inlined into.
    pub(crate) calls: Vec<InlinedCall>,
    /// The lines of the innermost functions, in address order. What no line covers has no file.
    pub(crate) lines: Vec<Line>,
}

/// A call that is inlined. Calls of one function at one line are one, whatever its addresses.
#[derive(Debug)]
pub(crate) struct InlinedCall {
    pub(crate) call: Call,
    /// 0 in the function itself.
    pub(crate) depth: u32,
    /// In address order.
    pub(crate) ranges: Vec<Range<u64>>,
}

/// What distinguishes one inlined call of a function from the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Call {
    /// The number of the call that this one is inlined into; `None` for the function itself.
    pub(crate) parent: Option<usize>,
    /// The function that is called.
    pub(crate) name: Option<NonMaxU32>,
    /// File and line of the call.
    pub(crate) file: Option<NonMaxU32>,
    pub(crate) line: Option<u32>,
}

/// Addresses of one line.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) range: Range<u64>,
    pub(crate) file: NonMaxU32,
    /// 0 for code without a line, too.
    pub(crate) line: u32,
}

/// Calls `each` with all functions of the index, in address order. They do not overlap.
pub(crate) fn each_function<B: AsRef<[u8]>>(
    index: &Index<B>,
    policy: LinePolicy,
    mut each: impl FnMut(&Function) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut function = Function::default();
    let mut numbers = HashMap::new();
    let mut allowance = Allowance::of(index);
    each_piece(index, policy, &mut |piece| {
        if !function.continues(&piece) {
            if !function.range.is_empty() {
                each(&function)?;
            }
            function = Function::begin(&piece);
            numbers.clear();
        }
        // All of a function is in memory, and code may be in many calls.
        allowance.take(size_of::<Range<u64>>() * piece.frames.len())?;
        function.push(&piece, &mut numbers);
        Ok(())
    })?;
    if function.range.is_empty() { Ok(()) } else { each(&function) }
}

impl Function {
    fn begin(piece: &Piece<'_>) -> Self {
        let name = piece.frames.first().and_then(|frame| frame.name);
        Self {
            range: piece.range.start..piece.range.start,
            function_start: piece.function_start,
            name,
            ..Self::default()
        }
    }

    /// Whether the piece is the next code of this function.
    fn continues(&self, piece: &Piece<'_>) -> bool {
        let name = piece.frames.first().and_then(|frame| frame.name);
        self.range.end == piece.range.start
            && self.function_start == piece.function_start
            && self.name == name
    }

    fn push(&mut self, piece: &Piece<'_>, numbers: &mut HashMap<Call, usize>) {
        self.range.end = piece.range.end;
        let mut parent = None;
        for (depth, (caller, callee)) in (0..).zip(piece.frames.iter().zip(piece.frames.iter().skip(1))) {
            let call = Call { parent, name: callee.name, file: caller.file, line: caller.line };
            let number = *numbers.entry(call).or_insert_with(|| {
                self.calls.push(InlinedCall { call, depth, ranges: Vec::new() });
                self.calls.len() - 1
            });
            extend(&mut self.calls[number].ranges, &piece.range);
            parent = Some(number);
        }
        let Some(&SourceFrame { file: Some(file), line, .. }) = piece.frames.last() else { return };
        let line = line.unwrap_or(0);
        match self.lines.last_mut() {
            Some(last) if last.range.end == piece.range.start && last.file == file && last.line == line => {
                last.range.end = piece.range.end;
            }
            _ => self.lines.push(Line { range: piece.range.clone(), file, line }),
        }
    }
}

/// Adds `range`, which comes after all others.
fn extend(ranges: &mut Vec<Range<u64>>, range: &Range<u64>) {
    match ranges.last_mut() {
        Some(last) if last.end == range.start => last.end = range.end,
        _ => ranges.push(range.clone()),
    }
}
