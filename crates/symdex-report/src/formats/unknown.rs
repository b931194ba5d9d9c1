//! Texts that no format recognises: known files that are not reports, and the nearest formats.

use std::cmp::Reverse;

use crate::error::{Error, NearFormat};
use crate::formats::format::Format;
use crate::text::has;

/// How many formats [`Error::UnknownFormat`] lists.
const MAX_NEAR: usize = 3;

/// Files that crash reporters keep beside their reports: their common content, and what they are.
const NO_REPORTS: [(&[&str], &str); 3] = [
    (
        &["\"crashedLastLaunch\"", "\"sessionsSinceLastCrash\""],
        "the state that KSCrash or Sentry keeps between the runs of an app, not a crash report",
    ),
    (
        &["\"machoUUID\"", "\"debuggerIsActive\"", "\"device\""],
        "the state that Bugsnag keeps between the runs of an app, not a crash report",
    ),
    (&["\"log_types\"", "\"legacy\""], "a list of the kinds of Apple's logs, not a crash report"),
];

/// The error for `text`, which none of `formats` recognises.
pub(crate) fn unknown(text: &[u8], formats: &[Format]) -> Error {
    let has = |mark: &&str| has(text, mark);
    if text.starts_with(b"MDMP") {
        let what = "a minidump; give the output of `minidump-stackwalk --json`";
        return Error::Unsupported { what: what.to_owned() };
    }
    if let Some((_, what)) = NO_REPORTS.iter().find(|(marks, _)| marks.iter().all(&has)) {
        return Error::Unsupported { what: (*what).to_owned() };
    }
    let near = formats.iter().filter_map(|format| {
        let (found, missing): (Vec<&str>, Vec<&str>) = format.marks.iter().partition(|mark| has(mark));
        (!found.is_empty()).then_some(NearFormat { name: format.name, found, missing })
    });
    let mut near: Vec<_> = near.collect();
    // The sort is stable: of formats with as many marks, those that come first in the table are nearer.
    near.sort_by_key(|near| (Reverse(near.found.len()), near.missing.len()));
    near.truncate(MAX_NEAR);
    Error::UnknownFormat { near }
}
