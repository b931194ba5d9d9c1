//! The symbols of a Linux kernel: `/proc/kallsyms` and `System.map`, texts with `ADDRESS TYPE NAME` in each line.
//! Symbols of modules have `[MODULE]` after the name.

use std::borrow::Cow;
use std::ops::Range;

use symdex_build::Error;
use symdex_build::symbol_file::{Contents, Function, Problems, Records, SymbolFile};

/// The page that the base of an image begins, as in ELF files.
const PAGE_SIZE: u64 = 0x1000;

/// A symbol of the kernel itself.
struct Symbol<'d> {
    address: u64,
    /// As `nm` prints it.
    kind: u8,
    name: &'d [u8],
}

/// There are no functions with records: each is one symbol.
struct NoRecords;

/// Whether the first line is one of a symbol.
pub(crate) fn is_one(bytes: &[u8]) -> bool {
    bytes.split(|byte| *byte == b'\n').next().is_some_and(|line| symbol(line).is_some())
}

/// The symbol in a line, and the name of its module.
fn symbol(line: &[u8]) -> Option<(Symbol<'_>, Option<&[u8]>)> {
    let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let (address, kind, name) = (words.next()?, words.next()?, words.next()?);
    let (module, rest) = (words.next(), words.next());
    let is_module = module.is_none_or(|name| name.starts_with(b"[") && name.ends_with(b"]"));
    let &[kind] = kind else { return None };
    let is_address = matches!(address.len(), 8 | 16);
    if !is_address || !kind.is_ascii_alphabetic() || !is_module || rest.is_some() {
        return None;
    }
    let address = u64::from_str_radix(std::str::from_utf8(address).ok()?, 16).ok()?;
    Some((Symbol { address, kind, name }, module))
}

/// Reads the symbols of the kernel. Its base is `_text`, the first address of the image, as in vmlinux.
///
/// # Errors
///
/// [`Error::Unsupported`] if all addresses are 0, as the kernel shows them to users without rights, or if no symbol
/// states where the image begins.
pub(crate) fn read(bytes: &[u8]) -> Result<SymbolFile<'_>, Error> {
    let unsupported = |what: &str| Error::Unsupported { what: what.to_owned() };
    let (mut kernel, mut of_modules, mut no_symbols) = (Vec::new(), 0, 0);
    for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty()) {
        match symbol(line) {
            Some((symbol, None)) => kernel.push(symbol),
            Some((_, Some(_))) => of_modules += 1,
            None => no_symbols += 1,
        }
    }
    if !kernel.is_empty() && kernel.iter().all(|symbol| symbol.address == 0) {
        return Err(unsupported(
            "the symbols of a kernel, all at address 0; read /proc/kallsyms as root, with kernel.kptr_restrict below 2",
        ));
    }
    let named = |name: &[u8]| kernel.iter().find(|symbol| symbol.name == name);
    let first = named(b"_text").or_else(|| named(b"_stext")).ok_or_else(|| {
        unsupported("the symbols of a kernel without _text and _stext, which state where it begins")
    })?;

    let mut contents = Contents::new(bytes.len());
    contents.base = first.address / PAGE_SIZE * PAGE_SIZE;
    let marks_end = |name: &[u8]| matches!(name, b"_etext" | b"_einittext" | b"__init_end" | b"_end");
    for Symbol { address, kind, name } in &kernel {
        let is_code = matches!(kind, b'T' | b't' | b'W' | b'w');
        if let Some(start) = address.checked_sub(contents.base).filter(|_| is_code || marks_end(name)) {
            contents.add_symbol(start, None, || Some(name).copied().filter(|name| !marks_end(name)));
        }
    }
    contents.problems.add("symbols of modules, which are images of their own", of_modules);
    contents.problems.add("lines that are not symbols of a kernel", no_symbols);
    contents.image_name = "vmlinux".to_owned();
    Ok(SymbolFile::new(contents, Box::new(NoRecords)))
}

impl<'d> Records<'d> for NoRecords {
    fn function(&self, _records: Range<usize>, _function: &mut Function<'d>, _problems: &mut Problems) {}

    fn name(&self, _number: u64) -> Option<&'d [u8]> {
        None
    }

    fn file(&self, _number: u64) -> Option<Cow<'d, [u8]>> {
        None
    }

    fn memory(&self) -> usize {
        0
    }

    fn memory_of_byte(&self) -> usize {
        1
    }
}
