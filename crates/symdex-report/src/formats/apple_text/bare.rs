//! Stacks that are one line of addresses: `(0x1ca4cd27c 0x1c96a79f8 ...)`. Exceptions have them.

use std::io;

use crate::engine::symbolicate::Symbolicated;
use crate::formats::write::Editor;
use crate::text::line_end;

/// Writes a line for each frame of the stack. The stack stays if no frame is resolved.
pub(super) fn write(
    symbolicated: &Symbolicated<'_, '_>,
    thread: usize,
    editor: &mut Editor<'_>,
) -> io::Result<()> {
    let report = symbolicated.report;
    let frames = &report.threads[thread].frames;
    if (0..frames.len()).all(|number| symbolicated.resolution(thread, number).is_none()) {
        return Ok(());
    }
    let (Some(first), Some(last)) = (frames.first(), frames.last()) else { return Ok(()) };
    // The parentheses and the space around them go, and the space between addresses becomes an end of line.
    let (before, after) = (&report.text()[..first.site.start()], &report.text()[last.site.end()..]);
    let line_start = memchr::memrchr(b'\n', before).map_or(0, |line_feed| line_feed + 1);
    let close_len = memchr::memchr(b')', after).map_or(0, |close| close + 1);
    let rest_len = memchr::memchr2(b'\r', b'\n', after).unwrap_or(after.len());
    let end = line_end(report.text(), last.site.end() + rest_len);
    // A title may stand before the parentheses. The first frame then comes on a line of its own.
    let line = &before[line_start..];
    let title = line[..memchr::memchr(b'(', line).unwrap_or_default()].trim_ascii_end();
    let break_line = if title.is_empty() { &b""[..] } else { end };
    editor.replace(&(line_start + title.len()..first.site.start()), break_line)?;
    for (number, frame) in frames.iter().enumerate() {
        if let Some(before) = number.checked_sub(1).and_then(|before| frames.get(before)) {
            editor.replace(&(before.site.end()..frame.site.start()), end)?;
        }
        let image = symbolicated.image_of(thread, number).and_then(|image| report.images.get(image));
        let name = image.map_or("???", |image| image.name.as_str());
        let load_address = image.map_or(0, |image| image.load_address);
        let raw = format!("{load_address:#x} + {}", frame.address.wrapping_sub(load_address));
        let head =
            format!("{number:<3} {:<30}\t{:#018x} ", symdex_demangle::printable(name.into()), frame.address);
        let lines = match symbolicated.resolution(thread, number) {
            Some(resolution) => resolution
                .frames
                .iter()
                .map(|resolved| super::answer(resolved, raw.as_bytes(), &resolution))
                .collect(),
            None => vec![raw],
        };
        let lines: Vec<_> = lines.iter().map(|line| [head.as_bytes(), line.as_bytes()].concat()).collect();
        editor.replace(&frame.site.span(), &lines.join(end))?;
    }
    editor.replace(&(last.site.end()..last.site.end() + close_len), b"")
}
