//! Reads a line of a native stack, in the format of any writer.

use std::ops::Range;

use symdex::Arch;

use super::{pc, sanitizer};
use crate::report::{FoundBy, Span, SymbolDetail};
use crate::text::{Cursor, lines, lossy};

/// A line with a frame. Positions count from the start of the line.
pub(super) struct FrameLine<'l> {
    /// The position of the `#` before the number, or of `pc` if the frame has no number. A log can have a prefix
    /// before it.
    pub(super) head: usize,
    pub(super) number: Option<u64>,
    /// The address in the image's file, or the runtime address if the line has no image.
    pub(super) address: u64,
    /// The path of the image; `None` if the line has none.
    pub(super) path: Option<&'l [u8]>,
    /// The position of the image's file in the archive that contains it.
    pub(super) offset: Option<u64>,
    /// The digits of the image's build id.
    pub(super) id: Option<&'l [u8]>,
    /// The architecture, if the line states it.
    pub(super) arch: Option<Arch>,
    /// How the frame was found, if the line says so.
    pub(super) found_by: Option<FoundBy>,
    pub(super) detail: SymbolDetail,
    pub(super) function: Option<Range<usize>>,
    pub(super) writer: Writer,
}

/// The writer of a line. It decides how an answer is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Writer {
    /// Android: ` (func+off)` replaces the text from `at` until `until` if the line has no function. The text is empty
    /// or a placeholder. A line for each function follows.
    Android { at: usize, until: usize },
    /// HarmonyOS: as Android, without spaces before parentheses.
    HarmonyOs { at: usize, until: usize },
    /// A sanitizer: ` in func file:line` is inserted at `at`, where the address ends, and replaces the image.
    Sanitizer { at: usize },
}

/// Reads the frame in `line`. `None` for another kind of line.
pub(super) fn frame(line: &[u8]) -> Option<FrameLine<'_>> {
    let numbered = memchr::memchr_iter(b'#', line).find_map(|head| {
        let mut cursor = Cursor::at_byte(line, head + 1);
        let number = cursor.decimal()?;
        cursor.space().then_some(())?;
        // Only the first candidate is read to its end. A line can have any number of candidates.
        match cursor.rest() {
            rest if rest.starts_with(b"pc ") => Some(pc::frame(cursor, head, Some(number))),
            rest if rest.starts_with(b"0x") => Some(sanitizer::frame(cursor, head, number)),
            _ => None,
        }
    });
    numbered.unwrap_or_else(|| {
        let head = memchr::memmem::find(line, b"pc ")?;
        let is_word = head.checked_sub(1).is_none_or(|before| line[before] == b' ');
        let frame = pc::frame(Cursor::at_byte(line, head), head, None);
        frame.filter(|frame| is_word && frame.path.is_some_and(|path| path.starts_with(b"/")))
    })
}

/// The longest log prefix that is repeated on inserted lines, in bytes. Prefixes of logs have dozens.
const MAX_PREFIX: usize = 1000;

/// The log prefix before the frame at `head`, to be repeated on inserted lines.
pub(super) fn log_prefix(line: &[u8], head: usize) -> &[u8] {
    line.get(..head).filter(|prefix| prefix.len() <= MAX_PREFIX).unwrap_or_default()
}

/// Whether `line`, after the log prefix, states file and line of the frame before it: `    file.c:12 (func)`. This
/// crate and Android's pbtombstone write such lines.
pub(super) fn states_location(line: &[u8], prefix: &[u8]) -> bool {
    let rest = line.strip_prefix(prefix).and_then(|rest| rest.strip_prefix(LOCATION_INDENT.as_bytes()));
    let Some(rest) = rest.filter(|rest| rest.ends_with(b")")) else { return false };
    let location = memchr::memmem::find(rest, b" (").map_or(&b""[..], |open| &rest[..open]);
    let digits = location.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    digits != 0 && location[..location.len() - digits].ends_with(b":")
}

/// Returns the file and line of the concrete function of the frame at `site`. The last line after the frame that states
/// file and line has them.
pub(super) fn location_after(text: &[u8], site: &Span) -> Option<(String, u32)> {
    let head = frame(text.get(site.clone())?)?.head;
    let prefix = log_prefix(&text[site.clone()], head);
    let after = lines(text.get(site.end..)?).skip(1).map(|(_, line)| line);
    let last = after.take_while(|line| states_location(line, prefix)).last()?;
    let location = lossy(&last[prefix.len() + LOCATION_INDENT.len()..]);
    let (file, line) = location.split_once(" (")?.0.rsplit_once(':')?;
    Some((file.to_owned(), line.parse().ok()?))
}

/// The indentation of lines that state file and line.
pub(super) const LOCATION_INDENT: &str = "    ";
