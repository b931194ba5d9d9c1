//! Where a unit has code: what the debug information states of the whole unit, and what its functions and line rows come to.

use super::lines::Lines;
use super::units::{UnitEntry, Units, each_in_aranges};
use super::walk::Walker;
use crate::image::Image;
use crate::report::Problems;

/// Half-open ranges of image offsets.
pub(crate) type Code = Vec<(u64, u64)>;

/// For each unit the code that `.debug_aranges` and its root entry give it together, sorted, none overlapping. `None` where the root
/// entry states no range, or its ranges cannot be read: `.debug_aranges` alone may be incomplete.
pub(crate) fn stated<'d>(image: &Image<'d>, units: &Units<'d>) -> Vec<Option<Code>> {
    let own = &units.all[..units.own];
    let mut stated: Vec<Option<Code>> = own.iter().map(|unit| stated_by_root(image, unit)).collect();
    let headers = own.iter().map(|unit| &unit.line_unit().header);
    each_in_aranges(image, headers, |unit, start, end| {
        if let Some(code) = &mut stated[unit] {
            code.extend(image.executable_part(start, end));
        }
    });
    stated.iter_mut().flatten().for_each(join);
    stated
}

fn stated_by_root<'d>(image: &Image<'d>, unit: &UnitEntry<'d>) -> Option<Code> {
    let (mut code, mut is_stated) = (Code::new(), false);
    let mut left = image.range_budget();
    let result = unit.code.each_range(&image.dwarf, unit.line_unit(), &mut left, |start, end| {
        is_stated = true;
        code.extend(image.executable_part(start, end));
    });
    result.ok().filter(|_| is_stated).map(|_| code)
}

/// The code that unit number `unit` has ranges for, without the ranges: that of its functions and that of its line rows. Sorted, none
/// overlapping.
///
/// Only the ranges of its subprograms and its line program are read, no names and no inlined subroutines.
pub(crate) fn outline<'d>(image: &Image<'d>, units: &Units<'d>, unit: usize) -> Code {
    let entry = &units.all[unit];
    let mut code = Code::new();
    // What lies behind damage has no ranges either.
    let _damage = functions(image, entry, &mut code);
    let lines = Lines::read(image, entry, &[], &mut Problems::default());
    code.extend(lines.rows.iter().map(|row| (row.start, row.end)));
    join(&mut code);
    code
}

/// Adds the ranges of the unit's subprograms to `code`.
fn functions<'d>(image: &Image<'d>, unit: &UnitEntry<'d>, code: &mut Code) -> gimli::Result<()> {
    let mut left = image.range_budget();
    let mut entries = Walker::new(unit)?;
    while let Some(found) = entries.next()? {
        if found.is_subprogram && found.states_code {
            // The ranges of a list before damage count.
            let _damage =
                entries.attributes().each_range(&unit.dwarf, &unit.unit, &mut left, |start, end| {
                    code.extend(image.executable_part(start, end));
                });
        }
    }
    Ok(())
}

/// Sorts `code`, and joins ranges that touch or overlap.
pub(crate) fn join(code: &mut Code) {
    code.sort_unstable();
    code.dedup_by(|next, last| {
        let is_joined = next.0 <= last.1;
        last.1 = if is_joined { last.1.max(next.1) } else { last.1 };
        is_joined
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_touch_or_overlap_become_one() {
        let mut code = vec![(20, 30), (0, 5), (5, 8), (22, 25), (29, 40), (50, 60)];
        join(&mut code);
        assert_eq!(code, [(0, 8), (20, 40), (50, 60)]);
    }
}
