//! Events of measure.sh: JSON with hexadecimal addresses and the innermost frame first. The images are a list
//! beside the stacks. Events of Apple's systems name the image in each frame; events of Dart have one image.

use std::collections::BTreeMap;

use crate::engine::limits::ReadLimit;
use crate::error::Error;
use crate::formats::format::{Edits, Format};
use crate::formats::frame_object::{FrameObject, InlinedObjects, Part, hexadecimal, lists};
use crate::formats::json::{Json, Value};
use crate::formats::json_images::image;
use crate::report::{AddressKind, Parsed, ReportImage, Thread};
use crate::text::{has, is_object};

/// The format of measure.sh's events.
pub(crate) const FORMAT: Format = Format {
    name: "measure",
    description: "Events of measure.sh, of Apple's systems and Flutter",
    example: concat!(
        r#"{"exceptions":[{"frames":[{"binary_name":"App","binary_address":"104a34000","#,
        r#""symbol_address":"0000000104a343d0"}]}],"binary_images":[{"name":"App","start_addr":"104a34000","#,
        r#""end_addr":"104a37fff","uuid":"6dcd4e9dd3b13a0e8dff6a5a4be1b1b0"}]}"#,
    ),
    marks: &[r#""frames""#, r#""binary_images""#, r#""binary_address""#, r#""symbol_address""#],
    recognises,
    parse,
    existing_symbols: Some(|report| FRAME.existing_symbols(report)),
    edits: Edits::Frames(|text, site, resolution| FRAME.replacement(text, site, resolution)),
    ..Format::JSON
};

/// The members of a frame. `symbol_address` is the frame's own address; the reporter copies it from the text of
/// PLCrashReporter.
const FRAME: FrameObject = FrameObject {
    address: &["symbol_address", "instruction_address"],
    members: &[
        (&["frame_index", "binary_name", "binary_address"], Part::Copied),
        (&["symbol_address", "instruction_address", "in_app"], Part::Copied),
        (&["method_name"], Part::Function),
        (&["file_name"], Part::FilePath),
        (&["line_num"], Part::Line),
        (&["inlined"], Part::Inlined),
    ],
    inlined: InlinedObjects::Before,
};

fn recognises(text: &[u8]) -> bool {
    let is_of_apple = || has(text, "\"binary_address\"") && has(text, "\"symbol_address\"");
    let is_of_dart = || has(text, "\"instruction_address\"") && has(text, "\"binary_images\"");
    // Frames of Java and Dart can have functions, files and lines, and no addresses.
    let is_managed =
        || has(text, "\"foreground\"") && has(text, "\"exceptions\"") && has(text, "\"threads\"");
    is_object(text) && has(text, "\"frames\"") && (is_of_apple() || is_of_dart() || is_managed())
}

fn parse(text: &[u8]) -> Result<Parsed, Error> {
    let json = Json::parse(text, 0)?;
    let listed = lists(json.root(), "binary_images").flat_map(|(_, list)| list.elements());
    let mut images = Images::default();
    let limit = ReadLimit::of(text.len());
    listed.take_while(|_| limit.take_image()).for_each(|object| images.push(image(object, hexadecimal)));
    let is_dart = lists(json.root(), "exceptions")
        .any(|(event, _)| event.get("framework").is_some_and(|name| name.unescaped() == b"dart"));
    let stacks = lists(json.root(), "frames").take_while(|_| limit.has_room()).enumerate();
    let threads =
        stacks.map(|(number, (owner, frames))| stack(owner, frames, number, is_dart, (&mut images, &limit)));
    let threads = threads.collect();
    Ok(Parsed { images: images.images, threads, extent: limit.extent(json.rest()), ..Parsed::default() })
}

/// Reads the stack of an exception or a thread.
fn stack(
    owner: Value<'_>,
    frames: Value<'_>,
    number: usize,
    is_dart: bool,
    (images, limit): (&mut Images, &ReadLimit),
) -> Thread {
    // Dart's addresses are already those of the calls.
    let kind = |depth, _: Value<'_>| AddressKind::of(depth == 0 || is_dart);
    let frames = FRAME.stack(frames, limit, kind, |object| images.of_frame(object, limit));
    let name = ["thread_name", "name"].iter().find_map(|key| owner.get(key)?.text());
    let name = name.map_or_else(|| format!("Thread {number}"), |name| name.into_owned());
    Thread { crashed: owner.get("signal").is_some(), name, frames, ..Thread::default() }
}

/// The images of the list, then those that only frames name.
#[derive(Default)]
struct Images {
    images: Vec<ReportImage>,
    /// Positions by load address.
    known: BTreeMap<u64, usize>,
}

impl Images {
    fn push(&mut self, image: ReportImage) {
        self.known.insert(image.load_address, self.images.len());
        self.images.push(image);
    }

    /// Returns the position of the image of a frame, and adds the image if it is new.
    fn of_frame(&mut self, frame: Value<'_>, limit: &ReadLimit) -> Option<usize> {
        let Some(load_address) = frame.get("binary_address").and_then(hexadecimal) else {
            let address = FRAME.address(frame)?;
            let (_, number) = self.known.range(..=address).next_back()?;
            let image = self.images.get(*number)?;
            return (image.size.is_none() || image.contains(address)).then_some(*number);
        };
        if !self.known.contains_key(&load_address) && limit.take_image_of_frame() {
            let name = frame.get("binary_name").and_then(Value::text).unwrap_or_default().into_owned();
            self.push(ReportImage { name, load_address, ..ReportImage::default() });
        }
        self.known.get(&load_address).copied()
    }
}
