//! Verbs that stand in for other tools: `llvm-symbolizer` and `addr2line`, with their options and their output.

pub(crate) mod addr2line;
mod arguments;
mod json;
pub(crate) mod llvm;
mod modules;
mod names;
mod plain;
mod printer;
mod request;
mod sources;

use std::io::{self, BufRead as _, BufReader};

pub(crate) use arguments::with_verb;

use crate::failure::CommandError;
use crate::lookup::stdin_failed;

/// Calls `answer` with the lines of standard input, until there are no more. It gets as many lines at a time as have
/// arrived: clients wait for an answer before they write the next line, or write many lines at once.
fn each_lines(mut answer: impl FnMut(&[String]) -> Result<(), CommandError>) -> Result<(), CommandError> {
    let mut input = BufReader::new(io::stdin().lock());
    loop {
        let mut lines = Vec::new();
        loop {
            let mut line = Vec::new();
            if input.read_until(b'\n', &mut line).map_err(|error| stdin_failed(&error))? == 0 {
                break;
            }
            let line = String::from_utf8_lossy(&line);
            lines.push(line.trim_end_matches(['\r', '\n']).to_owned());
            if !input.buffer().contains(&b'\n') {
                break;
            }
        }
        if lines.is_empty() {
            return Ok(());
        }
        answer(&lines)?;
    }
}
