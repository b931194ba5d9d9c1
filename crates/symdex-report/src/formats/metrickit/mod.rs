//! MetricKit's diagnostics: JSON with trees of frames. The `subFrames` of a frame are its callees, or its callers. The
//! logs of App Store Connect are such diagnostics with other keys for symbols, and with numbers as strings.
//!
//! A tree is read without recursion and edited by insertions. A frame's answer is inserted after its address. Frames
//! for inlined functions are inserted around its `subFrames`, or around the frame itself if the root is the innermost
//! frame.

mod info;
mod text;

use std::io;

use std::collections::HashMap;

use symdex::Arch;

use crate::engine::function::Function;
use crate::engine::limits::ReadLimit;
use crate::engine::symbolicate::{Resolution, Symbolicated};
use crate::error::Error;
use crate::formats::existing::ExistingSymbol;
use crate::formats::format::{Edit, Edits, Format};
use crate::formats::frame_object::{FrameObject, InlinedObjects, Part};
use crate::formats::json::{Json, Value};
use crate::formats::json_edit::{more_members, object_like};
use crate::formats::json_images::image;
use crate::formats::write::Editor;
use crate::report::{AddressKind, Base, Frame, Parsed, Report, ReportImage, Thread, to_u32};
use crate::text::{has, is_json};

/// The format of MetricKit's diagnostics.
pub(crate) const FORMAT: Format = Format {
    name: "metrickit",
    description: "MetricKit's diagnostics, diagnostic logs of App Store Connect",
    example: concat!(
        r#"{"callStacks":[{"callStackRootFrames":["#,
        r#"{"binaryUUID":"6dcd4e9d-d3b1-3a0e-8dff-6a5a4be1b1b0","offsetIntoBinaryTextSegment":976,"#,
        r#""address":4372775888}]}]}"#,
    ),
    marks: &[r#""callStackTree""#, r#""callStacks""#, r#""callStackRootFrames""#, r#""binaryUUID""#],
    recognises,
    parse,
    existing_symbols: Some(existing_symbols),
    image_list: "a frame of it with `offsetIntoBinaryTextSegment`",
    edits: Edits::Written(write),
    write_text: Some(text::write),
    ..Format::JSON
};

/// The members of a frame.
const FRAME: FrameObject = FrameObject {
    address: &["address", OFFSET],
    members: &[
        (&["binaryUUID", OFFSET, "sampleCount", "binaryName", "address"], Part::Copied),
        (&["symbol"], Part::Function),
        (&["symbolLocation"], Part::Offset),
        (&["sourceFile"], Part::FileName),
        (&["sourceLine"], Part::LineOfSource),
        (&["inline"], Part::Inlined),
    ],
    inlined: InlinedObjects::None,
};

/// As [`FRAME`], in the logs of App Store Connect.
const FRAME_OF_LOG: FrameObject = FrameObject {
    members: &[
        (&["binaryUUID", OFFSET, "sampleCount", "binaryName", "address"], Part::Copied),
        (&["symbolName"], Part::Function),
        (&["offsetIntoSymbol"], Part::Offset),
        (&["fileName"], Part::FileName),
        (&["lineNumber"], Part::LineOfSource),
        (&["inline"], Part::Inlined),
    ],
    ..FRAME
};

/// The members of the frame `object`.
fn members_of(object: Value<'_>) -> &'static FrameObject {
    if object.get("symbolName").is_some() { &FRAME_OF_LOG } else { &FRAME }
}

fn recognises(text: &[u8]) -> bool {
    is_json(text) && has(text, "\"callStackRootFrames\"")
}

fn parse(text: &[u8]) -> Result<Parsed, Error> {
    let json = Json::parse(text, 0)?;
    let limit = ReadLimit::of(text.len());
    let mut images = ImageTable::default();
    let stacks = stacks(json.root()).take_while(|_| limit.has_room());
    let threads = stacks.map(|stack| stack.thread(&mut images, &limit)).collect();
    let (images, info) = (images.finish(), info::info(json.root()));
    Ok(Parsed { images, threads, info, extent: limit.extent(json.rest()) })
}

fn existing_symbols(report: &Report<'_>) -> Vec<Vec<ExistingSymbol>> {
    // The text was parsed before, so this does not fail.
    let Ok(json) = Json::parse(report.text(), 0) else { return Vec::new() };
    let stacks = stacks(json.root()).zip(&report.threads);
    stacks.map(|(stack, thread)| stack.existing_symbols(thread)).collect()
}

fn write(symbolicated: &Symbolicated<'_, '_>, editor: &mut Editor<'_>) -> io::Result<()> {
    let text = symbolicated.report.text();
    // The text was parsed before, so this does not fail.
    let Ok(json) = Json::parse(text, 0) else { return Ok(()) };
    for (thread, stack) in stacks(json.root()).enumerate().take(symbolicated.report.threads.len()) {
        editor.all(stack_edits(text, &stack, symbolicated, thread))?;
    }
    Ok(())
}

/// The edits of one stack. `thread` is its position in the report.
fn stack_edits(
    text: &[u8],
    stack: &Stack<'_>,
    symbolicated: &Symbolicated<'_, '_>,
    thread: usize,
) -> Vec<Edit> {
    let frames = stack.innermost_first().enumerate();
    let answered = frames.filter_map(|(number, node)| Some((symbolicated.resolution(thread, number)?, node)));
    answered.flat_map(|(resolution, node)| node.edits(text, &resolution, stack.is_outermost_first)).collect()
}

/// A stack, or a tree of many stacks.
struct Stack<'j> {
    name: String,
    /// The diagnostic that contains it.
    diagnostic: Value<'j>,
    /// Whether it is the stack of one thread, as in crashes, and not a tree of samples.
    is_of_thread: bool,
    crashed: bool,
    arch: Option<Arch>,
    /// The frames, from roots to leaves.
    nodes: Vec<Node<'j>>,
    /// The number of frames whose address is not valid.
    malformed: u64,
    /// Whether the roots are the outermost frames.
    is_outermost_first: bool,
}

/// A frame in its tree.
#[derive(Clone, Copy)]
struct Node<'j> {
    object: Value<'j>,
    address: u64,
    /// The number of frames above it; 0 for a root.
    depth: u32,
    is_leaf: bool,
}

