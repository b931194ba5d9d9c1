//! Writes symbol files of Breakpad.

use std::collections::BTreeSet;
use std::io::Write;

use symdex::{Index, LinePolicy, NonMaxU32, debug_id};

use super::stack_cfi::write_stack_cfi;
use super::{CODE_ID, FILE, FUNC, INFO, INLINE, INLINE_ORIGIN, MODULE, has_uuid, name_of_arch};
use crate::function::{Function, each_function};
use crate::strings::Strings;
use crate::{Demangler, Error, UNKNOWN};

/// Writes a symbol file of Breakpad. Addresses are image offsets. Code without debug information has a `FUNC` record
/// without lines, because a `PUBLIC` record does not say where a function ends. What has no name, and a file that is
/// not known, is named `??`.
///
/// If the index has unwind rows, there is a record `STACK CFI INIT` for each of those that Breakpad can express.
///
/// `os` is the operating system as Breakpad writes it: `Linux`, `Android`, `mac` or `ios`. On the latter two, the id is
/// a UUID. On the others, it is a build id, whose first 16 bytes Breakpad writes as a GUID; a record `INFO CODE_ID` has
/// all of it.
///
/// # Errors
///
/// [`Error::Index`] if the index is damaged, [`Error::Output`] if `out` fails, [`Error::Expands`] if it has far more
/// text than any real one of its size.
pub fn write_breakpad<B: AsRef<[u8]>>(
    index: &Index<B>,
    policy: LinePolicy,
    demangler: Demangler<'_>,
    os: &str,
    out: &mut impl Write,
) -> Result<(), Error> {
    let metadata = index.metadata();
    let image = line(metadata.image_name.as_bytes());
    let id = if has_uuid(os) { debug_id::of_uuid(index.id()) } else { debug_id::of_build_id(index.id()) };
    write!(out, "{MODULE} {os} {} {id} ", name_of_arch(&metadata.arch))?;
    write_line(out, &image)?;
    if !has_uuid(os) {
        writeln!(out, "{INFO} {CODE_ID} {}", hexadecimal(index.id().as_bytes()))?;
    }
    let mut strings = Strings::new(index, demangler);
    write_names(index, policy, &mut strings, out)?;
    each_function(index, policy, |function| write_function(function, &mut strings, out))?;
    write_stack_cfi(index, out)
}

/// Writes the files, and the names of functions that are inlined. Others are in their `FUNC` records.
fn write_names<B: AsRef<[u8]>>(
    index: &Index<B>,
    policy: LinePolicy,
    strings: &mut Strings<'_, B>,
    out: &mut impl Write,
) -> Result<(), Error> {
    let mut files = BTreeSet::new();
    let mut inlined = BTreeSet::new();
    each_function(index, policy, |function| {
        files.extend(function.lines.iter().map(|line| Some(line.file)));
        files.extend(function.calls.iter().map(|inlined| inlined.call.file));
        inlined.extend(function.calls.iter().map(|inlined| inlined.call.name));
        Ok(())
    })?;
    for file in files {
        write!(out, "{FILE} {} ", number(file))?;
        write_line(out, &line(file.map_or(Ok(UNKNOWN.as_bytes()), |file| strings.file(file))?))?;
    }
    for name in inlined {
        write!(out, "{INLINE_ORIGIN} {} ", number(name))?;
        let name = name.map(|name| strings.name(name)).transpose()?;
        write_line(out, &line(name.as_deref().unwrap_or(UNKNOWN.as_bytes())))?;
    }
    Ok(())
}

fn write_function<B: AsRef<[u8]>>(
    function: &Function,
    strings: &mut Strings<'_, B>,
    out: &mut impl Write,
) -> Result<(), Error> {
    let name = function.name.map(|name| strings.name(name)).transpose()?;
    write!(out, "{FUNC} {:x} {:x} 0 ", function.range.start, function.range.end - function.range.start)?;
    write_line(out, &line(name.as_deref().unwrap_or(UNKNOWN.as_bytes())))?;
    for inlined in &function.calls {
        let call = inlined.call;
        let (line, file, origin) = (call.line.unwrap_or(0), number(call.file), number(call.name));
        write!(out, "{INLINE} {} {line} {file} {origin}", inlined.depth)?;
        for range in &inlined.ranges {
            write!(out, " {:x} {:x}", range.start, range.end - range.start)?;
        }
        writeln!(out)?;
    }
    for line in &function.lines {
        let (start, size) = (line.range.start, line.range.end - line.range.start);
        writeln!(out, "{start:x} {size:x} {} {}", line.line, number(Some(line.file)))?;
    }
    Ok(())
}

/// The number of a file or of a name in the symbol file. 0 is what is not known.
fn number(id: Option<NonMaxU32>) -> u64 {
    id.map_or(0, |id| u64::from(id.get()) + 1)
}

/// Text as it can stand in a record: line feeds and carriage returns would end it.
fn line(text: &[u8]) -> Vec<u8> {
    text.iter().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte }).collect()
}

fn write_line(out: &mut impl Write, text: &[u8]) -> Result<(), Error> {
    out.write_all(text)?;
    Ok(out.write_all(b"\n")?)
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02X}")).collect()
}
