//! What a build could not read or omitted, counted by reason.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use symdex::Partial;
use symdex::write::ImageInfo;

/// The report of a build: facts that the index's metadata does not state.
#[non_exhaustive]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BuildReport {
    /// Whether there was debug information; without it only the symbol table is indexed.
    pub has_dwarf: bool,
    /// How many units could not be read to their end. The metadata's `partial` has the reasons.
    pub failed_units: u64,
    /// Address ranges and line sequences that were dropped because they do not describe code of the image, by reason.
    pub dropped: BTreeMap<&'static str, u64>,
    /// Names and paths that are still hidden, because there is no symbol map or the map lacks them.
    pub hidden_names: u64,
    /// How much code has answers.
    pub coverage: TextCoverage,
    /// A limit that the file exceeds, if any. See docs/SECURITY.md.
    pub exceeded: Option<String>,
    /// How much work the build did, in counted steps: units, functions, attributes that were read one by one, line
    /// rows, files, directories, range-list entries and scopes of names. It does not depend on the machine.
    pub steps: u64,
}

/// Bytes of the executable sections, and how many of them each table of an index covers.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextCoverage {
    /// All bytes of the executable sections.
    pub executable: u64,
    /// The bytes that have a function or a line in the `dwarf` table.
    pub dwarf: u64,
    /// With a function in the `dwarf` table.
    pub dwarf_function: u64,
    /// With a function in the `symbol_table` table.
    pub symbol_table: u64,
}

impl TextCoverage {
    /// The executable sections of `image`, of which nothing is covered yet.
    pub(crate) fn of(image: &ImageInfo) -> Self {
        let executable = image.executable.iter().map(|(start, end)| end - start).sum();
        Self { executable, ..Self::default() }
    }
}

/// A kind of loss that makes an index partial.
struct Loss {
    /// A part of the reasons in the metadata that no other kind has.
    part: &'static str,
    /// What an answer may lack, and what can avoid it.
    meaning: &'static str,
    /// Whether another file, or another command, can avoid the loss: a whole copy of a damaged file, a missing file, a
    /// symbol map, or a lookup in the debug file.
    can_be_avoided: bool,
}

const fn loss(part: &'static str, meaning: &'static str, can_be_avoided: bool) -> Loss {
    Loss { part, meaning, can_be_avoided }
}

const NO_LINES: &str = "addresses in their code have functions, but no files and lines of their own";
const NO_NAMES: &str = "functions described there have no names but those of the symbol table, and inlined functions \
                        none; give the folder of the right file with `debug_dirs`";

const NO_CALLERS: &str = "stacks through this code cannot be unwound by the index";

