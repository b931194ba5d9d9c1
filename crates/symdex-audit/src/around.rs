//! The DIEs and rows around an address, to explain why answers differ.

use std::fmt::Write as _;

use crate::expected::{Position, SearchBuffer};
use crate::facts::Facts;

/// How many rows are shown before and after the one that covers the address.
const ROWS: usize = 4;

/// Every function and inlined subroutine at `offset`, the rows around it, and its symbol, one per line.
pub(crate) fn around(facts: &Facts<'_, '_>, position: &Position, offset: u64) -> String {
    let mut out = String::new();
    // Writing to a string does not fail.
    let _ = write_around(facts, position, offset, &mut out);
    out
}

fn write_around(
    facts: &Facts<'_, '_>,
    position: &Position,
    offset: u64,
    out: &mut String,
) -> std::fmt::Result {
    let mut buffer = SearchBuffer::default();
    for id in facts.functions_at(offset, &mut buffer) {
        let function = facts.function(id);
        let name = facts.text(function.name).unwrap_or_default();
        write!(out, "subprogram {:#x} {}", function.die, String::from_utf8_lossy(&name))?;
        write_ranges(out, function.ranges.iter().copied())?;
    }
    if let Some(function) = position.function {
        let dies = &facts.units[function.unit as usize].dies;
        let mut covering = Vec::new();
        for ranges in [&dies.by_address, &dies.outside] {
            ranges.covering(offset, &mut buffer.covering);
            covering.append(&mut buffer.covering);
        }
        for interval in &covering {
            let inlined = &dies.inlined[interval.item as usize];
            let name = facts.text(inlined.name).unwrap_or_default();
            write!(out, "inlined_subroutine {:#x} {}", inlined.die, String::from_utf8_lossy(&name))?;
            write_ranges(out, [(interval.start, interval.end)].into_iter())?;
        }
    }
    if let Some((unit, row)) = position.row {
        let unit = &facts.units[unit as usize];
        writeln!(out, "line program of the unit at {:#x}", unit.number())?;
        let rows = row.saturating_sub(ROWS)..unit.lines.rows.len().min(row + ROWS + 1);
        for number in rows {
            let around = unit.lines.rows[number];
            let mark = if number == row { '>' } else { ' ' };
            let stmt = if around.is_stmt { " is_stmt" } else { "" };
            writeln!(out, "{mark} {:#x} file {} line {}{stmt}", around.address, around.file, around.line)?;
        }
    }
    if let Some(symbol) = facts.symbol(offset) {
        let name = String::from_utf8_lossy(symbol.name.unwrap_or(b"-"));
        writeln!(out, "symbol {name} [{:#x}, {:#x})", symbol.start, symbol.end)?;
    }
    Ok(())
}

fn write_ranges(out: &mut String, ranges: impl Iterator<Item = (u64, u64)>) -> std::fmt::Result {
    ranges.into_iter().try_for_each(|(start, end)| write!(out, " [{start:#x}, {end:#x})"))?;
    writeln!(out)
}
