//! Frame layouts: where a frame keeps the registers of its caller. Many rules share one.
//!
//! ```text
//! varint  flags
//! varint  number of the register that has the return address
//! value   the CFA, if a flag says so
//! varint  number of registers with a rule
//! .       the registers in ascending order, each: varint, its number minus that of the one before minus 1 (the first:
//!         its number); varint, kind of its rule; for some kinds a value
//! ```
//!
//! A value is written after its kind: of the CFA as a varint, of a register as a part of the kind of the rule.

use super::{UnwindRule, UnwindValue};
use crate::format::{Cursor, unzigzag};

/// The flag of code that a signal handler returns to.
pub(crate) const SIGNAL_FRAME: u64 = 1;
/// The flag of a signed return address.
pub(crate) const SIGNED: u64 = 2;
/// The flag of rules that hold only at calls.
pub(crate) const CALLS_ONLY: u64 = 4;
/// The flag of a layout that states the CFA itself.
pub(crate) const OWN_CFA: u64 = 8;
const KNOWN_FLAGS: u64 = SIGNAL_FRAME | SIGNED | CALLS_ONLY | OWN_CFA;

/// The most bytes of a layout.
pub(crate) const MAX_LAYOUT: usize = 4096;
/// The most registers of a layout.
pub(crate) const MAX_REGISTERS: usize = 128;
/// The most bytes of an expression.
pub(crate) const MAX_EXPRESSION: usize = 255;

/// How a value is written. The number is its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ValueKind {
    Cfa = 0,
    Register = 1,
    Loaded = 2,
    Expression = 3,
    Unknown = 4,
}

/// How a rule is written: its kind is `Undefined`, `SameValue`, or one of these plus twice the kind of its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RuleKind {
    Undefined = 0,
    SameValue = 1,
    Stored = 2,
    Value = 3,
}

/// A layout whose bytes are valid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FrameLayout<'i> {
    /// All of its bytes.
    pub(super) bytes: &'i [u8],
    flags: u64,
    pub(super) return_register: u16,
    /// The CFA, if the layout states it.
    pub(super) cfa: Option<UnwindValue<'i>>,
    registers: u16,
    /// The registers and their rules.
    rules: &'i [u8],
}

impl<'i> FrameLayout<'i> {
    /// The layout in `bytes`. Returns `None` if it is invalid.
    pub(super) fn decode(bytes: &'i [u8]) -> Option<Self> {
        if bytes.len() > MAX_LAYOUT {
            return None;
        }
        let mut cursor = Cursor::new(bytes);
        let flags = cursor.varint().filter(|flags| flags & !KNOWN_FLAGS == 0)?;
        let return_register = register(&mut cursor)?;
        let cfa = if flags & OWN_CFA != 0 {
            let kind = cursor.varint()?;
            // The CFA cannot depend on itself.
            Some(value(kind, &mut cursor).filter(|value| !matches!(value, UnwindValue::Cfa(_)))?)
        } else {
            None
        };
        let registers = cursor.count(MAX_REGISTERS).and_then(|count| u16::try_from(count).ok())?;
        let rules = bytes.get(cursor.position(bytes)..)?;
        let layout = Self { bytes, flags, return_register, cfa, registers, rules };
        let mut rules = Registers::of(&layout);
        rules.by_ref().for_each(drop);
        rules.is_done().then_some(layout)
    }

    pub(super) fn has(&self, flag: u64) -> bool {
        self.flags & flag != 0
    }
}

/// The registers of a layout and their rules.
pub(super) struct Registers<'i> {
    left: u16,
    /// The least number that the next register can have.
    next: u16,
    cursor: Cursor<'i>,
}

impl<'i> Registers<'i> {
    pub(super) fn of(layout: &FrameLayout<'i>) -> Self {
        Self { left: layout.registers, next: 0, cursor: Cursor::new(layout.rules) }
    }

    /// Whether all registers were read, and no byte is left.
    fn is_done(&self) -> bool {
        self.left == 0 && self.cursor.is_empty()
    }

    fn read(&mut self) -> Option<(u16, UnwindRule<'i>)> {
        let number = self.next.checked_add(register(&mut self.cursor)?)?;
        let rule = rule(&mut self.cursor)?;
        self.next = number.checked_add(1)?;
        Some((number, rule))
    }
}

impl<'i> Iterator for Registers<'i> {
    type Item = (u16, UnwindRule<'i>);

    /// The next register. Ends early if the bytes are invalid, which they are not after [`FrameLayout::decode`].
    fn next(&mut self) -> Option<Self::Item> {
        let left = self.left.checked_sub(1)?;
        let item = self.read()?;
        self.left = left;
        Some(item)
    }
}

fn register(cursor: &mut Cursor<'_>) -> Option<u16> {
    u16::try_from(cursor.varint()?).ok()
}

fn signed(cursor: &mut Cursor<'_>) -> Option<i64> {
    cursor.varint().map(unzigzag)
}

fn rule<'i>(cursor: &mut Cursor<'i>) -> Option<UnwindRule<'i>> {
    const UNDEFINED: u64 = RuleKind::Undefined as u64;
    const SAME_VALUE: u64 = RuleKind::SameValue as u64;
    Some(match cursor.varint()? {
        UNDEFINED => UnwindRule::Undefined,
        SAME_VALUE => UnwindRule::SameValue,
        kind => {
            let value = value((kind - RuleKind::Stored as u64) / 2, cursor)?;
            if kind % 2 == RuleKind::Value as u64 % 2 {
                UnwindRule::Value(value)
            } else {
                UnwindRule::Stored(value)
            }
        }
    })
}

fn value<'i>(kind: u64, cursor: &mut Cursor<'i>) -> Option<UnwindValue<'i>> {
    const CFA: u64 = ValueKind::Cfa as u64;
    const REGISTER: u64 = ValueKind::Register as u64;
    const LOADED: u64 = ValueKind::Loaded as u64;
    const EXPRESSION: u64 = ValueKind::Expression as u64;
    const UNKNOWN: u64 = ValueKind::Unknown as u64;
    Some(match kind {
        CFA => UnwindValue::Cfa(signed(cursor)?),
        REGISTER => UnwindValue::Register { register: register(cursor)?, offset: signed(cursor)? },
        LOADED => {
            UnwindValue::Loaded { register: register(cursor)?, offset: signed(cursor)?, add: signed(cursor)? }
        }
        EXPRESSION => {
            let size = cursor.count(MAX_EXPRESSION)?;
            UnwindValue::Expression(cursor.bytes(size).filter(|bytes| is_known_expression(bytes))?)
        }
        UNKNOWN => UnwindValue::Unknown,
        _ => return None,
    })
}

/// Whether [`UnwindValue::Expression`] can have these bytes: the reader knows all operations, and they are whole.
pub(crate) fn is_known_expression(bytes: &[u8]) -> bool {
    bytes.len() <= MAX_EXPRESSION && super::evaluate::operations(bytes).all(|operation| operation.is_some())
}