/// All kinds of losses. The first that fits a reason counts.
const LOSSES: [Loss; 28] = [
    // A unit's functions are known when its line table is read.
    loss(
        ": its line table: ",
        "addresses in its code have functions, but no files and lines of their own",
        true,
    ),
    loss(
        "unit at ",
        "addresses in its code, or a part of it, have the names of the symbol table and no files and lines",
        true,
    ),
    loss(
        "more units that could not be read",
        "addresses in their code have the names of the symbol table and no files and lines",
        true,
    ),
    loss(
        "the split unit ",
        "addresses in its code lack inlined functions, and have only the names, files and lines of the file itself; copy \
         it, or the .dwp file, beside the debug file, or give the folder of the right one with `debug_dirs`",
        true,
    ),
    loss(
        "more split units are not found",
        "addresses in their code lack inlined functions, and have only the names, files and lines of the file itself",
        true,
    ),
    loss("the supplementary file ", NO_NAMES, true),
    loss("units of the supplementary file", NO_NAMES, true),
    loss(
        "the debug file ",
        "answers have the names of the symbol table, and no files, lines and inlined functions; give the folder of the \
         right one with `debug_dirs`",
        true,
    ),
    loss(
        "local symbols: ",
        "functions that are not exported have no names, or the name of an exported one before them",
        true,
    ),
    loss("the symbols in .gnu_debugdata", "functions that only these symbols name have no names", true),
    loss(HIDDEN_NAMES, "answers show them as __hidden#N_; build again with `symbol_maps`", true),
    loss("the unwind table ", NO_CALLERS, true),
    loss("unwind entries ", NO_CALLERS, false),
    loss("unwind rows ", NO_CALLERS, false),
    loss(TOO_FAR, "an index has no answers there; look these addresses up in the debug file itself", true),
    loss("records STACK CFI", NO_CALLERS, false),
    loss(
        "inlined subroutines nested too deeply",
        "addresses in them lack the innermost inlined functions",
        false,
    ),
    loss(
        "unreadable range lists of functions",
        "addresses in these functions may have the names of the symbol table and no inlined functions",
        false,
    ),
    loss(
        "names whose origins form a circle",
        "these functions have no names but those of the symbol table",
        false,
    ),
    loss(
        "line sequences that end before",
        "addresses in them have functions, but no files and lines of their own",
        false,
    ),
    loss("units without lines", NO_LINES, false),
    loss("the symbol file ends within a line", "functions after its end have no answer", true),
    loss("names left out", "functions of these names have none in answers", false),
    loss("file paths left out", "lines in these files have no file in answers", false),
    loss("the tables of the Go runtime", "functions of Go have only the names of the symbol table", false),
    loss(
        "inlined calls are not found",
        "code of inlined functions has the name of the function around it, and no file and line; give the whole \
         program",
        true,
    ),
    loss("functions of Go", "addresses in their code have no answer, or one of the symbol table", false),
    loss(
        "other names of functions left out",
        "answers lack some of the aliases of functions that were folded into one",
        false,
    ),
];

fn loss_of(reason: &str) -> Option<&'static Loss> {
    LOSSES.iter().find(|loss| reason.contains(loss.part))
}

/// What an answer may lack in an index that is partial for `reason`, in words, and what can avoid the loss.
///
/// `reason` is [`symdex::Partial::reason`] of the index's metadata.
#[must_use]
pub fn meaning_of(reason: &str) -> &'static str {
    loss_of(reason).map_or("some answers may lack a function, a file or a line", |loss| loss.meaning)
}

/// Whether other files can avoid this loss, such as a whole copy of a damaged file, a file that is not found, or symbol
/// maps. `reason` is [`symdex::Partial::reason`] of the index's metadata.
#[must_use]
pub fn can_be_avoided(reason: &str) -> bool {
    loss_of(reason).is_some_and(|loss| loss.can_be_avoided)
}

/// A part of the reason that counts code without an image offset.
pub(crate) const TOO_FAR: &str = "not in the 4 GiB that begin at the base";

/// The reason that counts hidden names that no symbol map has.
pub(crate) const HIDDEN_NAMES: &str = "hidden names that no symbol map resolved";

/// Reasons and counts of what an index lacks. They do not depend on the number of threads.
#[derive(Clone, Debug, Default)]
pub struct Problems {
    lost: BTreeMap<String, u64>,
    dropped: BTreeMap<&'static str, u64>,
    failed_units: BTreeSet<usize>,
    hidden_names: u64,
    /// The reasons in `lost` that are limits.
    exceeded: BTreeSet<String>,
    steps: u64,
}

impl Problems {
    /// Reasons why answers are lost, and how often.
    pub(crate) fn lost(&self) -> &BTreeMap<String, u64> {
        &self.lost
    }

    /// Counts answers that are lost.
    pub fn add(&mut self, reason: &str, count: u64) {
        if count != 0 {
            *self.lost.entry(reason.to_owned()).or_default() += count;
        }
    }

    /// Counts answers that are lost because of a limit.
    pub fn limit(&mut self, reason: &str, count: u64) {
        self.add(reason, count);
        if count != 0 {
            self.exceeded.insert(reason.to_owned());
        }
    }

