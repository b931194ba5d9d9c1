//! The exception index of 32-bit ARM, `.ARM.exidx`, and the instructions that it refers to (Exception handling ABI for
//! the Arm architecture, 6, 7 and 10.3).

use symdex::write::UnwindRules;
use symdex::{UnwindRule, UnwindValue};

use super::layer::Layer;
use super::{Allowance, Section, UnwindTables};
use crate::error::Error;
use crate::report::Problems;

const SP: u16 = 13;
const LR: u16 = 14;
const PC: u16 = 15;
/// The DWARF number of the register D0 (DWARF for the Arm architecture, 3.1).
const D0: u16 = 256;

/// An entry of the index.
#[derive(Clone, Copy)]
pub(crate) struct IndexEntry {
    /// Where its function starts (SVMA).
    pub(crate) start: u64,
    /// The second word, and its address.
    word: (u32, u64),
}

/// The entries of `.ARM.exidx`: each is two words, of which the first leads to where a function begins.
pub(crate) fn entries(index: Section<'_>) -> impl Iterator<Item = IndexEntry> {
    let addresses = (0..).map(move |number: u64| index.address.saturating_add(8 * number));
    let entries = index.bytes.as_chunks::<4>().0.as_chunks::<2>().0;
    entries.iter().zip(addresses).filter_map(|([first, second], address)| {
        let start = follow(address, u32::from_le_bytes(*first))?;
        Some(IndexEntry { start, word: (u32::from_le_bytes(*second), address.checked_add(4)?) })
    })
}

/// The address that the word at `address` refers to: a distance from itself in its low 31 bits.
fn follow(address: u64, word: u32) -> Option<u64> {
    // The sign of the distance is its bit 30.
    address.checked_add_signed(((word << 1).cast_signed() >> 1).into())
}

/// Adds a row for each entry of the index. A function ends where the next one begins.
pub(super) fn rows<'d>(
    tables: &UnwindTables<'d>,
    layer: &mut Layer<'_, 'd>,
    problems: &mut Problems,
) -> Result<(), Error> {
    let mut allowance = Allowance::new(tables.arm_index.bytes.len(), &layer.table);
    let (mut damaged, mut unknown) = (0, 0);
    let mut entries = entries(tables.arm_index).peekable();
    while let Some(entry) = entries.next() {
        let end = entries.peek().map_or(u64::MAX, |next| next.start);
        if entry.start >= end || !layer.begin(entry.start, end)? {
            continue;
        }
        let rules = match instructions(tables, entry) {
            // Entries may share their instructions.
            Some(Some(instructions)) if !allowance.take(instructions.len(), &layer.table) => continue,
            Some(Some(instructions)) => interpret(&instructions),
            Some(None) => Some(end_of_stack()),
            None => {
                damaged += 1;
                continue;
            }
        };
        unknown += u64::from(rules.is_none());
        let mut rules = rules.unwrap_or_else(|| UnwindRules::new(UnwindValue::Unknown, LR));
        rules.holds_at_calls_only = true;
        layer.add(entry.start, end, &rules)?;
    }
    problems.add("unwind entries that cannot be read", damaged);
    problems.add("unwind rows that the index cannot express", unknown);
    allowance.report(problems);
    Ok(())
}

/// The rules of a function that has no caller (`EXIDX_CANTUNWIND`).
fn end_of_stack() -> UnwindRules<'static> {
    let mut rules = UnwindRules::new(UnwindValue::Register { register: SP, offset: 0 }, LR);
    rules.registers.push((LR, UnwindRule::Undefined));
    rules
}

/// The unwind instructions of an entry: `Some(None)` if its function cannot be unwound, `None` if they cannot be read.
fn instructions(tables: &UnwindTables<'_>, entry: IndexEntry) -> Option<Option<Vec<u8>>> {
    const CANNOT_UNWIND: u32 = 1;
    let (word, address) = entry.word;
    if word == CANNOT_UNWIND {
        return Some(None);
    }
    // The short form, in the index itself.
    if word >> 31 != 0 {
        return short(word).map(Some);
    }
    let (words, _) = tables.others.from(follow(address, word)?)?.as_chunks::<4>();
    let mut words = words.iter().map(|word| u32::from_le_bytes(*word));
    let first = words.next()?;
    let mut bytes = Vec::new();
    let more = match (first >> 31, first >> 24 & 0xf) {
        (1, 0) => return short(first).map(Some),
        // The long forms: the number of words that follow, and two instructions.
        (1, 1 | 2) => {
            bytes.extend_from_slice(&first.to_be_bytes()[2..]);
            first >> 16 & 0xff
        }
        (1, _) => return None,
        // The generic form: a routine of the program, then as the long form. All routines that are in use share it.
        _ => {
            let second = words.next()?;
            bytes.extend_from_slice(&second.to_be_bytes()[1..]);
            second >> 24
        }
    };
    for _ in 0..more {
        bytes.extend(words.next()?.to_be_bytes());
    }
    Some(Some(bytes))
}

