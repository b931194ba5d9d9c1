//! The optional section of unwind rows, encoded.
//!
//! This file numbers the rules of rows, and encodes frame layouts. [`rows`] makes the section.

mod rows;
mod steps;

pub use self::rows::{EncodedUnwindRows, UnwindRange};
use super::bits::{put_varint, zigzag};
use super::interner::Interner;
use crate::error::Error;
use crate::packed::codes::NUMBER_BITS;
use crate::unwind::{
    CALLS_ONLY, MAX_LAYOUT, MAX_REGISTERS, OWN_CFA, RuleKind, SIGNAL_FRAME, SIGNED, UnwindRow, UnwindRule,
    UnwindValue, ValueKind, is_known_expression,
};

/// The rules of an unwind row, to be written.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct UnwindRules<'r> {
    /// See [`UnwindRow::cfa`]. It is not [`UnwindValue::Cfa`].
    pub cfa: UnwindValue<'r>,
    /// See [`UnwindRow::return_register`].
    pub return_register: u16,
    /// The registers that have rules, in ascending order, at most 128.
    pub registers: Vec<(u16, UnwindRule<'r>)>,
    /// See [`UnwindRow::is_signal_frame`].
    pub is_signal_frame: bool,
    /// See [`UnwindRow::is_return_address_signed`].
    pub is_return_address_signed: bool,
    /// See [`UnwindRow::holds_at_calls_only`].
    pub holds_at_calls_only: bool,
}

impl<'r> UnwindRules<'r> {
    /// Rules for the CFA alone. The caller sets the other fields.
    #[must_use]
    pub fn new(cfa: UnwindValue<'r>, return_register: u16) -> Self {
        Self {
            cfa,
            return_register,
            registers: Vec::new(),
            is_signal_frame: false,
            is_return_address_signed: false,
            holds_at_calls_only: false,
        }
    }
}

impl<'r> From<&UnwindRow<'r>> for UnwindRules<'r> {
    fn from(row: &UnwindRow<'r>) -> Self {
        Self {
            registers: row.rules().collect(),
            is_signal_frame: row.is_signal_frame(),
            is_return_address_signed: row.is_return_address_signed(),
            holds_at_calls_only: row.holds_at_calls_only(),
            ..Self::new(row.cfa(), row.return_register())
        }
    }
}

/// Whether an index can have this expression; see [`UnwindValue::Expression`]. The writer stores any other expression
/// as [`UnwindValue::Unknown`].
#[must_use]
pub fn is_unwind_expression(bytes: &[u8]) -> bool {
    is_known_expression(bytes)
}

/// Distinct rules of unwind rows, by number.
pub struct UnwindTable {
    layouts: Interner,
    /// As [`Self::rules`], by their bytes.
    numbers: Interner,
    /// For each rule: its layout plus 1, the register of the CFA plus 1 or 0, and what is added to it, folded.
    rules: Vec<[u64; 3]>,
    /// The layout of the last rule.
    bytes: Vec<u8>,
}

/// The rule of gaps: the first one.
const GAP: [u64; 3] = [0; 3];

impl Default for UnwindTable {
    fn default() -> Self {
        let [layouts, mut numbers] = [Interner::new(), Interner::new()];
        numbers.number(GAP.map(u64::to_le_bytes).as_flattened());
        Self { layouts, numbers, rules: vec![GAP], bytes: Vec::new() }
    }
}

impl UnwindTable {
    /// The number of these rules, for [`UnwindRange::rules`].
    ///
    /// # Errors
    ///
    /// [`Error::Unwritable`] if there are more registers, or more bytes for them, than the format allows.
    pub fn number(&mut self, rules: &UnwindRules<'_>) -> Result<u32, Error> {
        self.bytes.clear();
        put_layout(&mut self.bytes, rules)?;
        let (layout, _) = self.layouts.number(&self.bytes);
        let (register, offset) = match rules.cfa {
            UnwindValue::Register { register, offset } => (u64::from(register) + 1, zigzag(offset)),
            _ => (0, 0),
        };
        if offset >> NUMBER_BITS != 0 {
            return Err(Error::Unwritable { what: "a CFA that is too far from its register" });
        }
        let rule = [u64::from(layout) + 1, register, offset];
        let (number, is_new) = self.numbers.number(rule.map(u64::to_le_bytes).as_flattened());
        if is_new {
            self.rules.push(rule);
        }
        Ok(number)
    }

