//! A parsed report: images, and threads of frames, each with its position in the text.

use std::fmt;
use std::num::NonZeroU32;
use std::ops::Range;

use symdex::{Arch, ImageId};

use crate::engine::limits::Extent;
use crate::formats::pasted::Layer;
use crate::info::ReportInfo;
use crate::registers::Register;

/// A range of bytes in a report's text, half-open.
pub(crate) type Span = Range<usize>;

/// A parsed crash report. It borrows its text.
///
/// [`Report::parse`] makes one. [`symbolicate`](crate::symbolicate()) answers its frames.
pub struct Report<'t> {
    /// The byte order mark before the text, or nothing.
    pub(crate) mark: &'t [u8],
    /// The whole text.
    pub(crate) outer: &'t [u8],
    /// What makes the report's own text of the whole text, from the outermost.
    pub(crate) layers: Vec<Layer>,
    pub(crate) images: Vec<ReportImage>,
    pub(crate) threads: Vec<Thread>,
    pub(crate) info: ReportInfo,
    pub(crate) extent: Extent,
    /// The position of the format in the table of formats.
    pub(crate) format: usize,
}

/// What a format's parser returns: a [`Report`] without its text.
#[derive(Debug, Default)]
pub(crate) struct Parsed {
    /// As [`Report::images`].
    pub(crate) images: Vec<ReportImage>,
    /// As [`Report::threads`].
    pub(crate) threads: Vec<Thread>,
    /// As [`Report::info`].
    pub(crate) info: ReportInfo,
    pub(crate) extent: Extent,
}

/// An image as the report describes it.
#[non_exhaustive]
#[derive(Clone, Debug, Default)]
pub struct ReportImage {
    /// The name by which frames refer to it: a file name, or on macOS a bundle identifier.
    pub name: String,
    /// The path of its file; empty if the report does not state it.
    pub path: String,
    /// The architecture; `None` if the report does not state it.
    pub arch: Option<Arch>,
    /// The `LC_UUID` or the build id; `None` if the report does not state it.
    pub id: Option<ImageId>,
    /// Whether [`id`](Self::id) is only the start of the build id: its first 16 bytes. Reports with Breakpad's debug
    /// ids state no more of an ELF image.
    pub is_id_cut: bool,
    /// The address that offsets count from; see [`Base`]. It is 0 if the report's addresses are offsets already.
    pub load_address: u64,
    /// The size in bytes from the load address; `None` if the report does not state it.
    pub size: Option<u64>,
    /// What the load address is the address of.
    pub base: Base,
    /// The linkage name of the function that offsets count from, if the base is [`Base::Function`]; otherwise empty.
    pub function: String,
    /// Whether only frames name the image, and the report's list of images lacks it.
    pub is_unlisted: bool,
}

/// What the load address of an image is the address of.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Base {
    /// The start of the image.
    #[default]
    Image,
    /// Address 0 of the image's file. Offsets are then addresses as the debug file has them.
    File,
    /// Where position 0 of the image's file would be, if it were mapped as the part from `mapped` on is.
    FilePosition {
        /// The position of the mapping in the file. 0 is that of the first segment, or of the image as a whole.
        mapped: u64,
    },
    /// What `pc` counts from in a stack of Android before 11, or of an unknown release. From 11 on, and for all
    /// sanitizers, it is [`Base::File`].
    ///
    /// On 9 and 10, `pc` is a position in the image's file. Before 9, it counts from the start of the executable
    /// mapping. If the release is unknown, all are tried, and the answer is ambiguous if they differ.
    Android {
        /// The release, such as 8 for 8.1; `None` if the report does not state it.
        release: Option<u64>,
        /// The position of the mapping in its file, which may be an archive; `None` if the frames do not state it.
        mapped: Option<u64>,
    },
    /// The start of the image's `__TEXT_EXEC` segment. Reports state it for kernel images.
    TextExec,
    /// The function [`ReportImage::function`] of the image. Reports state one if they state no load address. An image
    /// then has an entry for each function.
    Function,
    /// Unknown: only frames name the image. The load address is then the lowest address of these frames.
    Unknown,
    /// Nothing. The entry stands for addresses in no image, and its frames have runtime addresses.
    Absolute,
}

/// A stack of a thread or an exception.
#[non_exhaustive]
#[derive(Clone, Debug, Default)]
pub struct Thread {
    /// The title in the report, such as `Thread 0 Crashed` or `Last Exception Backtrace`.
    pub name: String,
    /// Whether the report marks it as the stack that crashed.
    pub crashed: bool,
    /// The system's id of the thread; `None` if the report does not state it.
    pub id: Option<u64>,
    /// The name that the program gave the thread; `None` if the report does not state it.
    pub label: Option<String>,
    /// The dispatch queue that the thread worked on; `None` if the report does not state it.
    pub queue: Option<String>,
    /// The registers, in the order of Apple's reports; empty if the report has none.
    pub registers: Vec<Register>,
    /// The frames, innermost first, also if the report has them in another order.
    pub frames: Vec<Frame>,
    /// How each of the frames was found; empty if the report does not state it.
    pub found_by: Vec<FoundBy>,
}

