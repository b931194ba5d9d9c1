//! Rows of `.ARM.exidx`. The unwind instructions are executed on the made-up frame (Exception handling ABI for the Arm
//! architecture, 10.3).

use std::collections::BTreeMap;

use object::{File, Object as _, ObjectSection as _};
use symdex::FrameState as _;
use symdex_build::Image;

use super::{Machine, Results, Table, in_code};

/// The index, and the sections that it refers to.
pub(super) struct ArmIndex<'d> {
    ends: Vec<(u64, u64)>,
    /// The address of the second word of each entry, and the word.
    words: Vec<(u64, u32)>,
    sections: Vec<(u64, &'d [u8])>,
}

impl<'d> ArmIndex<'d> {
    pub(super) fn new(image: &Image<'_>, file: &File<'d>) -> Self {
        let section = file.section_by_name(".ARM.exidx");
        let address = section.as_ref().map_or(0, |section| section.address());
        let bytes: &[u8] = section.and_then(|section| section.data().ok()).unwrap_or_default();
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let places = (0..bytes.len() / 8).map(|entry| (address + 8 * entry as u64, 8 * entry));
        let entries: Vec<_> =
            places.map(|(address, at)| (away(address, word(at)), (address + 4, word(at + 4)))).collect();
        let ends = entries.iter().skip(1).map(|(start, _)| *start).chain([u64::MAX]);
        let all = entries.iter().zip(ends).filter(|((start, _), end)| start < end);
        let (ends, words) = in_code(image, all.map(|((start, word), end)| (*start, end, *word)).collect());
        let sections = file.sections().filter_map(|section| Some((section.address(), section.data().ok()?)));
        Self { ends, words, sections: sections.filter(|(address, _)| *address != 0).collect() }
    }

    /// The instructions of an entry.
    fn instructions(&self, address: u64, word: u32) -> Option<Vec<u8>> {
        if word & 0x8000_0000 != 0 {
            return Some(word.to_be_bytes()[1..].to_vec());
        }
        let at = away(address, word);
        let word = |number: u64| {
            let at = at + 4 * number;
            let (start, bytes) = self
                .sections
                .iter()
                .find(|(start, bytes)| (*start..start + bytes.len() as u64).contains(&at))?;
            let at = usize::try_from(at - start).ok()?;
            bytes.get(at..at + 4).map(|bytes| [bytes[3], bytes[2], bytes[1], bytes[0]])
        };
        let first = word(0)?;
        let (mut instructions, begin, more) = match first[0] {
            0x80 => return Some(first[1..].to_vec()),
            0x81 | 0x82 => (first[2..].to_vec(), 1, first[1]),
            0x83.. => return None,
            _ => {
                let second = word(1)?;
                (second[1..].to_vec(), 2, second[0])
            }
        };
        for number in 0..u64::from(more) {
            instructions.extend(word(begin + number)?);
        }
        Some(instructions)
    }
}

/// The address that a word refers to.
fn away(address: u64, word: u32) -> u64 {
    let distance = i64::from(word & 0x7fff_ffff);
    address.wrapping_add_signed(if distance < 0x4000_0000 { distance } else { distance - 0x8000_0000 })
}

/// The processor: the stack pointer, and the registers that were popped.
struct Execution {
    machine: Machine,
    stack: u64,
    popped: BTreeMap<u16, u64>,
}

impl Execution {
    fn pop(&mut self, registers: impl IntoIterator<Item = u16>, size: u64) {
        for register in registers {
            let value = self.machine.word(self.stack & 0xffff_ffff).unwrap_or_default();
            self.popped.insert(register, value);
            self.stack = self.stack.wrapping_add(size);
        }
    }

