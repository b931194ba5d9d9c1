//! Writes the registers of the crashed thread.

use std::io::{self, Write};

use symdex_demangle::printable;

use super::stacks;
use crate::registers::Register;
use crate::report::Report;

/// The number of registers on a line.
const IN_A_ROW: usize = 4;

/// Writes the registers of the first crashed thread that has any, with an empty line at the end. It writes nothing if
/// there is none.
pub(super) fn write_registers(report: &Report<'_>, out: &mut dyn Write) -> io::Result<()> {
    let mut threads = report.threads.iter().enumerate();
    let crashed = threads.find(|(_, thread)| thread.crashed && !thread.registers.is_empty());
    let Some((position, thread)) = crashed else { return Ok(()) };
    let registers = &thread.registers;
    let has = |name: &str| registers.iter().any(|register| register.name == name);
    let (is_x86, is_wide) = (has("rip") || has("eip"), has("rip") || has("x0"));
    let (processor, bits) = (if is_x86 { "X86" } else { "ARM" }, if is_wide { 64 } else { 32 });
    let number = stacks::number(&thread.name, position);
    write!(out, "\nThread {number} crashed with {processor} Thread State ({bits}-bit):")?;
    let mut column = IN_A_ROW;
    for register in registers {
        let begins_row =
            register.name == "far" || register.name == "trap" || (register.name == "sp" && has("x0"));
        if column == IN_A_ROW || begins_row {
            write!(out, "\n{}", if is_x86 { "" } else { " " })?;
            column = 0;
        }
        column += 1;
        write!(out, "{}", cell(register, is_wide))?;
    }
    writeln!(out, "\n")
}

/// `   x0: 0x0000000000000000`
fn cell(Register { name, value, description }: &Register, is_wide: bool) -> String {
    let is_half = matches!(name.as_str(), "cpsr" | "esr" | "fsr" | "trap" | "err" | "exception");
    let digits = if is_wide && !is_half { 16 } else { 8 };
    let description = if description.is_empty() { String::new() } else { format!(" {description}") };
    format!(" {:>4}: 0x{value:0digits$x}{}", printable(name.into()), printable(description.into()))
}
