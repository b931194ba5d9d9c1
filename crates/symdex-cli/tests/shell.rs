//! `symdex completions` and `symdex man`: every command and option is in them, and shells accept the scripts.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};

use crate::common::{folder, symdex};

/// The names of the commands in the help, without `help` itself, which has no man page.
fn commands() -> BTreeSet<String> {
    let help = symdex(["--help"]).ok();
    let (_, list) = help.split_once("\nCommands:\n").expect("a list of commands");
    let lines = list.lines().take_while(|line| !line.is_empty());
    // A longer description continues in a line that is indented further.
    let names = lines.filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    names.filter(|name| !["", "help"].contains(name)).map(str::to_owned).collect()
}

#[test]
fn each_command_has_a_man_page() {
    let folder = folder();
    let pages = folder.path().join("man/man1");
    symdex(["man", pages.to_str().expect("UTF-8")]).ok();
    for command in commands() {
        let page = fs::read_to_string(pages.join(format!("symdex-{command}.1"))).expect(&command);
        assert!(page.contains(".SH SYNOPSIS"), "{page}");
    }
    let build = fs::read_to_string(pages.join("symdex-build.1")).expect("a page");
    assert!(build.contains("\\-\\-max\\-memory") && build.contains("Examples:"), "{build}");
    assert!(pages.join("symdex.1").is_file());
}

#[test]
fn a_folder_for_man_pages_that_is_a_file_is_an_error() {
    let folder = folder();
    let file = folder.path().join("file");
    fs::write(&file, "").expect("written");
    let done = symdex(["man", file.to_str().expect("UTF-8")]);
    assert_eq!(done.code, Some(1), "{}", done.err);
    assert!(done.err.contains("cannot write man pages to "), "{}", done.err);
}

#[test]
fn the_completions_have_all_commands_and_options() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = symdex(["completions", shell]).ok();
        for word in commands().iter().map(String::as_str).chain(["max-memory", "no-config"]) {
            assert!(script.contains(word), "{shell}: {word}");
        }
    }
}

#[test]
fn bash_completes_commands() {
    let script = symdex(["completions", "bash"]).ok();
    let asked = "COMP_WORDS=(symdex sym) COMP_CWORD=1\n_symdex symdex sym symdex\necho \"${COMPREPLY[@]}\"\n";
    let mut bash = Command::new("bash")
        .args(["--norc", "-s"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("bash");
    bash.stdin.take().expect("a pipe").write_all((script + asked).as_bytes()).expect("read");
    let done = bash.wait_with_output().expect("bash ends");
    assert_eq!(String::from_utf8_lossy(&done.stdout), "symbolicate\n");
}
