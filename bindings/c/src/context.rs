//! The memory of a thread: what lookups cache, the last answers, and the last message.

use std::ops::Range;

use symdex::{ImageOffset, LinePolicy, Scratch, Table};

use crate::index::{Failure, Index};
use crate::types::{
    Answer, Frame, SYMDEX_FROM_SYMBOL_TABLE, SYMDEX_HAS_FUNCTION_START, SYMDEX_HAS_LINE, SYMDEX_INLINED,
    Status, Text,
};

/// The most bytes that the texts of all answers of one call take. Without a limit, a forged index of a few kilobytes
/// could fill the memory.
const MAX_TEXTS: usize = 256 << 20;

/// The memory of one thread. A thread has one for any number of indexes.
pub struct Context {
    scratch: Scratch,
    /// The text of the last failure, with a 0 after it.
    message: Vec<u8>,
    /// The texts of the last answers, each with a 0 after it.
    texts: Vec<u8>,
    /// The places of these texts, until all of them are there.
    places: Vec<FramePlaces>,
    frames: Vec<Frame>,
    answers: Vec<Answer>,
}

/// A frame whose texts are places in [`Context::texts`].
struct FramePlaces {
    texts: [Option<Range<usize>>; 3],
    function_start: u64,
    line: u32,
    flags: u32,
}

impl Context {
    pub(crate) fn new() -> Self {
        Self {
            scratch: Scratch::default(),
            message: vec![0],
            texts: Vec::new(),
            places: Vec::new(),
            frames: Vec::new(),
            answers: Vec::new(),
        }
    }

    pub(crate) fn message(&self) -> Text {
        Text::of(&self.message)
    }

    pub(crate) fn set_message(&mut self, message: &str) {
        self.message.clear();
        // C reads up to the first 0.
        self.message.extend(message.bytes().filter(|byte| *byte != 0));
        self.message.push(0);
    }

    /// Looks up one offset. The frames are valid until the next call with this context.
    pub(crate) fn lookup(
        &mut self,
        index: &Index,
        offset: u64,
        policy: LinePolicy,
    ) -> Result<&[Frame], Failure> {
        self.lookup_many(index, &[offset], policy);
        match self.answers.first() {
            Some(answer) if answer.status == Status::Ok => Ok(&self.frames),
            // The message is there already.
            answer => {
                let status = answer.map_or(Status::Internal, |answer| answer.status);
                Err(Failure::new(status, String::from_utf8_lossy(&self.message).trim_end_matches('\0')))
            }
        }
    }

    /// Looks up all offsets. The answers are valid until the next call with this context. The message is that of one of
    /// the answers that failed.
    pub(crate) fn lookup_many(&mut self, index: &Index, offsets: &[u64], policy: LinePolicy) -> &[Answer] {
        let Self { scratch, texts, places, frames, answers, message } = self;
        texts.clear();
        places.clear();
        frames.clear();
        answers.clear();
        let offsets: Vec<ImageOffset> = offsets.iter().copied().map(ImageOffset).collect();
        let mut found: Vec<(Status, Range<usize>)> = vec![(Status::Ok, 0..0); offsets.len()];
        let mut failure = None;
        index.index.lookup_many(&offsets, policy, scratch, |place, answer| {
            let first = places.len();
            let status = match answer {
                Ok(None) => Status::Ok,
                Ok(Some(answer)) => {
                    places.extend(answer.iter().map(|frame| frame_places(&frame, texts)));
                    if texts.len() > MAX_TEXTS { Status::TooLarge } else { Status::Ok }
                }
                Err(error) => {
                    let failed = Failure::from(error);
                    failure = Some(failed.message);
                    failed.status
                }
            };
            if status == Status::TooLarge {
                let start = places.get(first).and_then(FramePlaces::first_text);
                texts.truncate(start.unwrap_or(texts.len()));
                places.truncate(first);
                failure =
                    Some("the answers of one call take more than 256 MiB; look up fewer addresses".into());
            }
            if let Some(found) = found.get_mut(place) {
                *found = (status, first..places.len());
            }
        });
        // No text moves from here on.
        frames.extend(places.iter().map(|frame| frame.frame(texts)));
        answers.extend(found.into_iter().map(|(status, range)| {
            let frames = frames.get(range).unwrap_or_default();
            let start = if frames.is_empty() { std::ptr::null() } else { frames.as_ptr() };
            Answer { frames: start, len: frames.len(), status }
        }));
        if let Some(text) = failure {
            message.clear();
            message.extend(text.bytes().filter(|byte| *byte != 0));
            message.push(0);
        }
        &self.answers
    }
}

impl FramePlaces {
    /// Where its texts begin.
    fn first_text(&self) -> Option<usize> {
        self.texts.iter().flatten().map(|text| text.start).min()
    }

    fn frame(&self, texts: &[u8]) -> Frame {
        let text = |place: &Option<Range<usize>>| {
            let text = place.clone().and_then(|place| texts.get(place));
            text.map_or(Text::NONE, Text::of)
        };
        let [name, function, file] = self.texts.each_ref().map(text);
        let Self { function_start, line, flags, .. } = *self;
        Frame { name, function, file, function_start, line, flags }
    }
}

/// Copies the texts of `frame` to `texts`.
fn frame_places(frame: &symdex::Frame<'_>, texts: &mut Vec<u8>) -> FramePlaces {
    let mut add = |text: &[u8]| {
        let start = texts.len();
        texts.extend_from_slice(text);
        texts.push(0);
        start..texts.len()
    };
    let name = frame.name.map(&mut add);
    let readable = match (frame.readable, frame.name) {
        (Some(readable), _) => Some(add(readable)),
        #[cfg(feature = "demangle")]
        (None, Some(name)) => Some(add(symdex_demangle::demangle(name).as_bytes())),
        _ => name.clone(),
    };
    let file = frame.file.map(&mut add);
    let flags = [
        (frame.line.is_some(), SYMDEX_HAS_LINE),
        (frame.function_start.is_some(), SYMDEX_HAS_FUNCTION_START),
        (frame.inlined, SYMDEX_INLINED),
        (frame.table == Table::SymbolTable, SYMDEX_FROM_SYMBOL_TABLE),
    ];
    FramePlaces {
        texts: [name, readable, file],
        function_start: frame.function_start.map_or(0, |start| start.0),
        line: frame.line.unwrap_or(0),
        flags: flags.into_iter().filter(|(is_set, _)| *is_set).map(|(_, flag)| flag).sum(),
    }
}
