//! Writes the list of images of a `.crash`.

use std::io::{self, Write};

use symdex_demangle::printable;

use crate::report::{Base, Report, ReportImage};

/// Writes the images in the order of the report.
pub(crate) fn write_images(report: &Report<'_>, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "Binary Images:")?;
    let images = report.images.iter().filter(|image| image.base != Base::Unknown);
    images.map(line).try_for_each(|line| writeln!(out, "{line}"))
}

/// `       0x104a34000 -        0x104a3ffff MyApp arm64  <6dcd4e9dd3b13a0e8dff6a5a4be1b1b0> /private/var/.../MyApp`
fn line(image: &ReportImage) -> String {
    if image.base == Base::Absolute {
        // The line that Apple's reports have for addresses in no image.
        return format!("{:>18} - {:#x} ??? (*)  <{:032}> ???", "0x0", u64::MAX, 0);
    }
    let start = format!("{:#x}", image.load_address);
    // The range ends with the last byte, not after it.
    let last = image.size.and_then(|size| image.load_address.checked_add(size.checked_sub(1)?));
    let last = last.map_or_else(|| "???".to_owned(), |last| format!("{last:#x}"));
    let name = if image.name.is_empty() { "???" } else { image.name.as_str() };
    let arch = image.arch.as_ref().map_or("(*)", |arch| arch.name.as_str());
    let id = image.id.as_ref().map_or_else(|| "???".to_owned(), ToString::to_string);
    let (name, path) = (printable(name.into()), printable(image.path.as_str().into()));
    format!("{start:>18} - {last:>18} {name} {arch}  <{id}> {path}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::apple_text;

    #[test]
    fn a_line_of_an_image_is_read_back_as_the_image() {
        let whole = ReportImage {
            name: "My App".to_owned(),
            path: "/var/My App.app/My App".to_owned(),
            arch: symdex::Arch::from_name("arm64e"),
            id: "6dcd4e9dd3b13a0e8dff6a5a4be1b1b0".parse().ok(),
            load_address: 0x1_0000_0000,
            size: Some(0x4000),
            ..ReportImage::default()
        };
        let unknown = ReportImage { arch: None, id: None, size: None, ..whole.clone() };
        let absolute = ReportImage { base: Base::Absolute, ..ReportImage::default() };
        for image in [whole, unknown, absolute] {
            let read =
                apple_text::image(line(&image).as_bytes()).unwrap_or_else(|| panic!("{}", line(&image)));
            assert_eq!(
                (read.id, read.load_address, read.base),
                (image.id.clone(), image.load_address, image.base)
            );
            if image.base == Base::Image {
                assert_eq!((&read.name, &read.path, read.size), (&image.name, &image.path, image.size));
                let names = [read.arch, image.arch.clone()].map(|arch| arch.map(|arch| arch.name));
                assert_eq!(names[0], names[1]);
            }
        }
    }
}
