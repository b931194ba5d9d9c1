//! The contexts of numbers: what kind a number is of, and for some kinds what came before it. Each context has a code of its own.

/// How many contexts there are.
pub(crate) const CONTEXTS: usize = OTHER_LINE as usize + 1;

/// Bytes of a gap.
pub(crate) const GAP: u8 = 0;
/// Where the function of the next ranges starts: at the start of a block, later in it.
pub(crate) const FUNCTION: u8 = 1;
/// The part of a head that does not fit an answer's code.
pub(crate) const MORE_HEAD: u8 = 3;
/// Bytes of a range; see [`length`].
const LENGTH: u8 = 4;
const LENGTHS: u8 = 4;
/// An answer's code; see [`answer`].
const ANSWER: u8 = LENGTH + LENGTHS;
const ANSWERS: u8 = 12;
/// The source location of an inline frame; see [`source`].
const SOURCE: u8 = ANSWER + ANSWERS;
/// The name of a source location: after one with a new name or at the start of a group, after another one.
pub(crate) const NAME: u8 = SOURCE + 5;
/// The id of a new name.
pub(crate) const ID: u8 = NAME + 2;
/// The file of a source location with a new name.
pub(crate) const FILE: u8 = ID + 1;
/// The line of a source location with a new name: in the file of the new name before, in another file.
pub(crate) const NEW_LINE: u8 = FILE + 1;
/// The line of another source location: with the name of the source location before, with another name.
pub(crate) const LINE: u8 = NEW_LINE + 2;
/// File and line of a source location in another file than the others of its name.
pub(crate) const OTHER_FILE: u8 = LINE + 2;
pub(crate) const OTHER_LINE: u8 = OTHER_FILE + 1;

/// The context of the length of a range whose answer defines so many inline frames.
#[inline]
pub(crate) fn length(defines: u64) -> u8 {
    LENGTH + least(defines, LENGTHS - 1)
}

/// The context of an answer's code behind the code `last`.
#[inline]
pub(crate) fn answer(last: u64) -> u8 {
    ANSWER + least(last, ANSWERS - 1)
}

/// The callers that an inline frame can have.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Caller {
    None = 0,
    /// One that is the caller of another inline frame of the block.
    Again = 1,
    New = 2,
}

/// The context of the source location of an inline frame; `last` is the number of the one defined before in the same answer.
#[inline]
pub(crate) fn source(last: Option<u64>, caller: Caller) -> u8 {
    SOURCE
        + match last {
            None => caller as u8,
            Some(0) => 3,
            Some(_) => 4,
        }
}

#[inline]
fn least(number: u64, most: u8) -> u8 {
    number.min(most.into()).to_le_bytes()[0]
}
