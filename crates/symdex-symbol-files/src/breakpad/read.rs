//! Reads symbol files of Breakpad.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

use symdex::write::{EncodedUnwindRows, UnwindTable};
use symdex::{Arch, ImageId, debug_id};
use symdex_build::Error;
use symdex_build::symbol_file::{Contents, Function, InlinedCall, Line, Problems, Records, SymbolFile};

use super::stack_cfi::unwind_rows;
use super::{
    CFI, CODE_ID, FILE, FUNC, INFO, INIT, INLINE, INLINE_ORIGIN, MODULE, PUBLIC, STACK, arch_of_name,
    has_uuid,
};

/// How many bytes of memory a byte of the records of a function may take. A line takes 8 bytes.
const MEMORY_OF_BYTE: usize = 32;

/// What counts a line that is no record.
const NO_RECORD: &str = "lines of the symbol file that are not records of Breakpad";

/// The first line, and the id of the code.
#[derive(Default)]
struct Module<'d> {
    os: &'d [u8],
    /// A GUID and an age, in hexadecimal digits.
    debug_id: &'d [u8],
    /// The build id of an ELF image, in hexadecimal digits.
    code_id: &'d [u8],
}

/// The text, names of inlined functions, and files, by their numbers.
struct Text<'d> {
    text: &'d [u8],
    names: HashMap<u64, &'d [u8]>,
    files: HashMap<u64, &'d [u8]>,
    /// The number of the file of an inlined function, in records of 2021.
    files_of_names: HashMap<u64, u64>,
    /// Records `STACK CFI`, in address order: their code and their places in the text.
    unwind: Vec<(Range<u64>, Range<usize>)>,
}

/// Reads the lines of a symbol file. Lines, inlined calls and names of functions are read later.
pub(crate) fn read(bytes: &[u8]) -> SymbolFile<'_> {
    let text = Text {
        text: bytes,
        names: HashMap::new(),
        files: HashMap::new(),
        files_of_names: HashMap::new(),
        unwind: Vec::new(),
    };
    let contents = Contents::new(bytes.len());
    let mut read = Reading { module: Module::default(), text, contents, function: None, unwind: None };
    let mut lines = Lines::new(bytes);
    if let Some((_, line)) = lines.next()
        && let Some(rest) = line.strip_prefix(MODULE.as_bytes())
    {
        let mut fields = Fields::new(rest.trim_ascii_start());
        let [os, arch, debug_id] = [(); 3].map(|()| fields.word());
        read.module = Module { os, debug_id, code_id: b"" };
        read.contents.arch = arch_of_name(&String::from_utf8_lossy(arch));
        read.contents.image_name = String::from_utf8_lossy(fields.rest()).into_owned();
    }
    for (at, line) in lines {
        if read.line(at..at + line.len(), line).is_none() {
            read.contents.problems.add(NO_RECORD, 1);
        }
    }
    if bytes.last().is_some_and(|last| *last != b'\n') {
        read.contents.problems.add("the symbol file ends within a line: it may be cut short", 1);
    }
    read.finish(bytes.len());
    read.text.unwind.extend(read.unwind.take());
    read.text.unwind.retain(|(code, _)| !code.is_empty());
    read.text.unwind.sort_by_key(|(code, _)| code.start);
    read.contents.id = read.module.id(&mut read.contents.warnings);
    SymbolFile::new(read.contents, Box::new(read.text))
}

impl Module<'_> {
    /// The id: the UUID of Mach-O, the GUID of Windows, and else the build id or its first 16 bytes.
    fn id(&self, warnings: &mut Vec<String>) -> Option<ImageId> {
        let stated = String::from_utf8_lossy(self.debug_id);
        if has_uuid(&String::from_utf8_lossy(self.os)) {
            return debug_id::uuid(&stated).filter(is_not_zero);
        }
        let start = debug_id::build_id_start(&stated).filter(is_not_zero);
        let whole = std::str::from_utf8(self.code_id).ok().and_then(|id| id.parse::<ImageId>().ok());
        let is_same = |whole: &ImageId| {
            let start = start.as_ref().map_or(&[][..], ImageId::as_bytes);
            whole.as_bytes().iter().zip(start).all(|(a, b)| a == b)
        };
        if let Some(whole) = whole.filter(is_same) {
            return Some(whole);
        }
        if start.is_some() {
            let what = "only the first 16 bytes of the build id are known: the file has no INFO CODE_ID that begins with them";
            warnings.push(what.to_owned());
        }
        start
    }
}

/// Whether the id is one: files of images without an id have zeros.
fn is_not_zero(id: &ImageId) -> bool {
    id.as_bytes().iter().any(|byte| *byte != 0)
}

/// What was read so far.
struct Reading<'d> {
    module: Module<'d>,
    text: Text<'d>,
    contents: Contents<'d>,
    /// The last function, unless another record followed it.
    function: Option<OpenFunction<'d>>,
    /// The last record `STACK CFI INIT` and the records `STACK` after it.
    unwind: Option<(Range<u64>, Range<usize>)>,
}

