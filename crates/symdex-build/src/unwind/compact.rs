//! Apple's compact unwind information, `__unwind_info` (`mach-o/compact_unwind_encoding.h` of LLVM's libunwind).

use symdex::write::UnwindRules;
use symdex::{UnwindRule, UnwindValue};

use super::UnwindTables;
use super::layer::Layer;
use crate::error::Error;
use crate::report::Problems;

/// The version of the section.
const VERSION: u32 = 1;
/// The kinds of second-level pages.
const REGULAR: u32 = 2;
const COMPRESSED: u32 = 3;

/// Where a function starts, as an image offset, and how it is unwound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Function {
    start: u64,
    encoding: u32,
}

/// Adds a row for each function that has one rule. The others are in `__eh_frame`.
pub(super) fn rows<'d>(
    tables: &UnwindTables<'d>,
    layer: &mut Layer<'_, 'd>,
    problems: &mut Problems,
) -> Result<(), Error> {
    let info = &layer.image.info;
    let Some(machine) = Machine::of(&info.arch.name) else { return Ok(()) };
    let base = info.base;
    let pages = Pages { bytes: tables.compact.bytes };
    let Some((functions, end)) = pages.functions() else {
        problems.add("unwind entries that cannot be read", u64::from(!tables.compact.bytes.is_empty()));
        return Ok(());
    };
    let (mut unknown, mut lost) = (0, 0);
    for (place, function) in functions.iter().enumerate() {
        let end = functions.get(place + 1).map_or(end, |next| next.start);
        let [start, end] = [function.start, end].map(|offset| base.saturating_add(offset));
        lost += u64::from(start > end);
        let code = || tables.others.from(start);
        let mut rules = match machine.rules(function.encoding, code) {
            CompactRules::Rules(rules) => rules,
            CompactRules::Elsewhere => continue,
            CompactRules::Unknown => {
                unknown += 1;
                UnwindRules::new(UnwindValue::Unknown, machine.return_register)
            }
        };
        rules.holds_at_calls_only = true;
        if start < end && layer.begin(start, end)? {
            layer.add(start, end, &rules)?;
        }
    }
    problems.add("unwind entries that cannot be read", lost);
    problems.add("unwind rows that the index cannot express", unknown);
    Ok(())
}

/// The section.
#[derive(Clone, Copy)]
struct Pages<'d> {
    bytes: &'d [u8],
}

impl Pages<'_> {
    fn u16(&self, at: usize) -> Option<usize> {
        self.bytes.get(at..)?.first_chunk().map(|bytes| u16::from_le_bytes(*bytes).into())
    }

    fn u32(&self, at: usize) -> Option<u32> {
        self.bytes.get(at..)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
    }

    fn size(&self, at: usize) -> Option<usize> {
        usize::try_from(self.u32(at)?).ok()
    }

    /// This many encodings.
    fn encodings(&self, at: usize, count: usize) -> Option<&[[u8; 4]]> {
        self.bytes.get(at..)?.as_chunks().0.get(..count)
    }

    /// The functions in address order, and where the last one ends. Returns `None` if the section is damaged.
    fn functions(&self) -> Option<(Vec<Function>, u64)> {
        (self.u32(0)? == VERSION).then_some(())?;
        let common = self.encodings(self.size(4)?, self.size(8)?)?;
        let (index, pages) = (self.size(20)?, self.size(24)?.checked_sub(1)?);
        let mut functions = Vec::new();
        // Each function takes at least four bytes, unless pages are shared.
        let mut left = self.bytes.len() / 4;
        for number in 0..pages {
            let at = index.checked_add(number.checked_mul(12)?)?;
            let (start, page) = (self.u32(at)?, self.size(at.checked_add(4)?)?);
            self.page(start, page, common, &mut left, &mut functions)?;
        }
        let end = self.u32(index.checked_add(pages.checked_mul(12)?)?)?;
        Some((functions, end.into()))
    }

    /// Appends the functions of a page whose first one starts at `start`.
    fn page(
        &self,
        start: u32,
        page: usize,
        common: &[[u8; 4]],
        left: &mut usize,
        functions: &mut Vec<Function>,
    ) -> Option<()> {
        let field = |at: usize| self.u16(page.checked_add(at)?);
        let (entries, len) = (page.checked_add(field(4)?)?, field(6)?);
        *left = left.checked_sub(len)?;
        match self.u32(page)? {
            REGULAR => {
                for number in 0..len {
                    let at = entries.checked_add(8 * number)?;
                    let (start, encoding) = (self.u32(at)?.into(), self.u32(at.checked_add(4)?)?);
                    functions.push(Function { start, encoding });
                }
            }
            COMPRESSED => {
                let own = self.encodings(page.checked_add(field(8)?)?, field(10)?)?;
                for number in 0..len {
                    let entry = self.u32(entries.checked_add(4 * number)?)?;
                    let (encoding, distance) = (entry.to_be_bytes()[0].into(), entry & 0x00ff_ffff);
                    // The first encodings are those that all pages share.
                    let encoding: &[u8; 4] = common.iter().chain(own).nth(encoding)?;
                    let start = u64::from(start) + u64::from(distance);
                    functions.push(Function { start, encoding: u32::from_le_bytes(*encoding) });
                }
            }
            _ => return None,
        }
        Some(())
    }
}

