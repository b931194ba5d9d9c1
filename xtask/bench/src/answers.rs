//! What is stored of an answer: a digest while it is timed, and a summary to compare tools.

use std::path::Path;

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use crate::readers::Frame;

/// A digest of an answer that is cheap to compute. It covers the lines, and the length and the first and last eight
/// bytes of each name and path. A tool must produce the strings to compute it.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Digest(u64);

impl Digest {
    /// Adds a frame. This is part of the measured time, and only one step of each frame waits for the frame before.
    #[inline]
    pub fn add(&mut self, frame: &Frame<'_>) {
        let hash = |text: Option<&[u8]>, turn| text.map_or(0, text_hash).rotate_left(turn);
        let texts = hash(frame.name, 7) ^ hash(frame.folder, 19) ^ hash(frame.file, 37);
        let line = frame.line.map_or(u64::MAX, u64::from);
        self.0 = (self.0.rotate_left(5) ^ texts ^ line).wrapping_mul(FACTOR);
    }
}

/// An odd number made of the golden ratio.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// A hash of the length of a text, and of its first and last eight bytes.
fn text_hash(text: &[u8]) -> u64 {
    let ends = [text.first_chunk::<8>(), text.last_chunk::<8>()];
    let [first, last] = ends.map(|end| end.map_or(0, |end| u64::from_le_bytes(*end)));
    (text.len() as u64 ^ first.rotate_left(7) ^ last.rotate_left(31)).wrapping_mul(FACTOR)
}

/// The part of an answer that tools are compared by.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// The names, innermost first.
    pub names: Vec<String>,
    /// The line of the innermost frame. 0 if there is none, because most tools do not distinguish the two.
    pub line: u32,
}

impl Summary {
    /// Adds a frame.
    pub fn add(&mut self, frame: &Frame<'_>) {
        if self.names.is_empty() {
            self.line = frame.line.unwrap_or(0);
        }
        self.names.push(String::from_utf8_lossy(frame.name.unwrap_or_default()).into_owned());
    }
}

/// Writes summaries to `path`.
///
/// # Errors
/// The file cannot be written.
pub fn write(path: &Path, summaries: &[Summary]) -> Result<()> {
    Ok(std::fs::write(path, serde_json::to_vec(summaries)?)?)
}

/// Reads summaries that [`write`] wrote.
///
/// # Errors
/// The file is missing or damaged.
pub fn read(path: &Path) -> Result<Vec<Summary>> {
    let bytes = std::fs::read(path).with_context(|| path.display().to_string())?;
    Ok(serde_json::from_slice(&bytes)?)
}

/// The number of answers in which two tools agree.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Agreement {
    /// The number of compared answers.
    pub answers: u64,
    /// Answers with the same name of the innermost function.
    pub name: u64,
    /// Answers with the same innermost line.
    pub line: u64,
    /// Answers with the same names in the whole chain.
    pub chain: u64,
}

/// Compares the answers of another tool with symdex's. If only one of them has an answer, nothing agrees.
pub fn compare(own: &[Summary], other: &[Summary]) -> Agreement {
    let mut agreement = Agreement::default();
    for (own, other) in own.iter().zip(other) {
        let names =
            |a: &[String], b: &[String]| a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_name(a, b));
        let innermost = |summary: &Summary| summary.names.len().min(1);
        agreement.answers += 1;
        agreement.name += u64::from(names(&own.names[..innermost(own)], &other.names[..innermost(other)]));
        agreement.line += u64::from(own.line == other.line && innermost(own) == innermost(other));
        agreement.chain += u64::from(names(&own.names, &other.names));
    }
    agreement
}

/// Compares two names. Some tools keep Mach-O's leading `_`.
fn same_name(own: &str, other: &str) -> bool {
    own == other || other.strip_prefix('_') == Some(own)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(names: &[&str], line: u32) -> Summary {
        Summary { names: names.iter().map(|name| (*name).to_owned()).collect(), line }
    }

    #[test]
    fn agreement_is_counted_for_name_line_and_chain() {
        let own = [summary(&["leaf", "outer"], 5), summary(&["f"], 1), summary(&[], 0)];
        let all = compare(&own, &[summary(&["_leaf", "outer"], 5), summary(&["f"], 1), summary(&[], 0)]);
        assert_eq!((all.answers, all.name, all.line, all.chain), (3, 3, 3, 3));
        let some = compare(&own, &[summary(&["leaf"], 6), summary(&["g"], 1), summary(&["h"], 0)]);
        assert_eq!((some.answers, some.name, some.line, some.chain), (3, 1, 1, 0));
    }

    #[test]
    fn every_part_of_a_frame_changes_the_digest() {
        let digest = |name: &[u8], file: Option<&[u8]>, line| {
            let mut digest = Digest::default();
            digest.add(&Frame { name: Some(name), folder: None, file, line });
            digest
        };
        let one = digest(b"function", Some(b"/folder/file.c"), Some(7));
        let others = [
            digest(b"functiom", Some(b"/folder/file.c"), Some(7)),
            digest(b"function", Some(b"/folder/file.h"), Some(7)),
            digest(b"function", Some(b"/folder/file.c"), Some(8)),
            digest(b"function", Some(b"/folder/file.c"), None),
            digest(b"function", None, Some(7)),
        ];
        assert!(others.iter().all(|other| *other != one));
    }
}
