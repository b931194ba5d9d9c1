//! The names that a minidump has, before they are copied. Any number of modules and threads may share one long name.

use minidump::format::MINIDUMP_STREAM_TYPE::{ModuleListStream, ThreadNamesStream, UnloadedModuleListStream};

use crate::dump::Dump;
use crate::error::Error;
use crate::limits::{NAME_BYTES, NAME_BYTES_PER_BYTE};

/// A list of entries that refer to names and other data by their positions in the file.
struct List {
    stream: u32,
    what: &'static str,
    /// Whether the list begins with the size of its header. Otherwise it begins with the number of its entries, which
    /// four bytes of padding may follow.
    has_header: bool,
    entry: usize,
    /// The position of the name in an entry.
    name: usize,
    /// The position of the size of other data in an entry.
    data: Option<usize>,
}

/// The lists that are read, with the layouts of `MINIDUMP_MODULE`, `MINIDUMP_UNLOADED_MODULE` and
/// `MINIDUMP_THREAD_NAME` of Windows' `minidumpapiset.h`.
const LISTS: [List; 3] = [
    List {
        stream: ModuleListStream as u32,
        what: "names of modules",
        has_header: false,
        entry: 108,
        name: 20,
        data: Some(76),
    },
    List {
        stream: UnloadedModuleListStream as u32,
        what: "names of unloaded modules",
        has_header: true,
        entry: 24,
        name: 20,
        data: None,
    },
    List {
        stream: ThreadNamesStream as u32,
        what: "names of threads",
        has_header: false,
        entry: 12,
        name: 4,
        data: None,
    },
];

/// Checks that the names in each list of the minidump do not have too many bytes.
pub(crate) fn check_names<'d>(dump: &'d Dump<'d>, bytes: &[u8]) -> Result<(), Error> {
    let limit = NAME_BYTES.saturating_add((bytes.len() as u64).saturating_mul(NAME_BYTES_PER_BYTE));
    for List { stream, what, has_header, entry, name, data } in LISTS {
        let Ok(list) = dump.get_raw_stream(stream) else { continue };
        let start = match has_header {
            true => number(list, 0),
            false if list.len() % entry == 8 % entry => Some(8),
            false => Some(4),
        };
        let entries = list.get(start.unwrap_or_default()..).unwrap_or_default();
        let size = entries.chunks_exact(entry).map(|entry| {
            let name = number(entry, name).and_then(|at| number(bytes, at));
            let data = data.and_then(|at| number(entry, at));
            name.unwrap_or_default() as u64 + data.unwrap_or_default() as u64
        });
        let size: u64 = size.sum();
        if size > limit {
            return Err(Error::TooLarge { what, size, limit });
        }
    }
    Ok(())
}

/// The little-endian number of four bytes at the position `at`.
fn number(bytes: &[u8], at: usize) -> Option<usize> {
    usize::try_from(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?)).ok()
}
