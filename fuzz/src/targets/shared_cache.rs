//! dyld shared caches of one file or several.

use symdex_build::SharedCache;
use symdex_testkit::images::shared_cache::{CacheFile, CacheImage, Layout, cache, write};

use crate::{checks, input};

const SUFFIXES: [&str; 4] = [".01", ".02.dyldlinkedit", ".symbols", ""];

pub fn run(data: &[u8]) {
    let files = input::parts::<4>(data).into_iter().zip(SUFFIXES);
    let files: Vec<_> = files.filter(|(bytes, _)| !bytes.is_empty()).collect();
    let files: Vec<_> =
        files.into_iter().map(|(bytes, suffix)| CacheFile { suffix, bytes: bytes.to_vec() }).collect();
    let folder = tempfile::tempdir().expect("a folder");
    let Ok(cache) = SharedCache::open(&write(&files, folder.path())) else { return };
    cache
        .images()
        .iter()
        .take(4)
        .filter_map(|image| image.load().ok())
        .for_each(|image| checks::image(&image));
}

#[must_use]
pub fn seeds() -> Vec<Vec<u8>> {
    let image = |path, uuid| CacheImage {
        path,
        uuid,
        exported: vec![("_open", 0x1000), ("<redacted>", 0x1100)],
        locals: vec![("_helper", 0x1100)],
        function_starts: vec![0x80, 0x20, 0x80, 2, 0],
    };
    let images = [image("/usr/lib/libone.dylib", 0x11), image("/usr/lib/libtwo.dylib", 0x22)];
    let seed = |layout| {
        let files = cache(&images, layout);
        let part =
            |suffix| files.iter().find(|file| file.suffix == suffix).map_or(&[][..], |file| &file.bytes);
        input::joined(&SUFFIXES.map(part))
    };
    [Layout::Old, Layout::One, Layout::Split].into_iter().filter_map(seed).collect()
}
