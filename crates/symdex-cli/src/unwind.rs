//! Unwind rows as text and JSON.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;
use symdex::{Arch, UnwindRow, UnwindRule, UnwindValue};

/// An unwind row. In its texts, brackets stand for the word in memory at an address.
#[derive(Serialize)]
pub(crate) struct UnwindView {
    start: String,
    end: String,
    /// Such as `rsp + 16`.
    cfa: String,
    /// Such as `[CFA - 8]`.
    return_address: String,
    /// The other registers that have rules.
    registers: BTreeMap<String, String>,
    signal_frame: bool,
    signed: bool,
    at_calls_only: bool,
}

impl UnwindView {
    pub(crate) fn of(row: &UnwindRow<'_>, arch: &Arch) -> Self {
        let range = row.range();
        let rules = row.rules().filter(|(register, _)| *register != row.return_register());
        let return_address = match row.return_address() {
            UnwindRule::SameValue => name(arch, row.return_register()),
            UnwindRule::Undefined => "none: the frame has no caller".to_owned(),
            rule => rule_text(rule, arch),
        };
        Self {
            start: range.start.to_string(),
            end: range.end.to_string(),
            cfa: value_text(row.cfa(), arch),
            return_address,
            registers: rules.map(|(register, rule)| (name(arch, register), rule_text(rule, arch))).collect(),
            signal_frame: row.is_signal_frame(),
            signed: row.is_return_address_signed(),
            at_calls_only: row.holds_at_calls_only(),
        }
    }
}

impl fmt::Display for UnwindView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { start, end, cfa, return_address, .. } = self;
        write!(f, "{start}..{end} CFA = {cfa}; return address = {return_address}")?;
        for (register, rule) in &self.registers {
            write!(f, "; {register} = {rule}")?;
        }
        let notes = [
            (self.signal_frame, "signal frame"),
            (self.signed, "the return address is signed"),
            (self.at_calls_only, "holds at calls only"),
        ];
        notes.iter().filter(|(is_so, _)| *is_so).try_for_each(|(_, note)| write!(f, "; {note}"))
    }
}

/// The name of a register, or `r` and its DWARF number.
fn name(arch: &Arch, register: u16) -> String {
    arch.register_name(register).map_or_else(|| format!("r{register}"), str::to_owned)
}

fn rule_text(rule: UnwindRule<'_>, arch: &Arch) -> String {
    match rule {
        UnwindRule::Undefined => "lost".to_owned(),
        UnwindRule::SameValue => "unchanged".to_owned(),
        UnwindRule::Stored(value) => format!("[{}]", value_text(value, arch)),
        UnwindRule::Value(value) => value_text(value, arch),
        _ => "unknown".to_owned(),
    }
}

fn value_text(value: UnwindValue<'_>, arch: &Arch) -> String {
    match value {
        UnwindValue::Cfa(offset) => sum("CFA", offset),
        UnwindValue::Register { register, offset } => sum(&name(arch, register), offset),
        UnwindValue::Loaded { register, offset, add } => {
            sum(&format!("[{}]", sum(&name(arch, register), offset)), add)
        }
        UnwindValue::Expression(bytes) => {
            let bytes: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("DWARF expression {}", bytes.join(" "))
        }
        _ => "unknown".to_owned(),
    }
}

fn sum(base: &str, offset: i64) -> String {
    match offset {
        0 => base.to_owned(),
        _ if offset < 0 => format!("{base} - {}", offset.unsigned_abs()),
        _ => format!("{base} + {offset}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_and_rules_read_as_formulas() {
        let arch = Arch::from_name("x86_64").expect("known");
        let loaded = UnwindValue::Loaded { register: 7, offset: 160, add: -8 };
        assert_eq!(rule_text(UnwindRule::Stored(UnwindValue::Cfa(-16)), &arch), "[CFA - 16]");
        assert_eq!(value_text(loaded, &arch), "[rsp + 160] - 8");
        assert_eq!(value_text(UnwindValue::Register { register: 99, offset: 0 }, &arch), "r99");
        assert_eq!(value_text(UnwindValue::Expression(&[0x77, 8]), &arch), "DWARF expression 77 08");
    }
}
