//! Memory maps in a report: what gdb prints for `info proc mappings`, and the text of Linux's `/proc/PID/maps`.

use std::collections::HashMap;

use crate::engine::limits::ReadLimit;
use crate::report::ReportImage;
use crate::text::{Cursor, lines, lossy};

/// Reads the images of the memory maps in `text`. An image begins with the mapping of the start of its file, and ends
/// with the last mapping of the file.
pub(super) fn images(text: &[u8], limit: &ReadLimit) -> Vec<ReportImage> {
    let mut images: Vec<ReportImage> = Vec::new();
    let mut known: HashMap<&[u8], usize> = HashMap::new();
    let mappings = lines(text).filter_map(|(_, line)| of_gdb(line).or_else(|| of_linux(line)));
    for Mapping { start, end, offset, path } in mappings {
        let number = *known.entry(path).or_insert(images.len());
        if number == images.len() {
            if !limit.take_image() {
                break;
            }
            let load_address = start.saturating_sub(offset);
            images.push(ReportImage { load_address, ..ReportImage::of_file(lossy(path), &['/']) });
        }
        let image = &mut images[number];
        image.size = image.size.max(end.checked_sub(image.load_address));
    }
    images
}

/// A part of a file in memory.
struct Mapping<'l> {
    start: u64,
    end: u64,
    offset: u64,
    path: &'l [u8],
}

/// Reads `0x555555554000 0x555555555000 0x1000 0x0 r--p /opt/app`. Older versions of gdb lack the access.
fn of_gdb(line: &[u8]) -> Option<Mapping<'_>> {
    let mut cursor = Cursor::new(line);
    let mut number = || {
        cursor.space();
        cursor.hexadecimal()
    };
    let (start, end, _size, offset) = (number()?, number()?, number()?, number()?);
    Some(Mapping { start, end, offset, path: path(cursor.rest())? })
}

/// Reads `555555554000-555555555000 r--p 00000000 fe:01 1234      /opt/app`.
fn of_linux(line: &[u8]) -> Option<Mapping<'_>> {
    let mut cursor = Cursor::new(line);
    cursor.space();
    let start = cursor.hexadecimal_digits()?;
    cursor.take(b"-")?;
    let end = cursor.hexadecimal_digits()?;
    cursor.space();
    cursor.word().filter(|access| access.len() == 4 && matches!(access[3], b'p' | b's'))?;
    cursor.space();
    let offset = cursor.hexadecimal_digits()?;
    Some(Mapping { start, end, offset, path: path(cursor.rest())? })
}

/// The path at the end of a line.
fn path(rest: &[u8]) -> Option<&[u8]> {
    memchr::memchr(b'/', rest).map(|slash| rest[slash..].trim_ascii_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_has_all_mappings_of_its_file() {
        let of_gdb =
            b"  0x1000  0x2000  0x1000  0x0  r--p  /opt/a b\n 0x3000 0x4000 0x1000 0x1000 r-xp /opt/a b\n\
                    0x9000 0xa000 0x1000 0x0 /lib/libc.so.6\n0xb000 0xc000 0x1000 0x0 [heap]\n";
        let of_linux =
            b"1000-2000 r--p 00000000 fe:01 12   /opt/a b\n3000-4000 r-xp 00001000 fe:01 12 /opt/a b\n\
                    9000-a000 r-xp 00000000 00:1f 0 /lib/libc.so.6\nb000-c000 rw-p 00000000 00:00 0 [heap]\n\
                    9000-a000 /lib/libd.so\n";
        for map in [&of_gdb[..], of_linux] {
            let images: Vec<_> = images(map, &ReadLimit::of(map.len()))
                .into_iter()
                .map(|image| (image.name, image.load_address, image.size))
                .collect();
            assert_eq!(
                images,
                [("a b".to_owned(), 0x1000, Some(0x3000)), ("libc.so.6".to_owned(), 0x9000, Some(0x1000))]
            );
        }
    }
}
