//! The known reasons why a symbolizer answers otherwise than the rules say.

/// A reason why a symbolizer's answer differs from the one by the rules.
///
/// Two classes with the same name and reason are equal. The constants are the classes of addr2line, and those that
/// several symbolizers share. A [`Peer`](crate::Peer) may define more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Class {
    name: &'static str,
    reason: &'static str,
    is_rare: bool,
}

impl Class {
    /// A class of any frequency.
    #[must_use]
    pub const fn new(name: &'static str, reason: &'static str) -> Self {
        Self { name, reason, is_rare: false }
    }

    /// A class that fails the audit if more than 0.5 % of the addresses are in it.
    #[must_use]
    pub const fn rare(name: &'static str, reason: &'static str) -> Self {
        Self { name, reason, is_rare: true }
    }

    /// Its name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.name
    }

    /// Why both answers are correct, or symdex's alone.
    #[must_use]
    pub fn reason(self) -> &'static str {
        self.reason
    }

    /// Whether the audit fails if the class is frequent.
    #[must_use]
    pub fn is_rare(self) -> bool {
        self.is_rare
    }

    /// addr2line has no line for line 0.
    pub const LINE_ZERO: Self =
        Self::new("line zero", "addr2line has no line where the debug information has line 0");
    /// A file without a directory.
    pub const COMPILER_GENERATED: Self =
        Self::new("compiler-generated file", "the peers put a directory before <compiler-generated>");
    /// A path that is not UTF-8.
    pub const NOT_UTF8: Self =
        Self::new("not UTF-8", "addr2line replaces the bytes of a path that are not UTF-8");
    /// A linkage name with Mach-O's underscore.
    pub const UNDERSCORE: Self =
        Self::new("underscore", "the peers keep the underscore that Mach-O puts before names");
    /// A function without a linkage name that the symbol table names.
    pub const SYMBOL_NAME: Self = Self::new(
        "symbol name",
        "without a linkage name the symbol table's name counts; addr2line does not read the symbol table, \
         llvm-symbolizer not the one of a debug file beside the stripped file",
    );
    /// A function without a linkage name in a namespace or a type.
    pub const QUALIFIED_NAME: Self = Self::new(
        "qualified name",
        "without a linkage name symdex builds the qualified name; the peers take the plain one",
    );
    /// A linkage name behind a plain name in the chain of declarations.
    pub const LINKAGE_NAME_BEHIND_NAME: Self = Self::new(
        "linkage name behind name",
        "addr2line stops at a plain name and misses the linkage name behind it",
    );
    /// A line that no subprogram covers.
    pub const LINE_WITHOUT_FUNCTION: Self = Self::new(
        "line without function",
        "the symbol table names code that has a line and no function; addr2line does not read it",
    );
    /// Several subprograms with the same range.
    pub const ALIASES: Self =
        Self::new("aliases", "of several subprograms with one range the peers take any");
    /// Subprograms with overlapping ranges.
    pub const OVERLAPPING_FUNCTIONS: Self = Self::new(
        "overlapping functions",
        "the peers search functions as if they did not overlap, and miss outer ones",
    );
    /// An inlined subroutine inside one that states no code.
    pub const EMPTY_INLINED: Self = Self::new(
        "empty inlined subroutine",
        "addr2line does not look into an inlined subroutine that states no code of its own, llvm-symbolizer \
         counts it as one with code",
    );
    /// Inlined subroutines that overlap without being nested.
    pub const OVERLAPPING_INLINED: Self = Self::new(
        "overlapping inlined subroutines",
        "of inlined subroutines that overlap the peers take any",
    );
    /// Sequences that overlap.
    pub const OVERLAPPING_SEQUENCES: Self =
        Self::new("overlapping sequences", "the peers search sequences as if they did not overlap");
    /// A sequence whose addresses decrease.
    pub const BACKWARD_ROWS: Self = Self::new(
        "rows that go backwards",
        "addr2line drops the rows of a sequence after an address that decreases, and the end of the sequence; \
         llvm-symbolizer does not sort them",
    );
    /// Code that two units have lines for.
    pub const OTHER_UNIT: Self = Self::rare(
        "other unit",
        "the peers take the first unit that declares the code, whether or not it has the function",
    );
    /// Code of a line program that a partial unit names.
    pub const PARTIAL_UNIT: Self = Self::new(
        "partial unit",
        "addr2line uses the line program of a partial unit, which only lists files there, for the unit itself",
    );
    /// Code outside the ranges that its unit declares.
    pub const UNDECLARED_CODE: Self = Self::new(
        "undeclared code",
        "the peers look into a unit only where its own ranges or .debug_aranges say so",
    );
    /// A unit that addr2line drops.
    pub const BROKEN_UNIT: Self =
        Self::new("broken unit", "addr2line drops a unit for one unreadable sequence, path or DIE");
    /// A reference from one split unit to another.
    pub const SPLIT_UNIT: Self =
        Self::new("split unit", "addr2line follows no reference from one split unit to another");
}
