//! The slices of a debug file: one for each architecture of a universal Mach-O file, or the file itself.

use object::macho;
use object::read::macho::{FatArch, MachHeader, MachOFatFile32, MachOFatFile64};
use object::{Endianness, ReadRef, elf};
use symdex::Arch;

use crate::error::Error;

/// One architecture's part of a file.
#[derive(Clone, Debug)]
pub struct Slice<'d> {
    /// The architecture.
    pub arch: Arch,
    /// Its bytes. If the file is truncated, the end of the slice and the size of the file.
    bytes: Result<&'d [u8], (u64, u64)>,
}

impl<'d> Slice<'d> {
    /// The slice's own bytes, a whole Mach-O or ELF file.
    ///
    /// # Errors
    ///
    /// [`Error::Truncated`] if the slice ends after the end of the file, [`Error::NotADebugFile`] if it is neither
    /// Mach-O nor ELF. The other slices of the file are not affected.
    pub fn bytes(&self) -> Result<&'d [u8], Error> {
        let cut = |(end, size)| Error::Truncated { what: format!("the {} slice", self.arch.name), end, size };
        let bytes = self.bytes.map_err(cut)?;
        arch_of(bytes).map(|_| bytes)
    }
}

/// Java class files begin like universal binaries. Instead of the number of slices they have a version, at least 45.
pub(crate) const FIRST_JAVA_VERSION: u32 = 45;

/// The slices of `file` in file order. A thin file is one slice.
///
/// ```
/// # use std::path::Path;
/// use symdex_build::slices;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let path = "../../testdata/dsyms/fat.dSYM/Contents/Resources/DWARF/fat";
/// # let path = &Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
/// let bytes = symdex::map_file(path)?;
/// let archs: Vec<_> = slices(&bytes)?.into_iter().map(|slice| slice.arch.name).collect();
/// assert_eq!(archs, ["x86_64", "arm64", "arm64e"]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// [`Error::NotADebugFile`] for other kinds of file, [`Error::Truncated`] if the header is truncated.
pub fn slices(file: &[u8]) -> Result<Vec<Slice<'_>>, Error> {
    match file.first_chunk::<4>().copied() {
        Some([0xca, 0xfe, 0xba, 0xbe]) => {
            fat_slices(file, MachOFatFile32::parse(file).map(|fat| fat.arches()).ok())
        }
        Some([0xca, 0xfe, 0xba, 0xbf]) => {
            fat_slices(file, MachOFatFile64::parse(file).map(|fat| fat.arches()).ok())
        }
        _ => Ok(vec![Slice { arch: arch_of(file)?, bytes: Ok(file) }]),
    }
}

/// The slices of `file` for the architecture `arch`, or all slices if it is `None`.
///
/// # Errors
///
/// As [`slices`], and [`Error::NoSuchArch`] if no slice has the architecture.
pub fn slices_for<'d>(file: &'d [u8], arch: Option<&str>) -> Result<Vec<Slice<'d>>, Error> {
    let all = slices(file)?;
    let Some(wanted) = arch else { return Ok(all) };
    let (found, others): (Vec<_>, Vec<_>) = all.into_iter().partition(|slice| slice.arch.name == wanted);
    if found.is_empty() {
        let available = others.into_iter().map(|slice| slice.arch.name).collect();
        return Err(Error::NoSuchArch { wanted: wanted.to_owned(), available });
    }
    Ok(found)
}

fn fat_slices<'d, Fat: FatArch>(file: &'d [u8], arches: Option<&'d [Fat]>) -> Result<Vec<Slice<'d>>, Error> {
    let not_one = |found: &str| Error::NotADebugFile { found: found.to_owned() };
    let arches = match arches {
        Some(arches) if arches.len() < FIRST_JAVA_VERSION as usize => arches,
        _ if file.len() < 8 => return Err(not_one("a universal binary of a few bytes")),
        _ => return Err(not_one("a Java class file")),
    };
    if arches.is_empty() {
        return Err(not_one("a universal binary without slices"));
    }
    let slice = |arch: &Fat| {
        let (offset, size) = arch.file_range();
        let arch = Arch::from_macho(arch.cputype().0, arch.cpusubtype().0);
        let end = offset.saturating_add(size);
        let bytes = file.read_bytes_at(offset, size).map_err(|()| (end, file.len() as u64));
        Slice { arch, bytes }
    };
    Ok(arches.iter().map(slice).collect())
}

