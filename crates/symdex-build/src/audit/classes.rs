//! The reasons that are known why addr2line answers otherwise than the rules say.

/// A reason why addr2line's answer is another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// Several line rows stand at one address.
    RowsAtOneAddress,
    /// Line 0.
    LineZero,
    /// A file without a directory.
    CompilerGenerated,
    /// A path that is not UTF-8.
    NotUtf8,
    /// A linkage name with Mach-O's underscore.
    Underscore,
    /// A function without a linkage name that the symbol table names.
    SymbolName,
    /// A function without a linkage name in a namespace or a type.
    QualifiedName,
    /// A linkage name behind a plain name in the chain of origins.
    LinkageNameBehindName,
    /// A line that no subprogram covers.
    LineWithoutFunction,
    /// Several subprograms on the same range.
    Aliases,
    /// Subprograms on overlapping ranges.
    OverlappingFunctions,
    /// An inlined subroutine inside one without code.
    EmptyInlined,
    /// Sequences that overlap.
    OverlappingSequences,
    /// A sequence whose addresses go back.
    AddressGoesBack,
    /// Code that two units have lines for.
    OtherUnit,
    /// Code outside the ranges that its unit declares.
    UndeclaredCode,
    /// A unit that addr2line gives up on.
    BrokenUnit,
}

impl Class {
    /// Its name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Class::RowsAtOneAddress => "rows at one address",
            Class::LineZero => "line zero",
            Class::CompilerGenerated => "compiler-generated file",
            Class::NotUtf8 => "not UTF-8",
            Class::Underscore => "underscore",
            Class::SymbolName => "symbol name",
            Class::QualifiedName => "qualified name",
            Class::LinkageNameBehindName => "linkage name behind name",
            Class::LineWithoutFunction => "line without function",
            Class::Aliases => "aliases",
            Class::OverlappingFunctions => "overlapping functions",
            Class::EmptyInlined => "empty inlined subroutine",
            Class::OverlappingSequences => "overlapping sequences",
            Class::AddressGoesBack => "address goes back",
            Class::OtherUnit => "other unit",
            Class::UndeclaredCode => "undeclared code",
            Class::BrokenUnit => "broken unit",
        }
    }

    /// Why both answers are as they should be.
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            Class::RowsAtOneAddress => {
                "of several rows at one address atos takes the first, addr2line the last"
            }
            Class::LineZero => "addr2line has no line where the debug information has line 0",
            Class::CompilerGenerated => "addr2line puts a directory before <compiler-generated>",
            Class::NotUtf8 => "addr2line replaces bytes of a path that are not UTF-8",
            Class::Underscore => "addr2line keeps the underscore that Mach-O puts before names",
            Class::SymbolName => {
                "without a linkage name the symbol table's name counts; addr2line does not read it"
            }
            Class::QualifiedName => {
                "without a linkage name the qualified name is rebuilt; addr2line takes the plain one"
            }
            Class::LinkageNameBehindName => {
                "addr2line stops at a plain name and misses the linkage name behind it"
            }
            Class::LineWithoutFunction => "the symbol table names code that has a line and no function",
            Class::Aliases => "of several subprograms on one range addr2line takes any",
            Class::OverlappingFunctions => {
                "addr2line searches functions as if they did not overlap, and loses outer ones"
            }
            Class::EmptyInlined => {
                "addr2line does not look into an inlined subroutine that states no code of its own"
            }
            Class::OverlappingSequences => "addr2line searches sequences as if they did not overlap",
            Class::AddressGoesBack => "addr2line takes rows whose address is set back for dropped code",
            Class::OtherUnit => {
                "addr2line takes the first unit that has a line, whether or not it has the function"
            }
            Class::UndeclaredCode => {
                "addr2line looks only where a unit's own ranges, or its aranges, lead it"
            }
            Class::BrokenUnit => "addr2line drops a unit for one sequence or DIE that cannot be read",
        }
    }

    /// Where the project's own papers name it; a class they do not name must stay rare.
    #[must_use]
    pub fn named_in(self) -> Option<&'static str> {
        match self {
            Class::RowsAtOneAddress => Some("TRAPS 20"),
            Class::LineZero => Some("TRAPS 21"),
            Class::CompilerGenerated => Some("PEERS 6"),
            Class::NotUtf8 => Some("TRAPS 31"),
            Class::Underscore => Some("PEERS 7"),
            Class::SymbolName | Class::QualifiedName | Class::LinkageNameBehindName => Some("TRAPS 14"),
            Class::LineWithoutFunction => Some("PEERS 5"),
            Class::Aliases => Some("TRAPS 5"),
            Class::OverlappingFunctions => Some("TRAPS 4"),
            Class::EmptyInlined => Some("TRAPS 3"),
            Class::OverlappingSequences | Class::AddressGoesBack => Some("TRAPS 19"),
            Class::UndeclaredCode => Some("TRAPS 11"),
            Class::BrokenUnit => Some("PEERS 1"),
            Class::OtherUnit => None,
        }
    }
}
