//! What the offsets of a report count from in an image: one thing, or several if the report does not say which.

use symdex::{Cause, ImageOffset, Metadata, Segment};

use crate::engine::source::Unanswered;
use crate::report::{Base, ReportImage};

/// A way to read the offsets of a report from `first` to `last`, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Reading {
    pub(crate) first: u64,
    pub(crate) last: u64,
    /// The distance from the start of the image to what they count from. It wraps: the distance to address 0 of the
    /// file is negative.
    pub(crate) distance: u64,
}

impl Reading {
    /// Of all offsets.
    pub(crate) fn all(distance: u64) -> Self {
        Self { first: 0, last: u64::MAX, distance }
    }

    /// Those of `offsets`, which ascend, that can be read so, as offsets from the start of the image, and the position
    /// of the first one.
    pub(crate) fn of(&self, offsets: &[ImageOffset]) -> (usize, Vec<ImageOffset>) {
        let start = offsets.partition_point(|offset| offset.0 < self.first);
        let offsets = offsets[start..].iter().take_while(|offset| offset.0 <= self.last);
        (start, offsets.map(|offset| ImageOffset(offset.0.wrapping_add(self.distance))).collect())
    }
}

/// The readings of the offsets of `image`, which `metadata` describes.
///
/// # Errors
///
/// As [`answer_from_lookups`](crate::answer_from_lookups).
pub(crate) fn readings(metadata: &Metadata, image: &ReportImage) -> Result<Vec<Reading>, Unanswered> {
    // Reporters do not agree on the subtype: one image is arm64 or arm64e, armv7 or armv7s.
    let is_other = image.arch.as_ref().is_some_and(|arch| arch.cputype != metadata.arch.cputype);
    if is_other {
        return Err(Unanswered::other_arch(&metadata.arch.name));
    }
    let no_match = |what: &str| Err(Unanswered::NoMatch(what.to_owned()));
    let distance = match (image.base, metadata.text_exec_base) {
        (Base::TextExec, Some(text_exec)) => text_exec.wrapping_sub(metadata.base),
        (Base::TextExec, None) => {
            let what = "the report states the address of __TEXT_EXEC, but the image has no such segment";
            return Err(Unanswered::Failed(Cause::Unsupported, what.to_owned()));
        }
        (Base::Function, _) => {
            return no_match(
                "the report states no load address; finding a function by its name needs an index in one piece",
            );
        }
        (Base::Android { release, mapped }, _) => match &metadata.segments {
            Some(segments) if !segments.is_empty() => {
                return Ok(of_android(segments, metadata.base, release, mapped));
            }
            // Nothing says that the image is from an ELF file.
            None if release.is_none() => metadata.base.wrapping_neg(),
            _ => {
                return no_match(
                    "the report is of Android before 11, or does not state the release, and the index does not state \
                     where the code lies in the file: build it again, from the library that has the code",
                );
            }
        },
        (Base::FilePosition { mapped }, _) => match of_mapping(metadata, mapped) {
            Some(distance) => distance,
            None => {
                return no_match(
                    "the report states a position in the file, and the index does not state where the code lies there: \
                     build it again, from the file that has the code",
                );
            }
        },
        (Base::File, _) => metadata.base.wrapping_neg(),
        (Base::Image | Base::Absolute | Base::Unknown, _) => 0,
    };
    Ok(vec![Reading::all(distance)])
}

/// The distance from the start of the image to position 0 of its file, as far as the part that is mapped from position
/// `mapped` on is concerned. The linker lld gives code other addresses than positions.
fn of_mapping(metadata: &Metadata, mapped: u64) -> Option<u64> {
    let page = |position: u64| position - position % PAGE_SIZE;
    let Some(segments) = &metadata.segments else { return Some(0) };
    let holds = |&&[file_offset, _, size]: &&Segment| {
        (page(file_offset)..file_offset.saturating_add(size)).contains(&mapped)
    };
    if let Some([file_offset, address, _]) = segments.iter().find(holds) {
        return Some(address.wrapping_sub(*file_offset).wrapping_sub(metadata.base));
    }
    // A debug file does not state positions. Those of GNU ld are the offsets from the start.
    let mut starts = metadata.executable.iter().map(|(start, _)| page(*start));
    match mapped {
        // A profiler that states one mapping for the image counts from its start.
        0 => Some(0),
        _ if segments.is_empty() && starts.any(|start| start == mapped) => Some(0),
        _ => None,
    }
}

/// The size of the pages of Android before 15.
const PAGE_SIZE: u64 = 0x1000;

/// The readings of the addresses in a stack of Android; see [`Base::Android`].
fn of_android(segments: &[Segment], base: u64, release: Option<u64>, mapped: Option<u64>) -> Vec<Reading> {
    let may_be = |from: u64, end: u64| release.is_none_or(|release| (from..end).contains(&release));
    let is_start = |file_offset: u64| file_offset - file_offset % PAGE_SIZE == mapped.unwrap_or(0);
    // Any segment may be the mapped one if the position is one in an archive, or was cut off.
    let is_elsewhere = mapped.or(release).is_some() && !segments.iter().any(|[start, ..]| is_start(*start));
    let mut readings = Vec::new();
    for &[file_offset, address, size] in segments {
        let in_page = file_offset % PAGE_SIZE;
        let is_mapped = may_be(0, 9) && (is_start(file_offset) || is_elsewhere);
        // What Android may print for the start of the segment. It adds the address of a segment at the start of the
        // file; before 9, most often of one at the start of its mapping.
        let firsts = [
            (may_be(11, u64::MAX), address),
            (may_be(9, 11), if file_offset == 0 { address } else { file_offset }),
            (is_mapped, in_page),
            (is_mapped && in_page == 0, address),
        ];
        readings.extend(firsts.iter().filter(|(is_possible, _)| *is_possible).map(|(_, first)| Reading {
            first: *first,
            last: first.saturating_add(size - 1),
            distance: address.wrapping_sub(*first).wrapping_sub(base),
        }));
    }
    readings.sort_unstable();
    readings.dedup();
    readings
}
