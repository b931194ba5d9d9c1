//! Unwind rows from the records `STACK CFI` of Breakpad, whose rules are postfix expressions.

use std::collections::HashMap;

use symdex::write::{EncodedUnwindRows, UnwindRange, UnwindRules, UnwindTable};
use symdex::{Arch, UnwindRule, UnwindValue};

use super::breakpad::{CFI, Fields, INIT, Lines, STACK, hexadecimal};
use super::{MAX_OFFSET, Place, SymbolFile};
use crate::error::Error;
use crate::limits::Deadline;
use crate::memory::Budget;
use crate::report::Problems;

/// About how many bytes of memory a row takes while it is encoded.
const ROW: usize = 100;
/// How many records are read between two checks of the time and the memory.
const CHECKED: usize = 256;

/// The registers of an architecture by name, and the one that has the return address.
struct Registers {
    numbers: HashMap<&'static str, u16>,
    of_return: u16,
}

/// The rules at an address, by register.
#[derive(Clone, Default)]
struct Rules {
    cfa: Option<UnwindValue<'static>>,
    /// In ascending order.
    registers: Vec<(u16, UnwindRule<'static>)>,
    /// How many rules cannot be expressed.
    lost: u64,
}

/// The unwind rows of a symbol file. `others` bytes of memory are taken besides. Returns `None` if there are none.
///
/// # Errors
///
/// [`Error::TooLarge`] if the rows take more memory than `budget` has, [`Error::TooSlow`] after the deadline.
pub(super) fn unwind_rows(
    file: &SymbolFile<'_>,
    budget: Budget,
    others: usize,
    deadline: Deadline,
    problems: &mut Problems,
) -> Result<Option<EncodedUnwindRows>, Error> {
    let Some(registers) = Registers::of(&file.info.arch).filter(|_| !file.unwind.is_empty()) else {
        return Ok(None);
    };
    let mut maker = RowMaker {
        registers,
        budget,
        others,
        deadline,
        table: UnwindTable::default(),
        rows: Vec::new(),
        read: 0,
        lost: 0,
        misplaced: 0,
    };
    for place in &file.unwind {
        let records = file.bytes.get(place.at..place.at + place.size).unwrap_or_default();
        maker.add(records, place)?;
    }
    problems.add("rules of the records STACK CFI that an index cannot express", maker.lost);
    problems
        .add("records STACK CFI that have no address in their function or end past 4 GiB", maker.misplaced);
    Ok(Some(EncodedUnwindRows::new(&maker.table, &maker.rows)?))
}

/// Makes rows of records.
struct RowMaker {
    registers: Registers,
    budget: Budget,
    others: usize,
    deadline: Deadline,
    table: UnwindTable,
    rows: Vec<UnwindRange>,
    /// How many records were read.
    read: usize,
    /// How many rules are lost.
    lost: u64,
    /// How many records state no code that an index can have.
    misplaced: u64,
}

impl RowMaker {
    /// Adds the rows of a record `STACK CFI INIT` and the records `STACK CFI` after it, each of which changes some
    /// rules from its address on. They apply in address order, whatever their order in the file.
    fn add(&mut self, records: &[u8], place: &Place) -> Result<(), Error> {
        if place.end > MAX_OFFSET {
            self.misplaced += 1;
            return Ok(());
        }
        let mut changes = Vec::new();
        for (_, line) in Lines::new(records) {
            self.check()?;
            let mut fields = Fields::new(line);
            if (fields.word(), fields.word()) != (STACK, CFI) {
                continue;
            }
            let mut word = fields.word();
            if word == INIT {
                // The start and the size were read before.
                (word, _) = (fields.word(), fields.word());
            }
            match hexadecimal(word).filter(|start| (place.start..place.end).contains(start)) {
                Some(start) => changes.push((start, fields.rest())),
                None => self.misplaced += 1,
            }
        }
        changes.sort_by_key(|(start, _)| *start);
        // Of records that overlap, the first one counts.
        let least = self.rows.last().map_or(0, |last| last.end);
        let (mut rules, mut at) = (Rules::default(), place.start);
        for (start, text) in changes {
            self.check()?;
            self.add_row(&rules, at.max(least), start);
            rules.change(text, &self.registers);
            at = start;
        }
        self.add_row(&rules, at.max(least), place.end);
        self.lost += rules.lost;
        Ok(())
    }

    /// Adds a row for `start..end`.
    fn add_row(&mut self, rules: &Rules, start: u64, end: u64) {
        if start >= end {
            return;
        }
        let row = rules.cfa.and_then(|cfa| {
            let mut written = UnwindRules::new(cfa, self.registers.of_return);
            written.registers.clone_from(&rules.registers);
            self.table.number(&written).ok()
        });
        let Some(rules) = row else {
            self.lost += 1;
            return;
        };
        match self.rows.last_mut() {
            Some(last) if last.end == start && last.rules == rules => last.end = end,
            _ => self.rows.push(UnwindRange { start, end, rules }),
        }
    }

    /// Counts a record, and checks the time and the memory from time to time.
    fn check(&mut self) -> Result<(), Error> {
        self.read += 1;
        if !self.read.is_multiple_of(CHECKED) {
            return Ok(());
        }
        self.deadline.check()?;
        let rows = (2 * ROW).saturating_mul(self.rows.len());
        let size = rows.saturating_add(self.table.size()).saturating_add(self.others);
        self.budget.check("its unwind rows", size)
    }
}

impl Registers {
    /// Returns `None` for other architectures than those of x86 and ARM.
    fn of(arch: &Arch) -> Option<Self> {
        let numbered =
            (0..=u16::from(u8::MAX)).filter_map(|number| Some((arch.register_name(number)?, number)));
        let mut numbers: HashMap<&'static str, u16> = numbered.collect();
        let of_return = ["rip", "eip", "lr", "x30"].iter().find_map(|name| numbers.get(name).copied())?;
        if arch.is_arm32() {
            numbers.insert("fp", 11);
        } else if let Some(frame) = numbers.get("x29").copied() {
            numbers.extend([("fp", frame), ("lr", of_return)]);
        }
        Some(Self { numbers, of_return })
    }

