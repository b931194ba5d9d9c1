//! What kinds of numbers there are, each with a code of its own, and what is taken into account where that tells what to expect.

/// How many contexts there are.
pub(super) const CONTEXTS: usize = ORIGIN_LINE as usize + 2;

/// Bytes of a gap.
pub(super) const GAP_SPAN: u8 = 0;
/// Bytes of a run.
pub(super) const RUN_SPAN: u8 = 1;
/// What a run is, and where its function starts.
pub(super) const FUNCTION: u8 = 2;
/// Ranges of a run, less one.
pub(super) const RANGES: u8 = 3;
/// Triples that a run is the first to use.
pub(super) const NEW_TRIPLES: u8 = 4;
/// Bytes of a range, by the code of the answer before.
pub(super) const LENGTH: u8 = 5;
const LENGTHS: u8 = 16;
/// What a head has above what fits a code.
pub(super) const MORE_HEAD: u8 = LENGTH + LENGTHS;
/// An answer's code, by the code of the answer before.
pub(super) const ANSWER: u8 = MORE_HEAD + 1;
const ANSWERS: u8 = 96;
/// A loc's triple; see [`triple`].
pub(super) const TRIPLE: u8 = ANSWER + ANSWERS;
/// A triple's name, by the number that said the one before.
pub(super) const NAME: u8 = TRIPLE + 30;
const NAMES: u8 = 9;
/// A triple's line: of the name of the triple before, of a name that is new, of another.
pub(super) const LINE: u8 = NAME + NAMES;
/// The file and the line of a triple whose file the name does not tell.
pub(super) const OTHER_FILE: u8 = LINE + 3;
pub(super) const OTHER_LINE: u8 = OTHER_FILE + 1;
/// What a number of a name stands for.
pub(super) const ID: u8 = OTHER_LINE + 1;
/// The file of a name's origin, and the line, where the file is another than that of the name before, and where it is the same.
pub(super) const ORIGIN_FILE: u8 = ID + 1;
pub(super) const ORIGIN_LINE: u8 = ORIGIN_FILE + 1;

/// The context of the next length, after an answer of this code.
#[inline]
pub(super) fn length(last_code: u64) -> u8 {
    LENGTH + least(last_code, LENGTHS - 1)
}

/// The context of the next answer, after one of this code.
#[inline]
pub(super) fn answer(last_code: u64) -> u8 {
    ANSWER + least(last_code, ANSWERS - 1)
}

/// What says how a loc's triple is likely said.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Parent {
    None = 0,
    /// One that is the parent of another loc.
    Again = 1,
    New = 2,
}

/// The context of a loc's triple: by the number that said the triple before in this answer, if one did; by its parent; by whether what
/// it is counted from is the triple of the loc before it.
#[inline]
pub(super) fn triple(last: Option<u64>, parent: Parent, is_last: bool) -> u8 {
    let last = last.map_or(4, |last| least(last, 3));
    TRIPLE + (last * 3 + parent as u8) * 2 + u8::from(is_last)
}

/// The context of a triple's name.
#[inline]
pub(super) fn name(last: u64) -> u8 {
    NAME + least(last, NAMES - 1)
}

#[inline]
fn least(number: u64, most: u8) -> u8 {
    u8::try_from(number).map_or(most, |number| number.min(most))
}
