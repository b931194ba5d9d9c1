//! How llvm-symbolizer answers, and why it answers otherwise than the rules say.

use object::{Object as _, ObjectSection as _};
use symdex_audit::{Class, Expected, Frame, FramePair, Link, Peer, Position, Question, Unit};
use symdex_build::Image;

use super::symbols::{self, Symbol};

/// The name of llvm-symbolizer in reports.
pub(crate) const LLVM_SYMBOLIZER: &str = "llvm-symbolizer";

/// Line 0 where there is no line.
const LINE_ZERO: Class = Class::new(
    "line zero",
    "llvm-symbolizer has line 0 where there is no line",
    "there is no line, llvm-symbolizer has line 0, and the files are equal or of class \"file of a symbol\"",
)
.described();
/// Sections that are compressed the way GNU tools once did it.
const OLD_COMPRESSION: Class = Class::new(
    "old compression",
    "llvm-symbolizer does not read .zdebug sections",
    "the file has .zdebug sections, and the whole answer is that of its symbol table",
)
.described();
/// A name in the supplementary file.
const SUPPLEMENTARY_FILE: Class = Class::new(
    "supplementary file",
    "llvm-symbolizer does not read supplementary files, so not the names and folders in them",
    "every name along the chain of origins is in the supplementary file, and llvm-symbolizer has no name or the \
     string at the same offset in the file itself; or the unit's folder is there, and llvm-symbolizer's path is ours \
     without it",
)
.described();
/// A split unit that it does not find.
const SPLIT_UNIT: Class = Class::new(
    "split unit",
    "llvm-symbolizer looks for .dwo files only where they were written, and for no package in the file itself",
    "the function is in a split unit, and the whole answer is that of the line row without it",
)
.described();
/// A second symbol at the entry of a function.
const SYMBOL_ALIAS: Class = Class::new(
    "symbol alias",
    "of several symbols at a function's entry llvm-symbolizer takes the longest, of these the last; symdex takes the \
     linkage name of the debug information, or the best by a fixed order",
    "llvm-symbolizer's name is that of the symbol it finds, this symbol is at the function's entry, and our name is a \
     symbol there, too",
)
.described();
/// A copy of a function that the compiler changed and gave a suffix.
const SYMBOL_OF_COPY: Class = Class::new(
    "symbol of a copy",
    "symdex takes the linkage name of the debug information, llvm-symbolizer the symbol, to which a compiler adds a \
     suffix such as .isra.0",
    "the symbol that llvm-symbolizer finds is at the function's entry, our name is the linkage name, and the symbol is \
     that name, a dot, and a suffix",
)
.described();
/// A name that a bitcode build hides.
const HIDDEN_NAME: Class = Class::new(
    "hidden name",
    "llvm-symbolizer removes an underscore from the hidden names of bitcode builds, which Mach-O did not add",
    "the symbol that llvm-symbolizer finds is at the function's entry, and our name is that name with a leading \
     underscore, and begins with __hidden#",
)
.described();
/// A symbol that has nothing of the linkage name, or several symbols at the entry of a function without one.
const SYMBOL_NOT_STATED: Class = Class::new(
    "symbol not stated",
    "llvm-symbolizer takes the last symbol at a function's entry; symdex takes the linkage name of the debug \
     information or, if several symbols are there, the name of the debug information",
    "the symbol that llvm-symbolizer finds is at the function's entry, our name is one that the debug information \
     states, and no symbol there has it",
);
/// The symbol of a part of a function that lies elsewhere.
const SYMBOL_OF_PART: Class = Class::new(
    "symbol of a part",
    "llvm-symbolizer takes the symbol at the start of a part (f.cold), symdex the name of the function (f), as the \
     debug information states it",
    "a range of the function that does not have its entry has the address, and the symbol that llvm-symbolizer finds \
     is at the start of that range",
)
.described();
/// The symbol of a basic block that has a section of its own (`-fbasic-block-sections`).
const SYMBOL_OF_BLOCK: Class = Class::new(
    "symbol of a block",
    "llvm-symbolizer takes the symbol of a basic block (f.__part.1), symdex the name of the function (f), as the debug \
     information states it",
    "the symbol that llvm-symbolizer finds is inside the range of the function that has the address, and is our name, \
     a dot, and a suffix",
)
.described();
/// A symbol of another section, where no function and no symbol covers the address.
const SYMBOL_OF_SECTION: Class = Class::new(
    "symbol of another section",
    "llvm-symbolizer extends a symbol without a size in ELF, and the last one of a section in Mach-O, into the next \
     sections; symdex ends it with its section, so that stubs are not named after the function before them",
    "no debug information covers the address, and the symbol that llvm-symbolizer finds is in another section",
)
.described();
/// A symbol that starts where no function does.
const SYMBOL_ELSEWHERE: Class = Class::new(
    "symbol elsewhere",
    "llvm-symbolizer takes the last symbol before the address, though it is another function's or a label",
    "llvm-symbolizer's name is that of the last symbol before the address, which is at no start of a range of the \
     function",
);
/// llvm-symbolizer ends a symbol at the end of the file, or at an entry that is not a symbol.
const SYMBOL_CUT_SHORT: Class = Class::new(
    "symbol cut short",
    "llvm-symbolizer ends a symbol where the file would end, though the code of a dSYM is not in it, or at the \
     value of a stab",
    "no debug information covers the address, llvm-symbolizer has no name, and by its rules the symbol that symdex \
     has ends before the address",
);
/// A symbol that reaches over others, or that it does not read.
const SYMBOL_MISSED: Class = Class::new(
    "symbol missed",
    "llvm-symbolizer looks at the last symbol before the address, and reads .dynsym only where there is no .symtab",
    "no debug information covers the address, llvm-symbolizer has no name, and no symbol that it reads there reaches \
     the address",
)
.described();
/// A stub, which no symbol names.
const SYMBOL_STUB: Class = Class::new(
    "symbol stub",
    "llvm-symbolizer does not read to which function a stub jumps",
    "no debug information covers the address, our name is that of a stub (DYLD-STUB$$f, f@plt) and of no symbol there, \
     and llvm-symbolizer has no name",
)
.described();
/// The source file of a local symbol.
const SYMBOL_FILE: Class = Class::new(
    "file of a symbol",
    "llvm-symbolizer gives a local symbol without a line the source file that the symbol table has before it; \
     symdex names no file that no line table names",
    "there is no file, and llvm-symbolizer's is that of the last STT_FILE before the local symbol that it finds",
)
.described();
/// A line whose file the line program does not list, or lists without a readable name.
const LINE_WITHOUT_FILE: Class = Class::new(
    "line without file",
    "llvm-symbolizer has no line where the line program does not list the file, or its name is not readable",
    "the row names a file that its line program does not list with a readable name, and llvm-symbolizer has no file and \
     no line",
)
.described();

