//! Layouts: where symbol servers keep the debug file of an image.

use std::fmt;

use symdex::ImageId;
use symdex_report::ReportImage;

/// Where a symbol server keeps the files of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Layout {
    /// `ab/cdef.../debuginfo` and `ab/cdef.../executable`.
    Unified,
    /// LLDB's `XXXX/XXXX/XXXX/XXXX/XXXX/XXXXXXXXXXXX`, and the same with `.app` for the binary. For Mach-O.
    Lldb,
    /// GDB's `ab/cdef....debug`, and the same without `.debug` for the binary, also below `.build-id`. For ELF.
    Gdb,
    /// `buildid/ID/debuginfo` and `buildid/ID/executable`. For ELF.
    Debuginfod,
    /// `_.dwarf/mach-uuid-sym-UUID/_.dwarf` or `_.debug/elf-buildid-sym-ID/_.debug`, and `NAME/mach-uuid-UUID/NAME` or
    /// `NAME/elf-buildid-ID/NAME` for the binary.
    Ssqp,
}

/// The kind of an image's files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FileKind {
    /// Mach-O, of Apple's systems.
    MachO,
    /// ELF, of Linux, Android and HarmonyOS.
    Elf,
}

/// An image whose debug file is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WantedImage {
    /// The `LC_UUID` or the whole build id.
    pub id: ImageId,
    /// The kind of its files; `None` if it is not known.
    pub kind: Option<FileKind>,
    /// The name of its file. The layout [`Ssqp`](Layout::Ssqp) needs it to find the binary.
    pub name: Option<String>,
    /// Whether the image has an index, which has no lines. If a fetched file is no better, it is not fetched again.
    pub has_index: bool,
}

impl WantedImage {
    /// The image of this id. Its kind is ELF if the id cannot be a UUID.
    #[must_use]
    pub fn new(id: ImageId) -> Self {
        let kind = (id.as_bytes().len() != UUID_SIZE).then_some(FileKind::Elf);
        Self { id, kind, name: None, has_index: false }
    }

    /// The image `image` of a report. `None` if the report does not state its whole id.
    #[must_use]
    pub fn of(image: &ReportImage) -> Option<Self> {
        let id = image.id.clone().filter(|_| !image.is_id_cut)?;
        let name = image.file_name();
        let is_elf = name.ends_with(".so") || name.contains(".so.");
        let is_macho = name.ends_with(".dylib")
            || [".app/", ".framework/", ".appex/"].iter().any(|part| image.path.contains(part));
        let mut wanted = Self::new(id);
        wanted.kind = wanted.kind.or(match (is_elf, is_macho) {
            (true, false) => Some(FileKind::Elf),
            (false, true) => Some(FileKind::MachO),
            _ => None,
        });
        wanted.name = Some(name.to_owned()).filter(|name| !name.is_empty());
        Some(wanted)
    }

    fn may_be(&self, kind: FileKind) -> bool {
        let fits_id = kind == FileKind::Elf || self.id.as_bytes().len() == UUID_SIZE;
        fits_id && self.kind.is_none_or(|known| known == kind)
    }
}

/// The size of a UUID in bytes.
const UUID_SIZE: usize = 16;

impl Layout {
    /// All layouts, in the order in which they are tried.
    pub const ALL: [Self; 5] = [Self::Unified, Self::Lldb, Self::Gdb, Self::Debuginfod, Self::Ssqp];

