//! A linker for the 32-bit architectures that ld64.lld does not support (armv7, i386). It does only what dsymutil
//! needs.
//!
//! It concatenates the `__text` sections and assigns their final addresses. It applies no relocations, because a debug
//! file contains no code. dsymutil reads the debug map in the symbol table:
//!
//! ```text
//! N_SO  source folder, N_SO source name, N_OSO object path
//!   N_BNSYM address, N_FUN name address, N_FUN "" size, N_ENSYM size      once per function
//! N_SO  ""
//! ```

use std::path::Path;

use anyhow::{Context, Result, ensure};
use object::read::macho::{MachHeader, MachOFile32};
use object::{Endianness, Object, ObjectSection, ObjectSymbol, SymbolFlags, SymbolKind};
use xxhash_rust::xxh3::xxh3_128;

const BASE: u32 = 0x4000;
/// The start of `__text` in the file and from [`BASE`]. The header and the load commands are before it.
const TEXT_START: u32 = 0x1000;
const PAGE: u32 = 0x1000;

const MH_MAGIC: u32 = 0xfeed_face;
const MH_EXECUTE: u32 = 2;
/// `MH_NOUNDEFS`, `MH_DYLDLINK`, `MH_TWOLEVEL`.
const FLAGS: u32 = 0x85;
const LC_SEGMENT: u32 = 1;
const LC_SYMTAB: u32 = 2;
const LC_UUID: u32 = 0x1b;
/// `S_ATTR_PURE_INSTRUCTIONS | S_ATTR_SOME_INSTRUCTIONS`.
const CODE: u32 = 0x8000_0400;
const N_FUN: u8 = 0x24;
const N_BNSYM: u8 = 0x2e;
const N_ENSYM: u8 = 0x4e;
const N_SO: u8 = 0x64;
const N_OSO: u8 = 0x66;
const N_ARM_THUMB_DEF: u16 = 8;

/// Links `objects` of `folder` into the executable `output` in the same folder.
///
/// # Errors
/// An object cannot be read, or has no `__text`.
pub(crate) fn link(folder: &Path, objects: &[String], output: &str) -> Result<()> {
    let mut image = Image { strings: b"\0".to_vec(), ..Image::default() };
    for name in objects {
        let bytes = std::fs::read(folder.join(name))?;
        let file = MachOFile32::<Endianness>::parse(bytes.as_slice()).with_context(|| name.clone())?;
        image.add(name, &file)?;
    }
    Ok(std::fs::write(folder.join(output), image.finish()?)?)
}

#[derive(Default)]
struct Image {
    cpu: [u32; 2],
    text: Vec<u8>,
    map: Vec<Entry>,
    symbols: Vec<Entry>,
    strings: Vec<u8>,
}

/// An `nlist`.
#[derive(Clone, Copy)]
struct Entry {
    name: u32,
    kind: u8,
    section: u8,
    description: u16,
    value: u32,
}

struct Function<'a> {
    name: &'a str,
    start: u32,
    end: u32,
    kind: u8,
    description: u16,
}

impl Image {
    fn add(&mut self, path: &str, object: &MachOFile32<'_, Endianness>) -> Result<()> {
        let endian = object.endian();
        let header = object.macho_header();
        self.cpu = [header.cputype(endian).0, header.cpusubtype(endian).0];
        let section = object.section_by_name("__text").context("an object without __text")?;
        let align = usize::try_from(section.align().max(4))?;
        self.text.resize(self.text.len().next_multiple_of(align), 0);
        let start = BASE + TEXT_START + u32::try_from(self.text.len())?;
        self.text.extend_from_slice(section.data()?);

        let has_debug_info = object.section_by_name("__debug_info").is_some();
        if has_debug_info {
            let source = [self.string("/src/")?, self.string(path)?, self.string(path)?];
            self.map.push(Entry::stab(source[0], N_SO, 0));
            self.map.push(Entry::stab(source[1], N_SO, 0));
            // With time 0, dsymutil does not compare the time of the object.
            self.map.push(Entry { description: 1, ..Entry::stab(source[2], N_OSO, 0) });
        }
        for function in functions(object)? {
            self.add_function(&function, start, has_debug_info)?;
        }
        if has_debug_info {
            self.map.push(Entry::stab(0, N_SO, 0));
        }
        Ok(())
    }

    fn add_function(&mut self, function: &Function<'_>, start: u32, in_map: bool) -> Result<()> {
        let name = self.string(function.name)?;
        let address = start + function.start;
        if in_map {
            let size = function.end - function.start;
            let stabs = [
                (0, N_BNSYM, 1, address),
                (name, N_FUN, 1, address),
                (0, N_FUN, 0, size),
                (0, N_ENSYM, 1, size),
            ];
            self.map.extend(
                stabs.map(|(name, kind, section, value)| Entry { section, ..Entry::stab(name, kind, value) }),
            );
        }
        let Function { kind, description, .. } = *function;
        self.symbols.push(Entry { name, kind, section: 1, description, value: address });
        Ok(())
    }

