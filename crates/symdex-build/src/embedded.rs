//! Indexes that debug files carry: the section of an ELF file, and how such an index states its debug file.

use std::io::{Cursor, Read};
use std::ops::Range;

use object::{BinaryFormat, File, Object as _, ObjectSection as _};
use xxhash_rust::xxh3::Xxh3Default;

use crate::error::Error;
use crate::slice::arch_of;

/// The section of an ELF file that has its index. It is not loaded.
const INDEX_SECTION: &[u8] = b".symdex";

/// About how many samples of a debug file are compared, and the size of each, in bytes.
const SAMPLES: usize = 64;
const SAMPLE_SIZE: usize = 4096;

/// One slice of a debug file, without the index that it carries.
struct Input<'d> {
    /// The names, addresses and sizes of its sections.
    layout: Vec<u8>,
    /// Together not larger than the slice.
    parts: Vec<&'d [u8]>,
}

/// What an index that is carried by the debug file `slice` states of it: XXH3-64 of its layout and of samples of its
/// bytes, and then XXH3-64 of all of its bytes. The index does not count. See [`BuildOptions::input_digest`].
///
/// [`BuildOptions::input_digest`]: crate::BuildOptions::input_digest
///
/// # Errors
///
/// [`Error::Malformed`] if the sections cannot be read.
pub fn carrier_digest(slice: &[u8]) -> Result<[u8; 16], Error> {
    let input = Input::of(slice).ok_or_else(|| malformed("its sections cannot be read"))?;
    Ok((u128::from(input.all_bytes()) << 64 | u128::from(input.samples())).to_le_bytes())
}

/// Whether an index that states `digest` is of the debug file `slice`. Compares the names, addresses and sizes of all
/// sections, and 64 samples of 4 KiB; with `all_bytes`, all of them.
#[must_use]
pub fn is_carrier(slice: &[u8], digest: [u8; 16], all_bytes: bool) -> bool {
    let stated = u128::from_le_bytes(digest);
    Input::of(slice).is_some_and(|input| {
        u128::from(input.samples()) == stated & u128::from(u64::MAX)
            && (!all_bytes || u128::from(input.all_bytes()) == stated >> 64)
    })
}

impl<'d> Input<'d> {
    fn of(slice: &'d [u8]) -> Option<Self> {
        let file = File::parse(slice).ok()?;
        let (mut layout, mut parts) = (Vec::new(), Vec::new());
        for section in file.sections() {
            let name = section.name_bytes().ok()?;
            // An ELF file with an index has one more name of a section.
            if name != INDEX_SECTION && name != b".shstrtab" {
                let numbers = [name.len() as u64, section.address(), section.size()];
                layout.extend(
                    numbers.iter().flat_map(|number| number.to_le_bytes()).chain(name.iter().copied()),
                );
                parts.push(section.data().unwrap_or_default());
            }
        }
        if file.format() == BinaryFormat::MachO {
            // It has load commands and symbols outside of its sections, too.
            parts = vec![slice];
            layout.extend(slice.len().to_le_bytes());
        }
        // In a hostile file, all sections can be the whole file.
        let size: u64 = parts.iter().map(|part| part.len() as u64).sum();
        (size <= slice.len() as u64).then_some(Self { layout, parts })
    }

    fn samples(&self) -> u64 {
        let mut digest = Xxh3Default::new();
        digest.update(&self.layout);
        let size = self.parts.iter().map(|part| part.len()).sum::<usize>();
        for part in &self.parts {
            let last = part.len().saturating_sub(SAMPLE_SIZE);
            let step = last.min(size / SAMPLES).max(SAMPLE_SIZE);
            for start in (0..last).step_by(step).chain([last]) {
                digest.update(part.get(start..part.len().min(start + SAMPLE_SIZE)).unwrap_or_default());
            }
        }
        digest.digest()
    }

    fn all_bytes(&self) -> u64 {
        let mut digest = Xxh3Default::new();
        digest.update(&self.layout);
        self.parts.iter().for_each(|part| digest.update(part));
        digest.digest()
    }
}

/// Where the ELF file `file` has its index; `None` if it has none.
#[must_use]
pub fn index_section(file: &[u8]) -> Option<Range<usize>> {
    if !file.starts_with(ELF) {
        return None;
    }
    let (start, size) = File::parse(file).ok()?.section_by_name_bytes(INDEX_SECTION)?.file_range()?;
    let start = usize::try_from(start).ok()?;
    start.checked_add(usize::try_from(size).ok()?).map(|end| start..end)
}