/// The diagnostics of a payload, of a list of payloads, of logs, or a single diagnostic, each with its kind and number:
/// `crash 0 `. A single diagnostic has an empty kind. Other members of a payload are returned too; they have no stacks.
fn diagnostics<'j>(root: Value<'j>) -> impl Iterator<Item = (String, Value<'j>)> {
    let of_logs = root.get("productData").into_iter().flat_map(Value::elements);
    let payloads = std::iter::once(root).chain(root.elements()).chain(of_logs);
    payloads.flat_map(|payload| {
        let lists = payload.members().flat_map(|(kind, list)| {
            let named = move |(number, diagnostic)| (format!("{}{number} ", kind_of(kind)), diagnostic);
            list.elements().enumerate().map(named)
        });
        std::iter::once((String::new(), payload)).chain(lists)
    })
}

/// The stacks of a payload, of a list of payloads, of a diagnostic or of a single tree, in order.
fn stacks<'j>(root: Value<'j>) -> impl Iterator<Item = Stack<'j>> {
    diagnostics(root).flat_map(|(kind, diagnostic)| {
        let tree = diagnostic.get("callStackTree").unwrap_or(diagnostic);
        // Logs, and the first versions, have a list of trees.
        let trees = std::iter::once(tree).chain(tree.elements());
        let arch =
            diagnostic.get("diagnosticMetaData").and_then(|meta| meta.get("platformArchitecture")?.text());
        let arch = arch.and_then(|name| Arch::from_name(&name));
        let stacks = trees.flat_map(|tree| {
            let per_thread = tree.get("callStackPerThread").is_some_and(Value::is_true);
            let stacks = tree.get("callStacks").into_iter().flat_map(Value::elements);
            stacks.map(move |stack| (per_thread, stack))
        });
        stacks.enumerate().map(move |(number, (per_thread, stack))| {
            let attributed = stack.get("threadAttributed").is_some_and(Value::is_true);
            let crashed = attributed && (kind.is_empty() || kind.starts_with("crash"));
            let (nodes, malformed) = nodes(stack);
            // If the frames do not decide, the kind does: the roots are the innermost frames in stacks of crashes only.
            let is_of_crash = per_thread && (kind.is_empty() || kind.starts_with("crash"));
            let is_outermost_first = is_outermost_first(&nodes).unwrap_or(!is_of_crash);
            let name = format!("{kind}Thread {number}");
            let is_of_thread = kind.starts_with("crash") || (kind.is_empty() && per_thread);
            let arch = arch.clone();
            Stack { name, diagnostic, is_of_thread, crashed, arch, nodes, malformed, is_outermost_first }
        })
    })
}

/// Returns `crash ` for `crashDiagnostics`.
fn kind_of(key: Value<'_>) -> String {
    let key = key.text().unwrap_or_default();
    format!("{} ", key.strip_suffix("Diagnostics").unwrap_or(&key))
}

