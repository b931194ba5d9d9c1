//! Counts the lines of a text report that look like frames and are not read.

use memchr::memmem::find;

use crate::formats::apple_text::Lists;
use crate::formats::format::{Format, FormatKind};
use crate::report::Parsed;
use crate::text::lines;

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
    let mut lists = Lists::default();
    let mut after = read.into_iter().peekable();
    let is_unread = |(span, line): (std::ops::Range<usize>, &[u8])| {
        let is_listed = lists.have(line);
        let mut is_read = false;
        while after.next_if(|site| *site <= span.end).is_some() {
            is_read = true;
        }
        let has_address = || find(line, b"0x").is_some() || find(line, b" pc ").is_some();
        !is_listed && !is_read && has_address() && others().any(|format| (format.recognises)(line))
    };
    let end = text.len().saturating_sub(usize::try_from(parsed.extent.bytes).unwrap_or(usize::MAX));
    lines(&text[..end]).map(is_unread).filter(|is_unread| *is_unread).count() as u64
}
