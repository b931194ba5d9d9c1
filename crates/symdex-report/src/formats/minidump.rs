//! The JSON of rust-minidump's `minidump-stackwalk`: modules with Breakpad's debug ids, and frames with hexadecimal
//! addresses, innermost first. A frame has a field for the functions inlined into it.

use std::collections::HashMap;

use serde_json::json;
use symdex::{Arch, ImageId};

use crate::engine::limits::ReadLimit;
use crate::engine::symbolicate::Resolution;
use crate::error::Error;
use crate::formats::format::{Edits, Format};
use crate::formats::frame_object::{FrameObject, InlinedObjects, Part, hexadecimal, lists, registers};
use crate::formats::json::{Json, Value};
use crate::formats::json_edit::{NewValue, with_members};
use crate::info::{ReportInfo, set};
use crate::report::{FoundBy, Frame, Parsed, ReportImage, Span, Thread};
use crate::text::has;
use symdex::debug_id;

/// The format of minidump-stackwalk's JSON.
pub(crate) const FORMAT: Format = Format {
    name: "minidump-stackwalk",
    description: "The JSON of minidump-stackwalk",
    example: concat!(
        r#"{"system_info":{"os":"iOS"},"modules":[{"base_addr":"0x104a34000","end_addr":"0x104a38000","#,
        r#""filename":"App","debug_id":"6DCD4E9DD3B13A0E8DFF6A5A4BE1B1B00"}],"threads":[{"frames":["#,
        r#"{"module":"App","module_offset":"0x3d0","offset":"0x104a343d0"}]}]}"#,
    ),
    marks: &[r#""crash_info""#, r#""modules""#, r#""module_offset""#],
    recognises,
    parse,
    existing_symbols: Some(|report| FRAME.existing_symbols(report)),
    edits: Edits::Frames(replacement),
    ..Format::JSON
};

/// The members of a frame.
const FRAME: FrameObject = FrameObject {
    address: &["offset"],
    members: &[
        (&["file"], Part::FilePath),
        (&["function"], Part::Function),
        (&["line"], Part::Line),
        (&["function_offset"], Part::OffsetText),
    ],
    inlined: InlinedObjects::None,
};

fn recognises(text: &[u8]) -> bool {
    start(text).is_some() && has(text, "\"module_offset\"") && has(text, "\"modules\"")
}

/// Returns the position of the document. Snapshots of tests have lines before it.
fn start(text: &[u8]) -> Option<usize> {
    if text.trim_ascii_start().starts_with(b"{") {
        return Some(0);
    }
    let is_snapshot = text.starts_with(b"---\n");
    memchr::memmem::find(text, b"\n{").filter(|_| is_snapshot).map(|line_feed| line_feed + 1)
}

fn parse(text: &[u8]) -> Result<Parsed, Error> {
    let json = Json::parse(text, start(text).unwrap_or_default())?;
    let dump = json.root();
    let system =
        |key: &str| dump.get("system_info").and_then(|info| info.get(key)?.text()).unwrap_or_default();
    let os = system("os");
    let arch = Arch::from_name(match &*system("cpu_arch") {
        "amd64" => "x86_64",
        "x86" => "i386",
        other => other,
    });
    let modules = dump.get("modules").into_iter().flat_map(Value::elements);
    let limit = ReadLimit::of(text.len());
    let modules = modules.take_while(|_| limit.take_image());
    let images: Vec<_> = modules.map(|module| image(module, &os, arch.as_ref())).collect();
    let by_base: HashMap<_, _> =
        images.iter().enumerate().map(|(number, image)| (image.load_address, number)).collect();
    let stacks = lists(dump, "frames").take_while(|_| limit.has_room());
    let threads =
        stacks.enumerate().map(|(number, (owner, frames))| stack(owner, frames, number, &by_base, &limit));
    let mut threads: Vec<_> = threads.collect();
    let crashed = dump.get("crash_info").and_then(|crash| crash.get("crashing_thread")?.number());
    if let Some(crashed) = crashed.filter(|_| dump.get("crashing_thread").is_none())
        && let Some(thread) = usize::try_from(crashed).ok().and_then(|number| threads.get_mut(number))
    {
        thread.crashed = true;
    }
    Ok(Parsed { images, threads, info: info(dump, &os), extent: limit.extent(json.rest()) })
}

fn info(dump: Value<'_>, os: &str) -> ReportInfo {
    let mut info = ReportInfo { pid: dump.get("pid").and_then(Value::number), ..ReportInfo::default() };
    let version = dump.get("system_info").and_then(|system| system.get("os_ver")?.text()).unwrap_or_default();
    set(&mut info.os, format!("{os} {version}").trim());
    let kind = dump.get("crash_info").and_then(|crash| crash.get("type")?.text());
    if let Some(kind) = kind {
        set(&mut info.exception().kind, kind);
    }
    info
}

/// A module as a minidump and the JSON of minidump-stackwalk describe it.
#[derive(Clone, Copy, Debug, Default)]
pub struct MinidumpModule<'m> {
    /// The path of the file, or only its name.
    pub path: &'m str,
    /// The system, in the words of minidump-stackwalk: `Linux`, `Android`, `Mac OS X`, `iOS`, `Windows NT`.
    pub os: &'m str,
    /// The architecture of the process; `None` if it is unknown.
    pub arch: Option<&'m Arch>,
    /// The code id, in hexadecimal. For ELF it is the build id.
    pub code_id: &'m str,
    /// The debug id of Breakpad: a GUID and an age.
    pub debug_id: &'m str,
    /// The address of the start of the module.
    pub load_address: u64,
    /// The size in bytes; `None` if it is unknown.
    pub size: Option<u64>,
}

