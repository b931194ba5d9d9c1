//! What a line of a native stack says, whichever of its writers wrote it.

use std::ops::Range;

use symdex::Arch;

use super::{pc, sanitizer};
use crate::report::{Span, SymbolDetail};
use crate::text::{Cursor, lines, lossy};

/// A line with a frame. Places are counted from the start of the line.
pub(super) struct FrameLine<'l> {
    /// Where the number's `#` stands: behind whatever a log puts before its lines.
    pub(super) head: usize,
    pub(super) number: u64,
    /// The address in the image's file; the runtime address where the line has no image.
    pub(super) address: u64,
    /// The image as the line has it; `None` where it has none.
    pub(super) path: Option<&'l [u8]>,
    /// The digits of the image's build id.
    pub(super) id: Option<&'l [u8]>,
    /// The architecture, where the line itself says so.
    pub(super) arch: Option<Arch>,
    pub(super) detail: SymbolDetail,
    pub(super) function: Option<Range<usize>>,
    pub(super) writer: Writer,
}

/// Who writes such lines, which is how an answer is put into them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Writer {
    /// ` (func+off)` at this place, if the line has no function, and a line of its own for each function.
    Android { at: usize },
    /// The same without spaces before parentheses.
    HarmonyOs { at: usize },
    /// ` in func file:line` behind the address, which ends here, instead of the image.
    Sanitizer { at: usize },
}

/// The frame in `line`; `None` for another kind of line.
pub(super) fn frame(line: &[u8]) -> Option<FrameLine<'_>> {
    memchr::memchr_iter(b'#', line).find_map(|head| {
        let mut cursor = Cursor::at_byte(line, head + 1);
        let number = cursor.decimal()?;
        cursor.space().then_some(())?;
        // Only the first that looks like one is read to its end: a line may have any number of them.
        match cursor.rest() {
            rest if rest.starts_with(b"pc ") => Some(pc::frame(cursor, head, number)),
            rest if rest.starts_with(b"0x") => Some(sanitizer::frame(cursor, head, number)),
            _ => None,
        }
    })?
}

/// The most bytes before a frame that are written again before what is added to it. Logs have dozens.
const MAX_HEAD: usize = 1000;

/// What stands before the frame that begins at `head`, to begin lines of the same log with.
pub(super) fn log_prefix(line: &[u8], head: usize) -> &[u8] {
    line.get(..head).filter(|prefix| prefix.len() <= MAX_HEAD).unwrap_or_default()
}

/// Whether `line`, behind `prefix`, says more of a frame before it: `    file.c:12 (func)`, as this crate and Android's pbtombstone have it.
pub(super) fn says_more(line: &[u8], prefix: &[u8]) -> bool {
    let rest = line.strip_prefix(prefix).and_then(|rest| rest.strip_prefix(MORE.as_bytes()));
    let Some(rest) = rest.filter(|rest| rest.ends_with(b")")) else { return false };
    let place = memchr::memmem::find(rest, b" (").map_or(&b""[..], |open| &rest[..open]);
    let digits = place.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    digits != 0 && place[..place.len() - digits].ends_with(b":")
}

/// The file and line that the lines behind the frame at `site` state for the function that is not inlined, which is the
/// last of them.
pub(super) fn place_behind(text: &[u8], site: &Span) -> Option<(String, u32)> {
    let head = frame(text.get(site.clone())?)?.head;
    let prefix = log_prefix(&text[site.clone()], head);
    let behind = lines(text.get(site.end..)?).skip(1).map(|(_, line)| line);
    let last = behind.take_while(|line| says_more(line, prefix)).last()?;
    let place = lossy(&last[prefix.len() + MORE.len()..]);
    let (file, line) = place.split_once(" (")?.0.rsplit_once(':')?;
    Some((file.to_owned(), line.parse().ok()?))
}

/// What lines that say more of a frame are indented by.
pub(super) const MORE: &str = "    ";
