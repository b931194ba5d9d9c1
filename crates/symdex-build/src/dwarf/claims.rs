//! Which units have code at an address.

use rayon::prelude::*;

use super::outline::{Code, outline, stated};
use super::units::Units;
use crate::image::Image;
use crate::limits::UnitLimits;

/// The code of each unit, as far as it is known.
pub(crate) struct Claims {
    units: Vec<Claim>,
    /// Whether the stated ranges of some unit have missed one of its functions.
    is_wrong: bool,
}

/// The code of a unit: what the debug information states for the unit or, once the unit was read, all its ranges.
struct Claim {
    code: Code,
    is_read: bool,
}

impl Claims {
    /// The stated code. A unit that does not state all of its code is read in outline.
    pub(crate) fn new<'d>(image: &Image<'d>, units: &Units<'d>, limits: UnitLimits<'_>) -> Self {
        let claim = |(unit, stated): (usize, Option<Code>)| {
            let is_read = stated.is_none();
            Claim { code: stated.unwrap_or_else(|| outline(image, units, unit, limits)), is_read }
        };
        let units = stated(image, units).into_par_iter().enumerate().map(claim).collect();
        Self { units, is_wrong: false }
    }

    /// The units that claim one of `offsets`, which are sorted.
    pub(crate) fn units_at(&self, offsets: &[u64]) -> Vec<usize> {
        let claims = |claim: &Claim| {
            if offsets.len() < claim.code.len() {
                return offsets.iter().any(|offset| claim.covers(*offset, offset + 1));
            }
            claim.code.iter().any(|(start, end)| {
                offsets.get(offsets.partition_point(|offset| offset < start)).is_some_and(|first| first < end)
            })
        };
        self.units.iter().enumerate().filter(|(_, claim)| claims(claim)).map(|(unit, _)| unit).collect()
    }

    /// Replaces the claim of unit number `unit` after it was read. `code` is all of its code, `functions` the ranges of
    /// its functions.
    pub(crate) fn learn(&mut self, unit: usize, code: Code, functions: &[(u64, u64)]) {
        let claim = &mut self.units[unit];
        if !claim.is_read {
            self.is_wrong |= functions.iter().any(|(start, end)| !claim.covers(*start, *end));
            *claim = Claim { code, is_read: true };
        }
    }

    /// Reads in outline all units that were not read yet, if `is_needed` is set or the stated code of a unit was wrong.
    /// Returns whether that changed anything.
    pub(crate) fn outline<'d>(
        &mut self,
        image: &Image<'d>,
        units: &Units<'d>,
        limits: UnitLimits<'_>,
        is_needed: bool,
    ) -> bool {
        if !(is_needed || self.is_wrong) || self.units.iter().all(|claim| claim.is_read) {
            return false;
        }
        let unread = self.units.par_iter_mut().enumerate().filter(|(_, claim)| !claim.is_read);
        unread.for_each(|(unit, claim)| {
            *claim = Claim { code: outline(image, units, unit, limits), is_read: true }
        });
        true
    }
}

impl Claim {
    /// Whether all of `start..end` is claimed.
    fn covers(&self, start: u64, end: u64) -> bool {
        let around = self.code.get(self.code.partition_point(|range| range.1 <= start));
        around.is_some_and(|range| range.0 <= start && end <= range.1)
    }
}