    /// About how many bytes of memory the table takes.
    #[must_use]
    pub fn size(&self) -> usize {
        self.layouts.size() + self.numbers.size() + size_of_val(&self.rules[..])
    }
}

/// Appends the layout of `rules`; see [`crate::unwind`].
fn put_layout(out: &mut Vec<u8>, rules: &UnwindRules<'_>) -> Result<(), Error> {
    let unwritable = |what| Err(Error::Unwritable { what });
    let flags = [
        (rules.is_signal_frame, SIGNAL_FRAME),
        (rules.is_return_address_signed, SIGNED),
        (rules.holds_at_calls_only, CALLS_ONLY),
        (!matches!(rules.cfa, UnwindValue::Register { .. }), OWN_CFA),
    ];
    let flags = flags.iter().filter(|(is_set, _)| *is_set).fold(0, |flags, (_, flag)| flags | flag);
    put_varint(out, flags);
    put_varint(out, rules.return_register.into());
    match rules.cfa {
        UnwindValue::Cfa(_) => return unwritable("a CFA that depends on itself"),
        UnwindValue::Register { .. } => {}
        cfa => {
            put_varint(out, kind_of(cfa) as u64);
            put_value(out, cfa);
        }
    }
    if rules.registers.len() > MAX_REGISTERS {
        return unwritable("an unwind row for more registers than the format allows");
    }
    put_varint(out, rules.registers.len() as u64);
    let mut next = 0;
    for (register, rule) in &rules.registers {
        let Some(skipped) = register.checked_sub(next).filter(|_| *register != u16::MAX) else {
            return unwritable("an unwind row whose registers are not in order");
        };
        next = register + 1;
        put_varint(out, skipped.into());
        let (base, value) = match rule {
            UnwindRule::Undefined => (RuleKind::Undefined, None),
            UnwindRule::SameValue => (RuleKind::SameValue, None),
            UnwindRule::Stored(value) => (RuleKind::Stored, Some(*value)),
            UnwindRule::Value(value) => (RuleKind::Value, Some(*value)),
        };
        put_varint(out, base as u64 + value.map_or(0, |value| 2 * kind_of(value) as u64));
        value.into_iter().for_each(|value| put_value(out, value));
    }
    if out.len() > MAX_LAYOUT {
        return unwritable("an unwind row of more bytes than the format allows");
    }
    Ok(())
}

fn kind_of(value: UnwindValue<'_>) -> ValueKind {
    match value {
        UnwindValue::Cfa(_) => ValueKind::Cfa,
        UnwindValue::Register { .. } => ValueKind::Register,
        UnwindValue::Loaded { .. } => ValueKind::Loaded,
        UnwindValue::Expression(bytes) if is_known_expression(bytes) => ValueKind::Expression,
        UnwindValue::Expression(_) | UnwindValue::Unknown => ValueKind::Unknown,
    }
}

/// Appends a value, without its kind.
fn put_value(out: &mut Vec<u8>, value: UnwindValue<'_>) {
    match value {
        UnwindValue::Cfa(offset) => put_varint(out, zigzag(offset)),
        UnwindValue::Register { register, offset } => {
            put_varint(out, register.into());
            put_varint(out, zigzag(offset));
        }
        UnwindValue::Loaded { register, offset, add } => {
            put_varint(out, register.into());
            [offset, add].into_iter().for_each(|number| put_varint(out, zigzag(number)));
        }
        UnwindValue::Expression(bytes) if is_known_expression(bytes) => {
            put_varint(out, bytes.len() as u64);
            out.extend_from_slice(bytes);
        }
        UnwindValue::Expression(_) | UnwindValue::Unknown => {}
    }
}
