//! The lines of call trees: `+   2761 main  (in App) + 24  [0x101671d68]` as `sample` prints them, and `1001  main + 24
//! (App + 3432) [0x101671d68]` as `spindump` does.

use crate::engine::images::without_signature;
use crate::formats::rules::is_nameless;
use crate::report::{Span, SymbolDetail};
use crate::text::{Cursor, rfind};

/// A line that begins with a sample count. Positions count from the start of the line.
pub(super) struct SampleLine<'l> {
    line: &'l [u8],
    /// The end of the guides that draw the tree. The count, or the `*` of a kernel frame, starts here.
    pub(super) guides: usize,
    /// The start of the count. It is the depth of the line in the tree.
    pub(super) column: usize,
    /// The start of the frame.
    pub(super) name: usize,
}

/// A frame of a call tree.
pub(super) struct Node<'l> {
    pub(super) tool: Tool,
    pub(super) address: u64,
    /// The image's name in the line; empty if the line has none.
    pub(super) image: &'l [u8],
    /// The load address of the image, if the line states it.
    pub(super) load_address: Option<u64>,
    /// The text before the address in brackets, the brackets, and the text after them.
    pub(super) head: Span,
    pub(super) brackets: Span,
    pub(super) tail: Span,
    pub(super) detail: SymbolDetail,
    /// The length of the function's name, which the frame begins with.
    pub(super) function_len: usize,
    pub(super) inlined: bool,
}

/// The tool that wrote a frame.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Tool {
    Sample,
    Spindump,
}

/// The suffix of lines of inlined functions.
pub(super) const INLINED: &[u8] = b" [inlined]";

/// Reads the start of a line. `None` if it has no count.
pub(super) fn sample_line(line: &[u8]) -> Option<SampleLine<'_>> {
    let guides = line.iter().take_while(|byte| is_guide(**byte)).count();
    let column = guides + usize::from(line.get(guides) == Some(&b'*'));
    let digits = line[column..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let mut cursor = Cursor::new(&line[column + digits..]);
    (digits != 0 && cursor.space()).then_some(())?;
    // Trees of allocations have the allocated size after the count: `4468 (1.2M) main`.
    if let Some(amount) =
        cursor.rest().strip_prefix(b"(").filter(|rest| rest.first().is_some_and(u8::is_ascii_digit))
        && let Some(close) = memchr::memchr(b')', amount)
    {
        let mut after = Cursor::new(&amount[close + 1..]);
        if after.space() {
            cursor = after;
        }
    }
    let rest = cursor.rest();
    (!rest.is_empty()).then_some(SampleLine { line, guides, column, name: line.len() - rest.len() })
}

/// Whether `byte` belongs to the guides before a count.
pub(super) fn is_guide(byte: u8) -> bool {
    matches!(byte, b' ' | b'+' | b'!' | b':' | b'|')
}

impl<'l> SampleLine<'l> {
    /// Whether it is a frame of the kernel.
    pub(super) fn is_kernel(&self) -> bool {
        self.column != self.guides
    }

    /// The text after the count.
    pub(super) fn rest(&self) -> &'l [u8] {
        &self.line[self.name..]
    }

    /// Whether it is an address in no image.
    pub(super) fn is_nowhere(&self) -> bool {
        self.rest().starts_with(b"??? [0x")
    }

    /// Reads the frame. `None` for another kind of line.
    pub(super) fn node(&self) -> Option<Node<'l>> {
        let rest = self.rest();
        // Lines of other formats have counts, too. Few of them have a bracket, which is found faster.
        memchr::memrchr(b']', rest)?;
        let open = rfind(rest, b" [0x")? + 1;
        let mut cursor = Cursor::new(&rest[open + 1..]);
        let address = cursor.hexadecimal()?;
        let close = open + 1 + memchr::memchr(b']', &rest[open + 1..])? + 1;
        let head = rest[..open].trim_ascii_end();
        let (tail, inlined) = match rest[close..].strip_suffix(INLINED) {
            Some(tail) => (tail, true),
            None => (&rest[close..], false),
        };
        let frame_text = FrameText::of(head, address)?;
        let has_line = frame_text.has_line || (frame_text.tool == Tool::Sample && is_location(tail));
        let detail = match &head[..frame_text.function_len] {
            // Answers without a function have a line, too.
            _ if has_line => SymbolDetail::Line,
            name if is_nameless(name) => SymbolDetail::AddressOnly,
            _ => SymbolDetail::Function,
        };
        let at = |from: usize, to: usize| self.name + from..self.name + to;
        Some(Node {
            tool: frame_text.tool,
            address,
            image: frame_text.image,
            load_address: frame_text.load_address,
            head: at(0, head.len()),
            brackets: at(open, close),
            tail: at(close, close + tail.len()),
            detail,
            function_len: frame_text.function_len,
            inlined,
        })
    }
}