    fn string(&mut self, text: &str) -> Result<u32> {
        let at = u32::try_from(self.strings.len())?;
        self.strings.extend_from_slice(text.as_bytes());
        self.strings.push(0);
        Ok(at)
    }

    /// Writes header, commands, text, symbols and strings. The UUID is a hash of the contents.
    fn finish(mut self) -> Result<Vec<u8>> {
        let text_size = u32::try_from(self.text.len())?;
        let segment_size = (TEXT_START + text_size).next_multiple_of(PAGE);
        let symbols: Vec<Entry> = self.map.iter().chain(&self.symbols).copied().collect();
        let symbol_count = u32::try_from(symbols.len())?;
        let strings_start = segment_size + symbol_count * 12;
        let strings_size = u32::try_from(self.strings.len())?;
        let linkedit_size = symbol_count * 12 + strings_size;

        let mut commands = vec![
            segment("__PAGEZERO", [0, BASE, 0, 0], 0, None),
            segment("__TEXT", [BASE, segment_size, 0, segment_size], 5, Some(text_size)),
            segment("__LINKEDIT", [BASE + segment_size, linkedit_size, segment_size, linkedit_size], 1, None),
            words(&[LC_SYMTAB, 24, segment_size, symbol_count, strings_start, strings_size]),
        ];
        let mut tail = Vec::new();
        tail.append(&mut self.text);
        tail.resize((segment_size - TEXT_START) as usize, 0);
        symbols.iter().for_each(|entry| entry.write(&mut tail));
        tail.append(&mut self.strings);

        commands.push([words(&[LC_UUID, 24]), uuid(&tail).to_vec()].concat());
        let commands_size = u32::try_from(commands.iter().map(Vec::len).sum::<usize>())?;
        let count = u32::try_from(commands.len())?;
        let [cpu, subtype] = self.cpu;
        let mut file = words(&[MH_MAGIC, cpu, subtype, MH_EXECUTE, count, commands_size, FLAGS]);
        file.extend(commands.concat());
        ensure!(file.len() <= TEXT_START as usize, "load commands do not fit before the text");
        file.resize(TEXT_START as usize, 0);
        file.append(&mut tail);
        Ok(file)
    }
}

impl Entry {
    fn stab(name: u32, kind: u8, value: u32) -> Self {
        Self { name, kind, section: 0, description: 0, value }
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.extend(self.name.to_le_bytes());
        out.extend([self.kind, self.section]);
        out.extend(self.description.to_le_bytes());
        out.extend(self.value.to_le_bytes());
    }
}

/// The functions of an object in address order. Each ends where the next one starts.
fn functions<'a>(object: &MachOFile32<'a, Endianness>) -> Result<Vec<Function<'a>>> {
    let section = object.section_by_name("__text").context("an object without __text")?;
    let text_end = u32::try_from(section.address() + section.size())?;
    let mut found = Vec::new();
    for symbol in object.symbols() {
        let name = symbol.name()?;
        let in_text = symbol.section_index() == Some(section.index()) && symbol.kind() == SymbolKind::Text;
        // Names with `l` or `L` are local labels of the assembler.
        if !in_text || name.starts_with(['l', 'L']) {
            continue;
        }
        let SymbolFlags::MachO { n_type, n_desc } = symbol.flags() else { continue };
        let kind = n_type.0;
        let start = u32::try_from(symbol.address() - section.address())?;
        // The linker keeps only the Thumb flag of the description.
        let description = n_desc.0 & N_ARM_THUMB_DEF;
        found.push(Function { name, start, end: 0, kind, description });
    }
    found.sort_by_key(|function| (function.start, function.name));
    let mut end = text_end - u32::try_from(section.address())?;
    for function in found.iter_mut().rev() {
        function.end = end;
        end = function.start;
    }
    Ok(found)
}

/// An `LC_SEGMENT` with [address, size, file offset, file size]. If `text` is a size, it has a `__text` section of that
/// size.
fn segment(name: &str, place: [u32; 4], protection: u32, text: Option<u32>) -> Vec<u8> {
    let section_count = u32::from(text.is_some());
    let mut command = words(&[LC_SEGMENT, 56 + 68 * section_count]);
    command.extend(padded(name));
    command.extend(words(&place));
    command.extend(words(&[protection, protection, section_count, 0]));
    if let Some(text_size) = text {
        command.extend(padded("__text"));
        command.extend(padded(name));
        command.extend(words(&[BASE + TEXT_START, text_size, TEXT_START, 2, 0, 0, CODE, 0, 0]));
    }
    command
}

/// A UUID of version 3 from a hash of `contents`.
fn uuid(contents: &[u8]) -> [u8; 16] {
    let mut id = xxh3_128(contents).to_be_bytes();
    id[6] = id[6] & 0x0f | 0x30;
    id[8] = id[8] & 0x3f | 0x80;
    id
}

fn padded(name: &str) -> [u8; 16] {
    let mut field = [0; 16];
    field[..name.len()].copy_from_slice(name.as_bytes());
    field
}

fn words(values: &[u32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}