/// A call whose file is not stated, as Zig writes calls.
const CALL_WITHOUT_FILE: Class = Class::new(
    "call without file",
    "without the file of a call llvm-symbolizer takes file 0 of the line program, or where that has none the file of \
     the frame before; both can be wrong, and symdex has none",
    "the inlined subroutine states no file of the call, there is no file, and the lines are equal or of class \
     \"line zero\"",
)
.described();

/// llvm-symbolizer as a peer, for one image.
pub(crate) struct LlvmPeer<'d> {
    /// As it reads the symbol table; sorted by address.
    symbols: Vec<Symbol<'d>>,
    /// SVMA and name of every symbol, also of those that llvm-symbolizer drops; sorted.
    all_names: Vec<(u64, &'d [u8])>,
    /// Whether sections are compressed the way GNU tools once did it (`.zdebug_info`).
    has_zdebug: bool,
    is_elf: bool,
}

impl<'d> LlvmPeer<'d> {
    pub(crate) fn of(image: &Image<'d>) -> Self {
        let file = image.files().first().copied();
        Self {
            symbols: file.map_or(Vec::new(), symbols::read),
            all_names: symbols::all_names(image),
            has_zdebug: image.files().iter().any(|file| has_zdebug(file)),
            is_elf: file.is_some_and(|file| file.starts_with(b"\x7fELF")),
        }
    }

