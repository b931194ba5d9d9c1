//! The line table of a unit: rows with their ends, in address order, and the paths of its files.

use std::fmt::Display;

use gimli::{
    AttributeValue, DebugLineOffset, FileEntry, IncompleteLineProgram, LineProgramHeader, Section as _,
};

use super::attributes::text;
use super::instances::StatedSequence;
use super::line_header;
use super::opcodes::run;
use super::rows::{Row, SequenceEnd};
use super::sequences::{Exceeded, SequenceReader, in_address_order};
use super::units::UnitEntry;
use crate::image::{Image, Reader};
use crate::limits::{self, Deadline};
use crate::memory::Share;
use crate::report::Problems;

/// A unit's line table.
#[derive(Default)]
pub(crate) struct Lines<'d> {
    /// Sorted, not empty, disjoint.
    pub(crate) rows: Vec<Row>,
    /// Sorted by address. If several sequences end at one address, the last one of the program is kept.
    pub(crate) ends: Vec<SequenceEnd>,
    header: Option<LineProgramHeader<Reader<'d>>>,
    /// How much work was done, in counted steps: files, directories and rows.
    pub(crate) steps: u64,
}

impl<'d> Lines<'d> {
    /// Runs the unit's line program. If sequences overlap, the code in `stated` has the rows of the sequence stated
    /// there. Errors are counted in `problems`. A program that exceeds a limit has no rows.
    pub(super) fn read(
        image: &Image<'d>,
        unit: &UnitEntry<'d>,
        stated: &[StatedSequence],
        deadline: Deadline,
        share: &Share<'_>,
        problems: &mut Problems,
    ) -> Self {
        let Some(offset) = unit.lines else { return Self::default() };
        let mut give_up = |why: &dyn Display, is_limit| {
            let why = format!("its line table: {why}");
            if is_limit {
                problems.unit_limit(unit.offset, &why);
            } else {
                problems.unit(unit.offset, &why);
            }
            Self::default()
        };
        if let Err(error) = line_header::check(image.dwarf.debug_line.reader(), offset.0) {
            return give_up(&error, true);
        }
        let program = match program(image, unit, offset) {
            Ok(program) => program,
            Err(error) => return give_up(&error, false),
        };
        // The list of files is copied once.
        if !share.take(program.header().file_names().len() * 2 * size_of::<FileEntry<Reader<'_>>>()) {
            return give_up(&Exceeded::Build, true);
        }
        let mut reader = SequenceReader::new(image, deadline, share);
        let program_offset = program.header().raw_program_buf().offset_from(*image.dwarf.debug_line.reader());
        reader.offset = Some(program_offset as u64);
        let header = match run(program.header(), &mut reader) {
            Some(()) => program.header().clone(),
            None => {
                reader = SequenceReader::new(image, deadline, share);
                let (header, result) = reader.run(program);
                if let Err(error) = result {
                    reader.problems.unit(unit.offset, &format!("its line table: {error}"));
                }
                header
            }
        };
        if let Some(limit) = reader.exceeded {
            return give_up(&limit, true);
        }
        reader.end();
        let SequenceReader { sequences, rows, mut ends, problems: of_program, read, .. } = reader;
        problems.merge(of_program);
        let steps = read + header.file_names().len() + header.include_directories().len();
        ends.sort_by_key(|end| end.at);
        ends.dedup_by(|later, kept| {
            let is_same = later.at == kept.at;
            if is_same {
                *kept = *later;
            }
            is_same
        });
        Self {
            rows: in_address_order(sequences, rows, stated, share),
            ends,
            header: Some(header),
            steps: steps as u64,
        }
    }

    /// The paths of the unit's files, without rows. Without files if the header cannot be read.
    pub(crate) fn without_rows(image: &Image<'d>, unit: &UnitEntry<'d>) -> Self {
        let header = unit.lines.and_then(|offset| {
            line_header::check(image.dwarf.debug_line.reader(), offset.0).ok()?;
            Some(program(image, unit, offset).ok()?.header().clone())
        });
        Self { header, ..Self::default() }
    }

    /// The exclusive upper bound of the unit's file indexes.
    pub(crate) fn files(&self) -> usize {
        self.header.as_ref().map_or(0, |header| header.file_names().len() + 1)
    }

    /// The path of file `index` of the unit: comp_dir, directory and name, joined without normalization.
    ///
    /// `..` is kept. `<compiler-generated>`, the name that Swift gives to the file of generated code, is not joined
    /// with comp_dir. Returns `None` if there is no such file.
    pub(crate) fn path(&self, image: &Image<'d>, unit: &UnitEntry<'d>, index: u64) -> Option<Vec<u8>> {
        let header = self.header.as_ref()?;
        let file = header.file(index)?;
        let string = |value: AttributeValue<Reader<'d>>| {
            text(&image.dwarf, unit.line_unit(), value).map(|string| image.resolve(string))
        };
        let name = string(file.path_name())?;
        let comp_dir = unit.line_unit().comp_dir.filter(|_| name != b"<compiler-generated>");
        let comp_dir = comp_dir.map(|comp_dir| image.resolve(comp_dir.slice()));
        let mut path = comp_dir.map(<[u8]>::to_vec).unwrap_or_default();
        // Directory 0 is comp_dir. Up to DWARF 4 it is not listed.
        if file.directory_index() != 0
            && let Some(directory) = file.directory(header).and_then(string)
        {
            push(&mut path, directory);
        }
        push(&mut path, name);
        path.truncate(limits::PATH);
        Some(path)
    }
}

/// The line program at `offset`, which is that of the unit.
fn program<'d>(
    image: &Image<'d>,
    unit: &UnitEntry<'d>,
    offset: DebugLineOffset,
) -> gimli::Result<IncompleteLineProgram<Reader<'d>>> {
    let unit = unit.line_unit();
    image.dwarf.debug_line.program(offset, unit.header.address_size(), unit.comp_dir, unit.name)
}

/// Appends `part` to `path`, or replaces `path` if `part` is absolute, on Unix or on Windows.
fn push(path: &mut Vec<u8>, part: &[u8]) {
    let drive_root = |path: &[u8], separator| path.get(1..3) == Some(&[b':', separator]);
    let windows = |path: &[u8]| path.starts_with(b"\\") || drive_root(path, b'\\');
    if part.starts_with(b"/") || drive_root(part, b'/') || windows(part) {
        path.clear();
    }
    let separator = if windows(path) { b'\\' } else { b'/' };
    if path.last().is_some_and(|last| *last != separator) {
        path.push(separator);
    }
    path.extend_from_slice(part);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_joined_as_they_stand() {
        let joined = |parts: &[&str]| {
            let mut path = Vec::new();
            parts.iter().for_each(|part| push(&mut path, part.as_bytes()));
            String::from_utf8(path).expect("made of UTF-8")
        };
        assert_eq!(joined(&["/src", "sub/..", "a.c"]), "/src/sub/../a.c");
        assert_eq!(joined(&["/src", "/abs", "a.c"]), "/abs/a.c");
        assert_eq!(joined(&["/src/", "./a.c"]), "/src/./a.c");
        assert_eq!(joined(&["C:\\src", "a.c"]), "C:\\src\\a.c");
        assert_eq!(joined(&["/src", "C:/x", "a.c"]), "C:/x/a.c");
        // As llvm-symbolizer and addr2line do.
        assert_eq!(joined(&["/src", "", ""]), "/src/");
    }
}
