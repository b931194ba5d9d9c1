//! A second reading of unwind tables, to compare the rows of indexes with.
//!
//! Rules are not compared as such. They are applied to a made-up frame, whose registers and memory have values that
//! depend on their numbers and addresses, and the results are compared: those of the index, and those of gimli or of
//! what macho-unwind-info reads. `.ARM.exidx` has no second reader here. Its rows are compared with `.debug_frame`.

mod cfi;
mod compact;

use gimli::{DebugFrame, EhFrame, EndianSlice, LittleEndian, Vendor};
use object::File;
use object::macho::MH_DSYM;
use symdex::{FrameState, ImageOffset, Index, UnwindRow};
use symdex_build::Image;
use symdex_build::audit_access::unwind_sections;

use self::cfi::CallFrames;
use self::compact::CompactUnwind;

/// The reader type for gimli.
type Reader<'d> = EndianSlice<'d, LittleEndian>;

/// What a comparison found.
#[derive(Debug, Default)]
pub(crate) struct Compared {
    /// How many addresses were compared.
    pub(crate) addresses: u64,
    /// How many of them have other results.
    pub(crate) wrong_len: u64,
    /// The first of those, in words.
    pub(crate) first_wrong: Option<String>,
}

/// The results of the rules at an address, for the made-up frame.
#[derive(Debug, PartialEq)]
struct Results {
    cfa: Option<u64>,
    /// The caller's values of registers, by number. The values of all others are unchanged.
    registers: Vec<(u16, Option<u64>)>,
    /// The number of the return register, whether the frame is that of a signal, and whether the return address is
    /// signed.
    properties: (u16, bool, bool),
    /// Whether the rules hold at calls only, rather than at each instruction.
    holds_at_calls_only: bool,
}

/// A table that describes code.
trait Table {
    /// The entries that describe code of the image: start and end, as image offsets, sorted. None starts where another
    /// one does, and each ends where the next one begins, at the latest.
    fn entries(&self) -> &[(u64, u64)];

    /// Calls `each` with the ends of each row of an entry, clipped to the entry, and its results.
    fn rows(&self, entry: usize, machine: &Machine, each: &mut dyn FnMut(u64, u64, Results));
}

/// The made-up frame.
#[derive(Clone, Copy)]
struct Machine {
    /// The bits of a register.
    mask: u64,
}

impl FrameState for Machine {
    fn register(&mut self, register: u16) -> Option<u64> {
        Some(mixed(u64::from(register)) & self.mask)
    }

    fn word(&mut self, address: u64) -> Option<u64> {
        Some(mixed(!address) & self.mask)
    }
}

/// A number that depends on all bits of `number`.
fn mixed(number: u64) -> u64 {
    let mixed = (number ^ 0x9e37_79b9_7f4a_7c15).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (mixed ^ (mixed >> 29)).wrapping_mul(0x94d0_49bb_1331_11eb)
}

