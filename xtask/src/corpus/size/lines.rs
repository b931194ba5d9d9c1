//! Copies `.debug_line`.

use anyhow::{Context, Result, ensure};
use gimli::{EndianSlice, LittleEndian, Reader, constants};

use super::entries::Slice;
use super::original::Section;
use super::shift::Shift;

/// Copies the line programs.
///
/// # Errors
/// A program is cut, or is of DWARF 5 or 64-bit DWARF.
pub(super) fn copy(shift: &Shift<'_>) -> Result<Vec<u8>> {
    let section = EndianSlice::new(shift.original.bytes(Section::Lines), LittleEndian);
    let mut bytes = section.to_vec();
    let mut rest = section;
    while !rest.is_empty() {
        let start = rest.offset_from(section);
        let length = rest.read_u32()?;
        let program = rest.split(length as usize)?;
        Program { section, bytes: &mut bytes, shift }
            .patch(program)
            .with_context(|| format!("the line program at {start:#x}"))?;
    }
    Ok(bytes)
}

/// A line program. `section` is the original section and `bytes` its copy.
struct Program<'p> {
    section: Slice<'p>,
    bytes: &'p mut [u8],
    shift: &'p Shift<'p>,
}

impl<'p> Program<'p> {
    fn patch(mut self, mut header: Slice<'p>) -> Result<()> {
        let version = header.read_u16()?;
        ensure!((2..=4).contains(&version), "version {version} cannot be copied");
        let header_length = header.read_u32()?;
        let mut header_rest = header;
        let mut header = header_rest.split(header_length as usize)?;
        let instructions = header_rest;
        // The header's fields from the instruction length to the line range; version 4 adds the operations per
        // instruction.
        header.skip(if version == 4 { 5 } else { 4 })?;
        let opcode_base = header.read_u8()?;
        let operands = header.split(usize::from(opcode_base.saturating_sub(1)))?;
        while !self.rename_string(&mut header)?.is_empty() {}
        while !self.rename_string(&mut header)?.is_empty() {
            skip_numbers(&mut header, 3)?;
        }
        self.patch_instructions(instructions, opcode_base, &operands)
    }

    /// Renames the string at the start of `rest` and returns the original.
    fn rename_string(&mut self, rest: &mut Slice<'p>) -> Result<Slice<'p>> {
        let start = rest.offset_from(self.section);
        let string = rest.read_null_terminated_slice()?;
        self.shift.rename(&mut self.bytes[start..start + string.len()]);
        Ok(string)
    }

    fn patch_instructions(&mut self, mut rest: Slice<'p>, opcode_base: u8, operands: &[u8]) -> Result<()> {
        while !rest.is_empty() {
            let opcode = rest.read_u8()?;
            if opcode == 0 {
                let length = rest.read_uleb128()?;
                let instruction = rest.split(usize::try_from(length)?)?;
                self.patch_extended(instruction)?;
            } else if opcode < opcode_base {
                match constants::DwLns(opcode) {
                    constants::DW_LNS_fixed_advance_pc => rest.skip(size_of::<u16>())?,
                    _ => skip_numbers(&mut rest, operands[usize::from(opcode) - 1])?,
                }
            }
        }
        Ok(())
    }

    fn patch_extended(&mut self, mut instruction: Slice<'p>) -> Result<()> {
        match constants::DwLne(instruction.read_u8()?) {
            constants::DW_LNE_set_address => {
                ensure!(instruction.len() == 8, "an address of {} bytes", instruction.len());
                self.shift.patch_address(self.bytes, instruction.offset_from(self.section))
            }
            constants::DW_LNE_define_file => self.rename_string(&mut instruction).map(|_| ()),
            _ => Ok(()),
        }
    }
}

fn skip_numbers(rest: &mut Slice<'_>, count: u8) -> Result<()> {
    Ok((0..count).try_for_each(|_| rest.skip_leb128())?)
}
