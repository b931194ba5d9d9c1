//! The lines of Apple's text reports, a function for each kind.

use symdex::{Arch, ImageId};

use crate::report::{Base, Image, Span, SymbolDetail};
use crate::text::{Cursor, lossy};

/// A frame: `0   MyApp   0x0000000104a3c7d8 0x104a34000 + 34776`. Spans count from the start of the report.
pub(crate) struct FrameLine<'l> {
    pub(crate) number: u64,
    /// The image's name in the report.
    pub(crate) image: &'l [u8],
    pub(crate) address: u64,
    /// The load address of the image, if the line states it.
    pub(crate) load_address: Option<u64>,
    /// The text after the address.
    pub(crate) answer: Span,
    pub(crate) detail: SymbolDetail,
    pub(crate) function: Option<Span>,
    pub(crate) inlined: bool,
}

/// Whether `name` is a placeholder.
pub(crate) fn is_nameless(name: &[u8]) -> bool {
    name.is_empty() || NAMELESS.contains(&name)
}

/// Placeholders for names.
const NAMELESS: [&[u8]; 5] =
    [b"<redacted>", b"???", b"(null)", b"_mh_execute_header", b"__mh_execute_header"];

/// Reads the frame in `line`, which starts at byte `start` of the report. `None` for another kind of line.
pub(super) fn frame(line: &[u8], start: usize) -> Option<FrameLine<'_>> {
    let mut cursor = Cursor::new(line);
    cursor.space();
    let number = cursor.decimal()?;
    cursor.space().then_some(())?;
    let (image, address) = image_and_address(&mut cursor)?;
    cursor.space().then_some(())?;
    let answer = start + cursor.at()..start + line.len();
    let answer_text = cursor.rest();
    // Lines of `sample` can begin alike: `... load address 0x1000 + 0xd68`. Names of class methods begin with `+[`.
    if answer_text.is_empty() || answer_text.starts_with(b"+ ") {
        return None;
    }
    let frame_text = FrameText::of(answer_text, image);
    let load_address = match frame_text.distance {
        DistanceFrom::LoadAddress(load_address) => Some(load_address),
        DistanceFrom::Image(offset) => address.checked_sub(offset),
        DistanceFrom::Function => None,
    };
    let function = frame_text.function_len.map(|len| answer.start..answer.start + len);
    let FrameText { detail, inlined, .. } = frame_text;
    Some(FrameLine { number, image, address, load_address, answer, detail, function, inlined })
}

/// Reads `MyApp   0x0000000104a3c7d8`. The address is the first word after the name that begins with `0x`. A name may
/// contain single spaces.
fn image_and_address<'l>(cursor: &mut Cursor<'l>) -> Option<(&'l [u8], u64)> {
    let from = cursor.rest();
    let mut len = 0;
    loop {
        let mut word = *cursor;
        match word.hexadecimal() {
            Some(address) if len != 0 && matches!(word.rest().first(), Some(b' ' | b'\t')) => {
                *cursor = word;
                return Some((&from[..len], address));
            }
            // Two spaces end the name.
            _ if len != 0 && !is_one_space(&from[len..], cursor.rest()) => return None,
            _ => {}
        }
        cursor.word()?;
        len = from.len() - cursor.rest().len();
        cursor.space().then_some(())?;
    }
}

/// Whether exactly one space stands between `from` and its suffix `rest`.
fn is_one_space(from: &[u8], rest: &[u8]) -> bool {
    from.len() == rest.len() + 1 && from.first() == Some(&b' ')
}

/// The contents of the text after a frame's address.
struct FrameText {
    detail: SymbolDetail,
    distance: DistanceFrom,
    /// The length of the function's name, which the text begins with.
    function_len: Option<usize>,
    inlined: bool,
}

/// What the number after ` + ` counts from.
enum DistanceFrom {
    /// The offset counts from the load address printed before it.
    LoadAddress(u64),
    /// The offset counts from the start of the image whose name is printed before it.
    Image(u64),
    Function,
}