/// The contents of the text between a frame's count and its address.
struct FrameText<'l> {
    tool: Tool,
    image: &'l [u8],
    load_address: Option<u64>,
    function_len: usize,
    has_line: bool,
}

impl<'l> FrameText<'l> {
    fn of(head: &'l [u8], address: u64) -> Option<Self> {
        Self::of_sample(head).or_else(|| Self::of_spindump(head, address))
    }

    /// Reads `main  (in App) + 24`, `???  (in App)  load address 0x101671000 + 0xd68` or `main (in App) (main.m:57)`.
    fn of_sample(head: &'l [u8]) -> Option<Self> {
        let open = rfind(head, b" (in ")?;
        let image = &head[open + 5..];
        let close =
            memchr::memmem::find(image, b") ").or_else(|| image.strip_suffix(b")").map(<[u8]>::len))?;
        let rest = image[close + 1..].trim_ascii_start();
        let load_address = || Cursor::new(rest.strip_prefix(b"load address ")?).hexadecimal();
        Some(FrameText {
            tool: Tool::Sample,
            image: &image[..close],
            load_address: load_address(),
            function_len: head[..open].trim_ascii_end().len(),
            has_line: rest.starts_with(b"("),
        })
    }

    /// Reads `main + 24 (App + 3432)`, `main + 24 (main.m:57 in App + 3432)` or `??? (App + 3432)`.
    fn of_spindump(head: &'l [u8], address: u64) -> Option<Self> {
        let inner = head.strip_suffix(b")")?;
        let plus = rfind(inner, b" + ")?;
        let mut cursor = Cursor::new(&inner[plus + 3..]);
        let offset = cursor.decimal().filter(|_| cursor.rest().is_empty())?;
        let open = rfind(&inner[..plus], b" (")?;
        let image = &inner[open + 2..plus];
        let location = memchr::memmem::find(image, b" in ").filter(|at| is_location(&image[..*at]));
        let name = &head[..open];
        let distance = rfind(name, b" + ");
        let is_distance = |at: &usize| name.len() > at + 3 && name[at + 3..].iter().all(u8::is_ascii_digit);
        Some(FrameText {
            tool: Tool::Spindump,
            image: location.map_or(image, |at| &image[at + 4..]),
            load_address: without_signature(address).checked_sub(offset),
            function_len: distance.filter(is_distance).unwrap_or(name.len()),
            has_line: location.is_some(),
        })
    }
}

/// Whether `text` is a file and a line: `main.m:57`, or `main.m:57,5` as `spindump` writes it.
fn is_location(text: &[u8]) -> bool {
    let digits = |byte: &&u8| byte.is_ascii_digit() || **byte == b',';
    let len = text.iter().rev().take_while(digits).count();
    len != 0
        && text[..text.len() - len].trim_ascii_start().strip_suffix(b":").is_some_and(|file| !file.is_empty())
}

/// Whether the line is the title of the heaviest stack. Its frames are a list without indentation, outermost first.
pub(super) fn is_heaviest(line: &[u8]) -> bool {
    line.starts_with(b"Heaviest stack ")
}

/// Whether the line begins the statistics, which count functions and have no stacks.
pub(super) fn is_statistics(line: &[u8]) -> bool {
    line.starts_with(b"Total number in stack") || line.starts_with(b"Sort by top of stack")
}

