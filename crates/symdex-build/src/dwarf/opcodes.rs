//! An interpreter of line programs. It decodes and executes an opcode in one step, and has a table of special opcodes.
//! gimli's state machine runs the programs that this interpreter does not support.

use gimli::{LineProgramHeader, Reader as _, constants};

use super::rows::{Registers, column, file};
use super::sequences::SequenceReader;
use crate::image::Reader;
use crate::limits;

/// The number of opcodes between two checks of the time.
const CHECKED: u32 = 1 << 16;

/// Runs the program of `header`. The rows equal those of gimli's state machine. Returns `None` for an unsupported
/// program, for example one that defines files, packs several operations into one instruction, or is damaged. gimli
/// then has to run the program from its start.
pub(crate) fn run(header: &LineProgramHeader<Reader<'_>>, rows: &mut SequenceReader<'_, '_>) -> Option<()> {
    let address_size = header.address_size();
    if header.maximum_operations_per_instruction() != 1 || !matches!(address_size, 4 | 8) {
        return None;
    }
    let mask = if address_size == 8 { u64::MAX } else { u64::from(u32::MAX) };
    // Opcode 0 begins an extended opcode, whatever the base.
    let first_special = header.opcode_base().max(1);
    let special = special_opcodes(header);
    let new = Registers { address: 0, file: 1, line: 1, column: 0, is_stmt: header.default_is_stmt() };
    let (mut registers, mut is_dropped) = (new, false);
    let mut input = header.raw_program_buf().slice();
    let mut sequence = input;
    // Rows take about five bytes.
    rows.reserve((input.len() / 4).min(limits::ROWS));
    let mut steps = 0u32;
    while let [opcode, rest @ ..] = input {
        input = rest;
        steps = steps.wrapping_add(1);
        if steps.is_multiple_of(CHECKED) && rows.is_too_late() {
            break;
        }
        let (address_advance, line_advance) = special[usize::from(*opcode)];
        let (advance, is_row) = if *opcode >= first_special {
            registers.line = advanced(registers.line, line_advance.into());
            (u64::from(address_advance), true)
        } else {
            let advance = match constants::DwLns(*opcode) {
                constants::DwLns(0) => {
                    let size = usize::try_from(leb(&mut input)?).ok()?;
                    let (extended, after) = input.split_at_checked(size)?;
                    input = after;
                    let (opcode, mut operand) = extended.split_first()?;
                    match constants::DwLne(*opcode) {
                        constants::DW_LNE_end_sequence => {
                            rows.end_sequence(registers.address, registers.file, registers.line);
                            let size = (sequence.len() - input.len()) as u64;
                            (rows.offset, sequence) = (rows.offset.map(|offset| offset + size), input);
                            (registers, is_dropped) = (new, false);
                        }
                        constants::DW_LNE_set_address => {
                            let address = reader(operand).read_address(address_size).ok()?;
                            if address < registers.address && rows.is_code(address) {
                                registers.address = 0;
                            }
                            is_dropped = address < registers.address || address >= mask - 1;
                            if !is_dropped {
                                registers.address = address;
                            }
                            rows.is_tombstone = registers.address != address;
                        }
                        constants::DW_LNE_set_discriminator => drop(leb(&mut operand)?),
                        constants::DW_LNE_define_file => return None,
                        _ => {}
                    }
                    continue;
                }
                constants::DW_LNS_copy => {
                    rows.row(registers);
                    continue;
                }
                constants::DW_LNS_advance_pc => {
                    u64::from(header.minimum_instruction_length()).wrapping_mul(leb(&mut input)?)
                }
                constants::DW_LNS_const_add_pc => u64::from(special[255].0),
                constants::DW_LNS_fixed_advance_pc => {
                    let (advance, after) = input.split_at_checked(2)?;
                    input = after;
                    u64::from(reader(advance).read_u16().ok()?)
                }
                constants::DW_LNS_advance_line => {
                    registers.line = advanced(registers.line, sleb(&mut input)?);
                    continue;
                }
                constants::DW_LNS_set_file => {
                    registers.file = file(leb(&mut input)?);
                    continue;
                }
                constants::DW_LNS_set_column => {
                    registers.column = column(leb(&mut input)?);
                    continue;
                }
                constants::DW_LNS_set_isa => {
                    leb(&mut input)?;
                    continue;
                }
                constants::DW_LNS_negate_stmt => {
                    registers.is_stmt = !registers.is_stmt;
                    continue;
                }
                constants::DW_LNS_set_basic_block
                | constants::DW_LNS_set_prologue_end
                | constants::DW_LNS_set_epilogue_begin => continue,
                _ => return None,
            };
            (advance, false)
        };
        if !is_dropped {
            match registers.address.checked_add(advance).filter(|address| *address <= mask) {
                Some(address) => registers.address = address,
                None => {
                    rows.overflows = true;
                    continue;
                }
            }
        }
        if is_row {
            rows.row(registers);
        }
    }
    Some(())
}