/// Compares the unwind rows of `index` with the tables of `image`, at both ends of each row of the tables, and at
/// addresses spread over the code.
pub(crate) fn compare<B: AsRef<[u8]>>(image: &Image<'_>, index: &Index<B>) -> Compared {
    let code: Vec<u64> = image.info().executable.iter().flat_map(|(start, end)| *start..*end).collect();
    let spread: Vec<u64> = code.iter().copied().step_by(1 + code.len() / 20_000).collect();
    let files: Vec<File<'_>> = image.files().iter().filter_map(|bytes| File::parse(*bytes).ok()).collect();
    let tables = tables(image, &files);
    let is_64_bit = image.info().arch.is_64_bit();
    let machine = Machine { mask: if is_64_bit { u64::MAX } else { u32::MAX.into() } };
    // The second reading has all tables but these, and what the builder left out is stated.
    let is_complete = !files.iter().any(|file| is_i386_mach_o(image, file));
    let left_out = index.metadata().partial.iter().any(|partial| partial.reason.starts_with("unwind "));
    let may_differ = left_out || !is_complete;
    let mut compared = Compared::default();
    for (place, table) in tables.iter().enumerate() {
        for entry in 0..table.entries().len() {
            table.rows(entry, &machine, &mut |start, end, results| {
                let inside = &spread[spread.partition_point(|offset| *offset < start)..];
                let inside = inside.iter().copied().take_while(|offset| *offset < end);
                for offset in [start, end - 1].into_iter().chain(inside) {
                    // An earlier table has precedence.
                    if tables[..place].iter().any(|earlier| entry_at(&**earlier, offset).is_some()) {
                        continue;
                    }
                    let row = index.unwind_row(ImageOffset(offset)).expect("whole");
                    compared.add(offset, row, &results, machine, may_differ);
                }
            });
        }
    }
    let is_described = |offset: u64| tables.iter().any(|table| entry_at(&**table, offset).is_some());
    for offset in spread.iter().copied().filter(|offset| !is_described(*offset)) {
        compared.addresses += 1;
        let row = index.unwind_row(ImageOffset(offset)).expect("whole");
        if let Some(row) = row.filter(|_| !may_differ) {
            compared
                .wrong(format!("{offset:#x}: {row:x?}, but the debug file does not describe this address"));
        }
    }
    compared
}

/// Compares the last row of each entry of `.debug_frame`, which holds in the body of a function, with the rows of
/// `.ARM.exidx` in `index`, which hold at calls. These may restore further registers. Returns the number of entries.
pub(crate) fn compare_bodies<B: AsRef<[u8]>>(image: &Image<'_>, index: &Index<B>) -> usize {
    let mut machine = Machine { mask: u32::MAX.into() };
    let mut compared = 0;
    for table in tables(image, &[]) {
        for entry in 0..table.entries().len() {
            let mut last = None;
            table.rows(entry, &machine, &mut |start, _, results| last = Some((start, results)));
            let (start, expected) = last.expect("a row");
            let row = index.unwind_row(ImageOffset(start)).expect("whole").expect("a row");
            assert!(row.holds_at_calls_only());
            assert_eq!(row.find_cfa(&mut machine), expected.cfa, "{row:x?}");
            for (register, value) in expected.registers {
                let found = row.find_register(register, expected.cfa.expect("known"), &mut machine);
                assert_eq!(found, value, "register {register} of {row:x?}");
            }
            compared += 1;
        }
    }
    compared
}