/// The three instructions in a word of the short form.
fn short(word: u32) -> Option<Vec<u8>> {
    (word >> 24 == 0x80).then(|| word.to_be_bytes()[1..].to_vec())
}

/// The virtual stack pointer while instructions are executed: the value of a register plus an offset.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Pointer {
    register: u16,
    offset: i64,
}

/// What the instructions have done so far.
struct State {
    pointer: Pointer,
    /// Where each register was popped from. Of several pops, the last one counts.
    popped: Popped,
    /// Where the stack pointer itself was popped from.
    loaded: Option<Pointer>,
}

/// Where registers were popped from: the core registers, then the doubles.
struct Popped([Option<Pointer>; 48]);

impl Popped {
    const DOUBLES: u16 = 16;

    /// The place of a register, which is one of the 16 core registers or of the 32 doubles.
    fn place(register: u16) -> usize {
        (if register < D0 { register } else { register - D0 + Self::DOUBLES }).into()
    }

    fn has(&self, register: u16) -> bool {
        self.0[Self::place(register)].is_some()
    }

    fn set(&mut self, register: u16, from: Pointer) {
        self.0[Self::place(register)] = Some(from);
    }

    /// The popped registers in ascending order.
    fn iter(&self) -> impl Iterator<Item = (u16, Pointer)> {
        let register = |place| if place < Self::DOUBLES { place } else { place - Self::DOUBLES + D0 };
        (0..).zip(&self.0).filter_map(move |(place, from)| Some((register(place), (*from)?)))
    }
}

/// The rules that `instructions` stand for. `None` if the index cannot express them.
fn interpret(instructions: &[u8]) -> Option<UnwindRules<'static>> {
    let mut state =
        State { pointer: Pointer { register: SP, offset: 0 }, popped: Popped([None; 48]), loaded: None };
    let mut bytes = instructions.iter().copied();
    while let Some(byte) = bytes.next() {
        // The stack pointer is known from memory only, so nothing can be popped.
        if byte != FINISH && state.loaded.is_some() {
            return None;
        }
        if byte == FINISH {
            break;
        }
        state.execute(byte, &mut bytes)?;
    }
    Some(state.rules())
}

const FINISH: u8 = 0xb0;

impl State {
    /// Executes the instruction that begins with `byte`. `None` if it is reserved or cannot be expressed.
    fn execute(&mut self, byte: u8, rest: &mut impl Iterator<Item = u8>) -> Option<()> {
        let low = u16::from(byte & 7);
        match byte {
            0x00..=0x3f => self.pointer.offset += i64::from(byte) * 4 + 4,
            0x40..=0x7f => self.pointer.offset -= i64::from(byte & 0x3f) * 4 + 4,
            0x80..=0x8f => {
                let mask = u16::from(byte & 0xf) << 8 | u16::from(rest.next()?);
                // A mask of 0 means that the function refuses to be unwound.
                (mask != 0).then_some(())?;
                self.pop_mask(mask, 4);
            }
            0x90..=0x9f => {
                let register = u16::from(byte & 0xf);
                (!matches!(register, SP | PC) && !self.popped.has(register)).then_some(())?;
                self.pointer = Pointer { register, offset: 0 };
            }
            0xa0..=0xa7 => self.pop(4..=4 + low, 4),
            0xa8..=0xaf => {
                self.pop(4..=4 + low, 4);
                self.pop(LR..=LR, 4);
            }
            0xb1 => {
                let mask = rest.next().filter(|mask| (1..16).contains(mask))?;
                self.pop_mask(mask.into(), 0);
            }
            0xb2 => self.pointer.offset += 0x204 + (leb128(rest)? << 2),
            0xb3 => {
                self.pop_doubles(0, rest.next()?)?;
                self.pointer.offset += 4;
            }
            // The return address authentication code.
            0xb4 => self.pointer.offset += 4,
            0xb8..=0xbf => {
                self.pop(D0 + 8..=D0 + 8 + low, 8);
                self.pointer.offset += 4;
            }
            0xc8 => self.pop_doubles(16, rest.next()?)?,
            0xc9 => self.pop_doubles(0, rest.next()?)?,
            0xd0..=0xd7 => self.pop(D0 + 8..=D0 + 8 + low, 8),
            _ => return None,
        }
        Some(())
    }

    /// Pops the registers whose bits are set in `mask`. Bit 0 stands for the register `first`.
    fn pop_mask(&mut self, mask: u16, first: u16) {
        for register in (0..12).filter(|bit| mask >> bit & 1 == 1).map(|bit| first + bit) {
            self.pop(register..=register, 4);
        }
    }