/// The image of a report that stands for the module. Its id for Windows is the GUID of the debug id without the age, as
/// in indexes of the symbol files of Breakpad. symdex makes no indexes of PDB files.
impl From<MinidumpModule<'_>> for ReportImage {
    fn from(module: MinidumpModule<'_>) -> Self {
        // A module without a debug id has only zeros.
        let is_known = module.debug_id.bytes().any(|digit| !matches!(digit, b'0' | b'-'));
        let debug_id = if is_known { module.debug_id } else { "" };
        let (id, is_id_cut) = match module.os {
            "Windows NT" | "Mac OS X" | "iOS" => (debug_id::uuid(debug_id), false),
            _ => match build_id(module.code_id, debug_id) {
                Some(id) => (Some(id), false),
                None => (debug_id::build_id_start(debug_id), true),
            },
        };
        Self {
            arch: module.arch.cloned(),
            id,
            is_id_cut,
            load_address: module.load_address,
            size: module.size,
            ..Self::of_file(module.path.to_owned(), &['/', '\\'])
        }
    }
}

/// The build id of an ELF image, which is its code id. `None` if the code id is that of a file of Windows: a time and a
/// size. Older versions of Breakpad and Crashpad write the modules of Linux as those of Windows.
fn build_id(code_id: &str, debug_id: &str) -> Option<ImageId> {
    const TIME_AND_SIZE: usize = 8;
    let id: ImageId = code_id.parse().ok()?;
    let begins_debug_id = |start: ImageId| id.as_bytes().iter().zip(start.as_bytes()).all(|(a, b)| a == b);
    let is_build_id =
        id.as_bytes().len() > TIME_AND_SIZE || debug_id::build_id_start(debug_id).is_none_or(begins_debug_id);
    is_build_id.then_some(id)
}

fn image(module: Value<'_>, os: &str, arch: Option<&Arch>) -> ReportImage {
    let text = |key: &str| module.get(key).and_then(Value::text).unwrap_or_default();
    let number = |key: &str| module.get(key).and_then(hexadecimal);
    let load_address = number("base_addr").unwrap_or_default();
    let (path, code_id, debug_id) = (&*text("filename"), &*text("code_id"), &*text("debug_id"));
    let size = number("end_addr").and_then(|end| end.checked_sub(load_address));
    MinidumpModule { path, os, arch, code_id, debug_id, load_address, size }.into()
}