    fn number(&self, name: &str) -> Option<u16> {
        self.numbers.get(name.strip_prefix('$').unwrap_or(name)).copied()
    }
}

impl Rules {
    /// Changes the rules that `text` has: registers, each with a colon, and their expressions.
    fn change(&mut self, text: &[u8], registers: &Registers) {
        let text = String::from_utf8_lossy(text);
        let mut words = text.split_ascii_whitespace().peekable();
        while let Some(word) = words.next() {
            let Some(name) = word.strip_suffix(':') else { continue };
            let expression: Vec<&str> =
                std::iter::from_fn(|| words.next_if(|word| !word.ends_with(':'))).collect();
            let value = evaluated(&expression, registers);
            if name == ".cfa" {
                let value = value.and_then(Operand::into_value);
                self.lost += u64::from(value.is_none());
                self.cfa = Some(value.unwrap_or(UnwindValue::Unknown));
                continue;
            }
            let register = if name == ".ra" { Some(registers.of_return) } else { registers.number(name) };
            let rule = match value {
                // The frame has no caller.
                Some(Operand::Number(0)) if name == ".ra" => Some(UnwindRule::Undefined),
                Some(operand) => operand.into_rule(),
                None if expression == [".undef"] => Some(UnwindRule::Undefined),
                None => None,
            };
            let Some((register, rule)) = register.zip(rule) else {
                self.lost += 1;
                continue;
            };
            let place = self.registers.binary_search_by_key(&register, |(number, _)| *number);
            let is_same = rule == UnwindRule::Value(UnwindValue::Register { register, offset: 0 });
            let rule = if is_same { UnwindRule::SameValue } else { rule };
            match place {
                Ok(place) => self.registers[place].1 = rule,
                Err(place) => self.registers.insert(place, (register, rule)),
            }
        }
    }
}

/// A number on the stack of an expression.
#[derive(Clone, Copy)]
enum Operand {
    Number(i64),
    Value(UnwindValue<'static>),
    /// The word in memory at a value.
    Stored(UnwindValue<'static>),
}

impl Operand {
    /// It as a value, for a canonical frame address or for a further operation.
    fn into_value(self) -> Option<UnwindValue<'static>> {
        match self {
            Self::Value(value) => Some(value),
            Self::Stored(UnwindValue::Register { register, offset }) => {
                Some(UnwindValue::Loaded { register, offset, add: 0 })
            }
            _ => None,
        }
    }

    fn into_rule(self) -> Option<UnwindRule<'static>> {
        match self {
            Self::Number(_) => None,
            Self::Value(value) => Some(UnwindRule::Value(value)),
            Self::Stored(value) => Some(UnwindRule::Stored(value)),
        }
    }

    fn plus(self, number: i64) -> Option<Self> {
        if let Self::Number(first) = self {
            return Some(Self::Number(first.wrapping_add(number)));
        }
        Some(Self::Value(match self.into_value()? {
            UnwindValue::Cfa(offset) => UnwindValue::Cfa(offset.wrapping_add(number)),
            UnwindValue::Register { register, offset } => {
                UnwindValue::Register { register, offset: offset.wrapping_add(number) }
            }
            UnwindValue::Loaded { register, offset, add } => {
                UnwindValue::Loaded { register, offset, add: add.wrapping_add(number) }
            }
            _ => return None,
        }))
    }
}

/// The result of a postfix expression. Returns `None` for one that an unwind row cannot express.
fn evaluated(expression: &[&str], registers: &Registers) -> Option<Operand> {
    let mut stack = Vec::new();
    for word in expression {
        let operand = match *word {
            "+" => match (stack.pop()?, stack.pop()?) {
                (Operand::Number(number), other) | (other, Operand::Number(number)) => other.plus(number)?,
                _ => return None,
            },
            "-" => match (stack.pop()?, stack.pop()?) {
                (Operand::Number(number), other) => other.plus(number.checked_neg()?)?,
                _ => return None,
            },
            "^" => Operand::Stored(stack.pop()?.into_value()?),
            ".cfa" => Operand::Value(UnwindValue::Cfa(0)),
            word => match word.parse() {
                Ok(number) => Operand::Number(number),
                Err(_) => {
                    Operand::Value(UnwindValue::Register { register: registers.number(word)?, offset: 0 })
                }
            },
        };
        stack.push(operand);
    }
    stack.pop().filter(|_| stack.is_empty())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;

    #[test]
    fn the_deadline_holds_within_a_record() {
        static STOP: AtomicBool = AtomicBool::new(true);
        let mut maker = RowMaker {
            registers: Registers::of(&Arch::from_name("x86_64").expect("known")).expect("known"),
            budget: Budget::new(1 << 30, 0).expect("enough"),
            others: 0,
            deadline: Deadline::default().stopped_by(Some(&STOP)),
            table: UnwindTable::default(),
            rows: Vec::new(),
            read: 0,
            lost: 0,
            misplaced: 0,
        };
        let records = |count: usize| "STACK CFI 10 .cfa: $rsp 8 +\n".repeat(count);
        let place = Place { start: 0, end: 0x100, at: 0, size: 0 };
        assert!(maker.add(records(100).as_bytes(), &place).is_ok());
        assert!(matches!(maker.add(records(1000).as_bytes(), &place), Err(Error::Stopped)));
        assert_eq!(maker.read, CHECKED);
    }
}