    /// The word before `+` in the URL of a source.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Unified => "unified",
            Self::Lldb => "lldb",
            Self::Gdb => "gdb",
            Self::Debuginfod => "debuginfod",
            Self::Ssqp => "ssqp",
        }
    }

    /// The layout of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|layout| layout.name() == name)
    }

    /// The keys that may have a file of `wanted`, first those of files with debug information. The parts of a key are
    /// separated by `/`.
    fn keys(self, wanted: &WantedImage) -> [Vec<String>; 2] {
        let hex: String = wanted.id.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
        let Some((first, rest)) = hex.split_at_checked(2).filter(|(_, rest)| !rest.is_empty()) else {
            return Default::default();
        };
        let (is_macho, is_elf) = (wanted.may_be(FileKind::MachO), wanted.may_be(FileKind::Elf));
        match self {
            Self::Unified => {
                [vec![format!("{first}/{rest}/debuginfo")], vec![format!("{first}/{rest}/executable")]]
            }
            Self::Lldb if is_macho => {
                let upper = hex.to_uppercase();
                let (folders, file) = upper.split_at(20);
                let folders: Vec<_> =
                    (0..5).filter_map(|at| folders.get(4 * at..4 * at + 4)).chain([file]).collect();
                let path = folders.join("/");
                [vec![path.clone()], vec![format!("{path}.app")]]
            }
            Self::Gdb if is_elf => [".debug", ""].map(|extension| {
                ["", ".build-id/"].map(|folder| format!("{folder}{first}/{rest}{extension}")).into()
            }),
            Self::Debuginfod if is_elf => {
                [vec![format!("buildid/{hex}/debuginfo")], vec![format!("buildid/{hex}/executable")]]
            }
            Self::Ssqp => {
                let kinds = [(is_macho, "_.dwarf", "mach-uuid"), (is_elf, "_.debug", "elf-buildid")];
                let kinds = || kinds.into_iter().filter(|(is_possible, ..)| *is_possible);
                let debug = kinds().map(|(_, file, kind)| format!("{file}/{kind}-sym-{hex}/{file}"));
                let name = wanted.name.as_deref().filter(|name| is_plain(name)).map(str::to_lowercase);
                let binary = name.iter().flat_map(|name| {
                    kinds().map(|(_, _, kind)| format!("{name}/{kind}-{hex}/{name}")).collect::<Vec<_>>()
                });
                [debug.collect(), binary.collect()]
            }
            Self::Lldb | Self::Gdb | Self::Debuginfod => Default::default(),
        }
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The keys that may have a file of `wanted` in these layouts. Files with debug information come first.
pub(crate) fn keys(layouts: &[Layout], wanted: &WantedImage) -> Vec<String> {
    let (mut debug, mut binary) = (Vec::new(), Vec::new());
    for layout in layouts {
        let [of_debug, of_binary] = layout.keys(wanted);
        debug.extend(of_debug);
        binary.extend(of_binary);
    }
    debug.append(&mut binary);
    debug
}

/// Whether `name`, which a report states, can be one part of a key.
fn is_plain(name: &str) -> bool {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "._-+ ".contains(c);
    name.len() <= 255 && name.starts_with(|c: char| c.is_ascii_alphanumeric()) && name.chars().all(is_allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(id: &str) -> WantedImage {
        WantedImage::new(id.parse().expect("an id"))
    }

    #[test]
    fn keys_of_a_uuid() {
        let mut image = wanted("0c37c502-aba0-3641-a08f-84c794684f36");
        image.kind = Some(FileKind::MachO);
        image.name = Some("MyApp".to_owned());
        let expected = [
            "0c/37c502aba03641a08f84c794684f36/debuginfo",
            "0C37/C502/ABA0/3641/A08F/84C794684F36",
            "_.dwarf/mach-uuid-sym-0c37c502aba03641a08f84c794684f36/_.dwarf",
            "0c/37c502aba03641a08f84c794684f36/executable",
            "0C37/C502/ABA0/3641/A08F/84C794684F36.app",
            "myapp/mach-uuid-0c37c502aba03641a08f84c794684f36/myapp",
        ];
        assert_eq!(keys(&Layout::ALL, &image), expected);
        image.kind = None;
        assert_eq!(keys(&Layout::ALL, &image).len(), expected.len() + 8, "it may be ELF, too");
    }

    #[test]
    fn keys_of_a_build_id() {
        let image = wanted("0123456789abcdef0123456789abcdef01234567");
        let expected = [
            "01/23456789abcdef0123456789abcdef01234567/debuginfo",
            "01/23456789abcdef0123456789abcdef01234567.debug",
            ".build-id/01/23456789abcdef0123456789abcdef01234567.debug",
            "buildid/0123456789abcdef0123456789abcdef01234567/debuginfo",
            "_.debug/elf-buildid-sym-0123456789abcdef0123456789abcdef01234567/_.debug",
            "01/23456789abcdef0123456789abcdef01234567/executable",
            "01/23456789abcdef0123456789abcdef01234567",
            ".build-id/01/23456789abcdef0123456789abcdef01234567",
            "buildid/0123456789abcdef0123456789abcdef01234567/executable",
        ];
        assert_eq!(keys(&Layout::ALL, &image), expected);
    }

    #[test]
    fn a_name_of_a_report_is_one_part_of_a_key_or_none() {
        let mut image = wanted("0123456789abcdef0123456789abcdef01234567");
        for name in ["..", "../x", "a/b", "a\\b", "c:x", ".", "", "a?b", "a%2e"] {
            image.name = Some(name.to_owned());
            assert_eq!(keys(&[Layout::Ssqp], &image).len(), 1, "{name}");
        }
        image.name = Some("libFoo.so.1".to_owned());
        let binary = "libfoo.so.1/elf-buildid-0123456789abcdef0123456789abcdef01234567/libfoo.so.1";
        assert_eq!(keys(&[Layout::Ssqp], &image).last().map(String::as_str), Some(binary));
    }

    #[test]
    fn images_of_reports_tell_their_kind() {
        let kind = |name: &str, path: &str, id: &str| {
            let mut image = ReportImage::default();
            (image.name, image.path, image.id) = (name.to_owned(), path.to_owned(), id.parse().ok());
            WantedImage::of(&image).expect("it has an id").kind
        };
        let uuid = "0c37c502aba03641a08f84c794684f36";
        assert_eq!(kind("App", "/private/x/App.app/App", uuid), Some(FileKind::MachO));
        assert_eq!(kind("libc.so", "/system/lib/libc.so", uuid), Some(FileKind::Elf));
        assert_eq!(kind("tool", "/bin/tool", uuid), None);
        assert_eq!(kind("tool", "/bin/tool", &uuid.repeat(2)[..40]), Some(FileKind::Elf));
        let mut cut = ReportImage::default();
        (cut.id, cut.is_id_cut) = (uuid.parse().ok(), true);
        assert_eq!(WantedImage::of(&cut), None);
    }
}