impl FrameText {
    fn of(answer: &[u8], image: &[u8]) -> Self {
        let raw = |distance| FrameText {
            detail: SymbolDetail::AddressOnly,
            distance,
            function_len: None,
            inlined: false,
        };
        let mut cursor = Cursor::new(answer);
        if let Some(load_address) = cursor.hexadecimal().filter(|_| cursor.take(b" + ").is_some())
            && cursor.decimal().is_some()
        {
            let detail =
                if cursor.rest().is_empty() { SymbolDetail::AddressOnly } else { SymbolDetail::Line };
            return FrameText { detail, ..raw(DistanceFrom::LoadAddress(load_address)) };
        }
        let mut cursor = Cursor::new(answer);
        if cursor.take(image).and_then(|()| cursor.take(b" + ")).is_some()
            && let Some(offset) = cursor.decimal().filter(|_| cursor.rest().is_empty())
        {
            return raw(DistanceFrom::Image(offset));
        }
        let (answer, inlined) = match answer.strip_suffix(b" [inlined]") {
            Some(answer) => (answer, true),
            None => (answer, false),
        };
        let function_len = function_len(answer);
        let detail = match &answer[..function_len] {
            name if is_nameless(name) => SymbolDetail::AddressOnly,
            _ if has_line(answer) => SymbolDetail::Line,
            _ => SymbolDetail::Function,
        };
        let function_len = (detail != SymbolDetail::AddressOnly).then_some(function_len);
        FrameText { detail, distance: DistanceFrom::Function, function_len, inlined }
    }
}

/// The length of the function's name in `main + 36 (main.m:42)` or `main (in App) (main.m:42)`.
fn function_len(answer: &[u8]) -> usize {
    let plus = memchr::memmem::rfind(answer, b" + ");
    let is_distance = |at: &usize| answer.get(at + 3).is_some_and(u8::is_ascii_digit);
    let in_image = || memchr::memmem::rfind(answer, b" (in ");
    let location = || memchr::memmem::rfind(answer, b" (").filter(|_| has_line(answer));
    plus.filter(is_distance).or_else(in_image).or_else(location).unwrap_or(answer.len())
}

/// Whether the text ends with file and line: `(main.m:42)`, or `  main.m:42` as `leaks` writes it.
fn has_line(answer: &[u8]) -> bool {
    let (answer, is_closed) = match answer.strip_suffix(b")") {
        Some(answer) => (answer, true),
        None => (answer, false),
    };
    let digits = answer.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    let before = &answer[..answer.len() - digits];
    let separator = if is_closed { " (" } else { "  " };
    digits != 0 && before.ends_with(b":") && memchr::memmem::rfind(before, separator.as_bytes()).is_some()
}

/// Whether the line is the title of the list of images.
pub(crate) fn is_images_header(line: &[u8]) -> bool {
    line.trim_ascii() == b"Binary Images:"
}

/// Reads an image: `0x104a34000 - 0x104a3ffff +MyApp arm64  <6dcd4e9dd3b13a0e8dff6a5a4be1b1b0> /private/var/.../MyApp`.
pub(crate) fn image(line: &[u8]) -> Option<Image> {
    let mut cursor = Cursor::new(line);
    cursor.space();
    let load_address = cursor.hexadecimal()?;
    cursor.space();
    cursor.take(b"-")?;
    cursor.space();
    // The range ends with the last byte. Some reports have no end.
    let last = cursor.hexadecimal();
    let size =
        last.and_then(|last| last.checked_sub(load_address)).map(|distance| distance.saturating_add(1));
    if last.is_none() {
        cursor.word()?;
    }
    cursor.space().then_some(())?;
    // A plus sign marks images that are not Apple's. On macOS and in simulators these are more than the app.
    let _ = cursor.take(b"+");
    let rest = cursor.rest();
    let (named, id, path) = split_at_id(rest).unwrap_or_else(|| split_at_path(rest));
    let (name, arch) = name_and_arch(named.trim_ascii());
    let path = lossy(path.trim_ascii());
    // Apple's reports have an entry for addresses in no image: `0x0 - 0xffffffffffffffff ??? (*) <00000000-...> ???`.
    let is_nil = |id: &ImageId| id.as_bytes().iter().all(|byte| *byte == 0);
    let (base, id) = match id {
        Some(id) if load_address == 0 && is_nil(&id) => (Base::Absolute, None),
        id => (Base::Image, id),
    };
    Some(Image { name: lossy(name), path, arch, id, load_address, size, base })
}

