//! Linux kernel modules: object files, which the kernel lays out and links when it loads them.

use object::read::elf::{ElfFile as ObjectFile, FileHeader, SectionHeader, Sym};
use object::read::{ObjectSection as _, Relocation, RelocationKind, RelocationTarget, SectionIndex};
use object::{LittleEndian as Little, Object as _, elf};

use super::code::MAX_OFFSET;
use super::elf_file::{ENDIAN, ElfFile, PAGE_SIZE};
use crate::companions::{Companions, shown};
use crate::error::Error;

impl<'d, Header: FileHeader<Endian = Little>> ElfFile<'d, Header> {
    /// As [`Self::parse`]. A kernel module is linked first: its sections and symbols get the addresses that the kernel
    /// gives them, and its debug sections state these addresses.
    pub(super) fn load(bytes: &'d [u8], companions: &'d Companions) -> Result<Self, Error> {
        let file = Self::parse(bytes)?;
        if !file.is_kernel_module() {
            return Ok(file);
        }
        companions.check(bytes.len() as u64)?;
        let linked = file.linked(companions)?;
        Self::parse(companions.keep(linked))
    }

    /// Whether the file is a module that is not linked. Each module has the variable that describes it to the kernel.
    pub(super) fn is_kernel_module(&self) -> bool {
        let is_object = Header::parse(self.bytes).is_ok_and(|header| header.e_type(ENDIAN) == elf::ET_REL);
        is_object && self.section(".gnu.linkonce.this_module").is_some()
    }

    /// The address of each section, counted from where the kernel loads the module.
    ///
    /// The kernel (`layout_sections` in `kernel/module/main.c`) puts the executable sections first, in the order of the
    /// file. It loads the `.init` sections elsewhere and drops them after the start; here they are the last.
    fn layout(&self) -> Result<Vec<u64>, Error> {
        let group = |section: &Header::SectionHeader| {
            let flags = section.sh_flags(ENDIAN);
            let name = self.names.get(section.sh_name(ENDIAN) as usize..).unwrap_or_default();
            let [is_loaded, is_code, is_written] =
                [elf::SHF_ALLOC, elf::SHF_EXECINSTR, elf::SHF_WRITE].map(|flag| flags.contains(flag));
            is_loaded.then_some((name.starts_with(b".init"), !is_code, is_written))
        };
        let sections = self.sections.iter().enumerate();
        let mut loaded: Vec<_> = sections.filter_map(|(at, one)| Some((group(one)?, at, one))).collect();
        loaded.sort_by_key(|(group, at, _)| (*group, *at));
        let mut addresses = vec![0; self.sections.len()];
        let (mut end, mut last) = (0_u64, None);
        for (group, at, section) in loaded {
            let page = if last == Some(group) { 1 } else { PAGE_SIZE };
            let alignment = section.sh_addralign(ENDIAN).into().max(page);
            let start = end.checked_next_multiple_of(alignment).unwrap_or(u64::MAX);
            end = start.saturating_add(section.sh_size(ENDIAN).into());
            if end > MAX_OFFSET {
                return Err(Error::Malformed { what: "its sections span more than 4 GiB".to_owned() });
            }
            (addresses[at], last) = (start, Some(group));
        }
        Ok(addresses)
    }

