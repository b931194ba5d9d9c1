//! Columns in the answers of direct lookups.
//!
//! Indexes have no columns, and neither has the small index that answers a direct lookup. If columns are wanted, a file
//! in that index is the path of the source file and the column. So code whose rows or calls differ in nothing but the
//! column has frames of its own, whatever unit and whatever inlined function answers.

use crate::limits;

/// What separates a path from the column. DWARF has no path with this byte.
const MARK: u8 = 0;
/// How many bytes follow a path: the mark and the column.
const SIZE: usize = 1 + size_of::<u32>();

/// Appends a column to the path of a file.
pub(crate) fn add_column(path: &mut Vec<u8>, column: u32) {
    path.truncate(limits::PATH - SIZE);
    path.push(MARK);
    path.extend(column.to_le_bytes());
}

/// The path and the column of a file in an index of [`DirectLookup::state_columns`]. The column is 1-based; 0 if none
/// is stated, and for a file of any other index.
///
/// [`DirectLookup::state_columns`]: crate::DirectLookup::state_columns
#[must_use]
pub fn split_column(file: &[u8]) -> (&[u8], u32) {
    match file.split_last_chunk() {
        Some(([path @ .., MARK], column)) => (path, u32::from_le_bytes(*column)),
        _ => (file, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_its_path_and_column() {
        for (path, column) in [("/src/a.c", 7), ("", 1), ("/src/a.c", u32::MAX)] {
            let mut file = path.as_bytes().to_vec();
            add_column(&mut file, column);
            assert_eq!(split_column(&file), (path.as_bytes(), column));
        }
        for path in ["", "a.c", "/src/a.c"] {
            assert_eq!(split_column(path.as_bytes()), (path.as_bytes(), 0));
        }
        let mut long = vec![b'a'; limits::PATH];
        add_column(&mut long, 3);
        assert_eq!((long.len(), split_column(&long).1), (limits::PATH, 3));
    }
}