/// Splits at `<6dcd4e9d...>` into the text before it, the id, and the text after it. A name may contain angle brackets.
fn split_at_id(rest: &[u8]) -> Option<(&[u8], Option<ImageId>, &[u8])> {
    memchr::memchr_iter(b'<', rest).find_map(|open| {
        let close = open + memchr::memchr(b'>', rest.get(open..open + 80).unwrap_or(&rest[open..]))?;
        let id = std::str::from_utf8(&rest[open + 1..close]).ok()?.parse().ok()?;
        Some((&rest[..open], Some(id), &rest[close + 1..]))
    })
}

fn split_at_path(rest: &[u8]) -> (&[u8], Option<ImageId>, &[u8]) {
    let (named, path) = rest.split_at(memchr::memmem::find(rest, b" /").unwrap_or(rest.len()));
    // `<???>` stands for an unknown id.
    (named.trim_ascii_end().strip_suffix(b"<???>").unwrap_or(named), None, path)
}

/// Splits `MyApp arm64`, or `com.company.MyApp (1.0 - 12)` as on macOS.
fn name_and_arch(named: &[u8]) -> (&[u8], Option<Arch>) {
    if named.ends_with(b")")
        && let Some(open) = memchr::memmem::rfind(named, b" (")
    {
        return (&named[..open], None);
    }
    let last = memchr::memrchr(b' ', named).map(|space| (&named[..space], &named[space + 1..]));
    let arch = last.and_then(|(name, arch)| Some((name, Arch::from_name(std::str::from_utf8(arch).ok()?)?)));
    // PLCrashReporter's words for an unknown architecture.
    let unknown = || named.strip_suffix(b" ???").or_else(|| named.strip_suffix(b" arm-unknown"));
    match arch {
        Some((name, arch)) => (name.trim_ascii(), Some(arch)),
        None => (unknown().unwrap_or(named), None),
    }
}

/// Returns the architecture of a code type such as ` ARM-64 (Native)`.
pub(crate) fn code_type(text: &[u8]) -> Option<Arch> {
    let name = match text.trim_ascii().split(|byte| *byte == b' ').next()? {
        b"ARM-64" => "arm64",
        b"ARM" => "armv7",
        b"X86-64" => "x86_64",
        b"X86" => "i386",
        other => std::str::from_utf8(other).ok()?,
    };
    Arch::from_name(name)
}

/// Returns the architecture of `Thread 0 crashed with ARM Thread State (64-bit):`. An excerpt of a report can have this
/// line and lack `Code Type:`.
pub(super) fn thread_state(line: &[u8]) -> Option<Arch> {
    const STATES: [(&[u8], &str); 4] = [
        (b" ARM Thread State (64-bit):", "arm64"),
        (b" ARM Thread State (32-bit):", "armv7"),
        (b" X86 Thread State (64-bit):", "x86_64"),
        (b" X86 Thread State (32-bit):", "i386"),
    ];
    let line = line.trim_ascii_end();
    let state = STATES.iter().find(|(state, _)| line.ends_with(state));
    state.filter(|_| line.starts_with(b"Thread ")).and_then(|(_, name)| Arch::from_name(name))
}

