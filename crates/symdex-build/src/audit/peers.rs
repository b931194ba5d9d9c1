//! Who else answers, and what.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use addr2line::{LookupContinuation as _, LookupResult};
use gimli::{DebugInfo, Dwarf, LittleEndian, RangeLists, Section as _};
use rustc_hash::FxHashMap;

use super::expected::Frame;
use super::facts::{Facts, Unit};
use crate::error::Error;
use crate::image::{Image, Reader};

/// A symbolizer that symdex is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Peer {
    /// The addr2line crate.
    Addr2line,
    /// The llvm-symbolizer program.
    LlvmSymbolizer,
}

impl Peer {
    /// Its name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Peer::Addr2line => "addr2line",
            Peer::LlvmSymbolizer => "llvm-symbolizer",
        }
    }
}

/// What a peer answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Theirs<'c> {
    /// Innermost first; none where it knows nothing.
    Frames(Vec<Frame<'c>>),
    Error(String),
}

impl Theirs<'_> {
    /// Whether they are these frames.
    pub(super) fn are(&self, frames: &[Frame<'_>]) -> bool {
        matches!(self, Theirs::Frames(theirs) if theirs == frames)
    }
}

impl fmt::Display for Theirs<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Theirs::Frames(frames) => f.write_str(&super::text(frames)),
            Theirs::Error(error) => write!(f, "error: {error}"),
        }
    }
}

/// Answers of llvm-symbolizer, one after the other: the frames, innermost first; it always has one, if only an empty one.
pub type LlvmAnswers<'a> = Box<dyn Iterator<Item = Result<Vec<Frame<'static>>, Error>> + 'a>;

/// What asks llvm-symbolizer about these SVMAs, which are sorted: the answers come in the same order. It has to give names as they
/// are in the debug file, the whole inline chain, and the symbol table's names where nothing else is known.
pub type LlvmSymbolizer<'a> = dyn Fn(Vec<u64>) -> Result<LlvmAnswers<'a>, Error> + Sync + 'a;

/// An addr2line of the image's sections; it shares nothing with others, and parses units as it meets them.
pub(super) fn addr2line<'d>(image: &Image<'d>) -> Result<addr2line::Context<Reader<'d>>, Error> {
    let context = addr2line::Context::from_arc_dwarf(Arc::clone(&image.dwarf));
    context.map_err(|error| Error::Malformed { what: format!("addr2line says: {error}") })
}

/// The files that addr2line asks for to read split units, each with this unit alone: it takes the first one.
pub(super) fn for_addr2line<'d>(units: &[Unit<'d>]) -> FxHashMap<u64, Arc<Dwarf<Reader<'d>>>> {
    let split = |unit: &Unit<'d>| {
        let split = unit.split.as_ref()?;
        Some((split.dwo_id?.0, alone(&unit.file.dwarf, split)))
    };
    units.iter().filter_map(split).collect()
}

/// `dwarf` with `unit` as its only unit.
fn alone<'d>(dwarf: &Arc<Dwarf<Reader<'d>>>, unit: &gimli::Unit<Reader<'d>>) -> Arc<Dwarf<Reader<'d>>> {
    let start = unit.header.debug_info_offset().map_or(0, |offset| offset.0);
    let (all, len) = (dwarf.debug_info.reader().slice(), unit.header.length_including_self());
    if (start, len) == (0, all.len()) {
        return Arc::clone(dwarf);
    }
    let info = all.get(start..start.saturating_add(len)).unwrap_or_default();
    Arc::new(Dwarf {
        debug_abbrev: dwarf.debug_abbrev,
        debug_addr: dwarf.debug_addr,
        debug_info: DebugInfo::new(info, LittleEndian),
        debug_line: dwarf.debug_line,
        debug_line_str: dwarf.debug_line_str,
        debug_str: dwarf.debug_str,
        debug_str_offsets: dwarf.debug_str_offsets,
        ranges: RangeLists::new(*dwarf.ranges.debug_ranges(), *dwarf.ranges.debug_rnglists()),
        file_type: dwarf.file_type,
        sup: dwarf.sup.clone(),
        ..Dwarf::default()
    })
}

/// addr2line's answer; it knows nothing of symbol maps, so hidden names are resolved in it.
pub(super) fn ask_addr2line<'c, 'd>(
    facts: &'c Facts<'_, 'd>,
    context: &'c addr2line::Context<Reader<'d>>,
    offset: u64,
) -> Theirs<'c> {
    let image = facts.image;
    let frames = || {
        let mut lookup = context.find_frames(image.info.base + offset);
        let mut found = loop {
            match lookup {
                LookupResult::Output(found) => break found?,
                LookupResult::Load { load, continuation } => {
                    lookup = continuation.resume(facts.for_addr2line.get(&load.dwo_id.0).cloned());
                }
            }
        };
        let mut frames = Vec::new();
        while let Some(frame) = found.next()? {
            let location = frame.location.as_ref();
            frames.push(Frame {
                name: frame.function.map(|function| Cow::Borrowed(image.resolve(function.name.slice()))),
                file: location.and_then(|location| location.file).map(|file| resolved_path(image, file)),
                line: location.and_then(|location| location.line),
            });
        }
        Ok::<_, gimli::Error>(frames)
    };
    frames().map_or_else(|error| Theirs::Error(error.to_string()), Theirs::Frames)
}

/// `path` with each of its parts resolved, from the last absolute one on.
fn resolved_path<'p>(image: &'p Image<'_>, path: &'p str) -> Cow<'p, [u8]> {
    if image.symbol_map.is_none() {
        return Cow::Borrowed(path.as_bytes());
    }
    let parts: Vec<&[u8]> = path.split('/').map(|part| image.resolve(part.as_bytes())).collect();
    let is_absolute = |part: &&[u8]| part.starts_with(b"/");
    let first = parts.iter().rposition(is_absolute).unwrap_or(0);
    Cow::Owned(parts[first..].join(&b"/"[..]))
}