/// The address advance and the line advance of each special opcode (DWARF 5, 6.2.5.1).
fn special_opcodes(header: &LineProgramHeader<Reader<'_>>) -> [(u16, i16); 256] {
    let (base, range) = (header.opcode_base(), header.line_range());
    let mut table = [(0, 0); 256];
    for (opcode, advances) in (0..=u8::MAX).zip(&mut table).skip(usize::from(base)) {
        let adjusted = opcode - base;
        let address = u16::from(header.minimum_instruction_length()) * u16::from(adjusted / range);
        *advances = (address, i16::from(header.line_base()) + i16::from(adjusted % range));
    }
    table
}

/// `line` plus `advance`, or 0 if the sum is negative.
fn advanced(line: u64, advance: i64) -> u64 {
    match line.overflowing_add_signed(advance) {
        (_, true) if advance < 0 => 0,
        (line, _) => line,
    }
}

/// Reads an unsigned LEB128 number. Most have one byte.
#[inline]
fn leb(input: &mut &[u8]) -> Option<u64> {
    let bytes = *input;
    let (number, rest) = match bytes {
        [byte, rest @ ..] if *byte < 0x80 => (u64::from(*byte), rest),
        _ => longer(bytes, |reader| reader.read_uleb128())?,
    };
    *input = rest;
    Some(number)
}

/// Reads a signed LEB128 number. Most have one byte or two.
#[inline]
fn sleb(input: &mut &[u8]) -> Option<i64> {
    let bytes = *input;
    let (number, rest) = match bytes {
        // Bit 6 is the sign.
        [byte, rest @ ..] if *byte < 0x80 => (i64::from(*byte) - i64::from(*byte & 0x40) * 2, rest),
        [low, high, rest @ ..] if *high < 0x80 => {
            let number = i64::from(*high) << 7 | i64::from(*low & 0x7f);
            (number - (number & 0x2000) * 2, rest)
        }
        _ => longer(bytes, |reader| reader.read_sleb128())?,
    };
    *input = rest;
    Some(number)
}

/// The result of `read`, and the bytes after those that it consumes.
#[inline(never)]
fn longer<'b, T>(
    bytes: &'b [u8],
    read: impl FnOnce(&mut Reader<'b>) -> gimli::Result<T>,
) -> Option<(T, &'b [u8])> {
    let mut reader = reader(bytes);
    Some((read(&mut reader).ok()?, reader.slice()))
}

fn reader(bytes: &[u8]) -> Reader<'_> {
    Reader::new(bytes, gimli::LittleEndian)
}

#[cfg(test)]
mod tests {
    use gimli::{DebugLine, DebugLineOffset, IncompleteLineProgram};

    use super::*;
    use crate::image::Image;
    use crate::limits::Deadline;
    use crate::memory::{Memory, Share};
    use crate::random::Random;

    impl Random {
        fn of<T: Copy>(&mut self, choices: &[T]) -> T {
            choices[usize::try_from(self.below(choices.len() as u64)).expect("small")]
        }

        fn byte(&mut self) -> u8 {
            u8::try_from(self.below(256)).expect("a byte")
        }

