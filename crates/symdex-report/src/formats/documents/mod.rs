//! Reports in JSON that are described by their keys: a list of images, and lists of frames with the address and the
//! symbol in each.

pub(crate) mod app_center;
pub(crate) mod sentry_profile;
pub(crate) mod swift;

use crate::engine::limits::ReadLimit;
use crate::formats::frame_object::{FrameObject, hexadecimal, lists, registers};
use crate::formats::json::{Json, Value};
use crate::formats::json_images::image;
use crate::report::{AddressKind, Parsed, Thread};

/// The keys of a report.
struct Document {
    /// The key of the lists of images.
    images: &'static str,
    /// Returns what the addresses of a list of frames are, by the number of the frame and its object. The first value is
    /// the owner of the list.
    kinds: for<'j> fn(Value<'j>) -> Kinds<'j>,
    frame: FrameObject,
}

/// Returns what an address is, by the number of the frame and its object.
type Kinds<'j> = Box<dyn Fn(usize, Value<'j>) -> AddressKind + 'j>;

impl Document {
    /// Reads the report in `json`, which is in a text of `size` bytes.
    fn parse(&self, json: &Json<'_>, size: usize) -> Parsed {
        let limit = ReadLimit::of(size);
        let images = lists(json.root(), self.images).flat_map(|(_, list)| list.elements());
        let images = images.take_while(|_| limit.take_image()).map(|object| image(object, hexadecimal));
        let images = images.collect();
        let stacks = lists(json.root(), "frames").take_while(|_| limit.has_room()).enumerate();
        let threads = stacks.map(|(number, (owner, frames))| {
            let text = |key: &str| owner.get(key).and_then(Value::text).filter(|text| !text.is_empty());
            let id = owner.get("id").and_then(Value::number);
            Thread {
                name: text("type").map_or_else(
                    || format!("Thread {}", id.unwrap_or(number as u64)),
                    |kind| format!("{kind} Backtrace"),
                ),
                crashed: owner.get("crashed").is_some_and(Value::is_true),
                id,
                label: text("name").map(|name| name.into_owned()),
                registers: registers(owner.get("registers"), &limit),
                frames: self.frame.stack(frames, &limit, (self.kinds)(owner), |_| None),
                ..Thread::default()
            }
        });
        let threads = threads.collect();
        Parsed { images, threads, extent: limit.extent(json.rest()), ..Parsed::default() }
    }
}