    /// States a limit that is exceeded without a loss of answers.
    pub(crate) fn exceeds(&mut self, limit: &str) {
        self.exceeded.insert(limit.to_owned());
    }

    /// Counts a unit that exceeds a limit, by its offset in `.debug_info`.
    pub(crate) fn unit_limit(&mut self, offset: usize, limit: &str) {
        self.unit(offset, limit);
        // The first ones suffice.
        if self.exceeded.is_empty() {
            self.exceeded.insert(format!("unit at {offset:#x}: {limit}"));
        }
    }

    /// Counts what was dropped because it does not describe code of the image. No answer is lost.
    pub(crate) fn dropped(&mut self, reason: &'static str, count: u64) {
        if count != 0 {
            *self.dropped.entry(reason).or_default() += count;
        }
    }

    /// Counts work that was done.
    pub(crate) fn add_steps(&mut self, steps: u64) {
        self.steps += steps;
    }

    /// Counts names that stay hidden.
    pub(crate) fn hidden(&mut self, count: u64) {
        self.hidden_names += count;
        self.add(HIDDEN_NAMES, count);
    }

    /// Counts a unit that could not be read to its end, by its offset in `.debug_info`.
    pub(crate) fn unit(&mut self, offset: usize, error: &str) {
        const LISTED: usize = 20;
        self.failed_units.insert(offset);
        // A hostile file can have any number of bad units with different errors. The first ones suffice.
        if self.lost.len() < LISTED {
            self.add(&format!("unit at {offset:#x}: {error}"), 1);
        } else {
            self.add("more units that could not be read", 1);
        }
    }

    pub(crate) fn merge(&mut self, other: Problems) {
        other.lost.into_iter().for_each(|(reason, count)| *self.lost.entry(reason).or_default() += count);
        other
            .dropped
            .into_iter()
            .for_each(|(reason, count)| *self.dropped.entry(reason).or_default() += count);
        self.failed_units.extend(other.failed_units);
        self.exceeded.extend(other.exceeded);
        self.hidden_names += other.hidden_names;
    }

    /// The lost answers, as the metadata states them, and the report of the build.
    pub(crate) fn finish(self, has_dwarf: bool, coverage: TextCoverage) -> (Vec<Partial>, BuildReport) {
        let partial = self.lost.into_iter().map(|(reason, count)| Partial::new(reason, count)).collect();
        let failed_units = self.failed_units.len() as u64;
        let Self { dropped, hidden_names, exceeded, steps, .. } = self;
        let exceeded = exceeded.into_iter().next();
        (partial, BuildReport { has_dwarf, failed_units, dropped, hidden_names, coverage, exceeded, steps })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_says_what_answers_lack() {
        let mut problems = Problems::default();
        problems.unit(0x10, "its line table: cut");
        problems.unit(0x20, "unknown form");
        problems.hidden(2);
        let (partial, _) = problems.finish(true, TextCoverage::default());
        let meanings: Vec<_> = partial.iter().map(|partial| meaning_of(&partial.reason)).collect();
        let [hidden, lines, unit] = meanings[..] else { panic!("{partial:?}") };
        assert!(hidden.contains("`symbol_maps`") && lines.contains("no files and lines of their own"));
        assert!(unit.contains("symbol table"), "{unit}");
        assert!(meaning_of("the debug file a.debug (build id 01) is not found").contains("symbol table"));
        for missing in
            ["the split unit a.dwo (dwo id 01)", "the debug file a.debug", "the supplementary file a.dwz"]
        {
            let meaning = meaning_of(&format!("{missing} is not found"));
            assert!(meaning.contains("inlined functions") && meaning.contains("`debug_dirs`"), "{meaning}");
        }
        assert!(meaning_of("of a newer symdex").starts_with("some answers may lack"));
        assert!(
            can_be_avoided("the split unit a.dwo (dwo id 01) is not found") && can_be_avoided(HIDDEN_NAMES)
        );
        assert!(
            !can_be_avoided("names whose origins form a circle") && !can_be_avoided("units without lines")
        );
    }
}
