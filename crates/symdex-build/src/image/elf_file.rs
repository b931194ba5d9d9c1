//! ELF files: sections, decompressed if they are compressed, the address range of the code, and the id.

use std::cell::Cell;

use gimli::{EndianSlice, LittleEndian, SectionId};
use object::read::elf::{
    CompressionHeader as _, FileHeader, NoteIterator, ProgramHeader, SectionHeader, SectionTable, SymbolTable,
};
use object::{LittleEndian as Little, elf};
use symdex::{ImageId, build_id};
use xxhash_rust::xxh3::{Xxh3, xxh3_128};

use super::code::{MAX_OFFSET, disjoint, end_of_code};
use super::compressed::{Format, decompress, decompress_xz};
use crate::chunker::CHUNK_SPAN;
use crate::companions::{Companions, shown};
use crate::error::Error;
use crate::image::Reader;
use crate::limits;
use crate::symbols;

pub(super) const ENDIAN: Little = Little;
/// The smallest page size. Images are mapped at multiples of it.
pub(super) const PAGE_SIZE: u64 = 0x1000;

fn malformed<E: std::fmt::Display>(what: &'static str) -> impl Fn(E) -> Error {
    move |error| Error::Malformed { what: format!("{what}: {error}") }
}

/// An ELF file: its sections and segments.
pub(crate) struct ElfFile<'d, Header: FileHeader<Endian = Little>> {
    pub(crate) bytes: &'d [u8],
    pub(crate) machine: elf::Machine,
    pub(crate) sections: SectionTable<'d, Header>,
    pub(super) segments: &'d [Header::ProgramHeader],
    /// The names of its sections.
    pub(super) names: &'d [u8],
    /// How many bytes of sections may still be decompressed.
    pub(super) budget: Cell<u64>,
}

impl<'d, Header: FileHeader<Endian = Little>> ElfFile<'d, Header> {
    pub(super) fn parse(bytes: &'d [u8]) -> Result<Self, Error> {
        let header = Header::parse(bytes).map_err(malformed("ELF header"))?;
        let unsupported = |what: &str| Err(Error::Unsupported { what: what.to_owned() });
        match header.e_type(ENDIAN) {
            elf::ET_REL => {
                let file = Self::parse_any(bytes)?;
                match (file.companion(), file.is_kernel_module(), file.build_id()) {
                    (Some(kind), ..) => Err(Error::Companion { kind }),
                    (None, true, Some(_)) => Ok(file),
                    (None, true, None) => {
                        unsupported("a kernel module without a build id; link it with `--build-id`")
                    }
                    _ => unsupported("an object file; give the executable or library linked of it"),
                }
            }
            elf::ET_CORE => unsupported("a core dump; give the executables and libraries in it"),
            _ => Self::parse_any(bytes),
        }
    }

