//! Answers as text, for reports.

use std::borrow::Cow;

use symdex::Table;

use crate::expected::{Expected, Frame};

/// The whole answer in one line.
pub(crate) fn of_answer(answer: &Option<Expected<'_>>) -> String {
    let Some(Expected { frames, function_start, table }) = answer else { return of_frames(&[]) };
    let table = if *table == Table::Dwarf { "" } else { " (symbol_table)" };
    match function_start {
        Some(start) => format!("{}{table}, function at {start:#x}", of_frames(frames)),
        None => format!("{}{table}", of_frames(frames)),
    }
}

/// The frames in one line, innermost first.
pub(crate) fn of_frames(frames: &[Frame<'_>]) -> String {
    if frames.is_empty() {
        return "nothing".to_owned();
    }
    let string = |bytes: &Option<Cow<'_, [u8]>>| match bytes {
        Some(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        None => "-".to_owned(),
    };
    let frame = |frame: &Frame<'_>| {
        let line = frame.line.map_or("-".to_owned(), |line| line.to_string());
        format!("{} ({}:{line})", string(&frame.name), string(&frame.file))
    };
    frames.iter().map(frame).collect::<Vec<_>>().join(" < ")
}