    /// Executes the instructions. `None` if one is reserved.
    fn run(&mut self, instructions: &[u8]) -> Option<()> {
        let mut at = 0;
        while let Some(&byte) = instructions.get(at).filter(|byte| **byte != 0xb0) {
            let next = instructions.get(at + 1).copied();
            at += 1;
            match byte >> 4 {
                0..=3 => self.stack = self.stack.wrapping_add(u64::from(byte) * 4 + 4),
                4..=7 => self.stack = self.stack.wrapping_sub(u64::from(byte - 0x40) * 4 + 4),
                8 => {
                    let mask = u16::from(byte & 15) * 256 + u16::from(next?);
                    at += 1;
                    (mask != 0).then_some(())?;
                    self.pop((4..16).filter(|register| mask & (1 << (register - 4)) != 0), 4);
                    if let Some(stack) = self.popped.remove(&13) {
                        self.stack = stack;
                    }
                }
                9 => {
                    let register = u16::from(byte & 15);
                    let own = self.machine.register(register);
                    self.stack = self.popped.get(&register).copied().or(own)?;
                }
                10 => {
                    self.pop(4..=4 + u16::from(byte & 7), 4);
                    self.pop((byte & 8 != 0).then_some(14), 4);
                }
                11 => at += self.run_other(byte, &instructions[at..])?,
                12 | 13 if matches!(byte, 0xc8 | 0xc9) => {
                    at += 1;
                    self.pop_doubles(if byte == 0xc8 { 16 } else { 0 }, next?);
                }
                13 if byte < 0xd8 => self.pop((264..).take(usize::from(byte & 7) + 1), 8),
                _ => return None,
            }
        }
        Some(())
    }

    /// Executes an instruction that begins with 0xb. Returns how many further bytes it has.
    fn run_other(&mut self, byte: u8, rest: &[u8]) -> Option<usize> {
        match byte {
            0xb1 => {
                let mask = *rest.first()?;
                self.pop((0..4).filter(|register| mask & (1 << register) != 0), 4);
                Some(1)
            }
            0xb2 => {
                let (mut number, mut len) = (0u64, 0);
                loop {
                    let byte = *rest.get(len)?;
                    number |= u64::from(byte & 0x7f) << (7 * len);
                    len += 1;
                    if byte & 0x80 == 0 || len > 8 {
                        break;
                    }
                }
                self.stack = self.stack.wrapping_add(0x204 + 4 * number);
                Some(len)
            }
            0xb3 => {
                self.pop_doubles(0, *rest.first()?);
                self.stack = self.stack.wrapping_add(4);
                Some(1)
            }
            0xb4 => {
                self.stack = self.stack.wrapping_add(4);
                Some(0)
            }
            0xb8.. => {
                self.pop((264..).take(usize::from(byte & 7) + 1), 8);
                self.stack = self.stack.wrapping_add(4);
                Some(0)
            }
            _ => None,
        }
    }

    fn pop_doubles(&mut self, first: u16, byte: u8) {
        let first = 256 + first + u16::from(byte >> 4);
        self.pop((first..).take(usize::from(byte & 15) + 1), 8);
    }
}

impl Table for ArmIndex<'_> {
    fn entries(&self) -> &[(u64, u64)] {
        &self.ends
    }

    fn rows(&self, entry: usize, machine: &Machine, each: &mut dyn FnMut(u64, u64, Results)) {
        let ((start, end), (address, word)) = (self.ends[entry], self.words[entry]);
        let stack = Machine { ..*machine }.register(13).unwrap_or_default();
        let mut execution = Execution { machine: *machine, stack, popped: BTreeMap::new() };
        let cannot_unwind = word == 1;
        let done = match self.instructions(address, word) {
            _ if cannot_unwind => Some(()),
            Some(instructions) => execution.run(&instructions),
            None => return,
        };
        let returns_by = if execution.popped.contains_key(&15) { 15 } else { 14 };
        let mut registers: Vec<_> =
            execution.popped.iter().map(|(register, value)| (*register, Some(*value))).collect();
        if cannot_unwind {
            registers.push((14, None));
        }
        let cfa = done.map(|()| execution.stack & machine.mask);
        let return_register = if done.is_some() { returns_by } else { 14 };
        let properties = (return_register, false, false);
        each(start, end, Results { cfa, registers, properties, holds_at_calls_only: true });
    }
}
