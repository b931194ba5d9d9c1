//! Applies unwind rules to the registers and the memory of a frame.

use super::{UnwindRow, UnwindRule, UnwindValue};
use crate::format::Cursor;

/// The registers of a frame, and the memory of its thread.
pub trait FrameState {
    /// The value of a register, by its DWARF number. `None` if it is not known.
    fn register(&mut self, register: u16) -> Option<u64>;

    /// The word at `address`: little-endian, as many bytes as a register has. `None` if the memory is not known.
    fn word(&mut self, address: u64) -> Option<u64>;
}

/// The most numbers on the stack of an expression.
const STACK: usize = 32;

impl UnwindRow<'_> {
    /// The canonical frame address of the frame with this state. Returns `None` if it depends on registers or memory
    /// that are not known, or on what the index cannot express.
    pub fn find_cfa(&self, state: &mut impl FrameState) -> Option<u64> {
        self.compute(self.cfa, None, state)
    }

    /// The caller's value of a register. `cfa` is that of [`Self::find_cfa`]. A register without a rule has the value
    /// that it has in this frame.
    ///
    /// Returns `None` if the value is lost, or for the reasons of [`Self::find_cfa`].
    pub fn find_register(&self, register: u16, cfa: u64, state: &mut impl FrameState) -> Option<u64> {
        let value = match self.rule(register).unwrap_or(UnwindRule::SameValue) {
            UnwindRule::Undefined => return None,
            UnwindRule::SameValue => state.register(register)?,
            UnwindRule::Stored(at) => {
                let at = self.compute(at, Some(cfa), state)?;
                state.word(at)?
            }
            UnwindRule::Value(value) => self.compute(value, Some(cfa), state)?,
        };
        Some(value & self.mask)
    }

    fn compute(&self, value: UnwindValue<'_>, cfa: Option<u64>, state: &mut impl FrameState) -> Option<u64> {
        let plus = |value: u64, offset: i64| value.wrapping_add_signed(offset) & self.mask;
        Some(match value {
            UnwindValue::Cfa(offset) => plus(cfa?, offset),
            UnwindValue::Register { register, offset } => plus(state.register(register)?, offset),
            UnwindValue::Loaded { register, offset, add } => {
                let at = plus(state.register(register)?, offset);
                plus(state.word(at)?, add)
            }
            UnwindValue::Expression(bytes) => evaluate(bytes, cfa, self.mask, state)?,
            UnwindValue::Unknown => return None,
        })
    }
}

/// An operation of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Constant(u64),
    Register {
        register: u16,
        offset: i64,
    },
    Pick(u8),
    Deref,
    Add(u64),
    /// An operation without operands, by its number: on one number, on two, or on the order of the stack.
    Plain(u8),
}

/// The operations of an expression. An item is `None` if the operation is unknown or cut; nothing follows it.
pub(super) fn operations(bytes: &[u8]) -> impl Iterator<Item = Option<Operation>> + use<'_> {
    let mut cursor = Some(Cursor::new(bytes)).filter(|cursor| !cursor.is_empty());
    std::iter::from_fn(move || {
        let mut rest = cursor.take()?;
        let operation = operation(&mut rest);
        cursor = Some(rest).filter(|rest| operation.is_some() && !rest.is_empty());
        Some(operation)
    })
}

/// The next operation (DWARF 5, 7.7.1). `None` if it is none of those that unwind information needs.
fn operation(cursor: &mut Cursor<'_>) -> Option<Operation> {
    let [code] = cursor.array()?;
    Some(match code {
        // DW_OP_const1u to DW_OP_consts.
        0x08 => Operation::Constant(u8::from_le_bytes(cursor.array()?).into()),
        0x09 => Operation::Constant(i64::from(i8::from_le_bytes(cursor.array()?)).cast_unsigned()),
        0x0a => Operation::Constant(u16::from_le_bytes(cursor.array()?).into()),
        0x0b => Operation::Constant(i64::from(i16::from_le_bytes(cursor.array()?)).cast_unsigned()),
        0x0c => Operation::Constant(u32::from_le_bytes(cursor.array()?).into()),
        0x0d => Operation::Constant(i64::from(i32::from_le_bytes(cursor.array()?)).cast_unsigned()),
        0x0e | 0x0f => Operation::Constant(u64::from_le_bytes(cursor.array()?)),
        0x10 => Operation::Constant(cursor.varint()?),
        0x11 => Operation::Constant(signed(cursor)?.cast_unsigned()),
        0x06 => Operation::Deref,
        0x15 => Operation::Pick(u8::from_le_bytes(cursor.array()?)),
        0x23 => Operation::Add(cursor.varint()?),
        // DW_OP_lit0 to DW_OP_lit31.
        0x30..=0x4f => Operation::Constant((code - 0x30).into()),
        // DW_OP_breg0 to DW_OP_breg31, and DW_OP_bregx.
        0x70..=0x8f => Operation::Register { register: (code - 0x70).into(), offset: signed(cursor)? },
        0x92 => {
            let register = u16::try_from(cursor.varint()?).ok()?;
            Operation::Register { register, offset: signed(cursor)? }
        }
        // From DW_OP_dup on, without those that have operands, branch, or read other memory.
        0x12..=0x14 | 0x16 | 0x17 | 0x19..=0x22 | 0x24..=0x27 | 0x29..=0x2e | 0x96 => Operation::Plain(code),
        _ => return None,
    })
}

