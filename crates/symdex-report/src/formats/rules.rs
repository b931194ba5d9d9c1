//! The rules for reports of all formats, which [`apply`] applies after a format's parser: addresses have no pointer
//! authentication codes, an id may stand in place of a name, and a frame may name an image that the report does not list.

use std::collections::HashMap;

use symdex::ImageId;

use crate::engine::images::{ImageMap, without_signature};
use crate::formats::format::Format;
use crate::formats::frame_lines::list;
use crate::report::{Base, Number, Parsed, ReportImage, SymbolDetail};
use crate::text::{find, rfind};

/// Placeholders for the names of functions, files and images. Others are in [`is_nameless`].
const NAMELESS: [&[u8]; 10] = [
    b"<redacted>",
    b"<unknown>",
    b"<unavailable>",
    b"<unknown binary>",
    b"(Missing)",
    b"(null)",
    b"??",
    b"???",
    b"_mh_execute_header",
    b"__mh_execute_header",
];

/// Whether `name` is a placeholder, also an id or Crashlytics's text with one.
pub(crate) fn is_nameless(name: &[u8]) -> bool {
    name.is_empty()
        || NAMELESS.contains(&name)
        || rfind(name, b"___lldb_unnamed_symbol").is_some()
        || uuid(name).or_else(|| missing_uuid(name)).is_some()
}

/// Reads a UUID with dashes, with or without angle brackets. Apple prints it for an image whose name is unknown.
pub(crate) fn uuid(name: &[u8]) -> Option<ImageId> {
    matches!(name.len(), 36 | 38).then_some(())?;
    list::id(name).filter(|id| id.as_bytes().len() == 16 && name.contains(&b'-'))
}

/// Reads the id in what Crashlytics writes for a function of an image without a dSYM, in any language: `(Missing UUID
/// 6dcd4e9d...)`.
pub(crate) fn missing_uuid(text: &[u8]) -> Option<ImageId> {
    (text.len() >= 36).then_some(())?;
    let after = text.get(find(text, b"UUID")?..)?;
    let mut words = after.split(|byte| !byte.is_ascii_hexdigit() && *byte != b'-');
    list::id(words.find(|word| word.len() >= 32)?)
}

/// Applies the rules to a report of `format` whose frames are in `text`.
pub(crate) fn apply(parsed: &mut Parsed, format: &Format, text: &[u8]) {
    for image in &mut parsed.images {
        image.drop_zero_id();
        image.id = image.id.take().or_else(|| uuid(image.name.as_bytes()));
    }
    let Parsed { images, threads, extent, .. } = parsed;
    let map = ImageMap::new(images);
    // The images whose place the report does not state, and their positions by the name or path that frames state.
    let mut unplaced: Vec<ReportImage> = Vec::new();
    let mut known: HashMap<String, usize> = HashMap::new();
    for frame in threads.iter_mut().flat_map(|thread| &mut thread.frames) {
        frame.address = map.without_signature(frame);
        let is_open = frame.detail == SymbolDetail::AddressOnly && frame.image().is_none();
        if !is_open || map.containing(frame.address).is_some() {
            continue;
        }
        let stated = text.get(frame.site.span()).and_then(format.stated_image);
        let Some(stated) = stated.filter(|name| !is_nameless(name.as_bytes())) else { continue };
        let load_address = without_signature(frame.address);
        let number = match known.get(&*stated) {
            Some(number) => *number,
            None if !extent.take_image_of_frame(text.len()) => continue,
            None => {
                let name = stated.rsplit('/').next().unwrap_or_default().to_owned();
                let path = if stated.contains('/') { stated.to_string() } else { String::new() };
                let base = Base::Unknown;
                let image = ReportImage { name, path, load_address, base, ..ReportImage::default() };
                known.insert(stated.into_owned(), unplaced.len());
                unplaced.push(ReportImage { is_unlisted: true, ..image });
                unplaced.len() - 1
            }
        };
        frame.image = Some(Number::from(images.len() + number));
        let lowest = &mut unplaced[number].load_address;
        *lowest = load_address.min(*lowest);
    }
    images.extend(unplaced);
}
