//! How many directories and files the header of a line program lists. gimli keeps about a hundred bytes for each entry.
//! An entry can take one byte in the header.

use gimli::{Format, Reader as _, constants};

use crate::image::Reader;
use crate::limits;

/// Checks that the header of the line program at `offset` lists no more than [`limits::FILES`] directories and files.
/// gimli reports other errors.
///
/// # Errors
///
/// The error names the limit.
pub(super) fn check(section: &Reader<'_>, offset: usize) -> Result<(), String> {
    match count(*section, offset) {
        Ok(count) if count > limits::FILES => {
            Err(format!("its header lists more than {} directories and files", limits::FILES))
        }
        // gimli reports the same error.
        Ok(_) | Err(_) => Ok(()),
    }
}

/// How many directories and files the header of the line program at `offset` lists. Returns 0 for a header that is too
/// short to exceed the limit, and any number above the limit for a header that exceeds it.
fn count(mut section: Reader<'_>, offset: usize) -> gimli::Result<usize> {
    section.skip(offset)?;
    let (length, format) = section.read_initial_length()?;
    let mut program = section.split(length)?;
    let version = program.read_u16()?;
    if version >= 5 {
        let (_address_size, _segment_selector_size) = (program.read_u8()?, program.read_u8()?);
    }
    let length = program.read_length(format)?;
    // Each entry takes at least one byte.
    if length <= limits::FILES {
        return Ok(0);
    }
    let mut header = program.split(length)?;
    // Minimum length of an instruction, operations per instruction, default_is_stmt, line base, line range.
    header.skip(if version >= 4 { 5 } else { 4 })?;
    let opcode_base = header.read_u8()?;
    header.skip(usize::from(opcode_base.saturating_sub(1)))?;
    if version >= 5 { count_entries(&mut header, format) } else { count_strings(&mut header) }
}

/// The entries of the tables up to DWARF 4 (6.2.4): each begins with a string, and an empty string ends a table.
fn count_strings(header: &mut Reader<'_>) -> gimli::Result<usize> {
    let mut count = 0;
    for numbers in [0, 3] {
        while count <= limits::FILES && !header.read_null_terminated_slice()?.is_empty() {
            for _ in 0..numbers {
                header.read_uleb128()?;
            }
            count += 1;
        }
    }
    Ok(count)
}

/// The entries of the tables of DWARF 5 (6.2.4.1), which state their formats and counts.
fn count_entries(header: &mut Reader<'_>, format: Format) -> gimli::Result<usize> {
    let mut all = 0usize;
    for _table in ["directories", "files"] {
        let mut forms = Vec::new();
        for _ in 0..header.read_u8()? {
            let _content = header.read_uleb128()?;
            forms.push(constants::DwForm(header.read_uleb128_u16()?));
        }
        let count = usize::try_from(header.read_uleb128()?).unwrap_or(usize::MAX);
        all = all.saturating_add(count);
        if all > limits::FILES {
            break;
        }
        for form in (0..count).flat_map(|_| &forms) {
            skip(header, *form, format)?;
        }
    }
    Ok(all)
}

/// Skips a value of an entry.
fn skip(header: &mut Reader<'_>, form: constants::DwForm, format: Format) -> gimli::Result<()> {
    let size = match form {
        constants::DW_FORM_string => return header.read_null_terminated_slice().map(drop),
        constants::DW_FORM_udata | constants::DW_FORM_strx => return header.skip_leb128(),
        constants::DW_FORM_line_strp
        | constants::DW_FORM_strp
        | constants::DW_FORM_strp_sup
        | constants::DW_FORM_sec_offset => usize::from(format.word_size()),
        constants::DW_FORM_data1 | constants::DW_FORM_flag | constants::DW_FORM_strx1 => 1,
        constants::DW_FORM_data2 | constants::DW_FORM_strx2 => 2,
        constants::DW_FORM_strx3 => 3,
        constants::DW_FORM_data4 | constants::DW_FORM_strx4 => 4,
        constants::DW_FORM_data8 => 8,
        constants::DW_FORM_data16 => 16,
        constants::DW_FORM_block1 => usize::from(header.read_u8()?),
        constants::DW_FORM_block2 => usize::from(header.read_u16()?),
        constants::DW_FORM_block4 => header.read_length(Format::Dwarf32)?,
        constants::DW_FORM_block => usize::try_from(header.read_uleb128()?).unwrap_or(usize::MAX),
        form => return Err(gimli::Error::UnknownForm(form)),
    };
    header.skip(size)
}

#[cfg(test)]
mod tests {
    use gimli::LittleEndian;

    use super::*;

    /// The header of a line program of `version` that ends with `tables`.
    fn program(version: u16, tables: &[u8]) -> Vec<u8> {
        let fields = [1, 1, 1, 0xfb, 14, 1];
        let fields = if version >= 4 { &fields[..] } else { &fields[1..] };
        let size = |bytes: usize| u32::try_from(bytes).expect("small").to_le_bytes();
        let mut rest = version.to_le_bytes().to_vec();
        rest.extend(if version >= 5 { &[8, 0][..] } else { &[] });
        rest.extend(size(fields.len() + tables.len()));
        rest.extend([fields, tables].concat());
        [&size(rest.len())[..], &rest].concat()
    }

    fn checked(program: &[u8]) -> Result<(), String> {
        check(&Reader::new(program, LittleEndian), 0)
    }

    #[test]
    fn a_header_with_more_files_than_the_limit_is_refused() {
        let (path, string) = (1, 8);
        for (count, is_refused) in [(limits::FILES - 1, false), (limits::FILES, true)] {
            for version in [2, 4] {
                let entries = b"f\0\0\0\0".repeat(count);
                let tables = [&b"/src\0\0"[..], &entries, &[0]].concat();
                assert_eq!(checked(&program(version, &tables)).is_err(), is_refused, "DWARF {version}");
            }
            let mut counted = vec![1, path, string, 1];
            counted.extend(b"/src\0");
            counted.extend([1, path, string]);
            // A number of three bytes in LEB128.
            let seven_bits = |shift: usize| u8::try_from(count >> shift & 0x7f).expect("seven bits");
            counted.extend([0x80 | seven_bits(0), 0x80 | seven_bits(7), seven_bits(14)]);
            counted.extend(vec![0; count]);
            assert_eq!(checked(&program(5, &counted)).is_err(), is_refused, "{count}");
        }
    }
}
