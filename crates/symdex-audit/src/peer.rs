//! The symbolizers with which symdex is compared, and what the audit has to know about each.

use std::fmt;

use symdex_build::Error;

use crate::classes::Class;
use crate::dies::Name;
use crate::expected::{Expected, Frame, Position};
use crate::facts::Facts;
use crate::names::{self, Link};
use crate::units::Unit;

/// A symbolizer with which symdex is compared: its answers by the rules, and the reasons why they may
/// differ.
pub trait Peer: Sync {
    /// Its name in reports.
    fn name(&self) -> &'static str;

    /// Whether it reads the symbol table.
    fn reads_symbol_table(&self) -> bool;

    /// Whether it shows an inlined subroutine that states no code of its own as a caller of those inside it. If not, it
    /// does not look into it.
    fn shows_empty_inlined(&self) -> bool;

    /// Whether it finds a symbol for the address, whose name it takes for the concrete function. Always false if the
    /// symbolizer does not read the symbol table.
    fn finds_symbol(&self, question: &Question<'_, '_>) -> bool;

    /// Its frames for an address whose answer by the rules is `expected`; `None` for an address that nothing covers.
    fn frames<'f>(&self, expected: Option<Expected<'f>>) -> Vec<Frame<'f>>;

    /// Whether it looks into `unit` for the code at the address.
    fn looks_into(&self, question: &Question<'_, '_>, unit: &Unit<'_>) -> bool;

    /// Positions that this peer, and no other, may find for the address, and the reason for each.
    fn positions(&self, _question: &Question<'_, '_>) -> Vec<(Position, Class)> {
        Vec::new()
    }

    /// Why the name of a frame differs from the one by the rules.
    fn explain_name(&self, _question: &Question<'_, '_>, _frame: &FramePair<'_>) -> Option<Class> {
        None
    }

    /// Why it has `theirs` where the line by the rules is `ours`.
    fn explain_line(&self, ours: Option<u32>, theirs: Option<u32>) -> Option<Class>;

    /// Why file and line of a frame differ from those by the rules. It is called if [`Self::explain_line`] returns no
    /// class.
    fn explain_location(&self, _question: &Question<'_, '_>, _frame: &FramePair<'_>) -> Option<Vec<Class>> {
        None
    }
}

/// The answers of a symbolizer in the order of the questions: the frames of each, innermost first.
pub type PeerFrames<'a> = Box<dyn Iterator<Item = Result<Vec<Frame<'static>>, Error>> + 'a>;

/// Asks a symbolizer about sorted SVMAs. Its answers must have names as they are in the debug file, and all inlined
/// functions.
pub type Ask<'a> = dyn Fn(Vec<u64>) -> Result<PeerFrames<'a>, Error> + Sync + 'a;

/// A peer that the caller of the audit asks.
#[derive(Clone, Copy)]
pub struct AskedPeer<'a> {
    /// Its properties.
    pub peer: &'a dyn Peer,
    /// Looks up its answers.
    pub ask: &'a Ask<'a>,
}

impl fmt::Debug for AskedPeer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AskedPeer({})", self.peer.name())
    }
}

/// A frame of a peer, and the one by the rules at the same depth.
#[non_exhaustive]
#[derive(Clone, Copy, Debug)]
pub struct FramePair<'p> {
    /// 0 for the innermost frame.
    pub depth: usize,
    /// Whether it is the frame of the concrete function.
    pub is_outermost: bool,
    /// The frame by the rules.
    pub ours: &'p Frame<'p>,
    /// The peer's frame.
    pub theirs: &'p Frame<'p>,
}

/// An address that is compared, and its position.
#[derive(Clone, Copy)]
pub struct Question<'q, 'd> {
    pub(crate) facts: &'q Facts<'q, 'd>,
    /// The image offset.
    pub offset: u64,
    /// The position by the rules, or another one that a peer may find.
    pub position: &'q Position,
}

impl fmt::Debug for Question<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Question")
            .field("offset", &self.offset)
            .field("position", &self.position)
            .finish_non_exhaustive()
    }
}

impl<'q, 'd> Question<'q, 'd> {
    /// The address in the debug file.
    #[must_use]
    pub fn svma(&self) -> u64 {
        self.facts.image.info().base + self.offset
    }

    /// Whether `svma` is in the executable section that has the address.
    #[must_use]
    pub fn is_in_same_section(&self, svma: u64) -> bool {
        let info = self.facts.image.info();
        let at =
            |offset: u64| info.executable.iter().position(|(start, end)| (*start..*end).contains(&offset));
        svma.checked_sub(info.base).and_then(at) == at(self.offset)
    }

    /// The unit that has the code.
    #[must_use]
    pub fn unit(&self) -> Option<&'q Unit<'d>> {
        self.position.unit().map(|unit| &self.facts.units[unit as usize])
    }

