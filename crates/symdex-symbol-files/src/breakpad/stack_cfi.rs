//! Unwind rows as records `STACK CFI`: a postfix expression for each register of the caller.

use std::collections::HashMap;
use std::fmt::{self, Write as _};
use std::io::Write;
use std::ops::Range;

use symdex::write::{EncodedUnwindRows, UnwindRange, UnwindRules, UnwindTable};
use symdex::{Arch, Index, UnwindRow, UnwindRule, UnwindValue};
use symdex_build::Error;
use symdex_build::symbol_file::Problems;

use super::read::{Fields, Lines, hexadecimal};
use super::{CFI, INIT, STACK};

/// How many records are read between two checks of the time and the memory.
const CHECKED: usize = 256;
/// The greatest image offset that an index has.
const MAX_OFFSET: u64 = u32::MAX as u64;

/// How the names of x86 registers begin.
const REGISTER: char = '$';
/// The canonical frame address, and the return address.
const CFA: &str = ".cfa";
const RETURN_ADDRESS: &str = ".ra";

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

/// The unwind rows of `records`: the code of each record `STACK CFI INIT`, and its place in `text` with the records
/// after it. Returns `None` if there are none.
///
/// # Errors
///
/// Those of `check`, which gets the number of the rows and their rules.
pub(super) fn unwind_rows(
    text: &[u8],
    records: &[(Range<u64>, Range<usize>)],
    arch: &Arch,
    check: &dyn Fn(usize, &UnwindTable) -> Result<(), Error>,
    problems: &mut Problems,
) -> Result<Option<EncodedUnwindRows>, Error> {
    let Some(registers) = Registers::of(arch).filter(|_| !records.is_empty()) else {
        return Ok(None);
    };
    let mut maker = RowMaker::new(registers, check);
    for (code, place) in records {
        maker.add(text.get(place.clone()).unwrap_or_default(), code)?;
    }
    problems.add("rules of the records STACK CFI that an index cannot express", maker.lost);
    problems
        .add("records STACK CFI that have no address in their function or end past 4 GiB", maker.misplaced);
    Ok(Some(EncodedUnwindRows::new(&maker.table, &maker.rows)?))
}

/// Makes rows of records.
struct RowMaker<'c> {
    registers: Registers,
    check: &'c dyn Fn(usize, &UnwindTable) -> Result<(), Error>,
    table: UnwindTable,
    rows: Vec<UnwindRange>,
    /// How many records were read.
    read: usize,
    /// How many rules are lost.
    lost: u64,
    /// How many records state no code that an index can have.
    misplaced: u64,
}

impl<'c> RowMaker<'c> {
    fn new(registers: Registers, check: &'c dyn Fn(usize, &UnwindTable) -> Result<(), Error>) -> Self {
        let table = UnwindTable::default();
        Self { registers, check, table, rows: Vec::new(), read: 0, lost: 0, misplaced: 0 }
    }