/// What an encoding says.
enum CompactRules {
    Rules(UnwindRules<'static>),
    /// There is no unwind information, or it is in `__eh_frame`.
    Elsewhere,
    Unknown,
}

/// A family of encodings.
#[derive(Clone, Copy)]
struct Machine {
    return_register: u16,
    kind: Kind,
}

#[derive(Clone, Copy)]
enum Kind {
    X86(X86),
    Arm64 { is_signed: bool },
}

/// The registers of x86, by their DWARF numbers.
#[derive(Clone, Copy)]
struct X86 {
    word: i64,
    frame_pointer: u16,
    stack_pointer: u16,
    /// The registers that encodings number from 1 on.
    saved: [u16; 6],
}

const X86_64: X86 = X86 { word: 8, frame_pointer: 6, stack_pointer: 7, saved: [3, 12, 13, 14, 15, 6] };
const I386: X86 = X86 { word: 4, frame_pointer: 5, stack_pointer: 4, saved: [3, 1, 2, 7, 6, 5] };

impl Machine {
    /// The encodings of an architecture. `None` if it has none that are known.
    fn of(arch: &str) -> Option<Self> {
        Some(match arch {
            "x86_64" | "x86_64h" => Self { return_register: 16, kind: Kind::X86(X86_64) },
            "i386" => Self { return_register: 8, kind: Kind::X86(I386) },
            "arm64" | "arm64v8" | "arm64_32" => {
                Self { return_register: 30, kind: Kind::Arm64 { is_signed: false } }
            }
            "arm64e" => Self { return_register: 30, kind: Kind::Arm64 { is_signed: true } },
            _ => return None,
        })
    }

    /// The rules of an encoding. `code` returns the bytes of the function.
    fn rules<'d>(&self, encoding: u32, code: impl Fn() -> Option<&'d [u8]>) -> CompactRules {
        let rules = match (self.kind, encoding >> 24 & 0xf) {
            (_, 0) | (Kind::X86(_), 4) | (Kind::Arm64 { .. }, 3) => return CompactRules::Elsewhere,
            (Kind::X86(machine), 1) => machine.framed(encoding, self.return_register),
            (Kind::X86(machine), 2) => {
                let size = i64::from(encoding >> 16 & 0xff) * machine.word;
                machine.frameless(encoding, size, self.return_register)
            }
            (Kind::X86(machine), 3) => {
                let size = code().and_then(|code| machine.stack_size(encoding, code));
                size.and_then(|size| machine.frameless(encoding, size, self.return_register))
            }
            (Kind::Arm64 { .. }, 2) => {
                let size = i64::from(encoding >> 12 & 0xfff) * 16;
                Some(arm64(encoding, UnwindValue::Register { register: 31, offset: size }, None))
            }
            (Kind::Arm64 { is_signed }, 4) => {
                let mut rules = arm64(encoding, UnwindValue::Register { register: 29, offset: 16 }, Some(29));
                rules.is_return_address_signed = is_signed;
                Some(rules)
            }
            _ => None,
        };
        rules.map_or(CompactRules::Unknown, CompactRules::Rules)
    }
}

fn stored(offset: i64) -> UnwindRule<'static> {
    UnwindRule::Stored(UnwindValue::Cfa(offset))
}

