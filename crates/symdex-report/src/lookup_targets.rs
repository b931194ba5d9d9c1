//! Where the frames of a report are looked up.

use symdex::ImageOffset;

use crate::images::{ImageMap, offset};
use crate::options::Options;
use crate::report::{AddressKind, Frame, Report, SymbolDetail, Thread};

/// Where a frame is looked up.
pub(crate) struct LookupTarget {
    /// The number of its image; `None` where it lies in none.
    pub(crate) image: Option<usize>,
    /// The address without signature.
    pub(crate) address: u64,
    pub(crate) offset: TargetOffset,
}

pub(crate) enum TargetOffset {
    /// The report knows enough of the frame.
    NotNeeded,
    /// In no image.
    NoImage,
    Offset(ImageOffset),
}

/// Where each frame of each thread is looked up.
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

/// What the addresses of a thread's frames are of: what the format says, but an instruction above a signal trampoline, and the
/// same as the frame before it where that is inlined into it.
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