/// A signed LEB128 number of at most ten bytes.
fn signed(cursor: &mut Cursor<'_>) -> Option<i64> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let [byte] = cursor.array()?;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            let unused = 64u32.saturating_sub(shift + 7);
            // The sign is the highest bit of the last byte.
            return Some(value.cast_signed() << unused >> unused);
        }
    }
    None
}

/// The numbers that an expression works on.
struct Stack {
    numbers: [u64; STACK],
    len: usize,
    mask: u64,
}

impl Stack {
    fn push(&mut self, number: u64) -> Option<()> {
        *self.numbers.get_mut(self.len)? = number & self.mask;
        self.len += 1;
        Some(())
    }

    fn pop(&mut self) -> Option<u64> {
        self.len = self.len.checked_sub(1)?;
        self.numbers.get(self.len).copied()
    }

    /// The number below `above` others.
    fn pick(&self, above: usize) -> Option<u64> {
        let at = self.len.checked_sub(1)?.checked_sub(above)?;
        self.numbers.get(at).copied()
    }

    /// A number with the sign of the highest bit of a register.
    fn signed(&self, number: u64) -> i64 {
        let unused = self.mask.leading_zeros();
        number.cast_signed() << unused >> unused
    }

    fn plain(&mut self, code: u8) -> Option<()> {
        match code {
            // DW_OP_dup, drop, over.
            0x12 => self.push(self.pick(0)?),
            0x13 => self.pop().map(drop),
            0x14 => self.push(self.pick(1)?),
            // DW_OP_swap, rot.
            0x16 => {
                let (top, second) = (self.pop()?, self.pop()?);
                [top, second].into_iter().try_for_each(|number| self.push(number))
            }
            0x17 => {
                let (top, second, third) = (self.pop()?, self.pop()?, self.pop()?);
                [top, third, second].into_iter().try_for_each(|number| self.push(number))
            }
            0x96 => Some(()),
            // DW_OP_abs, neg, not.
            0x19 | 0x1f | 0x20 => {
                let number = self.pop()?;
                self.push(match code {
                    0x19 => self.signed(number).unsigned_abs(),
                    0x1f => number.wrapping_neg(),
                    _ => !number,
                })
            }
            _ => {
                let (right, left) = (self.pop()?, self.pop()?);
                let result = self.binary(code, left, right)?;
                self.push(result)
            }
        }
    }

    /// The result of an operation on two numbers; `right` was on top.
    fn binary(&self, code: u8, left: u64, right: u64) -> Option<u64> {
        let (signed_left, signed_right) = (self.signed(left), self.signed(right));
        let bits = 64 - self.mask.leading_zeros();
        let shift = u32::try_from(right).ok().filter(|shift| *shift < bits);
        Some(match code {
            0x1a => left & right,
            0x1b => signed_left.checked_div(signed_right)?.cast_unsigned(),
            0x1c => left.wrapping_sub(right),
            0x1d => left.checked_rem(right)?,
            0x1e => left.wrapping_mul(right),
            0x21 => left | right,
            0x22 => left.wrapping_add(right),
            0x24 => shift.map_or(0, |shift| left << shift),
            0x25 => shift.map_or(0, |shift| left >> shift),
            0x26 => (signed_left >> shift.unwrap_or(bits - 1)).cast_unsigned(),
            0x27 => left ^ right,
            // DW_OP_eq, ge, gt, le, lt, ne.
            0x29 => u64::from(left == right),
            0x2a => u64::from(signed_left >= signed_right),
            0x2b => u64::from(signed_left > signed_right),
            0x2c => u64::from(signed_left <= signed_right),
            0x2d => u64::from(signed_left < signed_right),
            0x2e => u64::from(left != right),
            _ => return None,
        })
    }
}