/// The ELF file `file` with `index` in the section `.symdex`. All bytes but its header stay where they are: the index,
/// the names of the sections and their headers follow at the end.
///
/// # Errors
///
/// [`Error::Unsupported`] if the file is not ELF, carries an index already, has more than 65,000 sections, or would
/// exceed 4 GiB in 32 bits; [`Error::Malformed`] if its section headers cannot be read.
pub fn with_index_section<'d>(file: &'d [u8], index: &[u8]) -> Result<impl Read + use<'d>, Error> {
    let unsupported = |what: &str| Error::Unsupported { what: what.to_owned() };
    if arch_of(file).is_err() || !file.starts_with(ELF) {
        return Err(unsupported("only an ELF file can carry its index in itself: another kind of file"));
    }
    if index_section(file).is_some() {
        return Err(unsupported(
            "an ELF file with an index of other bytes; remove it (objcopy -R .symdex) before",
        ));
    }
    let elf = if file.get(4) == Some(&2) { ELF64 } else { ELF32 };
    let Elf { word, header_size, table_field, counts_field, entry } = elf;
    // After the name and the type, four bytes each, come the flags and the address.
    let (offset_at, size_at, align_at) = (8 + 2 * word, 8 + 3 * word, entry - 2 * word);
    let field = |at| number(file, at, 2).unwrap_or_default();
    let [stated, count, names_number] = [0, 2, 4].map(|at| field(counts_field + at));
    if stated != entry || count + 1 >= RESERVED || names_number >= count {
        return Err(unsupported(&format!("an ELF file with {count} section headers of {stated} bytes")));
    }
    let part = |start: usize, size: usize| file.get(start..start.checked_add(size)?);
    let read = || {
        let table = part(number(file, table_field, word)?, count * entry)?;
        let names = table.get(names_number * entry..)?;
        Some((table, part(number(names, offset_at, word)?, number(names, size_at, word)?)?))
    };
    let (table, names) = read().ok_or_else(|| malformed("its section headers cannot be read"))?;
    let mut table = [table, &vec![0; entry]].concat();
    let added = table.get_mut(count * entry..).unwrap_or_default();
    put(added, 0, 4, names.len());
    put(added, 4, 4, PROG_BITS);
    put(added, align_at, word, ALIGN);
    let names = [names, INDEX_SECTION, b"\0"].concat();
    let (mut tail, mut end) = (Vec::new(), file.len());
    let mut append = |bytes: &[u8]| {
        let start = end.next_multiple_of(ALIGN);
        tail.resize(tail.len() + start - end, 0);
        tail.extend_from_slice(bytes);
        end = start + bytes.len();
        start
    };
    for (number, bytes) in [(count, index), (names_number, &names)] {
        let header = table.get_mut(number * entry..).unwrap_or_default();
        put(header, offset_at, word, append(bytes));
        put(header, size_at, word, bytes.len());
    }
    let table_at = append(&table);
    if word == 4 && u32::try_from(end).is_err() {
        return Err(unsupported("a 32-bit ELF file of more than 4 GiB"));
    }
    let mut header = part(0, header_size).unwrap_or_default().to_vec();
    put(&mut header, table_field, word, table_at);
    put(&mut header, counts_field + 2, 2, count + 1);
    Ok(Cursor::new(header).chain(file.get(header_size..).unwrap_or_default()).chain(Cursor::new(tail)))
}

const ELF: &[u8] = b"\x7fELF";
const PROG_BITS: usize = 1;
/// Where the numbers of sections with special meanings begin.
const RESERVED: usize = 0xff00;
/// The alignment of what is appended.
const ALIGN: usize = 16;

/// Where an ELF file of 32 or 64 bits has what is changed.
struct Elf {
    /// The size of an address.
    word: usize,
    header_size: usize,
    /// `e_shoff`.
    table_field: usize,
    /// `e_shentsize`, which `e_shnum` and `e_shstrndx` follow.
    counts_field: usize,
    /// The size of a section header.
    entry: usize,
}

const ELF64: Elf = Elf { word: 8, header_size: 0x40, table_field: 0x28, counts_field: 0x3a, entry: 64 };
const ELF32: Elf = Elf { word: 4, header_size: 0x34, table_field: 0x20, counts_field: 0x2e, entry: 40 };

fn malformed(what: &str) -> Error {
    Error::Malformed { what: what.to_owned() }
}

/// The little-endian number of `size` bytes at `at`.
fn number(bytes: &[u8], at: usize, size: usize) -> Option<usize> {
    let bytes = bytes.get(at..at.checked_add(size)?)?;
    let number = bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte));
    usize::try_from(number).ok()
}

/// Writes the number at `at`.
fn put(bytes: &mut [u8], at: usize, size: usize, number: usize) {
    bytes
        .iter_mut()
        .skip(at)
        .take(size)
        .zip((number as u64).to_le_bytes())
        .for_each(|(byte, new)| *byte = new);
}
