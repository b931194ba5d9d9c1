//! The image and the offset at which each frame is looked up.

use symdex::ImageOffset;

use crate::images::{ImageMap, offset};
use crate::options::Options;
use crate::report::{AddressKind, Frame, Report, SymbolDetail, Thread};

/// The image and the offset at which a frame is looked up.
pub(crate) struct LookupTarget {
    /// The position of its image in the report; `None` if it lies in no image.
    pub(crate) image: Option<usize>,
    /// The address without a pointer authentication code.
    pub(crate) address: u64,
    pub(crate) offset: TargetOffset,
}

pub(crate) enum TargetOffset {
    /// The report has enough detail about the frame already.
    NotNeeded,
    /// The address lies in no image.
    NoImage,
    Offset(ImageOffset),
}

/// The lookup targets of all frames, by thread.
pub(crate) fn lookup_targets(report: &Report<'_>, options: &Options) -> Vec<Vec<LookupTarget>> {
    let images = ImageMap::new(&report.images);
    let enough = if options.only_missing { SymbolDetail::Function } else { SymbolDetail::Line };
    let target = |frame: &Frame, kind| {
        let (image, address) = images.of_frame(frame).unzip();
        let address = address.unwrap_or(frame.address);
        let kind = if options.as_given { AddressKind::ProgramCounter } else { kind };
        let offset = || offset(report.images.get(image?)?, address, kind);
        let offset = match frame.detail >= enough || frame.inlined {
            true => TargetOffset::NotNeeded,
            false => offset().map_or(TargetOffset::NoImage, TargetOffset::Offset),
        };
        LookupTarget { image, address, offset }
    };
    let of_thread = |thread: &Thread| {
        let kinds = kinds(report, thread);
        thread.frames.iter().zip(kinds).map(|(frame, kind)| target(frame, kind)).collect()
    };
    report.threads.iter().map(of_thread).collect()
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
    let name = frame.function.as_ref().map(|span| report.at(span));
    name.is_some_and(|name| name.starts_with(b"_sigtramp") || name.starts_with(b"__kernel_rt_sigreturn"))
}
