//! Bugsnag's events: JSON with hexadecimal addresses, the id and the load address of the image in each frame, and the
//! innermost frame first.

use std::collections::HashMap;

use symdex::ImageId;

use crate::engine::limits::ReadLimit;
use crate::error::Error;
use crate::formats::format::{Edits, Format};
use crate::formats::frame_object::{FrameObject, InlinedObjects, Part, hexadecimal, lists};
use crate::formats::json::{Json, Value};
use crate::formats::json_images::image;
use crate::report::{AddressKind, Parsed, ReportImage, Thread};
use crate::text::{has, is_json};

/// The format of Bugsnag's events.
pub(crate) const FORMAT: Format = Format {
    name: "bugsnag",
    description: "Events that Bugsnag's clients send, of Apple's systems and Android",
    example: concat!(
        r#"{"exceptions":[{"stacktrace":[{"frameAddress":"0x104a343d0","machoLoadAddress":"0x104a34000","#,
        r#""machoUUID":"6DCD4E9D-D3B1-3A0E-8DFF-6A5A4BE1B1B0"}]}]}"#,
    ),
    marks: &[r#""stacktrace""#, r#""frameAddress""#, r#""machoUUID""#],
    recognises,
    parse,
    existing_symbols: Some(|report| FRAME.existing_symbols(report)),
    edits: Edits::Frames(|text, site, resolution| FRAME.replacement(text, site, resolution)),
    ..Format::JSON
};

/// The members of a frame.
const FRAME: FrameObject = FrameObject {
    address: &["frameAddress"],
    members: &[
        (&["frameAddress", "machoFile", "machoLoadAddress", "machoUUID"], Part::Copied),
        (&["machoVMAddress", "loadAddress", "codeIdentifier"], Part::Copied),
        (&["method"], Part::Function),
        (&["symbolAddress"], Part::StartText),
        (&["file"], Part::FilePath),
        (&["lineNumber"], Part::Line),
        (&["inlined"], Part::Inlined),
    ],
    inlined: InlinedObjects::Before,
};

fn recognises(text: &[u8]) -> bool {
    // Events of other languages, and payloads without an event, have no frames with addresses.
    let is_payload =
        || has(text, "\"payloadVersion\"") && has(text, "\"notifier\"") && has(text, "\"events\"");
    is_json(text) && (has(text, "\"frameAddress\"") && has(text, "\"stacktrace\"") || is_payload())
}

fn parse(text: &[u8]) -> Result<Parsed, Error> {
    let json = Json::parse(text, 0)?;
    let mut images = Images::default();
    let limit = ReadLimit::of(text.len());
    let threads = lists(json.root(), "stacktrace").take_while(|_| limit.has_room());
    let threads = threads.map(|(owner, frames)| stack(owner, frames, &mut images, &limit)).collect();
    Ok(Parsed { images: images.images, threads, extent: limit.extent(json.rest()), ..Parsed::default() })
}

/// Reads the stack of an exception or a thread.
fn stack(owner: Value<'_>, frames: Value<'_>, images: &mut Images, limit: &ReadLimit) -> Thread {
    let text = |key: &str| owner.get(key).and_then(Value::text).unwrap_or_default().into_owned();
    let is_true = |key: &str| owner.get(key).is_some_and(Value::is_true);
    let is_exception = owner.get("errorClass").is_some();
    let states_instruction = frames.elements().any(|object| object.get("isPC").is_some_and(Value::is_true));
    // A thread that was suspended has the address of an instruction in its innermost frame. An exception and the thread
    // that reports it have return addresses, unless the frame says otherwise.
    let is_suspended = !states_instruction && !is_exception && !is_true("errorReportingThread");
    let kind = |depth, object: Value<'_>| {
        AddressKind::of(object.get("isPC").is_some_and(Value::is_true) || (is_suspended && depth == 0))
    };
    let frames = FRAME.stack(frames, limit, kind, |object| images.number(object, limit));
    let name =
        if is_exception { text("errorClass") + " Backtrace" } else { format!("Thread {}", text("id")) };
    let label = Some(text("name")).filter(|name| !name.is_empty());
    Thread { name, label, crashed: is_true("errorReportingThread"), frames, ..Thread::default() }
}

/// The images that frames name, in the order of the frames.
#[derive(Default)]
struct Images {
    images: Vec<ReportImage>,
    /// Positions by load address and id.
    known: HashMap<(u64, Option<ImageId>), usize>,
}

impl Images {
    /// Returns the position of the image of a frame, and adds the image if it is new.
    fn number(&mut self, frame: Value<'_>, limit: &ReadLimit) -> Option<usize> {
        let image = image(frame, hexadecimal);
        (image.load_address != 0).then_some(())?;
        let key = (image.load_address, image.id.clone());
        let known = self.known.get(&key).copied();
        if known.is_some() || !limit.take_image_of_frame() {
            return known;
        }
        let number = self.images.len();
        self.images.push(image);
        self.known.insert(key, number);
        Some(number)
    }
}
