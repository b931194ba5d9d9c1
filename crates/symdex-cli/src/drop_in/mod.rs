//! Verbs that stand in for other tools: `llvm-symbolizer` and `addr2line`, with their options and their output.

pub(crate) mod addr2line;
mod json;
pub(crate) mod llvm;
mod modules;
mod names;
mod plain;
mod printer;
mod request;

use std::ffi::OsString;
use std::io::{self, BufRead as _, BufReader};
use std::path::Path;

use crate::failure::CommandError;
use crate::lookup::stdin_failed;

/// The command line with the verb that the program's name stands for: `llvm-symbolizer-19 ...` is `symdex
/// llvm-symbolizer ...`. Clients find these tools by their names, which can have a target before them and a version
/// after them.
pub(crate) fn with_verb(arguments: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut arguments: Vec<_> = arguments.into_iter().collect();
    let name = arguments.first().and_then(|program| Path::new(program).file_stem()?.to_str());
    let verbs = ["llvm-symbolizer", "addr2line", "atos"];
    let is_name = |name: &str, verb: &str| {
        name.split_once(verb).is_some_and(|(before, after)| {
            let is_version = |c: char| c == '-' || c == '.' || c.is_ascii_digit();
            (before.is_empty() || before.ends_with('-')) && after.chars().all(is_version)
        })
    };
    if let Some(verb) = name.and_then(|name| verbs.into_iter().find(|verb| is_name(name, verb))) {
        arguments.insert(1, verb.into());
    }
    // To clap, -demangle=false would be the options -d -e -m and so on.
    if arguments.get(1).is_some_and(|verb| verb == "llvm-symbolizer") {
        for argument in &mut arguments[2..] {
            let word = argument.to_str().and_then(|text| text.strip_prefix('-'));
            let is_long = |word: &&str| ["demangle=", "inlining="].iter().any(|long| word.starts_with(long));
            if let Some(word) = word.filter(is_long) {
                *argument = format!("--{word}").into();
            }
        }
    }
    arguments
}

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

#[cfg(test)]
mod tests {
    use super::*;

    fn rewritten(line: &str) -> String {
        let words = with_verb(line.split(' ').map(OsString::from));
        words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_name_of_the_program_can_be_a_verb() {
        assert_eq!(rewritten("symdex lookup x"), "symdex lookup x");
        assert_eq!(rewritten("/opt/bin/llvm-symbolizer x"), "/opt/bin/llvm-symbolizer llvm-symbolizer x");
        assert_eq!(rewritten("llvm-symbolizer-19 x"), "llvm-symbolizer-19 llvm-symbolizer x");
        assert_eq!(rewritten("llvm-symbolizer.exe"), "llvm-symbolizer.exe llvm-symbolizer");
        assert_eq!(rewritten("x86_64-linux-gnu-addr2line -e x"), "x86_64-linux-gnu-addr2line addr2line -e x");
        assert_eq!(rewritten("atos -o x"), "atos atos -o x");
        for other in ["symdex", "my-atos-wrapper", "notatos", "/addr2line/symdex lookup"] {
            assert_eq!(rewritten(other), other);
        }
    }

    #[test]
    fn words_with_a_value_get_a_second_dash() {
        let line = "symdex llvm-symbolizer -demangle=false -inlining=true -e x";
        assert_eq!(rewritten(line), "symdex llvm-symbolizer --demangle=false --inlining=true -e x");
        assert_eq!(rewritten("symdex lookup -demangle=false"), "symdex lookup -demangle=false");
    }
}
