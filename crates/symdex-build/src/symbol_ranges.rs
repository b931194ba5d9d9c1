//! The symbol table as the ranges of a unit.

use symdex::write::{InlineFrame, NonMaxU32};

use crate::chunker::CHUNK_SPAN;
use crate::flatten::{Interval, Stretch, flatten};
use crate::image::short;
use crate::pools::Hashed;
use crate::symbols::FunctionSymbol;
use crate::unit_ranges::{FunctionRange, UnitRange, UnitRanges};

/// The most aliases of one function. With its name, they make a chain of the greatest length that an index may have.
const MAX_ALIASES: usize = 1023;
/// The most aliases of all functions that start in one chunk, because readers decode the chunk as a whole. No real
/// image has nearly as many.
const MAX_ALIASES_OF_CHUNK: usize = 1 << 14;

/// How many aliases of each of `symbols` an index keeps. `symbols` has all functions of each chunk that it has one of.
pub(crate) fn kept_aliases<'i, 'd: 'i>(
    symbols: impl IntoIterator<Item = FunctionSymbol<'i, 'd>>,
) -> Vec<usize> {
    let (mut chunk, mut room) = (None, 0);
    let kept = |symbol: FunctionSymbol<'_, '_>| {
        let index = symbol.start / u64::from(CHUNK_SPAN);
        if chunk.replace(index) != Some(index) {
            room = MAX_ALIASES_OF_CHUNK;
        }
        let kept = symbol.aliases().take(MAX_ALIASES.min(room)).count();
        room -= kept;
        kept
    };
    symbols.into_iter().map(kept).collect()
}

/// Functions of the symbol table, as one unit. `kept` has for each of them how many aliases are kept.
pub(crate) fn symbol_ranges<'d>(symbols: &[FunctionSymbol<'_, 'd>], kept: &[usize]) -> UnitRanges<'d> {
    let mut unit = UnitRanges::default();
    for (number, symbol) in (0u32..).zip(symbols) {
        let (start, end) = (symbol.start, symbol.end);
        push_name(&mut unit, symbol.name, None);
        let rank = (start, std::cmp::Reverse(end - start), false, std::cmp::Reverse(0));
        unit.function_ranges.push(FunctionRange { start, end, function: number, rank, entry: None });
    }
    push_aliases(&mut unit, symbols, kept);
    unit.functions = u32::try_from(symbols.len()).unwrap_or(u32::MAX);
    // In ELF, symbols may be nested.
    let interval = |function_range: &FunctionRange| Interval {
        start: function_range.start,
        end: function_range.end,
        priority: function_range.rank,
    };
    for Stretch { start, end, owner } in flatten(unit.function_ranges.iter().map(interval)) {
        let function_range = NonMaxU32::new(owner as u64);
        let number = unit.function_ranges[owner].function;
        let (start, end) = (short(start), short(end));
        unit.ranges.push(UnitRange { start, end, function_range, exact: number, statement: number });
    }
    unit
}

/// Makes chains of frames for functions with aliases. Only the range at a function's start has the chain. A function
/// may be as long as the image and interrupted any number of times by others, and its aliases are stored once.
fn push_aliases<'d>(unit: &mut UnitRanges<'d>, symbols: &[FunctionSymbol<'_, 'd>], kept: &[usize]) {
    let mut left_out = 0;
    for (number, (symbol, kept)) in symbols.iter().zip(kept).enumerate() {
        let mut aliases = symbol.aliases();
        let kept: Vec<_> = aliases.by_ref().take(*kept).collect();
        left_out += aliases.count() as u64;
        let push = |next, alias: &&'d [u8]| push_name(unit, Some(*alias), next);
        if let Some(next) = kept.iter().rev().fold(None, push) {
            unit.function_ranges[number].entry = push_name(unit, symbol.name, Some(next));
        }
    }
    unit.problems.add("other names of functions left out: too many start in one place", left_out);
}

/// Adds a frame with a name, and the frame of the next alias if there is one. Returns its number.
fn push_name<'d>(
    unit: &mut UnitRanges<'d>,
    name: Option<&'d [u8]>,
    next: Option<NonMaxU32>,
) -> Option<NonMaxU32> {
    let name = name.and_then(|name| {
        unit.names.push(Hashed::new(name.into()));
        NonMaxU32::new(unit.names.len() as u64 - 1)
    });
    unit.frames.push(InlineFrame { parent: next, name, file: None, line: None });
    NonMaxU32::new(unit.frames.len() as u64 - 1)
}
