//! A report as its format was read: images, and threads of frames, each with its place in the text.

use std::ops::Range;

use symdex::{Arch, ImageId};

use crate::format::Format;
use crate::info::ReportInfo;
use crate::registers::Register;

/// Bytes of a report's text, half-open.
pub type Span = Range<usize>;

/// A crash report, over its text.
pub struct Report<'t> {
    /// The whole text, of which everything that is not rewritten stays as it is.
    pub text: &'t [u8],
    /// The format that the text was recognised to be of.
    pub format: &'static dyn Format,
    /// The images that were loaded, in the report's order.
    pub images: Vec<Image>,
    /// The stacks, in the report's order: of threads, of exceptions, whatever the report has.
    pub threads: Vec<Thread>,
    /// What the report says about the process, the system and the exception.
    pub info: ReportInfo,
}

/// The most images that are read of a report. Processes have a few thousand; a hostile report could have millions in little text.
pub(crate) const MAX_IMAGES: usize = 1 << 20;

/// What format readers yield: a [`Report`] without its text.
#[derive(Debug, Default)]
pub struct Parsed {
    /// As [`Report::images`].
    pub images: Vec<Image>,
    /// As [`Report::threads`].
    pub threads: Vec<Thread>,
    /// As [`Report::info`].
    pub info: ReportInfo,
}

/// An image as the report has it.
#[derive(Clone, Debug, Default)]
pub struct Image {
    /// The name that frames have for it: a file's name, or on macOS a bundle's identifier.
    pub name: String,
    /// Where it lay; empty where the report does not say.
    pub path: String,
    /// The architecture; `None` where the report does not say.
    pub arch: Option<Arch>,
    /// `LC_UUID` or the build id; `None` where the report does not say.
    pub id: Option<ImageId>,
    /// Where the image was loaded. 0 where the report's addresses are offsets from the image's start.
    pub load_address: u64,
    /// How many bytes it takes from there; `None` where the report does not say.
    pub size: Option<u64>,
    /// What the load address is the address of.
    pub base: Base,
}

/// What an image's load address is the address of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Base {
    /// The image's start.
    #[default]
    Image,
    /// Address 0 of its file, whatever address it was linked to: what is counted from there is an address as its debug file has them.
    File,
    /// The start of its `__TEXT_EXEC` segment, as kernel images have.
    TextExec,
    /// Nothing: this stands for no image, and addresses in it are runtime addresses.
    Absolute,
}

/// A stack.
#[derive(Clone, Debug, Default)]
pub struct Thread {
    /// What the report calls it: `Thread 0 Crashed`, `Last Exception Backtrace`.
    pub name: String,
    /// Whether the report says that this is what crashed.
    pub crashed: bool,
    /// The number that the system knows the thread by; `None` if the report does not state it.
    pub id: Option<u64>,
    /// The name that the program gave the thread; `None` if the report does not state it.
    pub label: Option<String>,
    /// The dispatch queue that the thread worked on; `None` if the report does not state it.
    pub queue: Option<String>,
    /// The registers, in the order in which they are written; empty if the report has none.
    pub registers: Vec<Register>,
    /// The frames, innermost first, whatever the report's order.
    pub frames: Vec<Frame>,
}

/// A frame as the report has it.
#[derive(Clone, Debug)]
pub struct Frame {
    /// The runtime address as the report has it, not adjusted; the image offset where the image's load address is 0.
    pub address: u64,
    /// The image, a number in [`Report::images`]; `None` where only the address can tell.
    pub image: Option<usize>,
    /// What the address is of.
    pub kind: AddressKind,
    /// The bytes that are rewritten when the frame is symbolicated.
    pub site: Span,
    /// What the report knows of it already.
    pub known: Known,
    /// Where the report has the function's name; `None` where it has none.
    pub function: Option<Span>,
    /// Whether the report says that this is a function inlined into the next frame.
    pub inlined: bool,
}

/// What the address of a frame is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressKind {
    /// An instruction, or an address that was adjusted already: looked up as it is.
    ProgramCounter,
    /// Where execution returns to: looked up one byte before.
    ReturnAddress,
}

/// How much of a frame's answer the report has already.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Known {
    /// Nothing but the address, or a name that is none (`<redacted>`).
    Nothing,
    /// The function's name.
    Function,
    /// The function's name, the file and the line.
    Line,
}

impl Image {
    /// The last part of the path; the name where there is no path.
    #[must_use]
    pub fn file_name(&self) -> &str {
        let last = self.path.rsplit(['/', '\\']).next().filter(|name| !name.is_empty());
        last.unwrap_or(&self.name)
    }

    /// Whether it is code of the app, as opposed to that of the system it runs on.
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
        // Simulators have the system's folders below folders of their own, and so do the SDKs of older ones.
        const BELOW: [&str; 3] = ["/RuntimeRoot/", ".sdk/System/", ".sdk/usr/"];
        let is_system = ROOTS.iter().any(|root| self.path.starts_with(root))
            || BELOW.iter().any(|folder| self.path.contains(folder))
            // Swift's own libraries, which apps for older systems carry with them.
            || (self.file_name().starts_with("libswift") && self.path.contains("/Frameworks/"));
        // Where there is no path, as in MetricKit's diagnostics: the shared cache of 64-bit processes holds nothing else.
        let is_system = is_system || (self.path.is_empty() && self.load_address >= SHARED_CACHE);
        self.base != Base::Absolute && !is_system
    }

    /// Whether the image takes in this address; never where its size is not known.
    #[must_use]
    pub fn contains(&self, address: u64) -> bool {
        let offset = address.checked_sub(self.load_address);
        let is_inside = |offset| self.size.is_some_and(|size| offset < size);
        self.base != Base::Absolute && offset.is_some_and(is_inside)
    }
}

impl Report<'_> {
    /// The text at `span`.
    #[must_use]
    pub fn at(&self, span: &Span) -> &[u8] {
        self.text.get(span.clone()).unwrap_or_default()
    }
}
