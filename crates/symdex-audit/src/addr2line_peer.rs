//! The addr2line crate as a peer.

use std::borrow::Cow;
use std::sync::Arc;

use addr2line::{Context, LookupContinuation as _, LookupResult};
use symdex::Table;
use symdex_build::{Error, Image};

use crate::classes::Class;
use crate::expected::{Expected, Frame};
use crate::facts::Facts;
use crate::image::{Reader, resolve};
use crate::peer::{Peer, PeerAnswer, Question};
use crate::units::Unit;

/// The name of addr2line in reports.
pub const ADDR2LINE: &str = "addr2line";

/// The addr2line crate.
pub(crate) struct Addr2line;

impl Peer for Addr2line {
    fn name(&self) -> &'static str {
        ADDR2LINE
    }

    fn reads_symbol_table(&self) -> bool {
        false
    }

    fn shows_empty_inlined(&self) -> bool {
        false
    }

    fn finds_symbol(&self, _question: &Question<'_, '_>) -> bool {
        false
    }

    fn frames<'f>(&self, expected: Option<Expected<'f>>) -> Vec<Frame<'f>> {
        let in_dwarf = expected.filter(|expected| expected.table == Table::Dwarf);
        in_dwarf.map_or(Vec::new(), |expected| expected.frames)
    }

    /// It uses the root DIE's list of ranges, else `.debug_aranges`, else the root's one range, else the sequences.
    fn looks_into(&self, question: &Question<'_, '_>, unit: &Unit<'_>) -> bool {
        let root_first = unit.dies.root_has_list || unit.ranges_in_aranges().is_empty();
        let declared = if root_first { unit.ranges_in_root() } else { unit.ranges_in_aranges() };
        if declared.is_empty() {
            let offset = question.offset;
            return unit.lines.by_address.all().iter().any(|s| s.start <= offset && offset < s.end);
        }
        let svma = question.svma();
        declared.iter().any(|(start, end)| *start <= svma && svma < *end)
    }

    fn explain_line(&self, ours: Option<u32>, theirs: Option<u32>) -> Option<Class> {
        ((ours, theirs) == (Some(0), None)).then_some(Class::LINE_ZERO)
    }
}

/// addr2line with the image's sections. It shares nothing with other instances, and parses a unit on first use.
pub(crate) fn context<'d>(facts: &Facts<'_, 'd>) -> Result<Context<Reader<'d>>, Error> {
    let context = Context::from_arc_dwarf(Arc::clone(&facts.dwarf));
    context.map_err(|error| Error::Malformed { what: format!("addr2line says: {error}") })
}

/// addr2line's answer. addr2line does not read symbol maps, so hidden names are resolved here.
pub(crate) fn ask<'c, 'd>(
    facts: &'c Facts<'_, 'd>,
    context: &'c Context<Reader<'d>>,
    offset: u64,
) -> PeerAnswer<'c> {
    let image = facts.image;
    let frames = || {
        let mut lookup = context.find_frames(image.info().base + offset);
        let mut found = loop {
            match lookup {
                LookupResult::Output(found) => break found?,
                LookupResult::Load { load, continuation } => {
                    lookup = continuation.resume(facts.split_files.get(&load.dwo_id.0).cloned());
                }
            }
        };
        let mut frames = Vec::new();
        while let Some(frame) = found.next()? {
            let location = frame.location.as_ref();
            frames.push(Frame {
                name: frame.function.map(|function| Cow::Borrowed(resolve(image, function.name.slice()))),
                file: location.and_then(|location| location.file).map(|file| resolved_path(image, file)),
                line: location.and_then(|location| location.line),
            });
        }
        Ok::<_, gimli::Error>(frames)
    };
    frames().map_or_else(|error| PeerAnswer::Error(error.to_string()), PeerAnswer::Frames)
}

/// `path` with each of its parts resolved, from the last absolute one on.
fn resolved_path<'p>(image: &'p Image<'_>, path: &'p str) -> Cow<'p, [u8]> {
    if image.symbol_map().is_none() {
        return Cow::Borrowed(path.as_bytes());
    }
    let parts: Vec<&[u8]> = path.split('/').map(|part| resolve(image, part.as_bytes())).collect();
    let is_absolute = |part: &&[u8]| part.starts_with(b"/");
    let first = parts.iter().rposition(is_absolute).unwrap_or(0);
    Cow::Owned(parts[first..].join(&b"/"[..]))
}