impl X86 {
    /// The rules of a function with a frame pointer.
    fn framed(&self, encoding: u32, return_register: u16) -> Option<UnwindRules<'static>> {
        let cfa = UnwindValue::Register { register: self.frame_pointer, offset: 2 * self.word };
        let mut rules = UnwindRules::new(cfa, return_register);
        rules.registers.push((return_register, stored(-self.word)));
        rules.registers.push((self.frame_pointer, stored(-2 * self.word)));
        let lowest = -2 * self.word - self.word * i64::from(encoding >> 16 & 0xff);
        for place in 0..5u8 {
            let code = encoding >> (3 * place) & 7;
            if code != 0 {
                let register = self.register(code)?;
                rules.registers.push((register, stored(lowest + self.word * i64::from(place))));
            }
        }
        Some(sorted(rules))
    }

    /// The rules of a function without a frame pointer, whose frame has `size` bytes.
    fn frameless(&self, encoding: u32, size: i64, return_register: u16) -> Option<UnwindRules<'static>> {
        let cfa = UnwindValue::Register { register: self.stack_pointer, offset: size };
        let mut rules = UnwindRules::new(cfa, return_register);
        rules.registers.push((return_register, stored(-self.word)));
        let codes = permutation(encoding >> 10 & 7, encoding & 0x3ff)?;
        let lowest = -self.word - self.word * codes.len() as i64;
        for (place, code) in (0..).zip(codes) {
            rules.registers.push((self.register(code)?, stored(lowest + self.word * place)));
        }
        Some(sorted(rules))
    }

    /// The size of a frame that an instruction of the function states: it subtracts it from the stack pointer.
    fn stack_size(&self, encoding: u32, code: &[u8]) -> Option<i64> {
        let at = usize::try_from(encoding >> 16 & 0xff).ok()?;
        let subtracted = u32::from_le_bytes(*code.get(at..)?.first_chunk()?);
        Some(i64::from(subtracted) + self.word * i64::from(encoding >> 13 & 7))
    }

    fn register(&self, code: u32) -> Option<u16> {
        self.saved.get(usize::try_from(code).ok()?.checked_sub(1)?).copied()
    }
}

