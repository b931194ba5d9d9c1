//! The known reasons why a symbolizer's answer differs from the rules.

/// A reason why a symbolizer's answer differs from the one by the rules.
///
/// Two classes with the same name, reason and proof are equal. The constants are the classes of addr2line, and those
/// that several symbolizers share. A [`Peer`](crate::Peer) may define more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Class {
    name: &'static str,
    reason: &'static str,
    proof: &'static str,
    is_described: bool,
}

impl Class {
    /// A class for few addresses of a file. If it explains more than 1 % of them, the audit reports a finding:
    /// examples have to be checked, and the class described.
    ///
    /// `proof` says what the audit checks at each address before it counts the address in the class.
    #[must_use]
    pub const fn new(name: &'static str, reason: &'static str, proof: &'static str) -> Self {
        Self { name, reason, proof, is_described: false }
    }

    /// The same class, which may explain any number of addresses, because docs/AUDIT.md describes it with its proof.
    #[must_use]
    pub const fn described(self) -> Self {
        Self { is_described: true, ..self }
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

    /// What is checked at each address of the class.
    #[must_use]
    pub fn proof(self) -> &'static str {
        self.proof
    }

    /// Whether it may explain more than 1 % of a file's addresses.
    #[must_use]
    pub fn is_described(self) -> bool {
        self.is_described
    }