/// The frames of a stack, each before its `subFrames`, and the number of those whose address is not valid. Frames that
/// state no address are omitted.
fn nodes<'j>(stack: Value<'j>) -> (Vec<Node<'j>>, u64) {
    let (mut nodes, mut malformed) = (Vec::new(), 0);
    let list = |object: Value<'j>, key| object.get(key).into_iter().flat_map(Value::elements).peekable();
    // The rest of the list of each frame on the path.
    let mut open = vec![list(stack, "callStackRootFrames")];
    while let Some(frames) = open.last_mut() {
        let Some(object) = frames.next() else {
            open.pop();
            continue;
        };
        let mut inner = list(object, "subFrames");
        let stated = stated(object, "address").or_else(|| stated(object, OFFSET));
        let (depth, is_leaf) = (to_u32(open.len() - 1), inner.peek().is_none());
        match stated.and_then(Value::number) {
            Some(address) => nodes.push(Node { object, address, depth, is_leaf }),
            None => malformed += u64::from(stated.is_some()),
        }
        if !is_leaf {
            open.push(inner);
        }
    }
    (nodes, malformed)
}

const OFFSET: &str = "offsetIntoBinaryTextSegment";

/// The value of a member. Logs have an empty string for an unknown one.
fn stated<'j>(object: Value<'j>, key: &str) -> Option<Value<'j>> {
    object.get(key).filter(|value| !value.is_string(""))
}

/// Whether the roots are the outermost frames. `None` if this is unknown. In the first versions the root of a crash's
/// stack was the innermost frame.
fn is_outermost_first(nodes: &[Node<'_>]) -> Option<bool> {
    // A tree with branches is merged from samples, which begin with the outermost frame.
    let leaves = nodes.iter().filter(|node| node.is_leaf).count();
    if leaves > 1 {
        return Some(true);
    }
    let begins = |node: &Node<'_>| {
        let name = node.object.get("binaryName").map_or(&b""[..], Value::unescaped);
        matches!(name, b"dyld" | b"libdyld.dylib" | b"libsystem_pthread.dylib")
    };
    match (begins(nodes.first()?), begins(nodes.last()?)) {
        (true, false) => Some(true),
        (false, true) => Some(false),
        _ => None,
    }
}

impl<'j> Stack<'j> {
    fn innermost_first(&self) -> Box<dyn Iterator<Item = &Node<'j>> + '_> {
        if self.is_outermost_first { Box::new(self.nodes.iter().rev()) } else { Box::new(self.nodes.iter()) }
    }

    /// The symbols that the report has for the frames of `thread`, which was read from this stack.
    fn existing_symbols(&self, thread: &Thread) -> Vec<ExistingSymbol> {
        let symbol = |node: &Node<'_>| members_of(node.object).existing_symbol(node.object, node.address);
        self.innermost_first().take(thread.frames.len()).map(symbol).collect()
    }

    fn thread(&self, images: &mut ImageTable<'j>, limit: &ReadLimit) -> Thread {
        let frame = |node: &Node<'j>| {
            let is_innermost = if self.is_outermost_first { node.is_leaf } else { node.depth == 0 };
            node.frame(is_innermost, images.number(node, self.arch.as_ref(), limit))
        };
        limit.count_malformed(self.malformed);
        Thread {
            name: self.name.clone(),
            crashed: self.crashed,
            frames: limit.stack(self.innermost_first().map(frame)),
            ..Thread::default()
        }
    }
}

impl<'j> Node<'j> {
    fn frame(&self, is_innermost: bool, image: Option<usize>) -> Frame {
        let kind = if is_innermost { AddressKind::ProgramCounter } else { AddressKind::ReturnAddress };
        let start = self.object.span().start;
        // The edits insert into the object, so the site is only its start.
        let site = (start..start + 1).into();
        Frame { kind, site, ..members_of(self.object).frame_at(self.address, self.object, image) }
    }

    /// The load address of the image. In the first versions the offset was the load address itself; no image is that
    /// long. `None` if the frame does not state it.
    fn load_address(&self) -> Option<u64> {
        match self.object.get(OFFSET)?.number()? {
            load_address if load_address >= 1 << 32 => Some(load_address),
            offset => Some(self.address.saturating_sub(offset)),
        }
    }

    /// The edits that insert the answer, and frames for the functions inlined into it.
    fn edits(&self, text: &[u8], resolution: &Resolution<'_>, is_outermost_first: bool) -> Vec<Edit> {
        let object = self.object;
        let Some((concrete, inlined)) = resolution.frames.split_last() else { return Vec::new() };
        let Some(anchor) = object.get("address").or_else(|| object.get(OFFSET)) else { return Vec::new() };
        let insert = |at: usize, text: Vec<u8>| Edit { span: at..at, text };
        let (set, added): (Vec<_>, Vec<_>) = members_of(object)
            .answer(concrete, object, resolution)
            .into_iter()
            .partition(|(key, _)| object.get(key).is_some());
        let set = set.into_iter().filter_map(|(key, value)| {
            let mut text = Vec::new();
            value.append_to(&mut text);
            Some(Edit { span: object.get(key)?.span(), text })
        });
        let mut edits: Vec<Edit> = set.collect();
        let mut added = more_members(text, object, &added);
        let wrap = Wrap::of(text, object);
        let inlined = inlined.iter().map(|resolved| wrap.object(text, object, resolved, resolution));
        match object.get("subFrames").filter(|_| is_outermost_first) {
            Some(sub_frames) => {
                let (before, after) = wrap.around(inlined.rev(), true);
                edits.push(insert(sub_frames.span().start, before));
                edits.push(insert(sub_frames.span().end, after));
            }
            None if is_outermost_first => added.extend(wrap.below(inlined.rev())),
            None => {
                let (before, after) = wrap.around(inlined, false);
                edits.push(insert(object.span().start, before));
                edits.push(insert(object.span().end, after));
            }
        }
        edits.push(insert(anchor.span().end, added));
        edits
    }
}

