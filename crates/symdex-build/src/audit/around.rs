//! The DIEs and rows around an address, for whoever has to find out why answers differ.

use std::fmt::Write as _;

use super::expected::{Place, Scratch};
use super::facts::Facts;

/// How many rows before and behind the one that counts are shown.
const ROWS: usize = 4;

/// Every function, inlined subroutine and sequence over `offset`, the rows around it, and its symbol, one in a line.
pub(super) fn around(facts: &Facts<'_, '_>, place: &Place, offset: u64) -> String {
    let mut out = String::new();
    // Writing to a string does not fail.
    let _ = write_around(facts, place, offset, &mut out);
    out
}

fn write_around(facts: &Facts<'_, '_>, place: &Place, offset: u64, out: &mut String) -> std::fmt::Result {
    let mut scratch = Scratch::default();
    for id in facts.functions_at(offset, &mut scratch) {
        let function = facts.function(id);
        let name = facts.text(function.name).unwrap_or_default();
        write!(out, "subprogram {:#x} {}", function.die, String::from_utf8_lossy(&name))?;
        write_ranges(out, function.ranges.iter().copied())?;
    }
    if let Some(function) = place.function {
        let dies = &facts.units[function.unit as usize].dies;
        dies.by_address.covering(offset, &mut scratch.covering);
        for interval in &scratch.covering {
            let inlined = &dies.inlined[interval.item as usize];
            let name = facts.text(inlined.name).unwrap_or_default();
            write!(out, "inlined_subroutine {:#x} {}", inlined.die, String::from_utf8_lossy(&name))?;
            write_ranges(out, [(interval.start, interval.end)].into_iter())?;
        }
    }
    if let Some((unit, row)) = place.row {
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