    /// The bytes of the module once it is linked.
    fn linked(&self, companions: &'d Companions) -> Result<Vec<u8>, Error> {
        let file = ObjectFile::<Header>::parse(self.bytes).map_err(malformed)?;
        let addresses = self.layout()?;
        let address = |section: SectionIndex| addresses.get(section.0).copied().unwrap_or(0);
        let mut linked = Linked { bytes: self.bytes.to_vec(), word: size_of::<Header::Word>() };
        linked.put(TYPE, 2, elf::ET_DYN.0.into());

        let table = file.elf_symbol_table();
        let symbols = self.sections.section(table.section()).map_or(0, |one| one.sh_offset(ENDIAN).into());
        let mut values = Vec::with_capacity(table.len());
        for (index, symbol) in table.enumerate() {
            let section = table.symbol_section(ENDIAN, symbol, index).map_err(malformed)?;
            let value = symbol.st_value(ENDIAN).into().wrapping_add(section.map_or(0, address));
            let at = symbols + (index.0 * size_of::<Header::Sym>()) as u64;
            linked.put(at + linked.word as u64, linked.word, value);
            values.push(value);
        }

        let headers = Header::parse(self.bytes).map_err(malformed)?.e_shoff(ENDIAN).into();
        for section in file.sections() {
            companions.deadline().check()?;
            let (header, own_address) = (section.elf_section_header(), address(section.index()));
            let header_at = headers + (section.index().0 * size_of::<Header::SectionHeader>()) as u64;
            linked.put_field(header_at, Field::Address, own_address);
            if header.sh_type(ENDIAN) == elf::SHT_ARM_EXIDX {
                // Its relocations are of a type of its own, so it states no addresses.
                linked.put(header_at + 4, 4, elf::SHT_PROGBITS.0.into());
            }
            let name = section.name_bytes().unwrap_or_default();
            if !name.starts_with(b".debug_") && name != b".eh_frame" {
                continue;
            }
            let mut data = self.data(header)?;
            let mut offset = header.sh_offset(ENDIAN).into();
            if header.sh_flags(ENDIAN).contains(elf::SHF_COMPRESSED) {
                data = self.decompressed(&shown(name), header, companions)?;
                companions.check(2 * (linked.bytes.len() + data.len()) as u64)?;
                offset = linked.append(header_at, data);
            }
            for (at, relocation) in section.relocations() {
                let width = usize::from(relocation.size() / 8);
                let outside = || Error::Malformed { what: format!("{}: a relocation outside", shown(name)) };
                let old = usize::try_from(at)
                    .ok()
                    .and_then(|at| data.get(at..)?.get(..width))
                    .ok_or_else(outside)?;
                if let Some(value) = relocated(&relocation, old, own_address.wrapping_add(at), &values)? {
                    linked.put(offset + at, width, value);
                }
            }
        }
        Ok(linked.bytes)
    }
}

/// What the relocation writes at `address`, in place of the bytes `old`. Returns `None` if it writes nothing.
fn relocated(
    relocation: &Relocation,
    old: &[u8],
    address: u64,
    values: &[u64],
) -> Result<Option<u64>, Error> {
    let symbol = match relocation.target() {
        RelocationTarget::Symbol(index) => values.get(index.0).copied().unwrap_or(0),
        _ => 0,
    };
    let mut value = symbol.wrapping_add(relocation.addend().cast_unsigned());
    if relocation.has_implicit_addend() {
        value = value.wrapping_add(old.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)));
    }
    match relocation.kind() {
        RelocationKind::None => Ok(None),
        RelocationKind::Absolute => Ok(Some(value)),
        RelocationKind::Relative => Ok(Some(value.wrapping_sub(address))),
        _ => {
            let what = format!(
                "a kernel module with relocations such as {:?} in its debug sections",
                relocation.flags()
            );
            Err(Error::Unsupported { what })
        }
    }
}

fn malformed(error: object::Error) -> Error {
    Error::Malformed { what: format!("kernel module: {error}") }
}

/// Where the header of the file states its type, in bytes.
const TYPE: u64 = 16;

/// The fields of a section's header that have the size of an address, in their order.
#[derive(Clone, Copy)]
enum Field {
    Flags,
    Address,
    Offset,
    Size,
}

/// A copy of a module, which is linked in place.
struct Linked {
    bytes: Vec<u8>,
    /// The size of an address in bytes.
    word: usize,
}

impl Linked {
    /// Writes the lowest `width` bytes of `value`. The headers, symbols and relocations that are there lie in the file.
    fn put(&mut self, at: u64, width: usize, value: u64) {
        let place = usize::try_from(at).ok().and_then(|at| self.bytes.get_mut(at..)?.get_mut(..width));
        if let Some(place) = place {
            place.copy_from_slice(&value.to_le_bytes()[..width]);
        }
    }

    /// Writes a field of the section header at `header`. The fields begin after two numbers of four bytes.
    fn put_field(&mut self, header: u64, field: Field, value: u64) {
        self.put(header + 8 + (field as usize * self.word) as u64, self.word, value);
    }

    /// Appends the bytes of a compressed section, and returns their offset.
    fn append(&mut self, header: u64, data: &[u8]) -> u64 {
        let offset = self.bytes.len() as u64;
        self.bytes.extend_from_slice(data);
        for (field, value) in [(Field::Flags, 0), (Field::Offset, offset), (Field::Size, data.len() as u64)] {
            self.put_field(header, field, value);
        }
        offset
    }
}
