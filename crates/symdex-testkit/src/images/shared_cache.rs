//! dyld shared caches, in one file or split like those of newer systems.

use std::path::{Path, PathBuf};

/// The first address of a cache.
pub const BASE: u64 = 0x1_8000_0000;
/// The address of the tables of all images.
const LINKEDIT: u64 = BASE + 0x800_0000;
/// The size of the headers and lists at the start of every file.
const HEAD: usize = 0x1000;

/// An image with code at the offsets 0x1000 to 0x2000.
pub struct CacheImage {
    pub path: &'static str,
    pub uuid: u8,
    /// Full names and image offsets.
    pub exported: Vec<(&'static str, u64)>,
    pub locals: Vec<(&'static str, u64)>,
    pub function_starts: Vec<u8>,
}

/// How the cache is laid out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Layout {
    /// One file, with a header as in iOS 13.
    Old,
    /// One file, with a newer header.
    One,
    /// Several files: images, a file with the tables, and a file with the local symbols.
    Split,
}

/// A file of a cache.
pub struct CacheFile {
    pub suffix: &'static str,
    pub bytes: Vec<u8>,
}

/// The address of the header of the image with this number.
pub fn address(image: usize) -> u64 {
    BASE + 0x10_0000 * (image as u64 + 1)
}

/// The files of a cache of `images`, the main one first.
pub fn cache(images: &[CacheImage], layout: Layout) -> Vec<CacheFile> {
    let (linkedit, tables) = linkedit(images);
    let texts: Vec<_> =
        images.iter().enumerate().map(|(at, image)| text(at, image, tables[at], &linkedit)).collect();
    let texts = || texts.iter().enumerate().map(|(at, text)| (address(at), text.clone()));
    let linkedit = (LINKEDIT, linkedit);
    let is_old = layout == Layout::Old;
    let mut files = match layout {
        Layout::Old | Layout::One => {
            vec![file("", 1, [linkedit].into_iter().chain(texts()).collect(), is_old)]
        }
        Layout::Split => vec![
            file("", 1, texts().take(1).collect(), false),
            file(".01", 2, texts().skip(1).collect(), false),
            file(".02.dyldlinkedit", 3, vec![linkedit], false),
            file(".symbols", 4, Vec::new(), false),
        ],
    };
    let locals = locals(images, is_old);
    let holder = files.last_mut().expect("one at least");
    let offset = holder.bytes.len() as u64;
    put(&mut holder.bytes, 0x48, &offset.to_le_bytes());
    put(&mut holder.bytes, 0x50, &(locals.len() as u64).to_le_bytes());
    holder.bytes.extend(locals);
    if layout == Layout::Split {
        list_parts(&mut files[0].bytes);
    }
    list_images(&mut files[0].bytes, images, is_old);
    files
}

/// Writes the files into `folder`. Returns the path of the main file.
pub fn write(files: &[CacheFile], folder: &Path) -> PathBuf {
    let path = |suffix: &str| folder.join(format!("dyld_shared_cache_arm64e{suffix}"));
    for CacheFile { suffix, bytes } in files {
        std::fs::write(path(suffix), bytes).expect("written");
    }
    path("")
}

pub fn put(bytes: &mut [u8], at: usize, new: &[u8]) {
    bytes[at..at + new.len()].copy_from_slice(new);
}

fn words(numbers: &[u64]) -> Vec<u8> {
    numbers.iter().flat_map(|number| (*number as u32).to_le_bytes()).collect()
}

fn longs(numbers: &[u64]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

/// A file that maps each of `pieces` to its address. The main file also maps its headers.
fn file(suffix: &'static str, uuid: u8, pieces: Vec<(u64, Vec<u8>)>, is_old: bool) -> CacheFile {
    let mut bytes = vec![0; HEAD];
    let mut mappings = Vec::new();
    if suffix.is_empty() {
        mappings.push([BASE, HEAD as u64, 0]);
    }
    for (address, piece) in pieces {
        mappings.push([address, piece.len() as u64, bytes.len() as u64]);
        bytes.extend(piece);
    }
    put(&mut bytes, 0, b"dyld_v1  arm64e\0");
    put(&mut bytes, 0x58, &[uuid; 16]);
    let offset = if is_old { 0x100 } else { 0x240 };
    put(&mut bytes, 0x10, &words(&[offset, mappings.len() as u64]));
    let slide: &[u64] = if is_old { &[] } else { &[0; 3] };
    if !is_old {
        put(&mut bytes, 0x138, &words(&[offset, mappings.len() as u64]));
    }
    let mapping = |numbers: &[u64; 3]| [longs(&[&numbers[..], slide].concat()), words(&[5, 5])].concat();
    put(&mut bytes, offset as usize, &mappings.iter().flat_map(mapping).collect::<Vec<_>>());
    CacheFile { suffix, bytes }
}

fn list_parts(main: &mut [u8]) {
    const AT: usize = 0x800;
    put(main, 0x188, &words(&[AT as u64, 2]));
    put(main, 0x190, &[4; 16]);
    for (at, (uuid, address, suffix)) in
        [(2, address(1), ".01"), (3, LINKEDIT, ".02.dyldlinkedit")].into_iter().enumerate()
    {
        let mut entry = [vec![uuid; 16], longs(&[address - BASE]), suffix.as_bytes().to_vec()].concat();
        entry.resize(56, 0);
        put(main, AT + 56 * at, &entry);
    }
}

/// The list of images. The first image is listed again at the end, under another path, as in older caches.
fn list_images(main: &mut [u8], images: &[CacheImage], is_old: bool) {
    const AT: usize = 0x900;
    let paths = images.iter().map(|image| image.path).chain(["/usr/lib/another.name.dylib"]);
    let mut path_at = AT + 32 * (images.len() + 1);
    for (at, path) in paths.enumerate() {
        let entry = [longs(&[address(at % images.len()), 0, 0]), words(&[path_at as u64, 0])].concat();
        put(main, AT + 32 * at, &entry);
        put(main, path_at, path.as_bytes());
        path_at += path.len() + 1;
    }
    put(main, if is_old { 0x18 } else { 0x1c0 }, &words(&[AT as u64, images.len() as u64 + 1]));
}

/// The entries of a symbol table. Appends the names to `strings`.
fn symbols(symbols: &[(&str, u64)], base: u64, kind: u8, strings: &mut Vec<u8>) -> Vec<u8> {
    let symbol = |(name, offset): &(&str, u64)| {
        let at = strings.len() as u64;
        strings.extend([name.as_bytes(), &[0]].concat());
        [words(&[at]), vec![kind, 1, 0, 0], longs(&[base + offset])].concat()
    };
    symbols.iter().flat_map(symbol).collect()
}

/// The tables of all images, and for each image the offsets of its symbols and function starts in the file.
fn linkedit(images: &[CacheImage]) -> (Vec<u8>, Vec<[u64; 2]>) {
    let (mut bytes, mut strings, mut tables) = (Vec::new(), vec![0], Vec::new());
    for (at, image) in images.iter().enumerate() {
        let symbols_at = (HEAD + bytes.len()) as u64;
        bytes.extend(symbols(&image.exported, address(at), 0x0f, &mut strings));
        tables.push([symbols_at, (HEAD + bytes.len()) as u64]);
        bytes.extend(&image.function_starts);
        bytes.resize(bytes.len().next_multiple_of(8), 0);
    }
    // All images share the strings, which come last. The size of the strings follows them.
    let size = strings.len() as u64;
    bytes.extend(strings);
    bytes.extend(longs(&[size]));
    (bytes, tables)
}

/// The header and the load commands of an image.
fn text(at: usize, image: &CacheImage, [symbols, starts]: [u64; 2], linkedit: &[u8]) -> Vec<u8> {
    let name = |name: &str| {
        let mut bytes = name.as_bytes().to_vec();
        bytes.resize(16, 0);
        bytes
    };
    let (strings_size, rest) = linkedit
        .split_last_chunk::<8>()
        .map(|(rest, size)| (u64::from_le_bytes(*size), rest))
        .expect("a size");
    let strings = (HEAD + rest.len()) as u64 - strings_size;
    let base = address(at);
    let section = [
        name("__text"),
        name("__TEXT"),
        longs(&[base + 0x1000, 0x1000]),
        words(&[0, 0, 0, 0, 0x8000_0400, 0, 0, 0]),
    ];
    let segment = |title, address, size, offset, sections: Vec<u8>| {
        let count = u64::from(!sections.is_empty());
        let body =
            [name(title), longs(&[address, size, offset, size]), words(&[5, 5, count, 0]), sections].concat();
        [words(&[0x19, 8 + body.len() as u64]), body].concat()
    };
    let commands = [
        segment("__TEXT", base, 0x2000, 0, section.concat()),
        segment("__LINKEDIT", LINKEDIT, linkedit.len() as u64, HEAD as u64, Vec::new()),
        words(&[2, 24, symbols, image.exported.len() as u64, strings, strings_size]),
        words(&[0x26, 16, starts, image.function_starts.len() as u64]),
        [words(&[0x1b, 24]), vec![image.uuid; 16]].concat(),
    ];
    let size: usize = commands.iter().map(Vec::len).sum();
    let header = words(&[0xfeed_facf, 0x0100_000c, 2, 6, 5, size as u64, 0, 0]);
    let mut bytes = [header, commands.concat()].concat();
    bytes.resize(0x2000, 0);
    bytes
}

/// The local symbols of all images: six numbers, symbols, strings, and an entry for each image.
fn locals(images: &[CacheImage], is_old: bool) -> Vec<u8> {
    let (mut table, mut strings, mut entries) = (Vec::new(), vec![0], Vec::new());
    for (at, image) in images.iter().enumerate() {
        let first = table.len() as u64 / 16;
        table.extend(symbols(&image.locals, address(at), 0x0e, &mut strings));
        let distance = address(at) - BASE;
        entries.extend(if is_old { words(&[distance]) } else { longs(&[distance]) });
        entries.extend(words(&[first, image.locals.len() as u64]));
    }
    let (symbols, count) = (24, table.len() as u64 / 16);
    let strings_at = symbols + table.len() as u64;
    let entries_at = strings_at + strings.len() as u64;
    let numbers = [symbols, count, strings_at, strings.len() as u64, entries_at, images.len() as u64];
    [words(&numbers), table, strings, entries].concat()
}
