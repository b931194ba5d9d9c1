//! The modules and names that a minidump has, before they are read. Any number of modules may share one long name.

use minidump::format::MINIDUMP_STREAM_TYPE::{
    Memory64ListStream, MemoryListStream, ModuleListStream, ThreadNamesStream, UnloadedModuleListStream,
};

use crate::dump::Dump;
use crate::error::Error;
use crate::limits::{ENTRIES, NAME_BYTES, RANGES, REPEATED_NAME};

/// A list of entries that refer to names and other data by their positions in the file.
struct List {
    stream: u32,
    /// The entries, and their names.
    what: [&'static str; 2],
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
        what: ["modules", "bytes of names of modules"],
        has_header: false,
        entry: 108,
        name: 20,
        data: Some(76),
    },
    List {
        stream: UnloadedModuleListStream as u32,
        what: ["unloaded modules", "bytes of names of unloaded modules"],
        has_header: true,
        entry: 24,
        name: 20,
        data: None,
    },
    List {
        stream: ThreadNamesStream as u32,
        what: ["names of threads", "bytes of names of threads"],
        has_header: false,
        entry: 12,
        name: 4,
        data: None,
    },
];

/// The size of an entry of the lists of memory, of both kinds.
const MEMORY_DESCRIPTOR: usize = 16;

/// Checks that the lists of the minidump do not have too many entries, and their names not too many bytes.
pub(crate) fn check_lists<'d>(dump: &'d Dump<'d>, bytes: &[u8]) -> Result<(), Error> {
    for List { stream, what, has_header, entry, name, data } in LISTS {
        let Ok(list) = dump.get_raw_stream(stream) else { continue };
        let start = match has_header {
            true => number(list, 0),
            false if list.len() % entry == 8 % entry => Some(8),
            false => Some(4),
        };
        let entries = list.get(start.unwrap_or_default()..).unwrap_or_default().chunks_exact(entry);
        let len = entries.len();
        let size = entries.map(|entry| {
            let name = number(entry, name).and_then(|at| number(bytes, at));
            let data = data.and_then(|at| number(entry, at));
            name.unwrap_or_default().saturating_add(data.unwrap_or_default())
        });
        let size = size.fold(0, usize::saturating_add);
        for (what, count, limit) in [(what[0], len, ENTRIES), (what[1], size, NAME_BYTES)] {
            at_most(what, count, limit)?;
        }
    }
    for stream in [MemoryListStream, Memory64ListStream] {
        let list = dump.get_raw_stream(stream as u32).unwrap_or_default();
        at_most("ranges of memory", list.len() / MEMORY_DESCRIPTOR, RANGES)?;
    }
    Ok(())
}

fn at_most(what: &'static str, count: usize, limit: usize) -> Result<(), Error> {
    if count > limit { Err(Error::TooLarge { what, count, limit }) } else { Ok(()) }
}

/// The start of `name` on one line. Frames and threads may repeat it any number of times.
pub(crate) fn repeated(name: &str) -> String {
    let start = name.get(..name.floor_char_boundary(REPEATED_NAME)).unwrap_or(name);
    let mark = if start.len() < name.len() { "..." } else { "" };
    path_on_one_line(start) + mark
}

/// `path` on one line. Control characters become the pictures of Unicode for them: minidump-stackwalk prints what comes
/// after the last slash or backslash, so that an escape with a backslash would be cut.
pub(crate) fn path_on_one_line(path: &str) -> String {
    let picture = |c: char| match c {
        '\0'..='\x1f' => char::from_u32(0x2400 + u32::from(c)).unwrap_or(char::REPLACEMENT_CHARACTER),
        '\x7f' => '\u{2421}',
        _ if c.is_control() => char::REPLACEMENT_CHARACTER,
        _ => c,
    };
    path.chars().map(picture).collect()
}

/// The little-endian number of four bytes at the position `at`.
fn number(bytes: &[u8], at: usize) -> Option<usize> {
    usize::try_from(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?)).ok()
}
