//! Sentry's profiles of sampled stacks, alone or in an envelope. Stacks name frames by their positions, so the frames of
//! the rewritten profile have only the concrete function.

use super::Document;
use crate::error::Error;
use crate::formats::format::{Edits, Format};
use crate::formats::frame_object::{FrameObject, InlinedObjects};
use crate::formats::json::{Json, Value};
use crate::formats::sentry;
use crate::report::{AddressKind, Parsed};
use crate::text::{has, is_object};

/// The format of Sentry's profiles.
pub(crate) const FORMAT: Format = Format {
    name: "sentry-profile",
    description: "Profiles that Sentry's clients send, with the concrete function of each frame",
    example: concat!(
        r#"{"debug_meta":{"images":[{"image_addr":"0x104a34000","debug_id":"6dcd4e9d-d3b1-3a0e-8dff-6a5a4be1b1b0"}]},"#,
        r#""profile":{"frames":[{"instruction_addr":"0x104a343d0"}],"stacks":[[0]],"samples":[]}}"#,
    ),
    marks: &[r#""profile""#, r#""debug_meta""#, r#""samples""#, r#""instruction_addr""#],
    recognises: |text| profile(text).is_some(),
    parse,
    existing_symbols: Some(|report| DOCUMENT.frame.existing_symbols(report)),
    edits: Edits::Frames(|text, site, resolution| DOCUMENT.frame.replacement(text, site, resolution)),
    ..Format::JSON
};

const DOCUMENT: Document = Document {
    images: "images",
    kinds,
    frame: FrameObject { inlined: InlinedObjects::None, ..sentry::FRAME },
};

/// The first profile in `text`.
fn profile(text: &[u8]) -> Option<Json<'_>> {
    let may_be = is_object(text)
        && has(text, "profile\"")
        && has(text, "\"samples\"")
        && has(text, "\"instruction_addr\"");
    may_be.then_some(())?;
    let mut at = 0;
    let mut documents = std::iter::from_fn(|| {
        let json = Json::parse(text, at).ok()?;
        at = json.end();
        Some(json)
    });
    let is_profile = |json: &Json<'_>| {
        let profile = json.root().get_each(["profile", "sampled_profile"]);
        profile.into_iter().flatten().any(|profile| profile.get("samples").is_some())
    };
    documents.find(is_profile)
}

fn parse(text: &[u8]) -> Result<Parsed, Error> {
    Ok(profile(text).map(|json| DOCUMENT.parse(&json, text.len())).unwrap_or_default())
}

/// A frame that only stands first in stacks has the address of an instruction. In older profiles each sample has a list
/// of frames.
fn kinds(owner: Value<'_>) -> super::Kinds<'_> {
    let Some(stacks) = owner.get("stacks") else {
        return Box::new(|number, _| AddressKind::of(number == 0));
    };
    let mut is_caller = vec![false; owner.get("frames").map_or(0, |frames| frames.elements().count())];
    for number in stacks.elements().flat_map(|stack| stack.elements().skip(1)).filter_map(Value::number) {
        if let Some(slot) = usize::try_from(number).ok().and_then(|number| is_caller.get_mut(number)) {
            *slot = true;
        }
    }
    Box::new(move |number, _| AddressKind::of(is_caller.get(number) != Some(&true)))
}
