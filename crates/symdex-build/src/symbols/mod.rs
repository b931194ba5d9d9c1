//! The symbol table of an image, as functions with ranges.

pub(crate) mod elf;
pub(crate) mod macho;
use rustc_hash::FxHashSet;

use crate::error::Error;
use symdex::write::MAX_STRING;

/// A function as the symbol table has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionSymbol<'d> {
    /// Its first image offset.
    pub start: u64,
    /// The image offset behind its last.
    pub end: u64,
    /// Its name, in Mach-O without the leading `_`; `None` where only `LC_FUNCTION_STARTS` or unwind information knows
    /// the function.
    pub name: Option<&'d [u8]>,
    /// Its other names, each once, the better ones first.
    pub aliases: Vec<&'d [u8]>,
}

impl<'d> FunctionSymbol<'d> {
    /// Its name, where it has no other.
    pub(crate) fn only_name(&self) -> Option<&'d [u8]> {
        self.name.filter(|_| self.aliases.is_empty())
    }
}

/// Where a function starts. The order is total: address, then the better name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Start<'d> {
    /// As an image offset.
    pub(crate) start: u64,
    /// Of several names of one function the one with the lowest rank is the better one, then the smaller one.
    pub(crate) rank: u8,
    pub(crate) name: Option<&'d [u8]>,
    /// The image offset behind its end, where that is stated.
    pub(crate) end: Option<u64>,
}

impl Start<'_> {
    /// A function that has no name, behind all that have one.
    pub(crate) fn nameless(start: u64) -> Self {
        Self { start, rank: u8::MAX, name: None, end: None }
    }
}

/// Takes `name` from the `left` bytes that the names of a table may have together: names may share their ends, and in a
/// hostile file each is all of the others.
fn take_name(left: &mut usize, name: &[u8]) -> Result<(), Error> {
    let rest = left.checked_sub(name.len());
    let what = || "the symbol table: its names overlap too much".to_owned();
    *left = rest.ok_or_else(|| Error::Malformed { what: what() })?;
    Ok(())
}

/// The functions that begin at `starts`, which are sorted, one for each address; only those in `executable` sections.
///
/// A function without a stated end reaches to the next start, at the latest to the end of its section. Inside of a
/// function whose end a symbol states, starts without one are labels, and begin no function.
pub(crate) fn functions<'d>(
    starts: &mut Vec<Start<'d>>,
    executable: &[(u64, u64)],
) -> Vec<FunctionSymbol<'d>> {
    starts.sort_unstable();
    starts.dedup();
    let mut functions: Vec<FunctionSymbol<'d>> = Vec::new();
    // The end of what the functions so far, and what unwind information, state to cover.
    let (mut named_end, mut unwind_end) = (0, 0);
    let mut groups = starts.chunk_by(|a, b| a.start == b.start).peekable();
    while let Some(group) = groups.next() {
        let start = group[0].start;
        let after = executable.partition_point(|section| section.0 <= start);
        let section = after.checked_sub(1).map(|index| executable[index]);
        let Some((_, section_end)) = section.filter(|section| start < section.1) else { continue };
        let stated = |named: bool| {
            let ends =
                group.iter().filter(|start| start.name.is_some() == named).filter_map(|start| start.end);
            ends.filter(|end| *end > start).max().map(|end| end.min(section_end))
        };
        let next = groups.peek().map_or(section_end, |next| next[0].start);
        unwind_end = stated(false).unwrap_or(0).max(unwind_end);
        let end = match stated(true) {
            Some(end) => {
                named_end = named_end.max(end);
                end
            }
            None if start < named_end => continue,
            // Behind the end of what can be unwound is padding.
            None if start < unwind_end => unwind_end.min(next),
            None => next,
        };
        let mut names = group.iter().filter_map(|start| start.name);
        let name = names.next();
        // Most have one name, and need no set.
        let mut seen = FxHashSet::default();
        let aliases = names.filter(|other| Some(*other) != name && seen.insert(*other)).collect();
        functions.push(FunctionSymbol { start, end: end.min(section_end), name, aliases });
    }
    functions
}

/// The name at `offset`, `None` where it does not end. One that is longer than an index may hold is cut where that is
/// plain: in a hostile file every symbol may name the same gigabyte.
pub(crate) fn name_at(strings: &[u8], offset: usize) -> Option<&[u8]> {
    const TOO_LONG: usize = MAX_STRING + 2;
    let rest = strings.get(offset..)?;
    let rest = &rest[..rest.len().min(TOO_LONG)];
    match memchr::memchr(0, rest) {
        Some(size) => Some(&rest[..size]),
        None => Some(rest).filter(|rest| rest.len() == TOO_LONG),
    }
}
