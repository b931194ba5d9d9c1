//! Unwind rows as records `STACK CFI INIT` of Breakpad: a postfix expression for each register of the caller.

use std::fmt::{self, Write as _};
use std::io::Write;

use symdex::{Arch, Index, UnwindRow, UnwindRule, UnwindValue};

use crate::Error;

/// Writes a record for each unwind row of the index. Rows whose canonical frame address or return address Breakpad
/// cannot express are left out, and so are such rules of other registers.
pub(crate) fn write_stack_cfi<B: AsRef<[u8]>>(index: &Index<B>, out: &mut impl Write) -> Result<(), Error> {
    let mut rules = String::new();
    for row in index.unwind_rows()? {
        let row = row?;
        rules.clear();
        if write_rules(&mut rules, &row, &index.metadata().arch).is_some() {
            let (start, end) = (row.range().start.0, row.range().end.0);
            writeln!(out, "STACK CFI INIT {start:x} {:x}{rules}", end - start)?;
        }
    }
    Ok(())
}

/// Appends the rules of a row, each after a space. Returns `None` if the row cannot be expressed.
fn write_rules(text: &mut String, row: &UnwindRow<'_>, arch: &Arch) -> Option<()> {
    let cfa = Expression { value: row.cfa(), is_stored: false, arch };
    write!(text, " .cfa: {cfa}").ok()?;
    match row.return_address() {
        // The outermost frame: walkers end at the address 0.
        UnwindRule::Undefined => text.push_str(" .ra: 0"),
        UnwindRule::SameValue => {
            write!(text, " .ra: {}", register_name(row.return_register(), arch)?).ok()?
        }
        rule => write!(text, " .ra: {}", expression(rule, arch)?).ok()?,
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
    arch.register_name(register).map(|name| format!("{}{name}", if is_x86 { "$" } else { "" }))
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
            UnwindValue::Cfa(offset) => write!(f, ".cfa {offset} +")?,
            UnwindValue::Register { register, offset } => write!(f, "{} {offset} +", name(register)?)?,
            UnwindValue::Loaded { register, offset, add } => {
                write!(f, "{} {offset} + ^ {add} +", name(register)?)?;
            }
            _ => return Err(fmt::Error),
        }
        if self.is_stored { f.write_str(" ^") } else { Ok(()) }
    }
}
