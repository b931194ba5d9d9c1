//! The other names of a function that has several.

use symdex::{ImageOffset, Index, Scratch};

/// The names beside `name` of the function that starts at `start`, where several symbols name it; else none.
///
/// # Errors
///
/// As [`Index::function_names`].
pub(crate) fn aliases<B: AsRef<[u8]>>(
    index: &Index<B>,
    name: Option<&[u8]>,
    start: ImageOffset,
    scratch: &mut Scratch,
) -> Result<Vec<Vec<u8>>, symdex::Error> {
    let names: Vec<_> = index.function_names(start, scratch)?.collect();
    // A single symbol that is spelled otherwise than in the debug information is no alias.
    let several = names.len() > 1;
    Ok(names.into_iter().filter(|other| several && Some(*other) != name).map(Vec::from).collect())
}
