//! The lines of Apple's text reports, a function for each kind.

use symdex::{Arch, ImageId};

use crate::registers::Register;
use crate::report::{Base, ReportImage, Site};
use crate::text::{Cursor, find, lossy, rfind};

/// The lowest address of the kernel.
pub(crate) const KERNEL: u64 = 1 << 63;

/// Whether the line is the title of a list of images: `Binary Images:`, `Binary Images (App Store):`.
pub(crate) fn is_images_header(line: &[u8]) -> bool {
    let more = line.trim_ascii().strip_prefix(b"Binary Images");
    more.is_some_and(|more| matches!(more, [] | [b':', ..] | [.., b':'] | [b' ', b'(', ..]))
}

/// Follows the lists of images and of registers in a text. A line of such a list is never a frame.
#[derive(Default)]
pub(crate) struct Lists {
    is_inside: bool,
}

impl Lists {
    /// Whether `line`, the next one of the text, is in a list or is its title. An empty line and the title of a stack
    /// end a list.
    pub(crate) fn have(&mut self, line: &[u8]) -> bool {
        self.is_inside = is_images_header(line)
            || is_thread_state(line)
            || self.is_inside && !line.trim_ascii().is_empty() && stack_name(line).is_none();
        self.is_inside
    }
}

/// Reads an image: `0x104a34000 - 0x104a3ffff +MyApp arm64  <6dcd4e9dd3b13a0e8dff6a5a4be1b1b0> /private/var/.../MyApp`.
pub(crate) fn image(line: &[u8]) -> Option<ReportImage> {
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
    // Reports of jailbroken devices have an object after the path.
    let path = &path[..find(path, b" {\"").unwrap_or(path.len())];
    let (name, arch) = name_and_arch(named.trim_ascii());
    let path = lossy(path.trim_ascii());
    // Apple's reports have an entry for addresses in no image: `0x0 - 0xffffffffffffffff ??? (*) <00000000-...> ???`.
    let is_nil = |id: &ImageId| id.as_bytes().iter().all(|byte| *byte == 0);
    let (base, id) = match id {
        Some(id) if load_address == 0 && is_nil(&id) => (Base::Absolute, None),
        id => (Base::Image, id),
    };
    let name =
        if name.is_empty() { path.rsplit('/').next().unwrap_or_default().to_owned() } else { lossy(name) };
    Some(ReportImage { name, path, arch, id, load_address, size, base, ..ReportImage::default() })
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
    let (named, path) = rest.split_at(find(rest, b" /").unwrap_or(rest.len()));
    // `<???>` stands for an unknown id.
    (named.trim_ascii_end().strip_suffix(b"<???>").unwrap_or(named), None, path)
}

