//! Stacks in the log of a Linux kernel: `hugepages_ioctl+0x10/0x90 [hugepages]`, a function, the distance from its
//! start, its size and its module. Functions are found by name, because kernels hide addresses in their logs.
//!
//! A kernel with `CONFIG_STACKTRACE_BUILD_ID` states ids: its own at the end of the line `CPU:`, and those of modules
//! after their names.

use std::collections::HashMap;

use memchr::memmem::find;
use symdex::ImageId;

use super::{APPENDED, Dialect, FrameLine, ImageReference, has_frame, parse};
use crate::formats::format::Format;
use crate::report::{AddressKind, Parsed};
use crate::text::{Cursor, lines, lossy, lossy_text};

/// The format of these stacks.
pub(crate) const FORMAT: Format = Format {
    name: "linux-kernel",
    description: "Oopses, panics and warnings in the log of a Linux kernel",
    example: " hugepages_ioctl+0x10/0x90 [hugepages]",
    marks: &["Call Trace:", "Call trace:", "Modules linked in:", "Hardware name:", "Comm: "],
    recognises: |text| has_frame(text, &DIALECT),
    parse: |text| Ok(with_ids(parse(text, &DIALECT), text)),
    stated_image: |line| Some(lossy_text(kernel_frame(line)?.module)),
    edits: APPENDED,
    ..Format::TEXT
};

const DIALECT: Dialect = Dialect { frame, title, is_split_by_titles: true, ..Dialect::PLAIN };

/// The image of a frame without a module: the kernel.
const KERNEL: &[u8] = b"vmlinux";

/// What a line states of a frame.
struct KernelFrame<'l> {
    function: &'l [u8],
    distance: u64,
    module: &'l [u8],
    /// The build id of the module.
    id: Option<&'l [u8]>,
    /// What stands before the function.
    before: &'l [u8],
}

/// Reads `FUNCTION+0xDISTANCE/0xSIZE`, and `[MODULE]` or `[MODULE BUILD-ID]` after it.
fn kernel_frame(line: &[u8]) -> Option<KernelFrame<'_>> {
    let plus = find(line, b"+0x")?;
    let is_separator = |byte: &u8| byte.is_ascii_whitespace() || *byte == b':';
    let start = line[..plus].iter().rposition(is_separator).map_or(0, |at| at + 1);
    let (before, function) = (line[..start].trim_ascii_end(), &line[start..plus]);
    // Warnings state a line of source code there. Their frame follows in a line of its own.
    let is_marked = before.last().is_none_or(|last| b"?:]".contains(last)) || before.ends_with(b" at");
    let mut cursor = Cursor::at_byte(line, plus + 1);
    let distance = cursor.hexadecimal()?;
    cursor.take(b"/")?;
    let size = cursor.hexadecimal()?;
    (is_marked && !function.is_empty() && distance <= size).then_some(())?;
    let bracket = cursor.rest().strip_prefix(b" [").and_then(|rest| rest.split(|byte| *byte == b']').next());
    let mut words = bracket.unwrap_or(KERNEL).split(|byte| *byte == b' ');
    Some(KernelFrame { function, distance, module: words.next()?, id: words.next(), before })
}

fn frame(line: &[u8]) -> Option<FrameLine<'_>> {
    let KernelFrame { function, distance, module: path, before, .. } = kernel_frame(line)?;
    // Kernels before 4.10 state the address, as do those of some architectures.
    let inside = before.strip_suffix(b"?").unwrap_or(before).trim_ascii_end().strip_suffix(b"]");
    let inside = inside.and_then(|text| text.rsplit(|byte| b"[<".contains(byte)).next());
    let stated = inside.and_then(|text| Cursor::new(text).hexadecimal_digits());
    let address =
        stated.filter(|address| *address >= distance && *address > u32::MAX.into()).unwrap_or(distance);
    let is_instruction =
        [&b"IP:"[..], b"pc :", b"PC is at", b"NIP "].iter().any(|mark| find(before, mark).is_some());
    let image = ImageReference::Function { path, function, start: address - distance };
    Some(FrameLine::of_address(line, None, address, AddressKind::of(is_instruction), image))
}

/// Reads the name of the task in the line that precedes its stack. Many lines may lie between the instruction of the
/// stack and its calls.
fn title(line: &[u8]) -> Option<(String, bool)> {
    let after = |mark: &[u8]| Some(&line[find(line, mark)? + mark.len()..]);
    let task = match after(b"CPU: ").and(after(b" Comm: ")) {
        Some(task) => task,
        None => after(b"task:").filter(|_| find(line, b" state:").is_some())?,
    };
    Some((lossy(task.split(|byte| *byte == b' ').next()?), false))
}