    /// Adds the rows of a record `STACK CFI INIT` and the records `STACK CFI` after it, each of which changes some
    /// rules from its address on. They apply in address order, whatever their order in the file.
    fn add(&mut self, records: &[u8], code: &Range<u64>) -> Result<(), Error> {
        if code.end > MAX_OFFSET {
            self.misplaced += 1;
            return Ok(());
        }
        let mut changes = Vec::new();
        for (_, line) in Lines::new(records) {
            self.check()?;
            let mut fields = Fields::new(line);
            if (fields.word(), fields.word()) != (STACK.as_bytes(), CFI.as_bytes()) {
                continue;
            }
            let mut word = fields.word();
            if word == INIT.as_bytes() {
                // The start and the size were read before.
                (word, _) = (fields.word(), fields.word());
            }
            match hexadecimal(word).filter(|start| code.contains(start)) {
                Some(start) => changes.push((start, fields.rest())),
                None => self.misplaced += 1,
            }
        }
        changes.sort_by_key(|(start, _)| *start);
        // Of records that overlap, the first one counts.
        let least = self.rows.last().map_or(0, |last| last.end);
        let (mut rules, mut at) = (Rules::default(), code.start);
        for (start, text) in changes {
            self.check()?;
            self.add_row(&rules, at.max(least), start);
            rules.change(text, &self.registers);
            at = start;
        }
        self.add_row(&rules, at.max(least), code.end);
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
        // While they are encoded, the rows are there twice.
        (self.check)(2 * self.rows.len(), &self.table)
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
        self.numbers.get(name.strip_prefix(REGISTER).unwrap_or(name)).copied()
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
            if name == CFA {
                let value = value.and_then(Operand::into_value);
                self.lost += u64::from(value.is_none());
                self.cfa = Some(value.unwrap_or(UnwindValue::Unknown));
                continue;
            }
            let register =
                if name == RETURN_ADDRESS { Some(registers.of_return) } else { registers.number(name) };
            let rule = match value {
                // The frame has no caller.
                Some(Operand::Number(0)) if name == RETURN_ADDRESS => Some(UnwindRule::Undefined),
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
            CFA => Operand::Value(UnwindValue::Cfa(0)),
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

/// Writes a record for each unwind row of the index. Rows whose canonical frame address or return address Breakpad
/// cannot express are left out, and so are such rules of other registers.
pub(super) fn write_stack_cfi<B: AsRef<[u8]>>(
    index: &Index<B>,
    out: &mut impl Write,
) -> Result<(), crate::Error> {
    let mut rules = String::new();
    for row in index.unwind_rows()? {
        let row = row?;
        rules.clear();
        if write_rules(&mut rules, &row, &index.metadata().arch).is_some() {
            let (start, end) = (row.range().start.0, row.range().end.0);
            writeln!(out, "{STACK} {CFI} {INIT} {start:x} {:x}{rules}", end - start)?;
        }
    }
    Ok(())
}

/// Appends the rules of a row, each after a space. Returns `None` if the row cannot be expressed.
fn write_rules(text: &mut String, row: &UnwindRow<'_>, arch: &Arch) -> Option<()> {
    let cfa = Expression { value: row.cfa(), is_stored: false, arch };
    write!(text, " {CFA}: {cfa}").ok()?;
    match row.return_address() {
        // The outermost frame: walkers end at the address 0.
        UnwindRule::Undefined => write!(text, " {RETURN_ADDRESS}: 0").ok()?,
        UnwindRule::SameValue => {
            write!(text, " {RETURN_ADDRESS}: {}", register_name(row.return_register(), arch)?).ok()?
        }
        rule => write!(text, " {RETURN_ADDRESS}: {}", expression(rule, arch)?).ok()?,
    }
    for (register, rule) in row.rules().filter(|(register, _)| *register != row.return_register()) {
        // A register without a rule has its value.
        if let Some((name, expression)) = register_name(register, arch).zip(expression(rule, arch)) {
            let size = text.len();
            if write!(text, " {name}: {expression}").is_err() {
                text.truncate(size);
            }
        }
    }
    Some(())
}

fn expression<'a>(rule: UnwindRule<'a>, arch: &'a Arch) -> Option<Expression<'a>> {
    let (value, is_stored) = match rule {
        UnwindRule::Stored(value) => (value, true),
        UnwindRule::Value(value) => (value, false),
        _ => return None,
    };
    Some(Expression { value, is_stored, arch })
}

/// Breakpad's name of a register: those of x86 begin with `$`.
fn register_name(register: u16, arch: &Arch) -> Option<String> {
    let is_x86 = arch.name.starts_with("x86_64") || arch.name == "i386";
    arch.register_name(register)
        .map(|name| if is_x86 { format!("{REGISTER}{name}") } else { name.to_owned() })
}

/// A value, or the word in memory at it, as a postfix expression. It fails if there is no such expression.
struct Expression<'a> {
    value: UnwindValue<'a>,
    is_stored: bool,
    arch: &'a Arch,
}

impl fmt::Display for Expression<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |register| register_name(register, self.arch).ok_or(fmt::Error);
        match self.value {
            UnwindValue::Cfa(offset) => write!(f, "{CFA} {offset} +")?,
            UnwindValue::Register { register, offset } => write!(f, "{} {offset} +", name(register)?)?,
            UnwindValue::Loaded { register, offset, add } => {
                write!(f, "{} {offset} + ^ {add} +", name(register)?)?;
            }
            _ => return Err(fmt::Error),
        }
        if self.is_stored { f.write_str(" ^") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deadline_holds_within_a_record() {
        let registers = Registers::of(&Arch::from_name("x86_64").expect("known")).expect("known");
        let mut maker = RowMaker::new(registers, &|_, _| Err(Error::Stopped));
        let records = |count: usize| "STACK CFI 10 .cfa: $rsp 8 +\n".repeat(count);
        assert!(maker.add(records(100).as_bytes(), &(0..0x100)).is_ok());
        assert!(matches!(maker.add(records(1000).as_bytes(), &(0..0x100)), Err(Error::Stopped)));
        assert_eq!(maker.read, CHECKED);
    }
}
