//! `symdex symbolicate --list-formats`: the formats of reports, with an example line of each.

use std::io::{self, BufWriter, Write as _};

use serde::Serialize;
use symdex_report::formats;

use crate::failure;

/// A format of reports, as JSON.
#[derive(Serialize)]
struct FormatView {
    format: &'static str,
    description: &'static str,
    example: &'static str,
}

/// Prints all formats: a paragraph each, or one object per line.
pub(super) fn list(is_json: bool) -> failure::CommandResult {
    let mut out = BufWriter::new(io::stdout().lock());
    for format in formats() {
        let (name, description, example) = (format.name(), format.description(), format.example());
        match is_json {
            true => {
                let view = FormatView { format: name, description, example };
                serde_json::to_writer(&mut out, &view).map_err(io::Error::from)?;
                writeln!(out)?;
            }
            // A binary format has no line to show.
            false if example.is_empty() => writeln!(out, "{name:<16} {description}")?,
            false => writeln!(out, "{name:<16} {description}\n    {}", example.trim_start())?,
        }
    }
    out.flush()?;
    Ok(None)
}