        /// Opcodes for code around `text`. Some of them are invalid.
        fn opcodes(&mut self, text: u64) -> Vec<u8> {
            let to_text = [&[0, 9, 2][..], &text.to_le_bytes()].concat();
            let mut opcodes = to_text.clone();
            for _ in 0..self.below(60) {
                match self.below(40) {
                    0 | 1 => opcodes.extend([&[0, 1, 1][..], &to_text].concat()),
                    2 => {
                        let address =
                            self.of(&[text, text + 64, text - 1, 0, 1, u64::MAX, u64::MAX - 1, 1 << 63]);
                        let address = address.wrapping_add(self.of(&[0, 0, 4, 8]));
                        opcodes.extend([&[0, 9, 2][..], &address.to_le_bytes()].concat());
                    }
                    3 => opcodes.extend([0, 2, 4, self.byte() & 0x7f]),
                    4 => opcodes.extend([3, self.byte() & 0x7f]),
                    5 => opcodes.extend([2, self.byte() | 0x80, self.byte() & 0x7f]),
                    6 => opcodes.extend([9, self.byte(), 0]),
                    7 => opcodes.extend([self.of(&[4, 5, 12]), self.byte() & 0x7f]),
                    8 => opcodes.push(self.of(&[6, 7, 8, 10, 11])),
                    9 if self.below(10) == 0 => {
                        opcodes.extend([2, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1])
                    }
                    10 if self.below(10) == 0 => opcodes.push(self.byte()),
                    11 if self.below(10) == 0 => opcodes.extend([0, 3, self.byte(), 1, 1]),
                    12 => opcodes.push(1),
                    _ => opcodes.push(self.byte().max(13)),
                }
            }
            opcodes.extend([0, 1, 1]);
            opcodes
        }

        fn program(&mut self, text: u64) -> Vec<u8> {
            let version = self.of(&[2, 3, 4, 4]);
            let lengths = [0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1];
            let opcode_base = self.of(&[13, 13, 10]);
            let mut header = vec![self.of(&[1, 4])];
            header.extend((version == 4).then_some(1));
            header.extend([self.of(&[0, 1]), self.of(&[251, 253]), self.of(&[14, 12, 255]), opcode_base]);
            header.extend(&lengths[..usize::from(opcode_base) - 1]);
            header.extend([0, b'a', 0, 0, 0, 0, 0]);
            let size = |bytes: &[u8]| u32::try_from(bytes.len()).expect("small").to_le_bytes();
            let rest = [&[version, 0][..], &size(&header), &header, &self.opcodes(text)].concat();
            [&size(&rest)[..], &rest].concat()
        }
    }

    #[test]
    fn programs_are_run_as_by_gimli() {
        let testdata = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata");
        let path = crate::find(&testdata).remove(0).expect("testdata has debug files");
        let bytes = std::fs::read(&path).expect("readable");
        let slice = &crate::slices(&bytes).expect("a debug file")[0];
        let companions = crate::Companions::default();
        let image = Image::load(slice, &path, &companions).expect("loads");
        let text = image.info.base + image.info.executable[0].0;
        let memory = Memory::new(usize::MAX);
        let share = Share::new(&memory);
        let new = || SequenceReader::new(&image, Deadline::default(), &share);
        let mut random = Random(3);
        let (mut rows, mut lost) = (0, 0);
        for _ in 0..30_000 {
            let section = random.program(text);
            let program = || -> IncompleteLineProgram<Reader<'_>> {
                let section = DebugLine::new(&section, gimli::LittleEndian);
                section.program(DebugLineOffset(0), 8, None, None).expect("has a header")
            };
            let (mut own, mut theirs) = (new(), new());
            let (_, result) = theirs.run(program());
            if run(program().header(), &mut own).is_none() {
                lost += 1;
                continue;
            }
            assert_eq!(result, Ok(()));
            let seen = |reader: &SequenceReader<'_, '_>| {
                format!("{:?} {:?} {:?} {:?}", reader.rows, reader.sequences, reader.ends, reader.problems)
            };
            assert_eq!(seen(&own), seen(&theirs), "{section:?}");
            rows += own.rows.len();
        }
        assert!(rows > 20_000 && lost < 15_000, "{rows} {lost}");
    }
}
