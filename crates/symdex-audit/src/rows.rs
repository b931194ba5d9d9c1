//! The raw rows of a line program. gimli decodes the instructions; this module implements the state machine (DWARF 5,
//! 6.2.2). Nothing is sorted or merged.

use gimli::{DwLns, FileEntry, LineInstruction, LineProgramHeader, Reader as _, constants as dw};

use crate::image::Reader;

/// A row as the line program states it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) address: u64,
    pub(crate) file: u32,
    pub(crate) line: u32,
    pub(crate) is_stmt: bool,
}

/// A sequence as the program states it, rows in program order.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct RawSequence {
    pub(crate) rows: Vec<Row>,
    /// The end_sequence row.
    pub(crate) end: Row,
    /// Whether an advance exceeded the address space. The rest of the sequence is then invalid.
    pub(crate) overflow: bool,
    /// Whether a set_address decreases the address.
    pub(crate) is_backward: bool,
    /// The number of the program's byte at which the sequence begins. `None` if a size before it cannot be told.
    pub(crate) begin: Option<usize>,
}

/// The registers of the state machine, and the constants of the header.
struct Machine {
    address_mask: u64,
    line_base: i64,
    line_range: u8,
    opcode_base: u8,
    min_instruction_length: u64,
    max_operations: u64,
    default_is_stmt: bool,
    address: u64,
    operation: u64,
    file: u64,
    line: u64,
    is_stmt: bool,
    /// Whether the last set_address marks dropped code. Rows are then skipped up to the next set_address.
    is_tombstone: bool,
    /// The sequence being read.
    sequence: RawSequence,
}

impl Machine {
    fn new(header: &LineProgramHeader<Reader<'_>>) -> Self {
        let address_mask = match header.encoding().address_size {
            size @ 1..8 => (1 << (u32::from(size) * 8)) - 1,
            _ => u64::MAX,
        };
        let default_is_stmt = header.default_is_stmt();
        Self {
            address_mask,
            line_base: header.line_base().into(),
            line_range: header.line_range(),
            opcode_base: header.opcode_base(),
            min_instruction_length: header.minimum_instruction_length().into(),
            max_operations: u64::from(header.maximum_operations_per_instruction()).max(1),
            default_is_stmt,
            address: 0,
            operation: 0,
            file: 1,
            line: 1,
            is_stmt: default_is_stmt,
            is_tombstone: false,
            sequence: RawSequence::default(),
        }
    }

    /// Executes one instruction. Returns the sequence if the instruction ends it. `is_code` says whether an SVMA lies
    /// in an executable section.
    fn step(
        &mut self,
        instruction: &LineInstruction<Reader<'_>>,
        is_code: impl Fn(u64) -> bool,
    ) -> Option<RawSequence> {
        match *instruction {
            LineInstruction::Special(opcode) => {
                let adjusted = opcode.wrapping_sub(self.opcode_base);
                self.advance_line(self.line_base + i64::from(adjusted.checked_rem(self.line_range)?));
                self.advance_operation(adjusted.checked_div(self.line_range)?.into());
                self.append();
            }
            LineInstruction::Copy => self.append(),
            LineInstruction::AdvancePc(by) => self.advance_operation(by),
            LineInstruction::AdvanceLine(by) => self.advance_line(by),
            LineInstruction::SetFile(file) => self.file = file,
            LineInstruction::NegateStatement => self.is_stmt = !self.is_stmt,
            LineInstruction::ConstAddPc => {
                let adjusted = 255u8.wrapping_sub(self.opcode_base);
                self.advance_operation(adjusted.checked_div(self.line_range)?.into());
            }
            LineInstruction::FixedAddPc(by) => {
                self.advance_address(by.into());
                self.operation = 0;
            }
            LineInstruction::SetAddress(address) => {
                let is_backward = address < self.address;
                self.sequence.is_backward |= is_backward;
                self.is_tombstone = address >= self.address_mask - 1 || is_backward && !is_code(address);
                if !self.is_tombstone {
                    (self.address, self.operation) = (address, 0);
                }
            }
            LineInstruction::EndSequence => {
                let mut sequence = std::mem::take(&mut self.sequence);
                sequence.end = self.row();
                (self.address, self.operation, self.file, self.line) = (0, 0, 1, 1);
                (self.is_stmt, self.is_tombstone) = (self.default_is_stmt, false);
                return Some(sequence);
            }
            _ => {}
        }
        None
    }