/// Splits `MyApp arm64`, or `com.company.MyApp (1.0 - 12)` as on macOS.
fn name_and_arch(named: &[u8]) -> (&[u8], Option<Arch>) {
    if named.ends_with(b")")
        && let Some(open) = rfind(named, b" (")
    {
        return (&named[..open], None);
    }
    // macOS has images without a name: ` + (0) <9a36cf20...> /Users/*/A`.
    if named.starts_with(b"(") && named.ends_with(b")") {
        return (b"", None);
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

/// Reads a line of Umeng about the app's image into `image`: `dSYM UUID: 6DCD4E9D-...`, `Base Address: 0x104a34000`.
pub(super) fn stated_image(line: &[u8], image: &mut ReportImage) {
    let Ok(line) = std::str::from_utf8(line) else { return };
    match line.trim().split_once(": ") {
        Some(("dSYM UUID", id)) => image.id = id.parse().ok(),
        Some(("Base Address", address)) => {
            image.load_address = Cursor::new(address.as_bytes()).hexadecimal().unwrap_or_default();
        }
        Some(("CPU Type", arch)) => image.arch = Arch::from_name(arch),
        Some(("Binary Image", name)) => image.name = name.to_owned(),
        _ => {}
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

/// The title of the stack of an exception that was thrown.
const THROW: &[u8] = b"First throw call stack";

/// The title of the stack of an exception that no Kotlin code handled. All its addresses lie in the calls.
const KOTLIN: &[u8] = b"Uncaught Kotlin exception";

/// Whether the addresses of the stack with this title are moved back into the calls.
pub(super) fn is_of_kotlin(name: &str) -> bool {
    name.as_bytes().starts_with(KOTLIN)
}

/// What the titles of Crashlytics's first stack begin with: that of an exception, and that of a thread.
pub(super) const FATAL: &str = "Fatal Exception: ";
pub(super) const CRASHED: &str = "Crashed: ";

/// Whether all addresses of the stack with this title are return addresses, because an exception recorded it.
pub(crate) fn is_of_exception(name: &str) -> bool {
    name.contains("Backtrace") || name.as_bytes().starts_with(THROW) || name.starts_with(FATAL)
}

/// Returns the title of a stack: `Thread 0 Crashed`, `Last Exception Backtrace`, `First throw call stack`, `Crashed:
/// NAME`. `None` for another kind of line.
pub(crate) fn stack_name(line: &[u8]) -> Option<String> {
    let line = line.trim_ascii();
    if [FATAL, CRASHED].iter().any(|title| line.starts_with(title.as_bytes())) {
        return Some(lossy(line));
    }
    let ends_with_colon = line.ends_with(b":");
    if ends_with_colon && let Some(throw) = memchr::memmem::find(line, THROW) {
        return Some(lossy(&line[throw..throw + THROW.len()]));
    }
    if line.starts_with(KOTLIN) || line.starts_with(b"Microstackshots:") {
        return Some(lossy(line.split(|byte| *byte == b':').next()?));
    }
    let is_thread = line.strip_prefix(b"Thread ").is_some_and(|rest| {
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        // `Thread 0 name:` and `Thread 0 crashed with ARM Thread State` are not titles.
        let after = &rest[digits..];
        const MARKS: [&[u8]; 4] = [b":", b" Crashed:", b" Attributed:", b" Highlighted:"];
        digits != 0 && (after.is_empty() || MARKS.iter().any(|mark| after.starts_with(mark)))
    });
    let is_backtrace = ends_with_colon
        && (memchr::memmem::find(line, b"Backtrace").is_some() || line.starts_with(b"STACK OF "));
    if !is_thread && !is_backtrace {
        return None;
    }
    let end = memchr::memchr(b':', line).unwrap_or(line.len());
    Some(lossy(&line[..end]))
}

/// Whether the registers of a thread follow: `Thread 0 crashed with ARM Thread State (64-bit):`.
pub(super) fn is_thread_state(line: &[u8]) -> bool {
    line.starts_with(b"Thread ") && memchr::memmem::find(line, b" Thread State").is_some()
}

/// Reads a line of registers: `    x0: 0x0000000000000000   x1: 0x0000000100001010`. Text can follow a value. Keeps
/// `at_most` of them. Empty for another kind of line.
pub(super) fn registers(line: &[u8], at_most: usize) -> Vec<Register> {
    let mut registers: Vec<Register> = Vec::new();
    let mut cursor = Cursor::new(line);
    while registers.len() < at_most {
        cursor.space();
        let Some(word) = cursor.word() else { break };
        let mut value = cursor;
        value.space();
        if let Some((name, number)) = word.strip_suffix(b":").zip(value.hexadecimal()) {
            registers.push(Register { name: lossy(name), value: number, description: String::new() });
            cursor = value;
        } else if let Some(register) = registers.last_mut() {
            register.description += if register.description.is_empty() { "" } else { " " };
            register.description += &lossy(word);
        } else {
            break;
        }
    }
    registers
}

/// Returns the name of the next thread: `  Dispatch queue: com.apple.main-thread` from `Thread 0 name:   Dispatch
/// queue: ...`.
pub(super) fn thread_label(line: &[u8]) -> Option<&[u8]> {
    let rest = line.strip_prefix(b"Thread ")?;
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    rest[digits..].strip_prefix(b" name:")
}

/// A stack that is one line of addresses: `(0x1ca4cd27c 0x1c96a79f8 ...)`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct BareStack {
    /// The title, if it is on the same line.
    pub(super) name: Option<String>,
    /// The addresses with their spans, at most as many as are asked for.
    pub(super) addresses: Vec<(u64, Site)>,
    /// The number of addresses that were not asked for.
    pub(super) more: u64,
}

/// Reads the addresses of `(0x1ca4cd27c 0x1c96a79f8 ...)`. A title may stand before the parentheses, and white space
/// before them and inside them. Keeps `at_most` of them. `None` for another kind of line.
pub(super) fn bare_stack(line: &[u8], start: usize, at_most: usize) -> Option<BareStack> {
    let open = memchr::memchr(b'(', line)?;
    let title = line[..open].trim_ascii();
    let name = if title.is_empty() { None } else { Some(stack_name(title)?) };
    let mut cursor = Cursor::at_byte(line, open + 1);
    cursor.space();
    let (mut addresses, mut more) = (Vec::new(), 0);
    loop {
        let from = cursor.at();
        cursor.rest().starts_with(b"0x").then_some(())?;
        let address = cursor.hexadecimal()?;
        if addresses.len() < at_most {
            addresses.push((address, (start + from..start + cursor.at()).into()));
        } else {
            more += 1;
        }
        let has_space = cursor.space();
        if cursor.take(b")").is_some() {
            return Some(BareStack { name, addresses, more });
        }
        has_space.then_some(())?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thread_states_tell_the_architecture() {
        let name = |line: &str| thread_state(line.as_bytes()).map(|arch| arch.name);
        assert_eq!(name("Thread 0 crashed with ARM Thread State (64-bit):").as_deref(), Some("arm64"));
        assert_eq!(name("Thread 12 crashed with X86 Thread State (64-bit): ").as_deref(), Some("x86_64"));
        assert_eq!(name("Thread 0 Crashed:"), None);
        assert_eq!(name("with ARM Thread State (64-bit):"), None);
    }

    #[test]
    fn lines_of_registers_have_names_values_and_descriptions() {
        let read = |line: &str| {
            let registers = registers(line.as_bytes(), 9).into_iter();
            registers.map(|one| (one.name, one.value, one.description)).collect::<Vec<_>>()
        };
        let of = |name: &str, value, text: &str| (name.to_owned(), value, text.to_owned());
        assert_eq!(read("    x0: 0x00000000000000ff   x1: 0x10 "), [of("x0", 255, ""), of("x1", 16, "")]);
        assert_eq!(
            read(" far: 0x1  esr: 0x2  Address size fault"),
            [of("far", 1, ""), of("esr", 2, "Address size fault")]
        );
        for line in ["", "Binary Images:", "x0: 12", "Logical CPU:     0"] {
            assert_eq!(read(line), [], "{line}");
        }
        assert!(is_thread_state(b"Thread 12 crashed with X86-64 Thread State:"));
        assert!(!is_thread_state(b"Thread 1 Crashed:"));
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
        assert_eq!(
            name("2024 App[7:9] *** First throw call stack:").as_deref(),
            Some("First throw call stack")
        );
    }

    #[test]
    fn stacks_of_one_line_are_read_with_and_without_a_title() {
        let read = |line: &[u8]| {
            let stack = bare_stack(line, 5, 9)?;
            let spans = stack.addresses.into_iter().map(|(address, site)| (address, site.span()));
            Some((stack.name, spans.collect::<Vec<_>>()))
        };
        assert_eq!(read(b"(0x10 0x2f)"), Some((None, vec![(0x10, 6..10), (0x2f, 11..15)])));
        assert_eq!(read(b" ( 0x10\t0x2f )"), Some((None, vec![(0x10, 8..12), (0x2f, 13..17)])));
        let name = |text: &str| Some(text.to_owned());
        assert_eq!(
            read(b"*** First throw call stack: (0x10)"),
            Some((name("First throw call stack"), vec![(0x10, 34..38)]))
        );
        assert_eq!(
            read(b"Last Exception Backtrace:(0x10)"),
            Some((name("Last Exception Backtrace"), vec![(0x10, 31..35)]))
        );
        for line in ["(0x10 0x2f", "(0x10,0x2f)", "( )", "(10)", "0x10)", "f (0x10)"] {
            assert_eq!(read(line.as_bytes()), None, "{line}");
        }
    }
}