/// The tables of all files, in the order of their precedence. `files` may have compact unwind information.
fn tables<'d>(image: &Image<'d>, files: &[File<'d>]) -> Vec<Box<dyn Table + 'd>> {
    let arch = &image.info().arch;
    let size = if arch.is_64_bit() { 8 } else { 4 };
    let vendor = if arch.name.starts_with("arm64") { Vendor::AArch64 } else { Vendor::Default };
    // A dSYM states these sections of its binary and does not have their bytes.
    let is_read = |file: &&File<'d>| !is_dsym(file) && !is_i386_mach_o(image, file);
    let mut tables: Vec<Box<dyn Table + 'd>> = Vec::new();
    for sections in unwind_sections(image) {
        let mut section = EhFrame::new(sections.eh_frame.bytes, LittleEndian);
        section.set_address_size(size);
        section.set_vendor(vendor);
        let bases = gimli::BaseAddresses::default().set_eh_frame(sections.eh_frame.address);
        tables.push(Box::new(CallFrames::new(image, section, bases.set_text(sections.text))));
    }
    for sections in unwind_sections(image) {
        let mut section = DebugFrame::new(sections.debug_frame.bytes, LittleEndian);
        section.set_address_size(size);
        section.set_vendor(vendor);
        tables.push(Box::new(CallFrames::new(image, section, gimli::BaseAddresses::default())));
    }
    let compact = files.iter().filter(is_read).filter_map(|file| CompactUnwind::new(image, file));
    tables.extend(compact.map(|table| Box::new(table) as Box<dyn Table + 'd>));
    tables
}

fn is_dsym(file: &File<'_>) -> bool {
    let kind = match file {
        File::MachO32(file) => file.macho_header().filetype.get(file.endian()),
        File::MachO64(file) => file.macho_header().filetype.get(file.endian()),
        _ => return false,
    };
    kind == MH_DSYM
}

/// Whether this is a Mach-O file for i386. There, registers have other numbers in `__eh_frame`, and other encodings in
/// `__unwind_info`.
fn is_i386_mach_o(image: &Image<'_>, file: &File<'_>) -> bool {
    image.info().arch.name == "i386" && matches!(file, File::MachO32(_))
}

/// The part of `start..end` (SVMAs) in the executable section that holds `start`, as image offsets.
fn executable_part(image: &Image<'_>, start: u64, end: u64) -> Option<(u64, u64)> {
    let info = image.info();
    let (start, end) = (start.checked_sub(info.base)?, end.checked_sub(info.base)?);
    let section = info.executable.iter().find(|(from, to)| (*from..*to).contains(&start))?;
    let end = end.min(section.1);
    (start < end).then_some((start, end))
}

/// The entry with `offset`.
fn entry_at(table: &dyn Table, offset: u64) -> Option<usize> {
    let entries = table.entries();
    let entry = entries.partition_point(|(start, _)| *start <= offset).checked_sub(1)?;
    (offset < entries[entry].1).then_some(entry)
}

/// The parts of `entries` (SVMAs, each with a value) that are code, as image offsets, as [`Table::entries`] has them.
/// Of those that start together, the first counts.
fn in_code<T>(image: &Image<'_>, entries: Vec<(u64, u64, T)>) -> (Vec<(u64, u64)>, Vec<T>) {
    let part = |(start, end, value)| Some((executable_part(image, start, end)?, value));
    let mut parts: Vec<((u64, u64), T)> = entries.into_iter().filter_map(part).collect();
    parts.sort_by_key(|((start, _), _)| *start);
    parts.dedup_by_key(|((start, _), _)| *start);
    let (mut ends, values): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
    for place in 1..ends.len() {
        ends[place - 1].1 = ends[place - 1].1.min(ends[place].0);
    }
    (ends, values)
}

impl Compared {
    fn add(
        &mut self,
        offset: u64,
        row: Option<UnwindRow<'_>>,
        expected: &Results,
        mut machine: Machine,
        may_differ: bool,
    ) {
        self.addresses += 1;
        let Some(row) = row else {
            if !may_differ {
                self.wrong(format!("{offset:#x}: no row, expected {expected:x?}"));
            }
            return;
        };
        let cfa = row.find_cfa(&mut machine);
        // The registers that one of both mentions.
        let mut numbers: Vec<u16> = row.rules().map(|(number, _)| number).collect();
        numbers.extend(expected.registers.iter().map(|(number, _)| *number));
        numbers.sort_unstable();
        numbers.dedup();
        let theirs = |number: u16| {
            let found = expected.registers.iter().find(|(other, _)| *other == number);
            found.map_or_else(|| Machine { ..machine }.register(number), |(_, value)| *value)
        };
        let properties = (row.return_register(), row.is_signal_frame(), row.is_return_address_signed());
        let is_equal = (cfa, properties) == (expected.cfa, expected.properties)
            && row.holds_at_calls_only() == expected.holds_at_calls_only
            && cfa.is_none_or(|cfa| {
                let ours = |number: u16| row.find_register(number, cfa, &mut Machine { ..machine });
                numbers.iter().all(|number| ours(*number) == theirs(*number))
            });
        if !is_equal {
            self.wrong(format!("{offset:#x}: {row:x?}, expected {expected:x?}"));
        }
    }

    fn wrong(&mut self, what: String) {
        self.wrong_len += 1;
        self.first_wrong.get_or_insert(what);
    }
}