    fn row(&self) -> Row {
        let Self { address, is_stmt, .. } = *self;
        Row { address, file: clamp(self.file), line: clamp(self.line), is_stmt }
    }

    fn append(&mut self) {
        if !self.is_tombstone {
            self.sequence.rows.push(self.row());
        }
    }

    fn advance_line(&mut self, by: i64) {
        self.line = match by {
            0.. => self.line.wrapping_add(by.unsigned_abs()),
            _ => self.line.saturating_sub(by.unsigned_abs()),
        };
    }

    fn advance_operation(&mut self, by: u64) {
        let operations = self.operation.wrapping_add(by);
        self.operation = operations % self.max_operations;
        self.advance_address(self.min_instruction_length.wrapping_mul(operations / self.max_operations));
    }

    fn advance_address(&mut self, by: u64) {
        if self.is_tombstone {
            return;
        }
        let address = self.address.checked_add(by).filter(|address| *address <= self.address_mask);
        self.sequence.overflow |= address.is_none();
        self.address = address.unwrap_or(self.address);
    }
}

/// A file or line number as the index can hold it. Only hostile files have larger ones.
fn clamp(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// Calls `each` for every sequence in program order until it returns false. Collects the files that the program defines
/// in `defined`. Stops at the first error.
pub(crate) fn for_each_sequence<'d>(
    header: &LineProgramHeader<Reader<'d>>,
    is_code: impl Fn(u64) -> bool,
    defined: &mut Vec<FileEntry<Reader<'d>>>,
    mut each: impl FnMut(RawSequence) -> bool,
) -> gimli::Result<()> {
    let mut machine = Machine::new(header);
    let mut instructions = header.instructions();
    let (mut at, mut begin) = (Some(0), Some(0));
    while let Some(instruction) = instructions.next_instruction(header)? {
        at = at.and_then(|at| Some(at + instruction_size(header, at)?));
        if let LineInstruction::DefineFile(file) = instruction {
            defined.push(file);
        } else if let Some(sequence) = machine.step(&instruction, &is_code) {
            if !each(RawSequence { begin, ..sequence }) {
                break;
            }
            begin = at;
        }
    }
    Ok(())
}

/// The size of the instruction that begins at byte `at` of the program (DWARF 5, 6.2.5).
fn instruction_size(header: &LineProgramHeader<Reader<'_>>, at: usize) -> Option<usize> {
    let mut rest = header.raw_program_buf();
    rest.skip(at).ok()?;
    let size = rest.len();
    let operands = match rest.read_u8().ok()? {
        0 => {
            let size = rest.read_uleb128().ok()?;
            rest.skip(usize::try_from(size).ok()?).ok()?;
            0
        }
        opcode if opcode >= header.opcode_base() => 0,
        opcode => match DwLns(opcode) {
            dw::DW_LNS_advance_pc
            | dw::DW_LNS_advance_line
            | dw::DW_LNS_set_file
            | dw::DW_LNS_set_column
            | dw::DW_LNS_set_isa => 1,
            dw::DW_LNS_fixed_advance_pc => {
                rest.skip(2).ok()?;
                0
            }
            _ if opcode <= dw::DW_LNS_set_isa.0 => 0,
            _ => *header.standard_opcode_lengths().slice().get(usize::from(opcode) - 1)?,
        },
    };
    for _ in 0..operands {
        rest.skip_leb128().ok()?;
    }
    Some(size - rest.len())
}
