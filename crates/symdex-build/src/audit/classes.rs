//! The reasons that are known why a peer answers otherwise than the rules say.

/// A reason why a peer's answer is another one.
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
    /// A sequence that goes backwards.
    BackwardRows,
    /// Code that two units have lines for.
    OtherUnit,
    /// Code that a partial unit names the line program of.
    PartialUnit,
    /// Sections that are compressed in the way of GNU.
    OldCompression,
    /// Code outside the ranges that its unit declares.
    UndeclaredCode,
    /// A unit that addr2line gives up on.
    BrokenUnit,
    /// A name in the supplementary file.
    SupplementaryFile,
    /// A split unit that a peer does not find, or a reference between such ones.
    SplitUnit,
    /// Inlined subroutines that overlap without lying in each other.
    OverlappingInlined,
    /// A symbol at the start of a function that has another name in the debug information, or a second symbol there.
    SymbolAlias,
    /// A symbol that starts where no function does.
    SymbolElsewhere,
    /// A symbol that llvm-symbolizer ends where the file ends, or at what is no symbol.
    SymbolCutShort,
    /// A symbol that reaches over others, or that llvm-symbolizer does not read.
    SymbolMissed,
    /// The source file of a local symbol.
    SymbolFile,
    /// A line whose file the line program does not list.
    NoFile,
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
            Class::BackwardRows => "rows that go backwards",
            Class::OtherUnit => "other unit",
            Class::PartialUnit => "partial unit",
            Class::OldCompression => "old compression",
            Class::UndeclaredCode => "undeclared code",
            Class::BrokenUnit => "broken unit",
            Class::SupplementaryFile => "supplementary file",
            Class::SplitUnit => "split unit",
            Class::OverlappingInlined => "overlapping inlined subroutines",
            Class::SymbolAlias => "symbol alias",
            Class::SymbolElsewhere => "symbol elsewhere",
            Class::SymbolCutShort => "symbol cut short",
            Class::SymbolMissed => "symbol missed",
            Class::SymbolFile => "file of a symbol",
            Class::NoFile => "line without file",
        }
    }

    /// Why both answers are as they should be.
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            Class::RowsAtOneAddress => {
                "of several rows at one address atos takes the first, the peers the last"
            }
            Class::LineZero => {
                "addr2line has no line where there is line 0, llvm-symbolizer line 0 where there is none"
            }
            Class::CompilerGenerated => "the peers put a directory before <compiler-generated>",
            Class::NotUtf8 => "addr2line replaces bytes of a path that are not UTF-8",
            Class::Underscore => "the peers keep the underscore that Mach-O puts before names",
            Class::SymbolName => {
                "without a linkage name the symbol table's name counts; addr2line does not read it, llvm-symbolizer not that of a debug file beside the stripped one"
            }
            Class::QualifiedName => {
                "without a linkage name the qualified name is rebuilt; the peers take the plain one"
            }
            Class::LinkageNameBehindName => {
                "addr2line stops at a plain name and misses the linkage name behind it"
            }
            Class::LineWithoutFunction => "the symbol table names code that has a line and no function",
            Class::Aliases => "of several subprograms on one range the peers take any",
            Class::OverlappingFunctions => {
                "the peers search functions as if they did not overlap, and lose outer ones"
            }
            Class::EmptyInlined => {
                "addr2line does not look into an inlined subroutine that states no code of its own, llvm-symbolizer counts it as one with code"
            }
            Class::OverlappingSequences => "the peers search sequences as if they did not overlap",
            Class::BackwardRows => {
                "addr2line drops the rows of a sequence that are set to a lower address, and its end with them; llvm-symbolizer does not sort them"
            }
            Class::OtherUnit => {
                "the peers take the first unit that declares the code, whether or not it has the function"
            }
            Class::PartialUnit => {
                "addr2line takes the line program of a partial unit, which lists files there, for its own"
            }
            Class::OldCompression => "llvm-symbolizer does not read .zdebug sections",
            Class::UndeclaredCode => {
                "the peers look only where a unit's own ranges, or its aranges, lead them"
            }
            Class::BrokenUnit => "addr2line drops a unit for one sequence, path or DIE that cannot be read",
            Class::SupplementaryFile => {
                "llvm-symbolizer does not read supplementary files, so not the names in them"
            }
            Class::SplitUnit => {
                "llvm-symbolizer looks for .dwo files only where they were written, and for no package in the file itself; addr2line follows no reference between split units"
            }
            Class::OverlappingInlined => "of inlined subroutines that overlap the peers take any",
            Class::SymbolAlias => {
                "llvm-symbolizer takes the last symbol at a function's start, whatever the debug information says"
            }
            Class::SymbolElsewhere => {
                "llvm-symbolizer takes the last symbol before the address, though it is another function's or a label"
            }
            Class::SymbolCutShort => {
                "llvm-symbolizer ends a symbol where the file would end, though the code of a dSYM is not in it, or at the value of a stab"
            }
            Class::SymbolMissed => {
                "llvm-symbolizer looks at the last symbol before the address, and reads .dynsym only where there is no .symtab"
            }
            Class::SymbolFile => {
                "llvm-symbolizer names the source file that the symbol table has before a local symbol"
            }
            Class::NoFile => "llvm-symbolizer has no line where the line program does not list the file",
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
            Class::OverlappingFunctions | Class::OverlappingInlined => Some("TRAPS 4"),
            Class::EmptyInlined => Some("TRAPS 3"),
            Class::OverlappingSequences | Class::BackwardRows => Some("TRAPS 19"),
            Class::PartialUnit | Class::OldCompression | Class::SupplementaryFile | Class::SplitUnit => {
                Some("TRAPS 17")
            }
            Class::UndeclaredCode => Some("TRAPS 11"),
            Class::BrokenUnit => Some("PEERS 1"),
            Class::SymbolAlias => Some("PEERS 2, 3"),
            Class::SymbolElsewhere => Some("PEERS 4"),
            Class::SymbolCutShort => Some("TRAPS 25"),
            Class::SymbolMissed => Some("TRAPS 4"),
            Class::NoFile => Some("TRAPS 18"),
            Class::SymbolFile => Some("docs/AUDIT.md"),
            Class::OtherUnit => None,
        }
    }
}
