//! The spelling of atos's options.

use std::ffi::OsString;

/// Options of atos that are a word after one dash.
const WORDS: [&str; 7] =
    ["arch", "offset", "textExecAddress", "printHeader", "fullPath", "dedup", "inlineFrames"];
/// Options whose next argument is a value, not an option.
const WITH_VALUE: [&str; 10] = [
    "-o",
    "-l",
    "-s",
    "-d",
    "-f",
    "--delimiter",
    "--id",
    "--arch",
    "--textExecAddress",
    // Not supported. It is listed so that clap refuses it, and not the name after it.
    "-p",
];

/// The command line with two dashes before each option of atos that is a word. To clap, `-arch` would be the options
/// `-a -r -c -h`. The command lines of other commands are not changed.
pub(crate) fn with_double_dashes(arguments: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut arguments: Vec<_> = arguments.into_iter().collect();
    if arguments.get(1).is_none_or(|command| command != "atos") {
        return arguments;
    }
    let mut is_value = false;
    for argument in arguments.iter_mut().skip(2) {
        if std::mem::take(&mut is_value) {
            continue;
        }
        if argument == "--" {
            break;
        }
        let word = argument.to_str().and_then(|text| text.strip_prefix('-'));
        if let Some(word) = word.filter(|word| WORDS.contains(word)) {
            *argument = format!("--{word}").into();
        }
        is_value = WITH_VALUE.iter().any(|option| argument == option);
    }
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewritten(line: &str) -> String {
        let words = with_double_dashes(line.split(' ').map(OsString::from));
        words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn words_get_a_second_dash_and_values_stay() {
        assert_eq!(
            rewritten("symdex atos -arch arm64 -o x -offset -i 0x1"),
            "symdex atos --arch arm64 -o x --offset -i 0x1"
        );
        assert_eq!(rewritten("symdex atos -d -offset --fullPath"), "symdex atos -d -offset --fullPath");
        assert_eq!(rewritten("symdex atos -o a -- -arch"), "symdex atos -o a -- -arch");
        assert_eq!(rewritten("symdex lookup -arch"), "symdex lookup -arch");
        assert_eq!(rewritten("symdex"), "symdex");
    }
}
