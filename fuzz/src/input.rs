//! Parts of inputs, and the files of the repository that seeds are made of.

use std::path::{Path, PathBuf};

use symdex::Index;
use symdex_build::{Companions, Image, build, slices};

/// Cuts `data` into `N` parts. All parts but the last are preceded by their lengths (two bytes each, at the front).
#[must_use]
pub fn parts<const N: usize>(data: &[u8]) -> [&[u8]; N] {
    let lengths_size = data.len().min(2 * (N - 1));
    let (lengths, mut rest) = data.split_at(lengths_size);
    let mut lengths = lengths.chunks_exact(2).map(|pair| usize::from(u16::from_le_bytes([pair[0], pair[1]])));
    std::array::from_fn(|number| {
        let length = if number + 1 == N { rest.len() } else { lengths.next().unwrap_or(0).min(rest.len()) };
        let (part, after) = rest.split_at(length);
        rest = after;
        part
    })
}

/// The input that [`parts`] cuts into `parts`. Returns `None` if a part is too long.
#[must_use]
pub fn joined(parts: &[&[u8]]) -> Option<Vec<u8>> {
    let (_, with_length) = parts.split_last()?;
    let lengths: Option<Vec<u16>> = with_length.iter().map(|part| u16::try_from(part.len()).ok()).collect();
    let lengths = lengths?.into_iter().flat_map(u16::to_le_bytes);
    Some(lengths.chain(parts.concat()).collect())
}

/// The first byte of an input, which chooses among variants, and the other bytes.
#[must_use]
pub fn choice(data: &[u8]) -> (u8, &[u8]) {
    data.split_first().map_or((0, data), |(first, rest)| (*first, rest))
}

/// The bytes of every file in `folder` of the repository, at any depth, whose path `is_wanted`.
#[must_use]
pub fn files(folder: &str, is_wanted: impl Fn(&Path) -> bool) -> Vec<Vec<u8>> {
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(folder)];
    let mut paths: Vec<PathBuf> = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder of the repository") {
            let path = entry.expect("an entry").path();
            if path.is_dir() { folders.push(path) } else { paths.push(path) }
        }
    }
    paths.retain(|path| is_wanted(path));
    paths.sort();
    paths.iter().map(|path| std::fs::read(path).expect("a file of the repository")).collect()
}

/// The Mach-O files in `testdata`.
#[must_use]
pub fn debug_files() -> Vec<Vec<u8>> {
    files("testdata", |path| path.parent().is_some_and(|parent| parent.ends_with("Resources/DWARF")))
}

/// What `export` writes of each of the [`indexes`].
#[must_use]
pub fn exported(
    export: impl Fn(&Index<Vec<u8>>, &mut Vec<u8>) -> Result<(), symdex_symbol_files::Error>,
) -> Vec<Vec<u8>> {
    let exported = |bytes: Vec<u8>| {
        let (index, mut out) = (Index::open(bytes).expect("an index"), Vec::new());
        export(&index, &mut out).expect("exports");
        out
    };
    indexes().into_iter().map(exported).collect()
}

/// Small indexes: the golden ones, and those of the first slices of the debug files in `testdata`.
#[must_use]
pub fn indexes() -> Vec<Vec<u8>> {
    let mut indexes = files("testdata/golden", |path| path.extension().is_some_and(|end| end == "symdex"));
    for file in debug_files() {
        let companions = Companions::default();
        let slice = slices(&file).expect("a debug file").remove(0);
        let image = Image::load(&slice, "testdata", &companions).expect("loads");
        indexes.push(build(&image).expect("builds").bytes);
    }
    indexes
}
