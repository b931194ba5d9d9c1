//! The command line of the verbs: the verb that the program's name stands for, and arguments from files.

use std::ffi::OsString;
use std::path::Path;

use crate::failure::{Cause, Failure};

/// How many files of arguments a command line can name, those that such files name included. GNU's tools have this
/// limit.
const MAX_FILES: usize = 2000;

/// The command line with the verb that the program's name stands for: `llvm-symbolizer-19 ...` is `symdex
/// llvm-symbolizer ...`. Clients find these tools by their names, which can have a target before them and a version
/// after them.
///
/// Both tools replace an argument `@FILE` by the arguments in that file. llvm-symbolizer takes more of them from the
/// environment variable LLVM_SYMBOLIZER_OPTS.
///
/// # Errors
///
/// If files of arguments name each other without end.
pub(crate) fn with_verb(arguments: impl IntoIterator<Item = OsString>) -> Result<Vec<OsString>, Failure> {
    with_verb_and(arguments, std::env::var_os("LLVM_SYMBOLIZER_OPTS"))
}

/// [`with_verb`] if LLVM_SYMBOLIZER_OPTS is `of_llvm`.
fn with_verb_and(
    arguments: impl IntoIterator<Item = OsString>,
    of_llvm: Option<OsString>,
) -> Result<Vec<OsString>, Failure> {
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
        // The usage in help texts and errors is that of the command with the verb.
        arguments.splice(..1, ["symdex".into(), verb.into()]);
    }
    match arguments.get(1).and_then(|verb| verb.to_str()) {
        Some("llvm-symbolizer") => {
            arguments.splice(2..2, of_llvm.iter().flat_map(|text| words(&text.to_string_lossy())));
            expand(arguments).map(|arguments| arguments.into_iter().map(with_two_dashes).collect())
        }
        Some("addr2line") => expand(arguments),
        _ => Ok(arguments),
    }
}

/// To clap, `-demangle=false` would be the options -d -e -m and so on.
fn with_two_dashes(argument: OsString) -> OsString {
    let word = argument.to_str().and_then(|text| text.strip_prefix('-'));
    let is_long = |word: &&str| ["demangle=", "inlining="].iter().any(|long| word.starts_with(long));
    match word.filter(is_long) {
        Some(word) => format!("--{word}").into(),
        None => argument,
    }
}

/// Replaces each argument `@FILE` by the arguments in that file. Without such a file, the argument stays.
fn expand(arguments: Vec<OsString>) -> Result<Vec<OsString>, Failure> {
    let (mut expanded, mut files) = (Vec::new(), 0);
    // The next argument is the last one.
    let mut left = arguments;
    left.reverse();
    while let Some(argument) = left.pop() {
        match argument.to_str().and_then(|text| std::fs::read(text.strip_prefix('@')?).ok()) {
            None => expanded.push(argument),
            Some(_) if files == MAX_FILES => {
                let message = format!(
                    "{argument:?}: more than {MAX_FILES} files of arguments; perhaps one names itself"
                );
                return Err(Failure::new(Cause::Usage, message));
            }
            Some(bytes) => {
                files += 1;
                let mut words = words(&String::from_utf8_lossy(&bytes));
                words.reverse();
                left.append(&mut words);
            }
        }
    }
    Ok(expanded)
}

/// The arguments in a text. White space separates them, quotes of both kinds join what is in them, and the character
/// after a backslash is part of an argument.
fn words(text: &str) -> Vec<OsString> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => word.get_or_insert_default().extend(chars.next()),
            '\'' | '"' if quote.is_none() => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            _ if quote == Some(c) => quote = None,
            _ if c.is_ascii_whitespace() && quote.is_none() => words.extend(word.take().map(OsString::from)),
            _ => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word.map(OsString::from));
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(words: &[OsString]) -> String {
        words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
    }

    fn rewritten(line: &str) -> String {
        joined(&with_verb_and(line.split(' ').map(OsString::from), None).expect("no files"))
    }

    #[test]
    fn the_name_of_the_program_can_be_a_verb() {
        assert_eq!(rewritten("symdex lookup x"), "symdex lookup x");
        assert_eq!(rewritten("/opt/bin/llvm-symbolizer x"), "symdex llvm-symbolizer x");
        assert_eq!(rewritten("llvm-symbolizer-19 x"), "symdex llvm-symbolizer x");
        assert_eq!(rewritten("llvm-symbolizer.exe"), "symdex llvm-symbolizer");
        assert_eq!(rewritten("x86_64-linux-gnu-addr2line -e x"), "symdex addr2line -e x");
        assert_eq!(rewritten("atos -o x"), "symdex atos -o x");
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

    #[test]
    fn texts_are_split_as_by_gnu() {
        for (text, expected) in [
            ("", &[][..]),
            (" -e\ta.out\n0x10 ", &["-e", "a.out", "0x10"]),
            ("'a b'\"c d\" ''", &["a bc d", ""]),
            (r#"a\ b "c\"d" \"#, &["a b", "c\"d", ""]),
            ("'open", &["open"]),
        ] {
            assert_eq!(words(text), expected, "{text:?}");
        }
    }

    #[test]
    fn files_of_arguments_can_name_more_files() {
        let folder = tempfile::tempdir().expect("made");
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).expect("written");
            format!("@{}", path.display())
        };
        let inner = write("inner", "-demangle=false 'a b'");
        let outer = write("outer", &format!("-e x {inner}"));
        let run = |words: &[&str], of_llvm: Option<&str>| {
            with_verb_and(words.iter().map(OsString::from), of_llvm.map(OsString::from))
        };
        let found = run(&["llvm-symbolizer", &outer, "@none"], Some("-p")).expect("read");
        assert_eq!(joined(&found[1..]), "llvm-symbolizer -p -e x --demangle=false a b @none");
        assert_eq!(found.len(), 8);
        let lookup = ["symdex", "lookup", &outer];
        assert_eq!(run(&lookup, Some("-p")).expect("unchanged"), lookup);
        let own = write("own", &format!("1 @{}", folder.path().join("own").display()));
        let error = run(&["addr2line", &own], None).expect_err("endless");
        assert!(error.cause == Cause::Usage && error.message.contains("names itself"), "{}", error.message);
    }
}
