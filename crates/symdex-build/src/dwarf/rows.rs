//! The rows of a line program, in its own order.

use gimli::{IncompleteLineProgram, LineInstruction, LineInstructions, LineProgramHeader, LineRow};

use crate::image::Reader;

/// Runs a line program row by row.
///
/// This is what `gimli::LineRows` does, except where an address is set back within a sequence: gimli takes that for what a
/// linker leaves of dropped code, and passes over the rows behind it.
pub(super) struct Rows<'d> {
    program: IncompleteLineProgram<Reader<'d>>,
    instructions: LineInstructions<Reader<'d>>,
    registers: LineRow,
    /// What the address is beyond that in the registers, which is never set back.
    beyond: u64,
    address_mask: u64,
}

impl<'d> Rows<'d> {
    pub(super) fn new(program: IncompleteLineProgram<Reader<'d>>) -> Self {
        let header = program.header();
        let address_mask = match header.encoding().address_size {
            size @ 1..8 => (1 << (u32::from(size) * 8)) - 1,
            _ => u64::MAX,
        };
        let (instructions, registers) = (header.instructions(), LineRow::new(header));
        Self { program, instructions, registers, beyond: 0, address_mask }
    }

    /// The next row and its address; `None` at the end of the program.
    pub(super) fn next(&mut self) -> gimli::Result<Option<(u64, &LineRow)>> {
        if self.registers.end_sequence() {
            self.beyond = 0;
        }
        self.registers.reset(self.program.header());
        while let Some(mut instruction) = self.instructions.next_instruction(self.program.header())? {
            if let LineInstruction::SetAddress(address) = &mut instruction {
                let at = self.registers.address();
                // The last two addresses are such leavings too: their rows are not in the image, and need no sequence of their own.
                let goes_on = (at..self.address_mask - 1).contains(address);
                self.beyond = if goes_on { 0 } else { address.wrapping_sub(at) };
                *address = if goes_on { *address } else { at };
            }
            if self.registers.execute(instruction, &mut self.program)? {
                let address = self.registers.address().wrapping_add(self.beyond) & self.address_mask;
                return Ok(Some((address, &self.registers)));
            }
        }
        Ok(None)
    }

    /// The program's header, with the files that the rows so far have defined.
    pub(super) fn into_header(self) -> LineProgramHeader<Reader<'d>> {
        self.program.header().clone()
    }
}