    /// Pops as many registers for floating-point numbers as the low half of `byte` says, and one more.
    fn pop_doubles(&mut self, first: u16, byte: u8) -> Option<()> {
        let first = first + u16::from(byte >> 4);
        let last = first + u16::from(byte & 0xf);
        (last < 32).then(|| self.pop(D0 + first..=D0 + last, 8))
    }

    fn pop(&mut self, registers: std::ops::RangeInclusive<u16>, size: i64) {
        for register in registers {
            if register == SP {
                self.loaded = Some(self.pointer);
            }
            self.popped.set(register, self.pointer);
            self.pointer.offset += size;
        }
    }

    fn rules(self) -> UnwindRules<'static> {
        let Self { pointer, popped, loaded } = self;
        let cfa = match loaded {
            Some(Pointer { register, offset }) => UnwindValue::Loaded { register, offset, add: 0 },
            None => UnwindValue::Register { register: pointer.register, offset: pointer.offset },
        };
        let mut rules = UnwindRules::new(cfa, if popped.has(PC) { PC } else { LR });
        let others = popped.iter().filter(|(register, _)| *register != SP);
        rules.registers.extend(others.map(|(register, from)| {
            let value = if loaded.is_none() && from.register == pointer.register {
                UnwindValue::Cfa(from.offset - pointer.offset)
            } else {
                UnwindValue::Register { register: from.register, offset: from.offset }
            };
            (register, UnwindRule::Stored(value))
        }));
        rules
    }
}

/// An unsigned LEB128 number that leaves room for a few bits more.
fn leb128(bytes: &mut impl Iterator<Item = u8>) -> Option<i64> {
    let mut value = 0;
    for shift in (0..28).step_by(7) {
        let byte = bytes.next()?;
        value |= i64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The CFA as register and offset, and the registers at their distances from the CFA.
    fn simple(instructions: &[u8]) -> (u16, i64, Vec<(u16, i64)>) {
        let rules = interpret(instructions).expect("known");
        let UnwindValue::Register { register, offset } = rules.cfa else { panic!("{rules:?}") };
        let registers = rules.registers.iter().map(|(register, rule)| match rule {
            UnwindRule::Stored(UnwindValue::Cfa(offset)) => (*register, *offset),
            other => panic!("{other:?}"),
        });
        (register, offset, registers.collect())
    }

    #[test]
    fn pops_are_stores_below_the_cfa() {
        // push {r4, r7, lr}; add r7, sp, #4; sub sp, #24.
        assert_eq!(simple(&[0x05, 0x80 | 0x4, 0x09, 0xb0]), (13, 36, vec![(4, -12), (7, -8), (14, -4)]));
        // vsp = r7; vsp -= 12; pop {r4-r7, lr}.
        let expected = vec![(4, -20), (5, -16), (6, -12), (7, -8), (14, -4)];
        assert_eq!(simple(&[0x97, 0x42, 0xab, 0xb0]), (7, 8, expected));
        // vpop {d8-d9}; pop {r0, r1}; a large stack.
        let expected = vec![(0, -8 - 0x208), (1, -4 - 0x208), (264, -24 - 0x208), (265, -16 - 0x208)];
        assert_eq!(simple(&[0xd1, 0xb1, 0x03, 0xb2, 0x01]), (13, 24 + 0x208, expected));
        assert_eq!(simple(&[0xb0, 0xb0, 0xb0]), (13, 0, Vec::new()), "a leaf function");
    }

    #[test]
    fn a_popped_stack_pointer_and_counter_are_known() {
        let rules = interpret(&[0x8c, 0x00]).expect("pop {lr, pc}");
        assert_eq!(rules.return_register, PC);
        let rules = interpret(&[0x82, 0x01, 0xb0]).expect("pop {r4, sp}");
        assert_eq!(rules.cfa, UnwindValue::Loaded { register: SP, offset: 4, add: 0 });
        let at = UnwindValue::Register { register: SP, offset: 0 };
        assert_eq!(rules.registers, [(4, UnwindRule::Stored(at))]);
    }

    #[test]
    fn what_cannot_be_expressed_is_told_apart() {
        for instructions in [
            &[0x80, 0x00][..],   // refuses
            &[0x9d],             // reserved
            &[0xa0, 0x94],       // vsp = r4 after r4 was popped
            &[0x82, 0x00, 0x01], // more after sp was popped
            &[0xc8, 0xff],       // D31 and more
            &[0xb2, 0xff, 0xff, 0xff, 0xff, 0x7f],
            &[0xb1, 0x00],
            &[0x81],
            &[0xff],
        ] {
            assert!(interpret(instructions).is_none(), "{instructions:x?}");
        }
    }
}