    /// The kind of companion that the file is. Returns `None` if it is an image or an object file.
    ///
    /// The linker and dwz write companions as files that are not linked.
    fn companion(&self) -> Option<&'static str> {
        let has = |name: &str| self.section(name).is_some();
        let is_code = |section: &Header::SectionHeader| {
            section.sh_flags(ENDIAN).contains(elf::SHF_ALLOC | elf::SHF_EXECINSTR)
        };
        if self.sections.iter().any(is_code) {
            return None;
        }
        if has(".debug_cu_index") || has(".debug_tu_index") {
            return Some("a package of split units (.dwp)");
        }
        if has(".debug_info.dwo") {
            return Some("an object file of split units (.dwo)");
        }
        (has(".debug_info") || has(".debug_str")).then_some("a supplementary file of dwz")
    }

    /// As [`Self::parse`], but the file need not be linked. Files that debug information refers to are not.
    pub(super) fn parse_any(bytes: &'d [u8]) -> Result<Self, Error> {
        let header = Header::parse(bytes).map_err(malformed("ELF header"))?;
        let size = bytes.len() as u64;
        let table =
            |start: u64, len: u16, entry: u16| start.saturating_add(u64::from(len) * u64::from(entry));
        let (programs, sections) = (header.e_phoff(ENDIAN).into(), header.e_shoff(ENDIAN).into());
        let end = table(programs, header.e_phnum(ENDIAN), header.e_phentsize(ENDIAN)).max(table(
            sections,
            header.e_shnum(ENDIAN),
            header.e_shentsize(ENDIAN),
        ));
        if end > size {
            return Err(Error::Truncated { what: "the table of its sections".to_owned(), end, size });
        }
        let segments = header.program_headers(ENDIAN, bytes).map_err(malformed("program headers"))?;
        let sections = header.sections(ENDIAN, bytes).map_err(malformed("section headers"))?;
        let names = header.section_strings_index(ENDIAN, bytes).and_then(|index| sections.section(index));
        let names = names.and_then(|names| names.data(ENDIAN, bytes)).unwrap_or_default();
        let budget = Cell::new(limits::DECOMPRESSED_RATIO * size + limits::DECOMPRESSED);
        let file = Self { bytes, machine: header.e_machine(ENDIAN), sections, segments, names, budget };
        file.is_all_there()?;
        Ok(file)
    }

    /// Checks that the file has all of its sections, even those that are not read. A truncated file is rejected.
    ///
    /// Sections must not overlap (System V ABI, 4, "Sections"), and segments of notes must not either. If each could be
    /// the whole file, reading all of them could take any amount of time.
    fn is_all_there(&self) -> Result<(), Error> {
        let mut left = 2 * self.bytes.len() as u64;
        let mut count = |size: u64| {
            let what = || "its sections overlap".to_owned();
            left = left.checked_sub(size).ok_or_else(|| Error::Malformed { what: what() })?;
            Ok(())
        };
        for section in self.sections.iter() {
            count(self.data(section)?.len() as u64)?;
        }
        let notes = self.segments.iter().filter(|segment| segment.p_type(ENDIAN) == elf::PT_NOTE);
        notes.map(|notes| notes.p_filesz(ENDIAN).into()).try_for_each(count)
    }

    /// The stored bytes of a section. Empty if the file does not have them (`SHT_NOBITS`).
    ///
    /// # Errors
    ///
    /// [`Error::Truncated`] if they reach past the end of the file.
    pub(crate) fn data(&self, section: &Header::SectionHeader) -> Result<&'d [u8], Error> {
        section.data(ENDIAN, self.bytes).map_err(|_| Error::Truncated {
            what: format!(
                "the section {}",
                shown(symbols::name_at(self.names, section.sh_name(ENDIAN) as usize).unwrap_or_default())
            ),
            end: section.sh_offset(ENDIAN).into().saturating_add(section.sh_size(ENDIAN).into()),
            size: self.bytes.len() as u64,
        })
    }

    fn has_name(&self, section: &Header::SectionHeader, name: &str) -> bool {
        // Names are not read to their end, because each may be as long as the file.
        let rest = self.names.get(section.sh_name(ENDIAN) as usize..);
        let rest = rest.and_then(|rest| rest.strip_prefix(name.as_bytes()));
        rest.is_some_and(|rest| rest.first() == Some(&0))
    }

    /// The DWARF in the sections named by `name`.
    pub(super) fn dwarf(
        &self,
        name: impl Fn(SectionId) -> Option<&'static str>,
        companions: &'d Companions,
    ) -> Result<gimli::Dwarf<Reader<'d>>, Error> {
        gimli::Dwarf::load(|id| {
            let bytes = name(id).map_or(Ok(&[][..]), |name| self.debug_section(name, companions))?;
            Ok(EndianSlice::new(bytes, LittleEndian))
        })
    }

    /// The first section of this name.
    pub(crate) fn section(&self, name: &str) -> Option<&'d Header::SectionHeader> {
        self.sections.iter().find(|section| self.has_name(section, name))
    }

    /// The stored bytes of the first section of this name. Returns `None` if there is no such section or the file does
    /// not have all of it.
    pub(crate) fn contents(&self, name: &str) -> Option<&'d [u8]> {
        self.data(self.section(name)?).ok()
    }

    /// The first symbol table of this type, and its strings. Both are empty if there is no such table.
    pub(crate) fn symbols(
        &self,
        kind: elf::SectionType,
    ) -> Result<(SymbolTable<'d, Header>, &'d [u8]), Error> {
        let table = self.sections.symbols(ENDIAN, self.bytes, kind).map_err(malformed("the symbol table"))?;
        let strings = self.sections.section(table.string_section()).and_then(|s| s.data(ENDIAN, self.bytes));
        Ok((table, strings.unwrap_or_default()))
    }

    /// The decompressed bytes of a debug section. Empty if there is no such section.
    ///
    /// A section may be compressed as specified by ELF (`SHF_COMPRESSED`) or in the older way of GNU: a `.zdebug_`
    /// section begins with `ZLIB` and the size in eight bytes, big-endian.
    pub(super) fn debug_section(&self, name: &str, companions: &'d Companions) -> Result<&'d [u8], Error> {
        let gnu_name = name.replacen(".debug_", ".zdebug_", 1);
        if let Some(section) = self.section(name) {
            return self.decompressed(name, section, companions);
        }
        let Some(section) = self.section(&gnu_name) else { return Ok(&[]) };
        let data = self.data(section)?;
        let Some((magic, rest)) = data.split_first_chunk::<12>() else { return Ok(data) };
        let (b"ZLIB", size) = magic.split_at(4) else { return Ok(data) };
        let size = size.iter().fold(0, |size, byte| size << 8 | u64::from(*byte));
        self.keep(&gnu_name, Format::Zlib, rest, size, companions)
    }

    /// The decompressed bytes of `section`, called `name`, which need not be compressed.
    pub(super) fn decompressed(
        &self,
        name: &str,
        section: &Header::SectionHeader,
        companions: &'d Companions,
    ) -> Result<&'d [u8], Error> {
        let data = self.data(section)?;
        let header = section.compression(ENDIAN, self.bytes);
        let header =
            header.map_err(|error| Error::Malformed { what: format!("the section {name}: {error}") })?;
        let Some((header, _, stored)) = header else { return Ok(data) };
        let format = match header.ch_type(ENDIAN) {
            elf::ELFCOMPRESS_ZLIB => Format::Zlib,
            elf::ELFCOMPRESS_ZSTD => Format::Zstd,
            other => {
                let what =
                    format!("the section {name} is compressed by method {}, not zlib or zstd", other.0);
                return Err(Error::Unsupported { what });
            }
        };
        // The compressed bytes follow the header up to the section's end.
        let header_size = data.len().saturating_sub(usize::try_from(stored).unwrap_or(usize::MAX));
        self.keep(name, format, &data[header_size..], header.ch_size(ENDIAN).into(), companions)
    }

    fn keep(
        &self,
        name: &str,
        format: Format,
        bytes: &[u8],
        size: u64,
        companions: &'d Companions,
    ) -> Result<&'d [u8], Error> {
        if size <= self.budget.get() {
            companions.check(size)?;
        }
        let decompressed = decompress(format, bytes, size, self.budget.get(), companions.deadline());
        companions.deadline().check()?;
        let malformed = |why| Error::Malformed { what: format!("the section {name}: {why}") };
        let decompressed = decompressed.map_err(malformed)?;
        self.budget.set(self.budget.get() - decompressed.len() as u64);
        Ok(companions.keep(decompressed))
    }

    /// The ELF file in `.gnu_debugdata`, compressed by xz, that holds the symbols that were stripped from `.symtab`
    /// ("MiniDebugInfo").
    pub(super) fn mini_debug_info(&self, companions: &'d Companions) -> Result<Option<Self>, String> {
        let Some(section) = self.section(".gnu_debugdata") else { return Ok(None) };
        let bytes = self.data(section).map_err(|error| error.to_string())?;
        let limit = self.budget.get().min(companions.left());
        let bytes = decompress_xz(bytes, limit, companions.deadline());
        if bytes.is_err() && limit == companions.left() {
            companions.check(limit.saturating_add(1)).map_err(|error| error.to_string())?;
        }
        let bytes = bytes?;
        Self::parse(companions.keep(bytes)).map(Some).map_err(|error| error.to_string())
    }

    /// The address of the image's first page: that of the lowest `PT_LOAD` segment, rounded down to a page as loaders
    /// do. 0 if there is no such segment.
    ///
    /// A segment that is too far below the code is skipped. Linux kernels have one at 0, for per-CPU data. If code lies
    /// more than 4 GiB apart, the image is the part of it that [`end_of_code`] chooses.
    pub(super) fn base(&self, near: Option<u64>) -> u64 {
        let lowest_useful = end_of_code(self.code(), near).saturating_sub(MAX_OFFSET);
        let loaded = self.segments.iter().filter(|segment| segment.p_type(ENDIAN) == elf::PT_LOAD);
        let addresses = loaded.map(|segment| segment.p_vaddr(ENDIAN).into());
        let lowest = addresses.filter(|address| *address >= lowest_useful).min();
        let base = lowest.unwrap_or(0) / PAGE_SIZE * PAGE_SIZE;
        // The chunks of all parts of the image have the same borders, so that one index could have them all.
        let from_chunk = near.map_or(0, |_| base.wrapping_sub(self.base(None)) % u64::from(CHUNK_SPAN));
        base.saturating_sub(from_chunk)
    }

    /// The executable segments: position in the file, address, size in the file, size in memory. In a debug file without
    /// code, nothing of them is in the file, and their positions are not those of the binary.
    pub(super) fn executable_segments(&self) -> impl Iterator<Item = [u64; 4]> {
        let segments = self.segments.iter().filter(|segment| {
            segment.p_type(ENDIAN) == elf::PT_LOAD && segment.p_flags(ENDIAN).contains(elf::PF_X)
        });
        segments.map(|one| {
            [one.p_offset(ENDIAN), one.p_vaddr(ENDIAN), one.p_filesz(ENDIAN), one.p_memsz(ENDIAN)]
                .map(Into::into)
        })
    }

    /// Addresses and sizes of executable sections or, if all section headers were stripped, of executable segments.
    ///
    /// Dart writes debug files whose `.text` has no bytes (`SHT_NOBITS`) and the size 0. Such a section reaches to the
    /// next section, or to the end of its segment.
    pub(super) fn code(&self) -> Vec<(u64, u64)> {
        let segments: Vec<_> =
            self.executable_segments().map(|[_, address, _, size]| (address, size)).collect();
        let is_code = |section: &&Header::SectionHeader| {
            section.sh_flags(ENDIAN).contains(elf::SHF_ALLOC | elf::SHF_EXECINSTR)
        };
        let is_unsized = |section: &Header::SectionHeader| {
            section.sh_size(ENDIAN).into() == 0 && section.sh_type(ENDIAN) == elf::SHT_NOBITS
        };
        let code = || self.sections.iter().filter(is_code);
        let limits = code().any(is_unsized).then(|| {
            let loaded = self.sections.iter().filter(|one| one.sh_flags(ENDIAN).contains(elf::SHF_ALLOC));
            let mut starts: Vec<u64> = loaded.map(|section| section.sh_addr(ENDIAN).into()).collect();
            starts.sort_unstable();
            (starts, disjoint(segments.iter().copied()))
        });
        let sized = |section: &Header::SectionHeader| {
            let (address, size) = (section.sh_addr(ENDIAN).into(), section.sh_size(ENDIAN).into());
            let Some((starts, segments)) = limits.as_ref().filter(|_| is_unsized(section)) else {
                return (address, size);
            };
            let segment = segments.get(segments.partition_point(|segment| segment.1 <= address));
            let end = segment.filter(|segment| segment.0 <= address).map_or(address, |segment| segment.1);
            let next = starts.get(starts.partition_point(|start| *start <= address));
            (address, next.map_or(end, |next| end.min(*next)) - address)
        };
        let code: Vec<_> = code().map(sized).collect();
        if code.is_empty() { segments } else { code }
    }

    /// The build id: the descriptor of the note `NT_GNU_BUILD_ID` in any section or segment of notes.
    pub(super) fn build_id(&self) -> Option<ImageId> {
        let in_sections =
            self.sections.iter().filter_map(|section| section.notes(ENDIAN, self.bytes).ok()?);
        let in_segments =
            self.segments.iter().filter_map(|segment| segment.notes(ENDIAN, self.bytes).ok()?);
        in_sections.chain(in_segments).find_map(build_id_of)
    }

    /// The id of an image without a build id: that of its Go build id, if it has one, or a hash of its code and the
    /// addresses of the code. Stripping changes neither. If the file does not have the code, a hash of the file.
    pub(super) fn hash_id(&self) -> ImageId {
        let notes =
            self.section(".note.go.buildid").and_then(|notes| notes.notes(ENDIAN, self.bytes).ok()?);
        let go = notes.and_then(|mut notes| notes.next().ok()?).and_then(|note| build_id::of_go(note.desc()));
        if let Some(id) = go {
            return id;
        }
        let (mut code, mut has_code) = (Xxh3::new(), false);
        for section in self.sections.iter() {
            if section.sh_flags(ENDIAN).contains(elf::SHF_ALLOC | elf::SHF_EXECINSTR) {
                let data = section.data(ENDIAN, self.bytes).unwrap_or_default();
                if data.is_empty() {
                    continue;
                }
                code.update(&section.sh_addr(ENDIAN).into().to_le_bytes());
                code.update(data);
                has_code = true;
            }
        }
        ImageId::of_hash(if has_code { code.digest128() } else { xxh3_128(self.bytes) })
    }
}

fn build_id_of<Header: FileHeader<Endian = Little>>(mut notes: NoteIterator<'_, Header>) -> Option<ImageId> {
    while let Ok(Some(note)) = notes.next() {
        if note.name() == elf::ELF_NOTE_GNU && note.n_type(ENDIAN) == elf::NT_GNU_BUILD_ID {
            return ImageId::new(note.desc());
        }
    }
    None
}