/// How a frame of a stack was found.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FoundBy {
    /// It is where the thread stood: its program counter.
    Context,
    /// By the unwind information of the function that it calls.
    UnwindInfo,
    /// By the frame pointer of the function that it calls.
    FramePointer,
    /// By a search of the stack for return addresses. Such a frame may be wrong.
    Scan,
    /// In another way, or the report does not say how.
    Other,
}

impl FoundBy {
    /// All ways with their words in JSON. They are those of minidump-stackwalk, but for `other`.
    const NAMES: [(Self, &'static str); 5] = [
        (Self::Context, "context"),
        (Self::UnwindInfo, "cfi"),
        (Self::FramePointer, "frame_pointer"),
        (Self::Scan, "scan"),
        (Self::Other, "other"),
    ];

    /// The word in JSON: `context`, `cfi`, `frame_pointer`, `scan` or `other`.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(way, _)| *way == self).map_or("other", |(_, name)| name)
    }

    /// The way with this name in JSON, or in minidump-stackwalk.
    #[must_use]
    pub fn from_name(name: &str) -> Self {
        Self::NAMES.iter().find(|(_, known)| *known == name).map_or(Self::Other, |(way, _)| *way)
    }
}

/// A frame as the report describes it. It is small, because a report can have millions.
#[non_exhaustive]
#[derive(Clone, Debug)]
pub struct Frame {
    /// The runtime address as the report states it, without a pointer authentication code and not adjusted. It is an
    /// offset if the image's load address is 0.
    pub address: u64,
    /// As [`Frame::image`].
    pub(crate) image: Option<Number>,
    /// What the address is the address of.
    pub kind: AddressKind,
    /// How much the report says about the address.
    pub detail: SymbolDetail,
    /// Whether the report marks the frame as a function inlined into the next frame.
    pub inlined: bool,
    /// The bytes that change when the frame is symbolicated.
    pub(crate) site: Site,
    /// The bytes of the function's name; `None` if the report has none.
    pub(crate) function: Option<Site>,
}

impl Frame {
    /// A frame without text, at the address of an instruction. `image` is its position in [`Report::images`].
    #[must_use]
    pub fn new(address: u64, image: Option<usize>) -> Self {
        Self {
            address,
            image: image.map(Number::from),
            kind: AddressKind::ProgramCounter,
            detail: SymbolDetail::AddressOnly,
            inlined: false,
            site: Site::from(0..0),
            function: None,
        }
    }

    /// The position of the image in [`Report::images`]; `None` if the report does not name it.
    #[must_use]
    pub fn image(&self) -> Option<u32> {
        self.image.map(Number::get)
    }
}

/// A position. It is stored plus one, so that an `Option` takes no further memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Number(NonZeroU32);

impl From<usize> for Number {
    fn from(position: usize) -> Self {
        Self(NonZeroU32::MIN.saturating_add(to_u32(position)))
    }
}

impl Number {
    pub(crate) fn get(self) -> u32 {
        self.0.get() - 1
    }
}

/// A [`Span`] in half the memory. A report has at most 4 GiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Site {
    start: u32,
    end: Number,
}

impl From<Span> for Site {
    fn from(Span { start, end }: Span) -> Self {
        Self { start: to_u32(start), end: end.into() }
    }
}

impl Site {
    pub(crate) fn span(self) -> Span {
        self.start()..self.end()
    }

    pub(crate) fn start(self) -> usize {
        self.start as usize
    }

    pub(crate) fn end(self) -> usize {
        self.end.get() as usize
    }
}

/// Converts a position to 32 bits. A report has at most 4 GiB, so all positions fit.
pub(crate) fn to_u32(position: usize) -> u32 {
    u32::try_from(position).unwrap_or(u32::MAX)
}

/// Whether a frame's address is an instruction's or a return address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "utoipa", derive(utoipa::ToSchema))]
pub enum AddressKind {
    /// An instruction, or an address that the report has adjusted already. It is looked up unchanged.
    #[default]
    #[serde(rename = "instruction")]
    ProgramCounter,
    /// The instruction after a call. It is looked up one byte before.
    ReturnAddress,
}

impl AddressKind {
    /// The kind of an instruction's address, or else that of a return address.
    pub(crate) fn of(is_instruction: bool) -> Self {
        if is_instruction { Self::ProgramCounter } else { Self::ReturnAddress }
    }
}

/// How much a report says about the address of a frame, before it is symbolicated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum SymbolDetail {
    /// Only the address, or a placeholder such as `<redacted>` for the name.
    #[default]
    AddressOnly,
    /// The name of the function.
    Function,
    /// The name of the function, the file and the line.
    Line,
}

impl SymbolDetail {
    /// The detail of a frame with or without a function's name, and with or without a line. A line alone is none.
    pub(crate) fn of(has_name: bool, has_line: bool) -> Self {
        let named = if has_line { Self::Line } else { Self::Function };
        if has_name { named } else { Self::AddressOnly }
    }
}

