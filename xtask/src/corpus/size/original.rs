//! The parts of a dSYM that are copied.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail, ensure};
use object::LittleEndian as LE;
use object::macho;
use object::read::macho::{MachHeader, Section as _, Segment as _};

/// The copied sections, in the order of `dsymutil`'s output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Section {
    Lines,
    Aranges,
    Ranges,
    /// One for all copies.
    Locations,
    Info,
    /// One for all copies.
    Abbreviations,
    Strings,
}

/// Accelerator tables, and sections that lookups do not need. Copies have none of them.
const LEFT_OUT: [&str; 9] = [
    "__apple_names",
    "__apple_types",
    "__apple_namespac",
    "__apple_objc",
    "__debug_names",
    "__debug_pubnames",
    "__debug_pubtypes",
    "__debug_frame",
    "__swift_ast",
];

/// A segment and its sections.
pub(super) type Segment = (macho::SegmentCommand64<LE>, Vec<macho::Section64<LE>>);

/// A load command.
pub(super) enum Command<'d> {
    Segment(Box<Segment>),
    Symtab,
    Uuid([u8; 16]),
    /// A command without offsets and addresses.
    Other(&'d [u8]),
}

/// A dSYM with one slice.
pub(super) struct Original<'d> {
    pub(super) header: macho::MachHeader64<LE>,
    pub(super) commands: Vec<Command<'d>>,
    /// The symbols that are defined in sections.
    pub(super) symbols: Vec<macho::Nlist64<LE>>,
    pub(super) symbol_names: &'d [u8],
    sections: BTreeMap<Section, &'d [u8]>,
}

impl Section {
    /// The kind of a section; `None` if it is not copied.
    pub(super) fn of(section: &macho::Section64<LE>) -> Option<Self> {
        Self::named(&String::from_utf8_lossy(section.name()))
    }

    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "__debug_line" => Self::Lines,
            "__debug_aranges" => Self::Aranges,
            "__debug_ranges" => Self::Ranges,
            "__debug_loc" => Self::Locations,
            "__debug_info" => Self::Info,
            "__debug_abbrev" => Self::Abbreviations,
            "__debug_str" => Self::Strings,
            _ => return None,
        })
    }

    /// How often the section is in a file with `copies` copies.
    pub(super) fn times(self, copies: u32) -> u32 {
        if self.is_shared() { 1 } else { copies }
    }

    /// Whether the copies share one section.
    fn is_shared(self) -> bool {
        matches!(self, Self::Abbreviations | Self::Locations)
    }
}

impl<'d> Original<'d> {
    /// Reads a Mach-O file.
    ///
    /// # Errors
    /// The file is not a 64-bit dSYM with one slice, or has load commands or sections that cannot be copied.
    pub(super) fn parse(bytes: &'d [u8]) -> Result<Self> {
        let header = macho::MachHeader64::<LE>::parse(bytes, 0).ok();
        let header = header.context("not a 64-bit Mach-O file of one slice")?;
        let mut original = Self {
            header: *header,
            commands: Vec::new(),
            symbols: Vec::new(),
            symbol_names: &[],
            sections: BTreeMap::new(),
        };
        let mut commands = header.load_commands(LE, bytes, 0)?;
        while let Some(command) = commands.next()? {
            if let Some((segment, sections)) = command.segment_64()? {
                let sections = segment.sections(LE, sections)?;
                if segment.name() == b"__DWARF" {
                    original.read_dwarf(sections, bytes)?;
                }
                original.commands.push(Command::Segment(Box::new((*segment, sections.to_vec()))));
            } else if let Some(symtab) = command.symtab()? {
                let symbols = symtab.symbols::<macho::MachHeader64<LE>, _>(LE, bytes)?;
                let in_sections = |symbol: &&macho::Nlist64<LE>| {
                    !symbol.n_type.is_stab() && symbol.n_type.typ() == macho::N_SECT
                };
                original.symbols = symbols.iter().filter(in_sections).copied().collect();
                let start = symtab.stroff.get(LE) as usize;
                let names = bytes.get(start..start + symtab.strsize.get(LE) as usize);
                original.symbol_names = names.context("the symbols' names are cut")?;
                original.commands.push(Command::Symtab);
            } else if let Some(uuid) = command.uuid()? {
                original.commands.push(Command::Uuid(uuid.uuid));
            } else {
                original.commands.push(other(command.cmd(), command.raw_data())?);
            }
        }
        ensure!(original.sections.contains_key(&Section::Info), "no debug information");
        Ok(original)
    }

    fn read_dwarf(&mut self, sections: &[macho::Section64<LE>], bytes: &'d [u8]) -> Result<()> {
        for section in sections {
            let name = String::from_utf8_lossy(section.name()).into_owned();
            let data = section
                .data(LE, bytes, section.offset.get(LE).into())
                .ok()
                .with_context(|| format!("{name} is cut"))?;
            match Section::named(&name) {
                Some(section) => drop(self.sections.insert(section, data)),
                None => ensure!(LEFT_OUT.contains(&name.as_str()), "the section {name} cannot be copied"),
            }
        }
        Ok(())
    }

    /// The bytes of a section of the original; empty if it has none.
    pub(super) fn bytes(&self, section: Section) -> &'d [u8] {
        self.sections.get(&section).copied().unwrap_or_default()
    }

    /// The copied sections, in the order in which they are written.
    pub(super) fn sections(&self) -> impl Iterator<Item = (Section, &'d [u8])> {
        self.sections.iter().map(|(section, bytes)| (*section, *bytes))
    }

    /// The number of copies, at least one, whose file is nearest to `size` bytes.
    ///
    /// # Errors
    /// Two letters cannot distinguish so many copies, or 32-bit offsets do not reach so far.
    pub(super) fn copies_for(&self, size: u64) -> Result<u32> {
        let (mut once, mut copied) = (0, 0);
        for (section, bytes) in self.sections() {
            *(if section.is_shared() { &mut once } else { &mut copied }) += bytes.len() as u64;
        }
        let tables = self.symbols.len() * size_of::<macho::Nlist64<LE>>() + self.symbol_names.len();
        let each = copied + tables as u64;
        let copies = ((size.saturating_sub(once) + each / 2) / each).max(1);
        let longest = self.sections().map(|(_, bytes)| bytes.len()).chain([self.symbol_names.len()]).max();
        let most =
            (u64::from(u32::MAX) / longest.unwrap_or(1) as u64).min(u64::from(super::rename::MOST_COPIES));
        ensure!(
            copies <= most,
            "{copies} copies are too many; at most {most} ({} MB) have distinct names and no section of over 4 GiB, \
             the limit of the offsets of 32-bit DWARF",
            most * each / 1_000_000
        );
        Ok(u32::try_from(copies)?)
    }
}

fn other(command: macho::LoadCommandType, bytes: &[u8]) -> Result<Command<'_>> {
    match command {
        macho::LC_BUILD_VERSION
        | macho::LC_SOURCE_VERSION
        | macho::LC_VERSION_MIN_MACOSX
        | macho::LC_VERSION_MIN_IPHONEOS => Ok(Command::Other(bytes)),
        _ => bail!("the load command {command} cannot be copied"),
    }
}