    /// Whether the function is in a split unit.
    #[must_use]
    pub fn function_is_split(&self) -> bool {
        self.position
            .function
            .is_some_and(|function| self.facts.units[function.unit as usize].split.is_some())
    }

    /// The SVMA at which the range of the function starts that has the address, by the debug information or the symbol
    /// table.
    #[must_use]
    pub fn function_start(&self) -> Option<u64> {
        let expected = self.facts.expected(self.position, self.offset)?;
        expected.function_start.map(|start| self.facts.image.info().base + start)
    }

    /// The SVMA at which a call enters the function, by the debug information or the symbol table.
    #[must_use]
    pub fn function_entry(&self) -> Option<u64> {
        match self.position.function {
            Some(_) => self.entry().map(|entry| self.facts.image.info().base + entry),
            None => self.symbol_start(),
        }
    }

    /// The image offset at which a call enters the function, by the debug information.
    pub(crate) fn entry(&self) -> Option<u64> {
        self.facts.function(self.position.function?).entry
    }

    /// The SVMA at which the function of the symbol table starts that covers the address.
    #[must_use]
    pub fn symbol_start(&self) -> Option<u64> {
        self.facts.symbol(self.offset).map(|symbol| self.facts.image.info().base + symbol.start)
    }

    /// Whether the line row at the address names a file that the line program does not list. Up to DWARF 4, file 0 is
    /// not listed.
    #[must_use]
    pub fn row_file_is_unlisted(&self) -> bool {
        let Some((unit, row)) = self.position.row else { return false };
        let unit = &self.facts.units[unit as usize];
        let file = u64::from(unit.lines.rows[row].file);
        let version = unit.unit.line_program.as_ref().map_or(0, |program| program.header().version());
        version <= 4 && file == 0 || unit.lines.file(file).is_none()
    }

    /// Whether the inlined subroutine in the frame before `depth`, which the code of the frame at `depth` calls, does
    /// not state the file of the call.
    #[must_use]
    pub fn call_has_no_file(&self, depth: usize) -> bool {
        let number = depth.checked_sub(1).and_then(|before| self.position.inlined.iter().rev().nth(before));
        let unit = self.position.function.map(|function| &self.facts.units[function.unit as usize]);
        number.zip(unit).is_some_and(|(number, unit)| unit.dies.inlined[*number as usize].call_file.is_none())
    }

    /// The folder of the unit, if the supplementary file has its name.
    #[must_use]
    pub fn folder_in_supplementary_file(&self) -> Option<&'d [u8]> {
        let unit = self.unit().filter(|unit| unit.dies.folder_is_supplementary)?;
        unit.unit.comp_dir.map(|folder| self.facts.resolve(folder.slice()))
    }

    /// The DIE of the function or inlined subroutine at `depth`, by number, and its name by the rules. `None` without
    /// debug information of a function.
    pub(crate) fn die(&self, depth: usize) -> Option<(usize, Name<'d>)> {
        let id = self.position.function?;
        let inlined = self.position.inlined.iter().rev().nth(depth);
        Some(match inlined {
            Some(number) => {
                let inlined = &self.facts.units[id.unit as usize].dies.inlined[*number as usize];
                (inlined.die, inlined.name)
            }
            None => (self.facts.function(id).die, self.facts.function(id).name),
        })
    }

    /// Whether the DIEs of the function or inlined subroutine at `depth` state `name` as the linkage name, as the plain
    /// name, or as the plain name in its namespaces and types.
    #[must_use]
    pub fn states_name(&self, depth: usize, name: &[u8]) -> bool {
        let by_rules = self.die(depth).map(|(_, name)| name);
        let is_qualified = matches!(by_rules, Some(by_rules @ Name::Scoped(..))
            if self.facts.text(by_rules).as_deref() == Some(name));
        let states_it = |link: &Link<'_>| link.linkage == Some(name) || link.name == Some(name);
        is_qualified || self.names(depth).is_some_and(|links| links.iter().any(states_it))
    }

    /// The DIEs that can name the function or inlined subroutine at `depth`: its own, and those along its declarations.
    /// `None` without debug information of a function.
    #[must_use]
    pub fn names(&self, depth: usize) -> Option<Vec<Link<'d>>> {
        Some(names::chain(self.facts, self.die(depth)?.0).collect())
    }
}

/// The answer of a peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PeerAnswer<'c> {
    /// Innermost first; empty if it has no answer.
    Frames(Vec<Frame<'c>>),
    Error(String),
}

impl PeerAnswer<'_> {
    /// Whether the answer is exactly `frames`.
    pub(crate) fn is(&self, frames: &[Frame<'_>]) -> bool {
        matches!(self, PeerAnswer::Frames(theirs) if theirs == frames)
    }
}

impl fmt::Display for PeerAnswer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PeerAnswer::Frames(frames) => f.write_str(&crate::text::of_frames(frames)),
            PeerAnswer::Error(error) => write!(f, "error: {error}"),
        }
    }
}
