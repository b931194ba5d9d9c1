//! Checks a whole section of names.

use super::NameReader;
use crate::error::Error;

impl NameReader<'_> {
    /// Checks all of the section. Returns how many pages it has.
    pub(crate) fn verify(&self) -> Result<u64, Error> {
        let pages = self.pages.verify()?;
        let layout = self.layout;
        for (symbol, rule) in (layout.terminals..).zip(0..layout.rules) {
            let (left, right) = self.rule(rule)?;
            if left >= symbol || right >= symbol {
                return Err(self.pages.malformed(layout.rules_at, "a rule is invalid"));
            }
        }
        let mut name = Vec::new();
        let mut next = 0;
        for id in 0..layout.names {
            let (first, len) = self.symbols_of(id)?;
            if first != next {
                return Err(self.pages.malformed(layout.groups_at, "names do not follow each other"));
            }
            next += len;
            name.clear();
            self.append(id, &mut name)?;
        }
        if next != u64::from(layout.symbols) {
            return Err(self.pages.malformed(layout.groups_at, "symbols that belong to no name"));
        }
        Ok(pages)
    }
}