#[cfg(test)]
mod tests {
    use super::*;

    type Read<'l> = (usize, u64, &'l str, Option<u64>, SymbolDetail, &'l str);

    fn read(line: &str) -> Option<Read<'_>> {
        let sample_line = sample_line(line.as_bytes())?;
        let node = sample_line.node()?;
        let text = |bytes| std::str::from_utf8(bytes).expect("text");
        let function = text(&sample_line.rest()[..node.function_len]);
        Some((sample_line.column, node.address, text(node.image), node.load_address, node.detail, function))
    }

    #[test]
    fn frames_of_sample_are_read() {
        let cases = [
            (
                "    + 9 start  (in dyld) + 462  [0x1077]",
                (6, 0x1077, "dyld", None, SymbolDetail::Function, "start"),
            ),
            (
                "  ! : 9 ???  (in My App)  load address 0x1000 + 0x77  [0x1077]",
                (6, 0x1077, "My App", Some(0x1000), SymbolDetail::AddressOnly, "???"),
            ),
            (
                "9 f(int)  (in App) + 12,30,...  [0x1077,0x1090,...]",
                (0, 0x1077, "App", None, SymbolDetail::Function, "f(int)"),
            ),
            (
                "9 main  (in App) + 12  [0x1077]  main.m:57",
                (0, 0x1077, "App", None, SymbolDetail::Line, "main"),
            ),
            ("9 main (in App) (main.m:57) [0x1077]", (0, 0x1077, "App", None, SymbolDetail::Line, "main")),
            (
                "9 (1.5M) main  (in App) + 12  [0x1077]",
                (0, 0x1077, "App", None, SymbolDetail::Function, "main"),
            ),
            (
                "9 (anonymous namespace)::f()  (in App) + 1  [0x1077]",
                (0, 0x1077, "App", None, SymbolDetail::Function, "(anonymous namespace)::f()"),
            ),
        ];
        for (line, expected) in cases {
            assert_eq!(read(line), Some(expected), "{line}");
        }
    }

    #[test]
    fn frames_of_spindump_are_read() {
        let cases = [
            (
                "  9  start + 462 (dyld + 16) [0x1010]",
                (2, 0x1010, "dyld", Some(0x1000), SymbolDetail::Function, "start"),
            ),
            (
                "    *9  ??? (kernel + 16) [0x1010] (running)",
                (5, 0x1010, "kernel", Some(0x1000), SymbolDetail::AddressOnly, "???"),
            ),
            (
                "9   f(int) (My App + 16) [0x1010] 1-3",
                (0, 0x1010, "My App", Some(0x1000), SymbolDetail::Function, "f(int)"),
            ),
            (
                "9  main + 4 (main.m:57,5 in App + 16) [0x1010]",
                (0, 0x1010, "App", Some(0x1000), SymbolDetail::Line, "main"),
            ),
            (
                "9  -[A b] + 4 (A.m:5 in App + 16) [0x1010]",
                (0, 0x1010, "App", Some(0x1000), SymbolDetail::Line, "-[A b]"),
            ),
        ];
        for (line, expected) in cases {
            assert_eq!(read(line), Some(expected), "{line}");
        }
    }

    #[test]
    fn other_lines_are_no_frames() {
        for line in [
            "",
            "9",
            "9 ",
            "    2449 Thread_16614993   DispatchQueue_1: com.apple.main-thread  (serial)",
            "  13  <Effective Thread QoS Default, Requested Thread QoS Default>",
            "        ???  (in App)  load address 0x101671000 + 0xd68  [0x101671d68]        2449",
            "0   App  0x0000000104a3c7d8 main (in App) (main.m:9)",
            "9 main  (in App) + 12  [0x1077",
            "9 main  (in App) + 12  [0x]",
            "9 main  (in App + 12  [0x1077]",
            "9 main (App + ) [0x1077]",
            "9 [0x1077]",
            "9  ??? [0x1077]",
        ] {
            assert!(read(line).is_none(), "{line}");
        }
    }
}