/// The text of frames inserted around or inside a frame, with its white space.
struct Wrap<'t> {
    /// The end of an object.
    close: &'t [u8],
    /// The start of the member: `, "subFrames" : `.
    sub_frames: Vec<u8>,
}

impl<'t> Wrap<'t> {
    fn of(text: &'t [u8], object: Value<'_>) -> Self {
        let end = object.span().end;
        let last = object.members().last().map_or(end - 1, |(_, value)| value.span().end);
        // The member has a dummy value of one byte, which is removed.
        let mut sub_frames = more_members(text, object, &[("subFrames", 0_u32.into())]);
        sub_frames.pop();
        Wrap { close: &text[last..end], sub_frames }
    }

    /// The object of an inlined function, without its end.
    fn object(
        &self,
        text: &[u8],
        like: Value<'_>,
        resolved: &Function,
        resolution: &Resolution<'_>,
    ) -> Vec<u8> {
        let members = members_of(like).answer(resolved, like, resolution);
        let object = object_like(text, like, &members);
        object[..object.len() - self.close.len()].to_vec()
    }

    /// The text before and after a list of frames, or a single frame, that `objects` are inserted around. Each object
    /// contains the next one.
    fn around(&self, objects: impl Iterator<Item = Vec<u8>>, is_list: bool) -> (Vec<u8>, Vec<u8>) {
        let (mut before, mut after) = (Vec::new(), Vec::new());
        for object in objects {
            let (open, list): (&[u8], &[u8]) = if is_list { (b"[", b"") } else { (b"", b"[") };
            before.extend([open, &object, &self.sub_frames, list].concat());
            let ends: [&[u8]; 2] = if is_list { [self.close, b"]"] } else { [b"]", self.close] };
            after.extend(ends.concat());
        }
        (before, after)
    }

    /// `objects` as the callees of a frame that has none. Each object contains the next one.
    fn below(&self, objects: impl Iterator<Item = Vec<u8>>) -> Vec<u8> {
        let (mut before, mut after) = (Vec::new(), Vec::new());
        for object in objects {
            before.extend([&self.sub_frames, &b"["[..], &object].concat());
            after.extend([self.close, b"]"].concat());
        }
        [before, after].concat()
    }
}

/// The images that frames name, in the order of the frames.
#[derive(Default)]
struct ImageTable<'j> {
    images: Vec<ReportImage>,
    /// Positions by id and name, as they are written, and by load address.
    known: HashMap<([&'j [u8]; 2], Option<u64>), usize>,
}

impl<'j> ImageTable<'j> {
    fn number(&mut self, node: &Node<'j>, arch: Option<&Arch>, limit: &ReadLimit) -> Option<usize> {
        let written = |key: &str| node.object.get(key).map_or(&b""[..], Value::unescaped);
        let key = (["binaryUUID", "binaryName"].map(written), node.load_address());
        if let Some(number) = self.known.get(&key) {
            if let Some(image) = self.images.get_mut(*number).filter(|image| image.base == Base::Unknown) {
                image.load_address = image.load_address.min(node.address);
            }
            return Some(*number);
        }
        limit.take_image_of_frame().then_some(())?;
        let load_address = node.load_address();
        self.known.insert(key, self.images.len());
        self.images.push(ReportImage {
            arch: arch.cloned(),
            load_address: load_address.unwrap_or(node.address),
            base: if load_address.is_some() { Base::Image } else { Base::Unknown },
            ..image(node.object, Value::number)
        });
        Some(self.images.len() - 1)
    }

    /// The images. One that was loaded where its frames do not state it is placed by another entry with its id.
    fn finish(mut self) -> Vec<ReportImage> {
        let placed = self.images.iter().rev().filter(|image| image.base == Base::Image && image.id.is_some());
        let placed: HashMap<_, _> = placed.map(|image| (image.id.clone(), image.load_address)).collect();
        for image in self.images.iter_mut().filter(|image| image.base != Base::Image) {
            if let Some(load_address) = placed.get(&image.id) {
                (image.load_address, image.base) = (*load_address, Base::Image);
            }
        }
        self.images
    }
}