/// Returns the title of a stack: `Thread 0 Crashed`, `Last Exception Backtrace`. `None` for another kind of line.
pub(super) fn stack_name(line: &[u8]) -> Option<String> {
    let line = line.trim_ascii();
    let is_thread = line.strip_prefix(b"Thread ").is_some_and(|rest| {
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        // `Thread 0 name:` and `Thread 0 crashed with ARM Thread State` are not titles.
        let after = &rest[digits..];
        digits != 0 && (after.starts_with(b":") || after.starts_with(b" Crashed:"))
    });
    let is_backtrace = line.ends_with(b":")
        && (memchr::memmem::find(line, b"Backtrace").is_some() || line.starts_with(b"STACK OF "));
    if !is_thread && !is_backtrace {
        return None;
    }
    let end = memchr::memchr(b':', line).unwrap_or(line.len());
    Some(lossy(&line[..end]))
}

/// Returns the name of the next thread: `  Dispatch queue: com.apple.main-thread` from `Thread 0 name:   Dispatch
/// queue: ...`.
pub(super) fn thread_label(line: &[u8]) -> Option<&[u8]> {
    let rest = line.strip_prefix(b"Thread ")?;
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    rest[digits..].strip_prefix(b" name:")
}

/// Reads the addresses of `(0x1ca4cd27c 0x1c96a79f8 ...)` with their spans. White space may stand before the
/// parentheses and inside them.
pub(super) fn bare_addresses(line: &[u8], start: usize) -> Option<Vec<(u64, Span)>> {
    let mut cursor = Cursor::new(line);
    cursor.space();
    cursor.take(b"(")?;
    cursor.space();
    let mut addresses = Vec::new();
    loop {
        let from = cursor.at();
        cursor.rest().starts_with(b"0x").then_some(())?;
        let address = cursor.hexadecimal()?;
        addresses.push((address, start + from..start + cursor.at()));
        let has_space = cursor.space();
        if cursor.take(b")").is_some() {
            return Some(addresses);
        }
        has_space.then_some(())?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame_text(line: &str) -> (SymbolDetail, Option<&str>, Option<u64>, bool) {
        let frame = frame(line.as_bytes(), 0).unwrap_or_else(|| panic!("no frame: {line}"));
        (frame.detail, frame.function.map(|span| &line[span]), frame.load_address, frame.inlined)
    }

    #[test]
    fn thread_states_tell_the_architecture() {
        let name = |line: &str| thread_state(line.as_bytes()).map(|arch| arch.name);
        assert_eq!(name("Thread 0 crashed with ARM Thread State (64-bit):").as_deref(), Some("arm64"));
        assert_eq!(name("Thread 12 crashed with X86 Thread State (64-bit): ").as_deref(), Some("x86_64"));
        assert_eq!(name("Thread 0 Crashed:"), None);
        assert_eq!(name("with ARM Thread State (64-bit):"), None);
    }

    #[test]
    fn frames_have_the_detail_of_their_symbol() {
        let head = "12  My App  \t0x0000000104a3c7d8 ";
        let cases = [
            ("0x104a34000 + 34776", (SymbolDetail::AddressOnly, None, Some(0x104a34000), false)),
            ("My App + 34776", (SymbolDetail::AddressOnly, None, Some(0x104a34000), false)),
            ("<redacted> + 12", (SymbolDetail::AddressOnly, None, None, false)),
            ("-[A b:] + 24", (SymbolDetail::Function, Some("-[A b:]"), None, false)),
            ("-[A b:] + 24 (A.m:42)", (SymbolDetail::Line, Some("-[A b:]"), None, false)),
            ("+[A b:] + 24", (SymbolDetail::Function, Some("+[A b:]"), None, false)),
            ("-[A b:] (in My App) (A.m:42)", (SymbolDetail::Line, Some("-[A b:]"), None, false)),
            ("-[A b:] (A.m:42) [inlined]", (SymbolDetail::Line, Some("-[A b:]"), None, true)),
            ("f(int) + 24 [inlined]", (SymbolDetail::Function, Some("f(int)"), None, true)),
            ("main + 36  main.m:42", (SymbolDetail::Line, Some("main"), None, false)),
            ("static A.+ infix(_:) + 8", (SymbolDetail::Function, Some("static A.+ infix(_:)"), None, false)),
            ("start", (SymbolDetail::Function, Some("start"), None, false)),
        ];
        for (tail, expected) in cases {
            assert_eq!(frame_text(&format!("{head}{tail}")), expected, "{tail}");
        }
        let line = format!("{head}start");
        let frame = frame(line.as_bytes(), 100).expect("a frame");
        assert_eq!((frame.number, frame.image, frame.address), (12, &b"My App"[..], 0x1_04a3_c7d8));
        assert_eq!(frame.answer, 100 + head.len()..100 + line.len());
    }

    #[test]
    fn other_lines_are_no_frames() {
        for line in [
            "",
            "0",
            "0   MyApp",
            "0   MyApp  0x10",
            "0   MyApp  0x10 ",
            "  rip: 0x00000001003dade1  rfl: 0x0000000000010206",
            "2761 ???  (in App)  load address 0x101671000 + 0xd68  [0x101671d68]",
            "1 (32 bytes) ROOT LEAK: <LeakySwiftObject 0x600001431a40> [32]",
            "0x102bc4000 - 0x102bcbfff iOSCrashingTest arm64  <ecc0>",
        ] {
            assert!(frame(line.as_bytes(), 0).is_none(), "{line}");
        }
    }

    #[test]
    fn images_have_names_with_spaces_ids_with_dashes_and_versions() {
        let read = |line: &str| image(line.as_bytes()).expect("an image");
        let ios = read(
            "0x104a34000 - 0x104a3ffff +My App arm64e  <6DCD4E9DD3B13A0E8DFF6A5A4BE1B1B0> /var/My App.app/My App",
        );
        assert_eq!((ios.name.as_str(), ios.path.as_str()), ("My App", "/var/My App.app/My App"));
        assert_eq!(ios.arch.map(|arch| arch.name).as_deref(), Some("arm64e"));
        assert_eq!((ios.load_address, ios.size), (0x1_04a3_4000, Some(0xc000)));
        assert_eq!(ios.id.map(|id| id.to_string()).as_deref(), Some("6dcd4e9dd3b13a0e8dff6a5a4be1b1b0"));
        let macos = read(
            "       0x1062c9000 -        0x1062ccfff jp.mahdi.AnotherTarget (1.0) \
             <9a36cf20-3655-3df2-b1e9-466c5cb0c9cc> /Users/*/A",
        );
        assert_eq!(
            (macos.name.as_str(), macos.file_name(), &macos.arch),
            ("jp.mahdi.AnotherTarget", "A", &None)
        );
        let without_id = read("0x1000 - 0x1fff dyld /usr/lib/dyld");
        assert_eq!(
            (without_id.name.as_str(), without_id.id, without_id.path.as_str()),
            ("dyld", None, "/usr/lib/dyld")
        );
        assert!(image(b"0x1000").is_none() && image(b"__TEXT  0x1000 - 0x2000 [ 4K]").is_none());
    }

    #[test]
    fn stacks_have_names() {
        let name = |line: &str| stack_name(line.as_bytes());
        assert_eq!(name("Thread 0 Crashed:").as_deref(), Some("Thread 0 Crashed"));
        assert_eq!(name("Thread 3:: Dispatch queue: x").as_deref(), Some("Thread 3"));
        assert_eq!(name("Last Exception Backtrace:").as_deref(), Some("Last Exception Backtrace"));
        assert_eq!(name("Thread 0 name:  Dispatch queue"), None);
        assert_eq!(name("Thread 0 crashed with ARM Thread State (64-bit):"), None);
        assert_eq!(bare_addresses(b"(0x10 0x2f)", 5), Some(vec![(0x10, 6..10), (0x2f, 11..15)]));
        assert_eq!(bare_addresses(b" ( 0x10\t0x2f )", 5), Some(vec![(0x10, 8..12), (0x2f, 13..17)]));
        for line in ["(0x10 0x2f", "(0x10,0x2f)", "( )", "(10)", "0x10)"] {
            assert_eq!(bare_addresses(line.as_bytes(), 0), None, "{line}");
        }
    }
}