/// The architecture in a thin file's header.
pub(crate) fn arch_of(file: &[u8]) -> Result<Arch, Error> {
    let arch = match file.first_chunk::<4>().copied() {
        Some([0xcf, 0xfa, 0xed, 0xfe]) => macho::MachHeader64::<Endianness>::parse(file, 0).map(|header| {
            Arch::from_macho(header.cputype(Endianness::Little).0, header.cpusubtype(Endianness::Little).0)
        }),
        Some([0xce, 0xfa, 0xed, 0xfe]) => macho::MachHeader32::<Endianness>::parse(file, 0).map(|header| {
            Arch::from_macho(header.cputype(Endianness::Little).0, header.cpusubtype(Endianness::Little).0)
        }),
        Some([0x7f, b'E', b'L', b'F']) => return arch_of_elf(file),
        _ => return Err(Error::NotADebugFile { found: describe(file) }),
    };
    arch.map_err(|_| Error::Truncated {
        what: "the Mach-O header".to_owned(),
        end: size_of::<macho::MachHeader64<Endianness>>() as u64,
        size: file.len() as u64,
    })
}

fn arch_of_elf(file: &[u8]) -> Result<Arch, Error> {
    let (Some([_, _, _, _, class, data]), Some(machine)) = (file.first_chunk::<6>(), file.get(18..20)) else {
        let what = "the ELF header".to_owned();
        return Err(Error::Truncated {
            what,
            end: size_of::<elf::Ident>() as u64 + 4,
            size: file.len() as u64,
        });
    };
    match (*class, *data) {
        (1 | 2, 1) => Ok(Arch::from_elf(u16::from_le_bytes([machine[0], machine[1]]), *class == 2)),
        (1 | 2, 2) => Err(Error::Unsupported { what: "a big-endian ELF file".to_owned() }),
        _ => {
            Err(Error::Malformed { what: format!("ELF header: class {class} and data {data} are not known") })
        }
    }
}

/// The kind of a file that is not a debug file, from its first bytes.
#[must_use]
pub fn describe(file: &[u8]) -> String {
    let kinds: [(&[u8], &str); 10] = [
        (b"dyld_v1", "a dyld shared cache, whose images only `symdex build` takes out"),
        (&symdex::INDEX_MAGIC, "a symdex index"),
        (b"PK\x03\x04", "a zip archive"),
        (b"\x1f\x8b", "a gzip file"),
        (b"\x28\xb5\x2f\xfd", "a zstd file"),
        (b"MZ", "a Windows file"),
        (
            b"!<arch>\ndebian-binary",
            "a Debian package; unpack it with `dpkg-deb -x PACKAGE FOLDER` and give the folder",
        ),
        (b"!<arch>\n", "a static library"),
        (b"\xfe\xed\xfa", "a big-endian Mach-O file"),
        (b"BC\xc0\xde", "LLVM bitcode"),
    ];
    match kinds.into_iter().find(|(magic, _)| file.starts_with(magic)) {
        Some((_, kind)) => kind.to_owned(),
        // A skippable frame, with which parallel compressors begin.
        None if matches!(file, [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..]) => "a zstd file".to_owned(),
        None if file.is_empty() => "an empty file".to_owned(),
        None => symdex::guess_file_kind(&file[..file.len().min(64)]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(file: &[u8]) -> String {
        slices(file).expect_err("no Mach-O file").to_string()
    }

    #[test]
    fn other_kinds_of_file_are_named() {
        assert!(found(b"").contains("an empty file"));
        assert!(found(b"\x7fELF\x02").contains("the ELF header"));
        assert!(found(b"\x7fELF\x02\x02\x01..................").contains("a big-endian ELF file"));
        assert!(found(b"PK\x03\x04....").contains("a zip archive"));
        assert!(found(b"\x28\xb5\x2f\xfd....").contains("a zstd file"));
        assert!(found(b"\x50\x2a\x4d\x18....").contains("a zstd file"));
        assert!(found(b"\x5f\x2a\x4d\x18....").contains("a zstd file"));
        assert!(!found(b"\x60\x2a\x4d\x18....").contains("zstd"));
        assert!(
            found(b"!<arch>\nunits.o/        0           0     0     644     8         `\n")
                .contains("static library")
        );
        let package = found(b"!<arch>\ndebian-binary   1700000000  0     0     100644  4         `\n2.0\n");
        assert!(
            package.contains("a Debian package; unpack it with `dpkg-deb -x") && !package.contains("library")
        );
        assert!(found(b"hello, world\n").contains("a text file (it begins with \"hello, world\")"));
        assert!(found(b"\x01\x02hello").contains("a file that begins with [01, 02, 68"));
        assert!(found(b"\xca\xfe\xba\xbe\x00\x00\x00\x41class").contains("a Java class file"));
        assert!(found(b"\xca\xfe\xba\xbe\x00\x00\x00\x00").contains("without slices"));
        assert!(found(b"\xcf\xfa\xed\xfe").contains("cut short"));
    }
}
