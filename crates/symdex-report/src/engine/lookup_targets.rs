//! The image and the offset at which each frame is looked up.

use symdex::ImageOffset;

use crate::engine::ask::reason;
use crate::engine::images::{ImageMap, offset};
use crate::engine::options::{Addresses, Options};
use crate::engine::outcome::Unresolved;
use crate::report::{AddressKind, Frame, Report, SymbolDetail, Thread};

/// The image and the offset at which a frame is looked up.
pub(crate) struct LookupTarget {
    /// The position of its image in the report; `None` if it lies in no image.
    pub(crate) image: Option<usize>,
    /// The offset, or the position of the frame's answer if none is looked up.
    pub(crate) offset: Result<ImageOffset, u32>,
}

/// The position of the answer of a frame that keeps the report's symbol.
pub(crate) const KEPT: u32 = u32::MAX;

/// Finds the lookup targets of a report's frames. They are not stored, because a large report has many.
pub(crate) struct LookupTargets<'r> {
    report: &'r Report<'r>,
    images: ImageMap<'r>,
    addresses: Addresses,
    /// A frame with this much detail needs no answer.
    enough: SymbolDetail,
}

impl<'r> LookupTargets<'r> {
    pub(crate) fn new(report: &'r Report<'_>, options: &Options) -> Self {
        let enough = if options.only_missing { SymbolDetail::Function } else { SymbolDetail::Line };
        Self { report, images: ImageMap::new(&report.images), addresses: options.addresses, enough }
    }

    /// The lookup targets of the frames of `thread`.
    pub(crate) fn of_thread(&self, thread: &'r Thread) -> impl Iterator<Item = LookupTarget> {
        let kinds = kinds(self.report, thread);
        thread.frames.iter().zip(kinds).map(|(frame, kind)| self.target(frame, kind))
    }

    fn target(&self, frame: &Frame, kind: AddressKind) -> LookupTarget {
        let image = self.images.of_frame(frame);
        let kind = match self.addresses {
            Addresses::Adjusted => kind,
            Addresses::AsGiven => AddressKind::ProgramCounter,
        };
        let offset = || offset(self.report.images.get(image?)?, frame.address, kind);
        let is_enough = frame.detail >= self.enough || frame.inlined;
        let offset = if is_enough { Err(KEPT) } else { offset().ok_or(reason(&Unresolved::NoImage)) };
        LookupTarget { image, offset }
    }
}

/// The address kinds of a thread's frames. The format decides, with two exceptions: the frame after a signal trampoline
/// has the address of an instruction, and the frame after one inlined into it has the kind of that one.
fn kinds(report: &Report<'_>, thread: &Thread) -> Vec<AddressKind> {
    let mut kinds: Vec<AddressKind> = Vec::with_capacity(thread.frames.len());
    let mut before: Option<&Frame> = None;
    for frame in &thread.frames {
        let kind = match (before, kinds.last()) {
            (Some(before), Some(kind)) if before.inlined && before.address == frame.address => *kind,
            (Some(before), _) if is_trampoline(report, before) => AddressKind::ProgramCounter,
            _ => frame.kind,
        };
        kinds.push(kind);
        before = Some(frame);
    }
    kinds
}

fn is_trampoline(report: &Report<'_>, frame: &Frame) -> bool {
    let name = frame.function.map(|site| report.at(site));
    name.is_some_and(|name| name.starts_with(b"_sigtramp") || name.starts_with(b"__kernel_rt_sigreturn"))
}