    /// addr2line has no line for line 0.
    pub const LINE_ZERO: Self = Self::new(
        "line zero",
        "addr2line has no line where the debug information has line 0",
        "the line is 0, addr2line has none, and the files are equal",
    )
    .described();
    /// A file without a directory.
    pub const COMPILER_GENERATED: Self = Self::new(
        "compiler-generated file",
        "the peers put a directory before <compiler-generated>",
        "the file is <compiler-generated>, and the peer's ends in /<compiler-generated>",
    )
    .described();
    /// A path that is not UTF-8.
    pub const NOT_UTF8: Self = Self::new(
        "not UTF-8",
        "addr2line replaces the bytes of a path that are not UTF-8",
        "the peer's path is ours with these bytes replaced",
    );
    /// A linkage name with Mach-O's underscore.
    pub const UNDERSCORE: Self = Self::new(
        "underscore",
        "the peers keep the underscore that Mach-O puts before names",
        "the file is Mach-O, and the peer's name is the stated linkage name, which is ours with a leading underscore",
    )
    .described();
    /// A function without a linkage name that the symbol table names.
    pub const SYMBOL_NAME: Self = Self::new(
        "symbol name",
        "without a linkage name the symbol at the entry counts; addr2line does not read the symbol table, \
         llvm-symbolizer not the one of a debug file beside the stripped file",
        "no entry along the chain of origins has a linkage name, our name is the symbol at the function's entry by the \
         rules, the peer's is the first plain name of the chain, and the peer finds no symbol at the address",
    )
    .described();
    /// A linkage name that equals the plain name, of a function that a symbol names.
    pub const PLAIN_LINKAGE_NAME: Self = Self::new(
        "plain linkage name",
        "a linkage name that is the plain name and no symbol at the entry states nothing; the peers take it",
        "the first entry along the chain of origins with a linkage name has it as its plain name, no symbol at the \
         function's entry has it, the peer has it, and ours is the symbol there by the rules, if they choose one",
    )
    .described();
    /// A function without a linkage name in a namespace or a type.
    pub const QUALIFIED_NAME: Self = Self::new(
        "qualified name",
        "without a linkage name symdex builds the qualified name; the peers take the plain one",
        "no entry along the chain of origins has a linkage name, the peer's name is the first plain name of the \
         chain, and ours is that name qualified by its namespaces and types",
    )
    .described();
    /// A linkage name after a plain name in the chain of declarations.
    pub const LINKAGE_NAME_BEHIND_NAME: Self = Self::new(
        "linkage name after name",
        "addr2line stops at a plain name and misses the linkage name after it",
        "an entry of the chain of origins has the peer's name and no linkage name, and one after it has our name as \
         its linkage name",
    );
    /// A line that no subprogram covers.
    pub const LINE_WITHOUT_FUNCTION: Self = Self::new(
        "line without function",
        "the symbol table names code that has a line and no function; addr2line does not read it",
        "no subprogram covers the address, a line row does, our name is that of the symbol that covers it, and \
         addr2line has the same line without a name",
    )
    .described();
    /// Several subprograms with the same range.
    pub const ALIASES: Self = Self::new(
        "aliases",
        "of several subprograms with one range the peers take any",
        "another subprogram has the same range, and the peer's whole answer is the one by the rules for it",
    )
    .described();
    /// Subprograms with overlapping ranges.
    pub const OVERLAPPING_FUNCTIONS: Self = Self::new(
        "overlapping functions",
        "the peers search functions as if they did not overlap, and miss outer ones",
        "another subprogram covers the address and the peer's whole answer is the one by the rules for it; or another \
         one lies before the address inside the function, so that a binary search misses the function, and the peer \
         answers without a function",
    );
    /// An inlined subroutine inside one that states no code.
    pub const EMPTY_INLINED: Self = Self::new(
        "empty inlined subroutine",
        "addr2line does not look into an inlined subroutine that states no code of its own, llvm-symbolizer \
         counts it as one with code",
        "the chain has an inlined subroutine without code, and the peer's whole answer is that of the chain cut \
         there (addr2line) or with it (llvm-symbolizer)",
    );
    /// Inlined subroutines that overlap without being nested.
    pub const OVERLAPPING_INLINED: Self = Self::new(
        "overlapping inlined subroutines",
        "of inlined subroutines that overlap the peers take any",
        "another inlined subroutine of the function covers the address, and the peer's whole answer is that of its \
         chain",
    );
    /// Inlined subroutines outside of the code of the one around them.
    pub const INLINED_OUTSIDE: Self = Self::new(
        "inlined subroutine outside",
        "addr2line does not look into an inlined subroutine for code outside of it",
        "an inlined subroutine covers the address outside of what is around it, and the peer's whole answer is that of \
         the innermost that covers it inside, or of the function if none does",
    )
    .described();
    /// Inlined subroutines outside of their functions.
    pub const INLINED_BEYOND: Self = Self::new(
        "inlined subroutine of another function",
        "llvm-symbolizer shows an inlined subroutine, and its function, for code that no range of that function has",
        "an inlined subroutine of another function of the unit covers the address, and the peer's whole answer is that \
         of its chain",
    )
    .described();
    /// Sequences that overlap.
    pub const OVERLAPPING_SEQUENCES: Self = Self::new(
        "overlapping sequences",
        "the peers search sequences as if they did not overlap",
        "another sequence covers the address and the peer has the line of its last row there; or another one lies \
         before the address inside the outermost sequence, so that a binary search misses it, and the peer has no line",
    );
    /// A sequence whose addresses decrease.
    pub const BACKWARD_ROWS: Self = Self::new(
        "rows that go backwards",
        "addr2line drops the rows of a sequence after an address that decreases, and the end of the sequence; \
         llvm-symbolizer does not sort them",
        "a sequence whose addresses decrease covers the address and the peer has no line; or the unit has such a \
         sequence that starts before the address, and the peer has file and line of one of its rows",
    );
    /// Code that two units have lines for.
    pub const OTHER_UNIT: Self = Self::new(
        "other unit",
        "the peers take the first unit that declares the code, whether or not it has the function",
        "the peer looks into another unit that has rows for the address, and its whole answer is that of the row",
    );
    /// Code of a line program that a partial unit names.
    pub const PARTIAL_UNIT: Self = Self::new(
        "partial unit",
        "addr2line uses the line program of a partial unit, which only lists files there, for the unit itself",
        "a partial unit names a line program that has rows for the address, and the peer's whole answer is that of \
         the row",
    )
    .described();
    /// Code outside the ranges that its unit declares.
    pub const UNDECLARED_CODE: Self = Self::new(
        "undeclared code",
        "the peers look into a unit only where its own ranges or .debug_aranges say so",
        "the ranges that the peer reads of the unit with the answer leave the address out, and the peer answers as if \
         the unit were not there",
    )
    .described();
    /// A unit that addr2line drops.
    pub const BROKEN_UNIT: Self = Self::new(
        "broken unit",
        "addr2line drops a unit for one unreadable sequence, path or DIE",
        "addr2line answers with an error, and a unit that it looks into, or a reference of the function, is \
         unreadable; or it answers nothing, and the unit's line program is unreadable",
    )
    .described();
    /// A reference from one split unit to another.
    pub const SPLIT_UNIT: Self = Self::new(
        "split unit",
        "addr2line follows no reference from one split unit to another",
        "addr2line answers with an error, and an entry of the function is in a split unit and refers to its \
         declaration by an offset in the section",
    );
}