struct OpenFunction<'d> {
    range: Range<u64>,
    name: &'d [u8],
    /// The place of its record in the file.
    at: usize,
    /// Whether it has lines or inlined calls.
    has_lines: bool,
}

impl<'d> Reading<'d> {
    /// Reads the line at this place. Returns `None` if it is no record.
    fn line(&mut self, at: Range<usize>, line: &'d [u8]) -> Option<()> {
        let mut fields = Fields::new(line);
        let word = fields.word();
        match std::str::from_utf8(word).unwrap_or("?") {
            "" => {}
            INLINE => self.function.as_mut()?.has_lines = true,
            keyword if is_keyword(word) => {
                self.finish(at.start);
                self.record(at, keyword, fields)?;
            }
            _ => {
                hexadecimal(word)?;
                self.function.as_mut()?.has_lines = true;
            }
        }
        Some(())
    }

    /// Reads a record that does not belong to a function.
    fn record(&mut self, place: Range<usize>, word: &str, mut fields: Fields<'d>) -> Option<()> {
        let Range { start: at, end } = place;
        if word != STACK {
            self.text.unwind.extend(self.unwind.take());
        }
        match word {
            FUNC => {
                let [start, size, _] = fields.numbers(true)?;
                let range = start..start.checked_add(size)?;
                self.function = Some(OpenFunction { range, name: fields.rest(), at, has_lines: false });
            }
            PUBLIC => {
                let [start, _] = fields.numbers(true)?;
                self.contents.add_symbol(start, None, || Some(fields.rest()));
            }
            FILE => {
                let number = decimal(fields.word())?;
                self.text.files.insert(number, fields.rest());
            }
            INLINE_ORIGIN => {
                let number = decimal(fields.word())?;
                // Breakpad of 2021 wrote the file of the function before its name.
                let mut after_file = Fields(fields.0);
                if let Some(file) = file_number(after_file.word()).filter(|_| !after_file.is_empty()) {
                    self.text.files_of_names.insert(number, file);
                    fields = after_file;
                }
                self.text.names.insert(number, fields.rest());
            }
            INFO => {
                if fields.word() == CODE_ID.as_bytes() {
                    self.module.code_id = fields.word();
                }
            }
            STACK => {
                let is_cfi = fields.word() == CFI.as_bytes();
                if is_cfi && fields.word() == INIT.as_bytes() {
                    self.text.unwind.extend(self.unwind.take());
                    let [start, size] = fields.numbers(false)?;
                    let code = start..start.checked_add(size)?;
                    self.contents.add_code(code.clone());
                    self.unwind = Some((code, at..at));
                }
                match &mut self.unwind {
                    // Records that change the rules follow.
                    Some((_, records)) => records.end = end,
                    None if is_cfi => return None,
                    None => {}
                }
            }
            _ => return None,
        }
        Some(())
    }

    /// Ends the last function, whose records reach to the place `end` in the file.
    fn finish(&mut self, end: usize) {
        let Some(OpenFunction { range, name, at, has_lines }) = self.function.take() else { return };
        if has_lines {
            self.contents.add_function(range, at..end);
        } else {
            self.contents.add_symbol(range.start, Some(range.end), || Some(name));
        }
    }
}

impl<'d> Records<'d> for Text<'d> {
    fn function(&self, records: Range<usize>, function: &mut Function<'d>, problems: &mut Problems) {
        let mut lines = Lines::new(self.text.get(records).unwrap_or_default());
        if let Some((_, line)) = lines.next() {
            let mut fields = Fields::new(line);
            // The word, and the numbers that were read before.
            fields.word();
            let numbers: Option<[u64; 3]> = fields.numbers(true);
            function.name = numbers.map(|_| fields.rest());
        }
        for (_, line) in lines {
            let mut fields = Fields::new(line);
            let is_read = match line {
                [] => Some(()),
                [b'I', ..] => {
                    let ranges = function.call_ranges.len();
                    let is_read = inlined_call(&mut fields, function);
                    if is_read.is_none() {
                        function.call_ranges.truncate(ranges);
                        function.are_calls_lost = true;
                    }
                    is_read
                }
                _ => source_line(&mut fields, function),
            };
            if is_read.is_none() {
                problems.add(NO_RECORD, 1);
            }
        }
    }

    fn name(&self, number: u64) -> Option<&'d [u8]> {
        self.names.get(&number).copied()
    }

    fn file(&self, number: u64) -> Option<Cow<'d, [u8]>> {
        self.files.get(&number).copied().map(Cow::Borrowed)
    }

    fn file_of_name(&self, number: u64) -> Option<u64> {
        self.files_of_names.get(&number).copied()
    }

    fn unwind_rows(
        &self,
        arch: &Arch,
        check: &dyn Fn(usize, &UnwindTable) -> Result<(), Error>,
        problems: &mut Problems,
    ) -> Result<Option<EncodedUnwindRows>, Error> {
        unwind_rows(self.text, &self.unwind, arch, check, problems)
    }

    fn memory(&self) -> usize {
        (self.names.capacity() + self.files.capacity()) * size_of::<(u64, &[u8], u64)>()
            + self.files_of_names.capacity() * size_of::<(u64, u64, u64)>()
            + size_of_val(&self.unwind[..])
    }

    fn memory_of_byte(&self) -> usize {
        MEMORY_OF_BYTE
    }
}