fn sorted(mut rules: UnwindRules<'static>) -> UnwindRules<'static> {
    // The first rule of a register counts.
    rules.registers.sort_by_key(|(register, _)| *register);
    rules.registers.dedup_by_key(|(register, _)| *register);
    rules
}

/// The registers, by their codes, that `count` pushes have saved, the last push first. `number` is the number of this
/// order among all orders. Returns `None` if there is no such order.
fn permutation(count: u32, number: u32) -> Option<Vec<u32>> {
    let mut left: Vec<u32> = (1..=6).collect();
    (count <= 6).then_some(())?;
    // How many orders begin with the same registers.
    let mut orders: u32 = (7 - count..=6).product();
    let mut rest = number;
    let mut codes = Vec::new();
    for _ in 0..count {
        orders /= u32::try_from(left.len()).ok()?;
        let place = usize::try_from(rest / orders).ok().filter(|place| *place < left.len())?;
        codes.push(left.remove(place));
        rest %= orders;
    }
    Some(codes)
}

/// The rules of an ARM64 function. With a frame pointer, that and the return address are at the top of the frame.
fn arm64(encoding: u32, cfa: UnwindValue<'static>, frame_pointer: Option<u16>) -> UnwindRules<'static> {
    /// The registers that are saved in pairs, each with its bit: x19 to x28, and d8 to d15.
    const PAIRS: [(u32, u16); 9] =
        [(0, 19), (1, 21), (2, 23), (3, 25), (4, 27), (8, 72), (9, 74), (10, 76), (11, 78)];
    let mut rules = UnwindRules::new(cfa, 30);
    let mut offset = 0;
    let mut save = |register: u16| {
        offset -= 8;
        rules.registers.push((register, stored(offset)));
    };
    if let Some(register) = frame_pointer {
        save(30);
        save(register);
    }
    for (_, first) in PAIRS.iter().filter(|(bit, _)| encoding >> bit & 1 == 1) {
        save(*first);
        save(first + 1);
    }
    sorted(rules)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(arch: &str, encoding: u32, code: &'static [u8]) -> UnwindRules<'static> {
        match Machine::of(arch).expect("known").rules(encoding, || Some(code)) {
            CompactRules::Rules(rules) => rules,
            _ => panic!("{encoding:#x} has no rules"),
        }
    }

    fn at(rules: &UnwindRules<'_>) -> Vec<(u16, i64)> {
        let registers = rules.registers.iter().map(|(register, rule)| match rule {
            UnwindRule::Stored(UnwindValue::Cfa(offset)) => (*register, *offset),
            other => panic!("{other:?}"),
        });
        registers.collect()
    }

    #[test]
    fn frames_of_x86() {
        // A frame pointer; r14 and rbx are pushed after it.
        let framed = rules("x86_64", 0x0102_0021, &[]);
        assert_eq!(framed.cfa, UnwindValue::Register { register: 6, offset: 16 });
        assert_eq!(at(&framed), [(3, -32), (6, -16), (14, -24), (16, -8)]);
        let framed = rules("i386", 0x0101_0004, &[]);
        assert_eq!(framed.cfa, UnwindValue::Register { register: 5, offset: 8 });
        assert_eq!(at(&framed), [(5, -8), (7, -12), (8, -4)]);
    }

    #[test]
    fn frames_of_x86_without_a_frame_pointer() {
        // 40 bytes, and r15, r14 and rbx, the order 10 of three registers.
        let frameless = rules("x86_64", 0x0205_0c0a, &[]);
        assert_eq!(frameless.cfa, UnwindValue::Register { register: 7, offset: 40 });
        assert_eq!(at(&frameless), [(3, -32), (14, -24), (15, -16), (16, -8)]);
        // The size is in an instruction.
        let code = &[0x41, 0x57, 0x53, 0x48, 0x81, 0xec, 0x48, 1, 0, 0];
        let large = rules("x86_64", 0x0306_e000, code);
        assert_eq!(large.cfa, UnwindValue::Register { register: 7, offset: 0x148 + 56 });
        let machine = Machine::of("x86_64").expect("known");
        assert!(matches!(machine.rules(0x0306_e000, || None), CompactRules::Unknown));
        assert!(matches!(machine.rules(0x0f00_0000, || None), CompactRules::Unknown));
        assert!(matches!(machine.rules(0x0400_1234, || None), CompactRules::Elsewhere));
    }

    #[test]
    fn each_order_of_registers_has_a_number() {
        for (count, orders) in [(0, 1), (1, 6), (2, 30), (3, 120), (4, 360), (5, 720), (6, 720)] {
            let mut all: Vec<_> =
                (0..orders).map(|number| permutation(count, number).expect("valid")).collect();
            all.sort();
            all.dedup();
            assert_eq!(all.len(), orders as usize);
            assert!(count == 0 || permutation(count, orders).is_none());
        }
        assert_eq!(permutation(3, 10), Some(vec![1, 4, 5]));
        assert_eq!(permutation(7, 0), None);
    }

    #[test]
    fn frames_of_arm64() {
        let framed = rules("arm64e", 0x0400_0103, &[]);
        assert_eq!(framed.cfa, UnwindValue::Register { register: 29, offset: 16 });
        let expected =
            [(19, -24), (20, -32), (21, -40), (22, -48), (29, -16), (30, -8), (72, -56), (73, -64)];
        assert_eq!(at(&framed), expected);
        assert!(framed.is_return_address_signed);
        let frameless = rules("arm64", 0x0200_2001, &[]);
        assert_eq!(frameless.cfa, UnwindValue::Register { register: 31, offset: 32 });
        assert_eq!((at(&frameless), frameless.is_return_address_signed), (vec![(19, -8), (20, -16)], false));
        assert!(Machine::of("armv7").is_none());
    }

    #[test]
    fn pages_of_both_kinds_are_read_and_shared_pages_are_refused() {
        let word = |number: u32| number.to_le_bytes();
        let half = |number: u16| number.to_le_bytes();
        // The head: one common encoding at 28, and three index entries at 32. Then a regular and a compressed page.
        let mut bytes = [1, 28, 1, 0, 0, 32, 3, 0xaaaa].map(word).as_flattened().to_vec();
        let (regular, compressed) = (68, 68 + 8 + 8);
        bytes.extend([0x100, regular, 0, 0x200, compressed, 0, 0x300, 0, 0].map(word).as_flattened());
        bytes.extend(word(REGULAR));
        bytes.extend([8, 1].map(half).as_flattened());
        bytes.extend([0x100, 0xbbbb].map(word).as_flattened());
        bytes.extend(word(COMPRESSED));
        bytes.extend([12, 2, 20, 1].map(half).as_flattened());
        bytes.extend([0x10, 0x0100_0020, 0xcccc].map(word).as_flattened());
        let expected = [(0x100, 0xbbbb), (0x210, 0xaaaa), (0x220, 0xcccc)];
        let expected = expected.map(|(start, encoding)| Function { start, encoding });
        assert_eq!(Pages { bytes: &bytes }.functions(), Some((expected.to_vec(), 0x300)));
        for len in 0..bytes.len() {
            assert!(Pages { bytes: &bytes[..len] }.functions().is_none(), "{len}");
        }
        let mut shared = [1, 0, 0, 0, 0, 28, 200].map(word).as_flattened().to_vec();
        (0..200).for_each(|_| shared.extend([0, 28 + 12 * 200, 0].map(word).as_flattened()));
        shared.extend(word(REGULAR));
        shared.extend([8, 100].map(half).as_flattened());
        shared.extend([0; 800]);
        assert!(Pages { bytes: &shared }.functions().is_none());
    }
}
