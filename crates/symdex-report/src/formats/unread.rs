//! Counts the lines of a text report that look like frames and are not read.

use crate::formats::apple_text::Lists;
use crate::formats::format::{Format, FormatKind};
use crate::report::Parsed;
use crate::text::{lines, rfind};

/// The number of lines in which another format reads a frame, after `own` has read `text`. If `own` has left frames out,
/// it has counted them, and the result is 0.
pub(crate) fn lines_of_others(text: &[u8], own: &Format, parsed: &Parsed, formats: &[Format]) -> u64 {
    if own.kind != FormatKind::Text || parsed.extent.frames != 0 {
        return 0;
    }
    let frames = parsed.threads.iter().flat_map(|thread| &thread.frames);
    let mut read: Vec<_> = frames.map(|frame| frame.site.start()).collect();
    read.sort_unstable();
    let others = || formats.iter().filter(|format| format.kind == own.kind && format.name != own.name);
    let end = text.len().saturating_sub(usize::try_from(parsed.extent.bytes).unwrap_or(usize::MAX));
    let mut lists = Lists::default();
    let unread = lines(&text[..end]).filter(|(span, line)| {
        let has_address = || rfind(line, b"0x").is_some() || rfind(line, b" pc ").is_some();
        let next = read.partition_point(|site| *site < span.start);
        let is_read = || read.get(next).is_some_and(|site| *site <= span.end);
        !lists.have(line) && !is_read() && has_address() && others().any(|format| (format.recognises)(line))
    });
    unread.count() as u64
}
