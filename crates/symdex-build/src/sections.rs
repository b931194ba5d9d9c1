//! The sections of a debug file, which indexes do not have.

use object::{File, Object as _, ObjectSection as _, SectionFlags, elf};

use crate::slice::slices;

/// A section that is part of the loaded image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// Its name; in Mach-O with its segment, as in `__TEXT,__text`.
    pub name: String,
    /// Its address, as the file states it.
    pub start: u64,
    /// Its size in bytes.
    pub size: u64,
}

/// The sections of the debug file `file` that are part of the loaded image, in file order. Returns `None` if `file`
/// cannot be read, or has several architectures and `arch` is none of them.
#[must_use]
pub fn sections(file: &[u8], arch: Option<&str>) -> Option<Vec<Section>> {
    let file = object_file(file, arch)?;
    let sections = file.sections().filter(is_loaded).map(|section| {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let name = section.name_bytes().map_or_else(|_| String::new(), text);
        let segment = section.segment_name_bytes().ok().flatten().map(text);
        let name = segment.map_or_else(|| name.clone(), |segment| format!("{segment},{name}"));
        Section { name, start: section.address(), size: section.size() }
    });
    Some(sections.collect())
}

/// Whether the section is part of the loaded image.
pub(crate) fn is_loaded<'d>(section: &impl object::ObjectSection<'d>) -> bool {
    match section.flags() {
        SectionFlags::Elf { sh_flags, .. } => sh_flags.contains(elf::SHF_ALLOC),
        _ => !matches!(section.segment_name_bytes(), Ok(Some(b"__DWARF"))),
    }
}

/// The only slice of `file`, or the one for `arch` if it has several. Returns `None` if there is no such slice, or if
/// it cannot be read.
pub(crate) fn object_file<'d>(file: &'d [u8], arch: Option<&str>) -> Option<File<'d>> {
    let slices = slices(file).ok()?;
    let slice = match &slices[..] {
        [slice] => slice,
        slices => slices.iter().find(|slice| Some(slice.arch.name.as_str()) == arch)?,
    };
    File::parse(slice.bytes().ok()?).ok()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn sections_have_the_addresses_that_the_file_states() {
        let read = |path: &str| {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(path);
            std::fs::read(path).expect("readable")
        };
        let named = |sections: Vec<Section>, name: &str| {
            sections
                .into_iter()
                .find(|section| section.name == name)
                .map(|section| (section.start, section.size))
        };
        let of_elf = || sections(&read("elf/gcc-parts.so"), None).expect("an ELF file");
        assert_eq!(named(of_elf(), ".text"), Some((0x1070, 0x1a0)));
        assert_eq!(named(of_elf(), ".debug_info"), None, "it is not loaded");
        let fat = read("dsyms/fat.dSYM/Contents/Resources/DWARF/fat");
        let of_arm64 = sections(&fat, Some("arm64")).expect("one of its architectures");
        assert_eq!(named(of_arm64.clone(), "__DWARF,__debug_line"), None, "it is not loaded");
        assert_eq!(named(of_arm64, "__TEXT,__text"), Some((0x1_0000_0378, 0x3c0)));
        assert_eq!(sections(&fat, None), None, "several architectures");
        assert_eq!(sections(b"no debug file", None), None);
    }
}