/// The report, with the ids that its lines state. An image has none if they state several: the log is of several boots.
fn with_ids(mut parsed: Parsed, text: &[u8]) -> Parsed {
    let mut ids: HashMap<String, Option<ImageId>> = HashMap::new();
    let mut add = |name: &[u8], id: ImageId| {
        let known = ids.entry(lossy(name)).or_insert_with(|| Some(id.clone()));
        *known = known.take().filter(|known| *known == id);
    };
    for (_, line) in lines(text) {
        if find(line, b"CPU: ").is_some() && find(line, b" Comm: ").is_some() {
            let last = line.trim_ascii_end().rsplit(|byte| *byte == b' ').next();
            last.and_then(build_id).into_iter().for_each(|id| add(KERNEL, id));
        }
        if let Some((module, id)) =
            kernel_frame(line).and_then(|frame| Some((frame.module, build_id(frame.id?)?)))
        {
            add(module, id);
        }
    }
    for image in &mut parsed.images {
        image.id = ids.get(&image.name).cloned().flatten();
    }
    parsed
}

/// The id in the 40 digits that the kernel prints.
fn build_id(digits: &[u8]) -> Option<ImageId> {
    std::str::from_utf8(digits).ok().filter(|digits| digits.len() == 40)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_of_two_kernels_states_no_id() {
        let line = |id: &str| format!("CPU: 1 PID: 2 Comm: a 6.1.0 {id}\n f+0x1/0x2\n g+0x1/0x2 [m {id}]\n");
        let [one, two] = ["1", "2"].map(|digit| digit.repeat(40));
        let ids = |text: String| {
            let parsed = with_ids(parse(text.as_bytes(), &DIALECT), text.as_bytes());
            parsed.images.into_iter().map(|image| image.id.map(|id| id.to_string())).collect::<Vec<_>>()
        };
        assert_eq!(ids(line(&one) + &line(&one)), [Some(one.clone()), Some(one.clone())]);
        assert_eq!(ids(line(&one) + &line(&two) + &line(&one)), [None, None]);
    }

    #[test]
    fn lines_state_a_function_and_its_module() {
        let read = |line: &'static str| {
            let text = |bytes: &[u8]| lossy(bytes);
            let KernelFrame { function, distance, module, id, .. } = kernel_frame(line.as_bytes())?;
            let frame = frame(line.as_bytes()).expect("a frame");
            let is_instruction = frame.kind == AddressKind::ProgramCounter;
            Some((text(function), distance, text(module), id.map(text), frame.address, is_instruction))
        };
        let some = |function: &str, distance, module: &str, address, is_instruction| {
            Some((function.to_owned(), distance, module.to_owned(), None, address, is_instruction))
        };
        assert_eq!(
            read("[   12.345678]  ? tun_get_user+0x10/0x90 [tun]"),
            some("tun_get_user", 0x10, "tun", 0x10, false)
        );
        assert_eq!(read(" vfs_write+0xb5/0x290"), some("vfs_write", 0xb5, "vmlinux", 0xb5, false));
        assert_eq!(read("RIP: 0010:f.isra.0+0x1/0x2"), some("f.isra.0", 1, "vmlinux", 1, true));
        assert_eq!(read("pc : f+0x1/0x2 [m]"), some("f", 1, "m", 1, true));
        assert_eq!(read("lr : f+0x1/0x2 [m]"), some("f", 1, "m", 1, false));
        let old = read("Sep  1 h kernel: [<ffffffff8106fe00>] ? f+0x20/0x30");
        assert_eq!(old, some("f", 0x20, "vmlinux", 0xffff_ffff_8106_fe00, false));
        let old = read(" [<ffffffffa000fe20>] f+0x20/0x30 [m]");
        assert_eq!(old, some("f", 0x20, "m", 0xffff_ffff_a000_fe20, false));
        let with_id = read(" f+0x1/0x2 [m f8b55a3c9030031c1aff53ead19aaafd575889f0]").expect("a frame");
        assert_eq!(with_id.3.as_deref(), Some("f8b55a3c9030031c1aff53ead19aaafd575889f0"));
        for line in [
            "WARNING: CPU: 0 PID: 1 at net/core/dev.c:12 f+0x1/0x2 [m]",
            "f+0x3/0x2",
            "f+0x3",
            "f+3/0x5",
            " +0x1/0x2",
            "Code: 0f 0b",
        ] {
            assert_eq!(read(line), None, "{line}");
        }
    }
}