/// The result of an expression: the last number on its stack. Returns `None` if it fails.
fn evaluate(bytes: &[u8], cfa: Option<u64>, mask: u64, state: &mut impl FrameState) -> Option<u64> {
    let mut stack = Stack { numbers: [0; STACK], len: 0, mask };
    if let Some(cfa) = cfa {
        stack.push(cfa)?;
    }
    for operation in operations(bytes) {
        match operation? {
            Operation::Constant(number) => stack.push(number)?,
            Operation::Register { register, offset } => {
                stack.push(state.register(register)?.wrapping_add_signed(offset))?;
            }
            Operation::Pick(above) => stack.push(stack.pick(above.into())?)?,
            Operation::Deref => {
                let at = stack.pop()?;
                stack.push(state.word(at)?)?;
            }
            Operation::Add(number) => {
                let sum = stack.pop()?.wrapping_add(number);
                stack.push(sum)?;
            }
            Operation::Plain(code) => stack.plain(code)?,
        }
    }
    stack.pop()
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Registers;

    impl FrameState for Registers {
        fn register(&mut self, register: u16) -> Option<u64> {
            (register < 17).then(|| 0x1000 * u64::from(register) + 0xb)
        }

        fn word(&mut self, address: u64) -> Option<u64> {
            (address >= 0x100).then_some(address + 1)
        }
    }

    fn result(bytes: &[u8], cfa: Option<u64>) -> Option<u64> {
        evaluate(bytes, cfa, u64::MAX, &mut Registers)
    }

    #[test]
    fn the_expression_of_plt_stubs_is_evaluated() {
        // rsp + 8 + ((rip & 15) >= 11) << 3.
        let plt = [0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22];
        assert_eq!(result(&plt, None), Some(0x700b + 8 + 8));
        assert!(operations(&plt).all(|operation| operation.is_some()));
    }

    #[test]
    fn expressions_of_registers_begin_with_the_cfa() {
        assert_eq!(result(&[0x23, 0x10], Some(0x2000)), Some(0x2010));
        assert_eq!(result(&[0x23, 0x10], None), None);
        // DW_OP_breg3 -11, DW_OP_deref.
        assert_eq!(result(&[0x73, 0x75, 0x06], Some(1)), Some(0x3001));
        assert_eq!(result(&[0x08, 0x10, 0x06], Some(1)), None, "memory that is not known");
    }

    #[test]
    fn numbers_have_as_many_bits_as_a_register() {
        let evaluate = |bytes: &[u8]| evaluate(bytes, None, u32::MAX.into(), &mut Registers);
        assert_eq!(evaluate(&[0x09, 0xff]), Some(0xffff_ffff));
        // -2 >> 1, arithmetic; -4 / 2; 1 << 32.
        assert_eq!(evaluate(&[0x09, 0xfe, 0x31, 0x26]), Some(0xffff_ffff));
        assert_eq!(evaluate(&[0x09, 0xfc, 0x32, 0x1b]), Some(0xffff_fffe));
        assert_eq!(evaluate(&[0x31, 0x08, 32, 0x24]), Some(0));
        assert_eq!(evaluate(&[0x31, 0x30, 0x1b]), None, "a division by zero");
    }

    #[test]
    fn unknown_and_cut_operations_fail() {
        for bytes in [&[0x28, 0, 0][..], &[0x0c, 1, 2], &[0x9c], &[0x70], &[0x70, 0x80]] {
            assert!(operations(bytes).any(|operation| operation.is_none()), "{bytes:x?}");
            assert_eq!(result(bytes, Some(0)), None);
        }
        assert_eq!(result(&[0x12; 64], Some(0)), None, "more numbers than the stack has room for");
        assert_eq!(result(&[0x13, 0x13], Some(0)), None);
    }

    #[test]
    fn stack_operations_are_those_of_dwarf() {
        // 1 2 3 rot -> 3 1 2; then swap and minus: 2 - ... as DWARF defines them.
        assert_eq!(result(&[0x31, 0x32, 0x33, 0x17], None), Some(2));
        assert_eq!(result(&[0x31, 0x32, 0x16, 0x1c], None), Some(1));
        assert_eq!(result(&[0x31, 0x32, 0x14], None), Some(1));
        assert_eq!(result(&[0x31, 0x32, 0x33, 0x15, 2], None), Some(1));
    }
}
