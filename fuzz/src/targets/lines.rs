//! Line programs of any version, after a valid header.

use std::path::Path;

use symdex_testkit::images::debug_file::{Die, Unit, debug_file, image, whole};

use crate::{checks, input};

pub fn run(data: &[u8]) {
    let [header, program] = input::parts(data);
    let field = |at: usize| header.get(at).copied().unwrap_or(0);
    let unit =
        Unit::new(whole()).version(u16::from(field(0) % 4 + 2)).instructions(field(1) % 8, field(2) % 8);
    let unit = if field(3) & 1 == 0 { unit } else { unit.dwarf64() };
    let unit = unit.child(Die::function("f", (0x1000, 0x1800)));
    let unit = match field(3) & 2 {
        0 => unit.sequence_of_bytes(0x1000, program),
        _ => {
            unit.rows_without_end(&[(0x1000, 1, 5, true)], program).sequence(&[(0x1400, 2, 6, false)], 0x1800)
        }
    };
    let file = if field(3) & 4 == 0 { debug_file(&[unit], &[]) } else { image(&[unit]).bytes() };
    checks::debug_file(&file, Path::new("/nonexistent/fuzzed"));
}

#[must_use]
pub fn seeds() -> Vec<Vec<u8>> {
    // Special opcodes, DW_LNS_advance_pc, DW_LNS_advance_line, DW_LNS_copy, DW_LNS_negate_stmt, DW_LNS_const_add_pc,
    // DW_LNS_fixed_advance_pc, DW_LNS_set_file, DW_LNE_set_discriminator, DW_LNE_end_sequence.
    let program = [20, 40, 2, 16, 3, 5, 1, 6, 8, 9, 4, 0, 4, 2, 30, 0, 2, 4, 7, 1, 0, 1, 1];
    let headers = [[0, 1, 1, 0], [1, 1, 1, 1], [2, 4, 1, 2], [3, 1, 1, 4], [2, 4, 4, 6]];
    headers.iter().filter_map(|header| input::joined(&[header, &program])).collect()
}