/// Reads `INLINE depth line file name (address size)+`, or without the file, as Breakpad of 2021 wrote it.
fn inlined_call(fields: &mut Fields<'_>, function: &mut Function<'_>) -> Option<()> {
    fields.word();
    let words = fields.0.split(|byte| *byte == b' ').filter(|word| !word.is_empty()).count();
    let [depth, line] = [(); 2].map(|()| decimal(fields.word()));
    let (depth, line) = (u32::try_from(depth?).ok()?, u32::try_from(line?).ok()?);
    // Addresses and sizes come in pairs.
    let file = if words.is_multiple_of(2) { Some(file_number(fields.word())?) } else { None };
    let name = decimal(fields.word())?;
    let number = u32::try_from(function.calls.len()).ok()?;
    let ranges = function.call_ranges.len();
    while !fields.is_empty() {
        let [start, size] = fields.numbers(false)?;
        function.call_ranges.push((start..start.saturating_add(size), number));
    }
    (function.call_ranges.len() > ranges)
        .then(|| function.calls.push(InlinedCall { depth, name, file, line }))
}

/// Reads `address size line file`.
fn source_line(fields: &mut Fields<'_>, function: &mut Function<'_>) -> Option<()> {
    let [start, size] = fields.numbers(false)?;
    let [line, file] = [(); 2].map(|()| decimal(fields.word()));
    let line = u32::try_from(line?).ok()?;
    function.lines.push(Line { range: start..start.saturating_add(size), file: file?, line });
    Some(())
}

/// The lines of a text with their places, without the characters that end them.
pub(super) struct Lines<'d> {
    text: &'d [u8],
    at: usize,
}

impl<'d> Lines<'d> {
    pub(super) fn new(text: &'d [u8]) -> Self {
        Self { text, at: 0 }
    }
}

impl<'d> Iterator for Lines<'d> {
    type Item = (usize, &'d [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.text.get(self.at..).filter(|rest| !rest.is_empty())?;
        let (at, size) = (self.at, memchr::memchr(b'\n', rest).unwrap_or(rest.len()));
        self.at += size + 1;
        let line = &rest[..size];
        Some((at, line.strip_suffix(b"\r").unwrap_or(line)))
    }
}

/// The rest of a record, whose fields are separated by spaces.
pub(super) struct Fields<'d>(&'d [u8]);

impl<'d> Fields<'d> {
    pub(super) fn new(record: &'d [u8]) -> Self {
        Self(record)
    }

    /// The next field; empty if there is none.
    pub(super) fn word(&mut self) -> &'d [u8] {
        let rest = self.0;
        let size = memchr::memchr(b' ', rest).unwrap_or(rest.len());
        let (word, rest) = rest.split_at(size);
        self.0 = rest.trim_ascii_start();
        word
    }

    /// The next fields as hexadecimal numbers, after an `m` if `may_be_marked`. Breakpad marks a function or symbol
    /// with `m` if others have the same address.
    fn numbers<const N: usize>(&mut self, may_be_marked: bool) -> Option<[u64; N]> {
        if may_be_marked && self.0.starts_with(b"m ") {
            self.word();
        }
        let mut numbers = [0; N];
        for number in &mut numbers {
            *number = hexadecimal(self.word())?;
        }
        Some(numbers)
    }

    /// All that is left, as one field.
    pub(super) fn rest(&mut self) -> &'d [u8] {
        std::mem::take(&mut self.0)
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The number of a file. Breakpad writes -1 for code without a file; no file has the number that this returns for it.
fn file_number(word: &[u8]) -> Option<u64> {
    if word == b"-1" { Some(u64::MAX) } else { decimal(word) }
}

/// Whether a line begins with a word, and not with the address of a line of a function.
fn is_keyword(word: &[u8]) -> bool {
    word.first().is_some_and(u8::is_ascii_uppercase) && hexadecimal(word).is_none()
}

pub(super) fn hexadecimal(word: &[u8]) -> Option<u64> {
    let digit = |digit: &u8| char::from(*digit).to_digit(16).map(u64::from);
    (1..=16).contains(&word.len()).then_some(())?;
    word.iter().try_fold(0, |number, next| Some(number << 4 | digit(next)?))
}

fn decimal(word: &[u8]) -> Option<u64> {
    (!word.is_empty()).then_some(())?;
    word.iter().try_fold(0u64, |number, digit| {
        let digit = digit.is_ascii_digit().then(|| u64::from(digit - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    })
}
