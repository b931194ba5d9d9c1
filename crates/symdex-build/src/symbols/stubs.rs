//! Symbol stubs: pieces of code that jump to functions of other images. No symbol names them.

use super::{Inside, Start, take_name};
use crate::companions::Companions;
use crate::error::Error;

/// A stub whose target is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stub<'d> {
    /// The image offset of its first byte.
    pub(crate) start: u64,
    pub(crate) size: u64,
    /// The name of the function that it jumps to.
    pub(crate) target: &'d [u8],
}

/// How the name of a stub is made of the name of its target.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Naming {
    /// `DYLD-STUB$$name`, as atos prints it.
    MachO,
    /// `name@plt`, as disassemblers and debuggers print it.
    Elf,
}

impl Naming {
    /// The text before the name of the target, and the text after it.
    fn around(self) -> [&'static [u8]; 2] {
        match self {
            Self::MachO => [b"DYLD-STUB$$", b""],
            Self::Elf => [b"", b"@plt"],
        }
    }
}

/// The rank of a stub's name: after every symbol at the same address.
pub(super) const RANK: u8 = u8::MAX - 1;

/// The named starts of `stubs`, which are of a file of `file_size` bytes. Their names are kept in `companions`.
///
/// # Errors
///
/// [`Error::Malformed`] if the names are longer together than twice the file, because each target has few stubs.
/// [`Error::TooLarge`] past the limit of `companions`.
pub(crate) fn starts<'d>(
    stubs: &[Stub<'d>],
    naming: Naming,
    file_size: usize,
    companions: &'d Companions,
) -> Result<Vec<Start<'d>>, Error> {
    let mut left = 2 * file_size;
    stubs.iter().try_for_each(|stub| take_name(&mut left, stub.target))?;
    let [before, after] = naming.around();
    let name_size = |stub: &Stub<'_>| before.len() + stub.target.len() + after.len();
    let size = stubs.iter().map(name_size).sum::<usize>();
    companions.check(size as u64)?;
    let mut names = Vec::with_capacity(size);
    stubs.iter().for_each(|stub| names.extend([before, stub.target, after].into_iter().flatten()));
    let mut names = companions.keep(names);
    let named = |stub: &Stub<'_>| {
        let (name, rest) = names.split_at(name_size(stub));
        names = rest;
        let end = stub.start.checked_add(stub.size);
        Start { start: stub.start, rank: RANK, name: Some(name), inside: Inside::Function, end }
    };
    Ok(stubs.iter().map(named).collect())
}