    /// The symbol that it finds for the address, if the frame has its name.
    fn symbol(&self, question: &Question<'_, '_>, frame: &FramePair<'_>) -> Option<&Symbol<'d>> {
        let mut symbols = symbols::symbols_at(&self.symbols, question.svma());
        let found = symbols.find(|symbol| frame.theirs.name.as_deref() == Some(symbol.name));
        found.filter(|_| frame.is_outermost)
    }

    /// The class of an answer with the name of `symbol`, which it finds for the address.
    fn class_of_symbol(
        &self,
        question: &Question<'_, '_>,
        frame: &FramePair<'_>,
        symbol: &Symbol<'_>,
    ) -> Option<Class> {
        if question.function_entry() != Some(symbol.svma) {
            return Some(self.class_of_other_symbol(question, frame, symbol));
        }
        let ours = frame.ours.name.as_deref()?;
        if ours.starts_with(b"__hidden#") && ours.strip_prefix(b"_") == Some(symbol.name) {
            return Some(HIDDEN_NAME);
        }
        if self.all_names.binary_search(&(symbol.svma, ours)).is_ok() {
            return Some(SYMBOL_ALIAS);
        }
        let links = question.names(frame.depth)?;
        let is_linkage = links.iter().any(|link| link.linkage == Some(ours));
        match symbol.name.strip_prefix(ours) {
            Some([b'.', _, ..]) if is_linkage => Some(SYMBOL_OF_COPY),
            _ => question.states_name(frame.depth, ours).then_some(SYMBOL_NOT_STATED),
        }
    }

    /// The class of an answer with the name of `symbol`, which is not at the function's entry.
    fn class_of_other_symbol(
        &self,
        question: &Question<'_, '_>,
        frame: &FramePair<'_>,
        symbol: &Symbol<'_>,
    ) -> Class {
        let (has_function, start) = (question.position.has_function(), question.function_start());
        if has_function && start == Some(symbol.svma) {
            return SYMBOL_OF_PART;
        }
        let is_inside = has_function && start.is_some_and(|start| start < symbol.svma);
        let suffix = frame.ours.name.as_deref().and_then(|ours| symbol.name.strip_prefix(ours));
        if is_inside && matches!(suffix, Some([b'.', _, ..])) {
            return SYMBOL_OF_BLOCK;
        }
        let is_outside = question.position == &Position::default();
        if is_outside && !question.is_in_same_section(symbol.svma) {
            return SYMBOL_OF_SECTION;
        }
        SYMBOL_ELSEWHERE
    }

    /// Whether the frame lacks the name that the symbol table alone gives it, because it ends the symbol too early.
    fn cuts_symbol_short(&self, question: &Question<'_, '_>, frame: &FramePair<'_>) -> bool {
        !question.position.has_function()
            && frame.theirs.name.is_none()
            && question
                .symbol_start()
                .is_some_and(|start| symbols::is_cut_short(&self.symbols, start, question.svma()))
    }

    /// Whether the symbol table of ELF alone names the function, and it finds nothing: the last symbol before the
    /// address ends before it.
    fn misses_symbol(&self, question: &Question<'_, '_>, frame: &FramePair<'_>) -> bool {
        self.is_elf
            && frame.theirs.name.is_none()
            && !question.position.has_function()
            && symbols::symbols_at(&self.symbols, question.svma()).next().is_none()
    }

    /// Whether the frame has the name of a stub, and no symbol has it.
    fn is_stub(&self, question: &Question<'_, '_>, frame: &FramePair<'_>) -> bool {
        let Some(ours) = frame.ours.name.as_deref() else { return false };
        let is_named_so =
            if self.is_elf { ours.ends_with(b"@plt") } else { ours.starts_with(b"DYLD-STUB$$") };
        let is_symbol = |start| self.all_names.binary_search(&(start, ours)).is_ok();
        is_named_so
            && frame.theirs.name.is_none()
            && !question.position.has_function()
            && question.symbol_start().is_some_and(|start| !is_symbol(start))
    }

    /// The class if the unit's folder is missing before the file, because its name is in the supplementary file.
    fn explain_folder(&self, question: &Question<'_, '_>, frame: &FramePair<'_>) -> Option<Class> {
        let FramePair { ours, theirs, .. } = *frame;
        let rest = ours.file.as_deref()?.strip_prefix(question.folder_in_supplementary_file()?)?;
        let rest = rest.strip_prefix(b"/")?;
        (theirs.file.as_deref() == Some(rest) && ours.line == theirs.line).then_some(SUPPLEMENTARY_FILE)
    }

    /// The classes if the frame has the source file of its symbol and no line, or a file for a call that states none.
    fn explain_file(&self, question: &Question<'_, '_>, frame: &FramePair<'_>) -> Option<Vec<Class>> {
        let FramePair { ours, theirs, .. } = *frame;
        let class = if question.call_has_no_file(frame.depth) {
            CALL_WITHOUT_FILE
        } else {
            let file = self.symbol(question, frame)?.file?;
            (theirs.file.as_deref() == Some(file)).then_some(SYMBOL_FILE)?
        };
        let line = match (ours.line, theirs.line) {
            (ours, theirs) if ours == theirs => None,
            (ours, theirs) => Some(self.explain_line(ours, theirs)?),
        };
        ours.file.is_none().then(|| [class].into_iter().chain(line).collect())
    }
}

impl Peer for LlvmPeer<'_> {
    fn name(&self) -> &'static str {
        LLVM_SYMBOLIZER
    }

    fn reads_symbol_table(&self) -> bool {
        true
    }

    fn shows_empty_inlined(&self) -> bool {
        true
    }

    fn finds_symbol(&self, question: &Question<'_, '_>) -> bool {
        symbols::symbols_at(&self.symbols, question.svma()).next().is_some()
    }

    /// llvm-symbolizer returns an empty frame for an unknown address.
    fn frames<'f>(&self, expected: Option<Expected<'f>>) -> Vec<Frame<'f>> {
        expected.map_or_else(|| vec![Frame::default()], |expected| expected.frames)
    }

    /// It uses `.debug_aranges`, else the root DIE.
    fn looks_into(&self, question: &Question<'_, '_>, unit: &Unit<'_>) -> bool {
        let in_aranges = unit.ranges_in_aranges();
        let declared = if in_aranges.is_empty() { unit.ranges_in_root() } else { in_aranges };
        let svma = question.svma();
        declared.iter().any(|(start, end)| *start <= svma && svma < *end)
    }

    fn positions(&self, question: &Question<'_, '_>) -> Vec<(Position, Class)> {
        let mut positions = Vec::new();
        if question.unit().is_some_and(|unit| !self.looks_into(question, unit)) {
            positions.push((Position::default(), Class::UNDECLARED_CODE));
        }
        if self.has_zdebug {
            positions.push((Position::default(), OLD_COMPRESSION));
        }
        if question.function_is_split() {
            positions.push((question.position.without_function(), SPLIT_UNIT));
        }
        positions
    }

    fn explain_name(&self, question: &Question<'_, '_>, frame: &FramePair<'_>) -> Option<Class> {
        if let Some(symbol) = self.symbol(question, frame) {
            return self.class_of_symbol(question, frame, symbol);
        }
        if self.is_stub(question, frame) {
            return Some(SYMBOL_STUB);
        }
        if self.cuts_symbol_short(question, frame) {
            return Some(SYMBOL_CUT_SHORT);
        }
        if self.misses_symbol(question, frame) {
            return Some(SYMBOL_MISSED);
        }
        lacks_supplementary_file(question, frame).then_some(SUPPLEMENTARY_FILE)
    }

    fn explain_line(&self, ours: Option<u32>, theirs: Option<u32>) -> Option<Class> {
        ((ours, theirs) == (None, Some(0))).then_some(LINE_ZERO)
    }

    fn explain_location(&self, question: &Question<'_, '_>, frame: &FramePair<'_>) -> Option<Vec<Class>> {
        if let Some(class) = self.explain_folder(question, frame) {
            return Some(vec![class]);
        }
        let has_none = (&frame.theirs.file, frame.theirs.line) == (&None, None);
        if frame.depth == 0 && has_none && question.row_file_is_unlisted() {
            return Some(vec![LINE_WITHOUT_FILE]);
        }
        self.explain_file(question, frame)
    }
}

/// Whether all names of the function are in the supplementary file, and the frame has no name or the string that is at
/// the same offset in the image's own file.
fn lacks_supplementary_file(question: &Question<'_, '_>, frame: &FramePair<'_>) -> bool {
    let theirs = frame.theirs.name.as_deref();
    question.names(frame.depth).is_some_and(|links| {
        let is_named = |link: &&Link<'_>| link.linkage.is_some() || link.name.is_some();
        let named: Vec<_> = links.iter().filter(is_named).collect();
        let is_lost =
            |link: &&Link<'_>| link.is_supplementary && (theirs.is_none() || link.misread == theirs);
        !named.is_empty() && named.iter().all(is_lost)
    })
}

fn has_zdebug(file: &[u8]) -> bool {
    let is_zdebug = |section: object::Section<'_, '_>| {
        section.name_bytes().is_ok_and(|name| name.starts_with(b".zdebug_"))
    };
    object::File::parse(file).is_ok_and(|file| file.sections().any(is_zdebug))
}