impl ReportImage {
    /// An image with this path. The name is the text after the last separator.
    pub(crate) fn of_file(path: String, separators: &[char]) -> Self {
        let name = path.rsplit(separators).next().unwrap_or_default().to_owned();
        Self { name, path, ..Self::default() }
    }

    /// The last component of the path, or the name if there is no path.
    #[must_use]
    pub fn file_name(&self) -> &str {
        let last = self.path.rsplit(['/', '\\']).next().filter(|name| !name.is_empty());
        last.unwrap_or(&self.name)
    }

    /// An id of zeros means that the reporter did not know the id.
    pub(crate) fn drop_zero_id(&mut self) {
        self.id.take_if(|id| id.as_bytes().iter().all(|byte| *byte == 0));
    }

    /// Whether the image belongs to the app, and not to the system.
    #[must_use]
    pub fn is_app(&self) -> bool {
        const ROOTS: [&str; 14] = [
            "/System/",
            "/usr/lib/",
            "/usr/libexec/",
            "/usr/bin/",
            "/usr/sbin/",
            "/Library/Apple/",
            "/Library/Developer/",
            "/Developer/",
            "/system/",
            "/system_ext/",
            "/apex/",
            "/vendor/",
            "/lib/",
            "/lib64/",
        ];
        const SHARED_CACHE: u64 = 0x1_8000_0000;
        // Linux loads position-independent executables there.
        const EXECUTABLES: Range<u64> = 0x5500_0000_0000..0x5700_0000_0000;
        // Simulators, and SDKs of older simulators, have the folders of the system below a separate folder.
        const BELOW: [&str; 3] = ["/RuntimeRoot/", ".sdk/System/", ".sdk/usr/"];
        let is_system = ROOTS.iter().any(|root| self.path.starts_with(root))
            // Profiles name the kernel `[kernel.kallsyms]`, and its code in processes `[vdso]`.
            || self.path.starts_with('[')
            || BELOW.iter().any(|folder| self.path.contains(folder))
            // Apps for older systems contain the libraries of Swift.
            || (self.file_name().starts_with("libswift") && self.path.contains("/Frameworks/"));
        // MetricKit states no paths. In 64-bit processes the shared cache holds only libraries of the system.
        let is_cached = self.load_address >= SHARED_CACHE && !EXECUTABLES.contains(&self.load_address);
        let is_system = is_system || self.path.is_empty() && is_cached;
        self.base != Base::Absolute && !is_system
    }

    /// Whether the load address is that of an image.
    pub(crate) fn is_placed(&self) -> bool {
        !matches!(self.base, Base::Absolute | Base::Unknown)
    }

    /// Whether the address lies in the image. Returns `false` if the image's size is unknown.
    #[must_use]
    pub fn contains(&self, address: u64) -> bool {
        let offset = address.checked_sub(self.load_address);
        let is_inside = |offset| self.size.is_some_and(|size| offset < size);
        self.is_placed() && offset.is_some_and(is_inside)
    }
}

impl<'t> Report<'t> {
    /// The text of the report as its writer wrote it: without a byte order mark, and without what was put around it
    /// when it was pasted. Symbolication changes only the frames in it.
    #[must_use]
    pub fn text(&self) -> &[u8] {
        self.layers.last().map_or(self.outer, |layer| &layer.text)
    }

    /// The images that were loaded, in the report's order.
    #[must_use]
    pub fn images(&self) -> &[ReportImage] {
        &self.images
    }

    /// The stacks of threads and exceptions, in the report's order.
    #[must_use]
    pub fn threads(&self) -> &[Thread] {
        &self.threads
    }

    /// The header: the process, the system and the exception.
    #[must_use]
    pub fn info(&self) -> &ReportInfo {
        &self.info
    }

    /// The number of frames that are past a limit. They stay unchanged. The frames, stacks and images of a report may
    /// take 256 KiB of memory, and 16 bytes for each byte of the report; see [`most_memory`](crate::most_memory). A
    /// frame whose image is past the limit has no image, and counts, too. In a report of glibc, 64 functions may stand
    /// for images without a load address; the frames of others have no image.
    #[must_use]
    pub fn unread_frames(&self) -> u64 {
        self.extent.frames
    }

    /// How many bytes of memory the frames, stacks and images take, at most, while they are read, answered and written.
    /// The text and the answers count separately.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.extent.memory
    }

    /// The number of frames whose address or image is not a valid number. They stay unchanged.
    #[must_use]
    pub fn malformed_frames(&self) -> u64 {
        self.extent.malformed
    }

    /// The number of bytes after the end of the report. They are not read. Put each report in its own file.
    #[must_use]
    pub fn unread_bytes(&self) -> u64 {
        self.extent.bytes
    }

    /// The text at `span`.
    pub(crate) fn at(&self, site: Site) -> &[u8] {
        self.text().get(site.span()).unwrap_or_default()
    }
}

impl fmt::Debug for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (format, images, threads) = (self.format_name(), &self.images, &self.threads);
        let mut debug = f.debug_struct("Report");
        debug.field("format", &format).field("info", &self.info);
        debug.field("images", images).field("threads", threads).finish_non_exhaustive()
    }
}