fn stack(
    owner: Value<'_>,
    frames: Value<'_>,
    number: usize,
    by_base: &HashMap<u64, usize>,
    limit: &ReadLimit,
) -> Thread {
    let text = |key: &str| owner.get(key).and_then(Value::text).filter(|text| !text.is_empty());
    let read = |object: Value<'_>| limit.read(frame(object, by_base), object.get("offset").is_some());
    let index = owner.get("threads_index").and_then(Value::number);
    let mut found_by = Vec::new();
    let read = |object: Value<'_>| {
        let frame = read(object)?;
        found_by.push(FoundBy::from_name(&object.get("trust").and_then(Value::text).unwrap_or_default()));
        Some(frame)
    };
    let all = limit.stack(frames.elements().filter_map(read));
    found_by.truncate(all.len());
    found_by.shrink_to_fit();
    Thread {
        name: index.map_or_else(|| format!("Thread {number}"), |index| format!("Thread {index}")),
        // The document has the stack of the crashed thread twice. Only this copy states the thread's index.
        crashed: index.is_some(),
        id: owner.get("thread_id").and_then(Value::number),
        label: text("thread_name").map(|name| name.into_owned()),
        registers: registers(frames.elements().next().and_then(|frame| frame.get("registers")), limit),
        frames: all,
        found_by,
        ..Thread::default()
    }
}

fn frame(object: Value<'_>, by_base: &HashMap<u64, usize>) -> Option<Frame> {
    let number = |key: &str| object.get(key).and_then(hexadecimal);
    let address = number("offset")?;
    let base = number("module_offset").and_then(|offset| address.checked_sub(offset));
    let image = base.and_then(|base| by_base.get(&base)).copied();
    // The tool has moved return addresses back into the call already.
    Some(FRAME.frame_at(address, object, image))
}

/// The frame's object with its answer. `inlines` has the functions inlined into the frame, innermost first.
fn replacement(text: &[u8], site: &Span, resolution: &Resolution<'_>) -> Option<Vec<u8>> {
    let json = Json::parse(text, site.start).ok()?;
    let (concrete, inlined) = resolution.frames.split_last()?;
    let answer = |resolved| FRAME.answer(resolved, json.root(), resolution);
    let mut members = answer(concrete);
    let inlined = inlined.iter().map(|resolved| {
        let members = answer(resolved).into_iter().map(|(key, value)| (key.to_owned(), json!(value)));
        serde_json::Value::Object(members.collect())
    });
    let inlined: Vec<_> = inlined.collect();
    if !inlined.is_empty() {
        members.push(("inlines", NewValue::Json(inlined.into())));
    }
    Some(with_members(text, json.root(), &members))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_and_a_size_are_no_build_id() {
        const DEBUG_ID: &str = "33221100554477668899AABBCCDDEEFF0";
        let id = |code_id, debug_id| {
            let module = MinidumpModule { os: "Linux", code_id, debug_id, ..MinidumpModule::default() };
            let image = ReportImage::from(module);
            image.id.map(|id| (id.to_string(), image.is_id_cut))
        };
        let start = Some(("00112233445566778899aabbccddeeff".to_owned(), true));
        assert_eq!(id("00000000385000", DEBUG_ID), start);
        assert_eq!(id("5f3b2c1a00385000", DEBUG_ID), start);
        assert_eq!(id("", DEBUG_ID), start);
        assert_eq!(id("", "000000000000000000000000000000000"), None);
        for build_id in ["0011223344556677", "00112233445566778899aabbccddeeff01234567"] {
            assert_eq!(id(build_id, DEBUG_ID), Some((build_id.to_owned(), false)));
            assert_eq!(id(build_id, ""), Some((build_id.to_owned(), false)));
        }
    }
}
