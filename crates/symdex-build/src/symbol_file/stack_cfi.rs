//! Unwind rows from the records `STACK CFI` of Breakpad, whose rules are postfix expressions.

use std::collections::HashMap;

use symdex::write::{EncodedUnwindRows, UnwindRange, UnwindRules, UnwindTable};
use symdex::{Arch, UnwindRule, UnwindValue};

use super::breakpad::{CFI, Fields, INIT, Lines, STACK, hexadecimal};
use super::{Place, SymbolFile};
use crate::error::Error;
use crate::limits::Deadline;
use crate::memory::Budget;
use crate::report::Problems;

/// About how many bytes of memory a row takes while it is encoded.
const ROW: usize = 100;
/// How many entries are read between two checks of the time and the memory.
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
    let (mut table, mut rows) = (UnwindTable::default(), Vec::new());
    let mut lost = 0;
    for (number, place) in file.unwind.iter().enumerate() {
        if number % CHECKED == 0 {
            deadline.check()?;
            let size =
                (2 * ROW).saturating_mul(rows.len()).saturating_add(table.size()).saturating_add(others);
            budget.check("its unwind rows", size)?;
        }
        let records = file.bytes.get(place.at..place.at + place.size).unwrap_or_default();
        lost += add_rows(records, place, &registers, &mut table, &mut rows);
    }
    problems.add("rules of the records STACK CFI that an index cannot express", lost);
    Ok(Some(EncodedUnwindRows::new(&table, &rows)?))
}

/// Adds the rows of a record `STACK CFI INIT` and the records `STACK CFI` after it, each of which changes some rules
/// from its address on. Returns how many rules are lost.
fn add_rows(
    records: &[u8],
    place: &Place,
    registers: &Registers,
    table: &mut UnwindTable,
    rows: &mut Vec<UnwindRange>,
) -> u64 {
    let (mut rules, mut at) = (Rules::default(), place.start);
    // Of records that overlap, the first one counts.
    let least = rows.last().map_or(0, |last| last.end);
    let mut add = |rules: &Rules, start: u64, end: u64| {
        let (start, end) = (start.max(least), end.min(place.end));
        let Some(cfa) = rules.cfa.filter(|_| start < end) else { return 0 };
        let mut written = UnwindRules::new(cfa, registers.of_return);
        written.registers.clone_from(&rules.registers);
        let Ok(rules) = table.number(&written) else { return 1 };
        match rows.last_mut() {
            Some(last) if last.end == start && last.rules == rules => last.end = end,
            _ => rows.push(UnwindRange { start, end, rules }),
        }
        0
    };
    let mut lost = 0;
    for (_, line) in Lines::new(records) {
        let mut fields = Fields::new(line);
        if (fields.word(), fields.word()) != (STACK, CFI) {
            continue;
        }
        let mut word = fields.word();
        if word == INIT {
            // The start and the size were read before.
            (word, _) = (fields.word(), fields.word());
        }
        let Some(start) = hexadecimal(word).filter(|start| (at..place.end).contains(start)) else { continue };
        lost += add(&rules, at, start);
        rules.change(fields.rest(), registers);
        at = start;
    }
    lost + add(&rules, at, place.end) + rules.lost
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
                self.cfa = Some(value.and_then(Operand::into_value).unwrap_or(UnwindValue::Unknown));
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
