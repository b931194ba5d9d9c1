//! `symdex.toml` and the environment variables of options.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{CommandOutput, command, debug_file, folder};
use symdex_testkit::images::archive::zip_of;

/// Runs `symdex ARGS` in `folder`, with these environment variables.
fn run(folder: &Path, variables: &[(&str, &str)], args: &[&str]) -> CommandOutput {
    let mut run = command();
    run.current_dir(folder).envs(variables.iter().copied()).args(args);
    CommandOutput::from(run.output().expect("the command starts"))
}

/// A project with `symdex.toml`, and an archive of two entries in a folder of it.
fn project(config: &str) -> (tempfile::TempDir, PathBuf) {
    let root = folder();
    let below = root.path().join("a/b");
    fs::create_dir_all(&below).expect("folders");
    fs::write(root.path().join("symdex.toml"), config).expect("written");
    let cxx = fs::read(debug_file("cxx")).expect("there");
    fs::write(below.join("two.zip"), zip_of(&[("notes", b"x"), ("cxx", &cxx)])).expect("written");
    (root, below)
}

#[test]
fn options_are_preferred_to_the_environment_and_that_to_the_file() {
    let (root, below) = project("max-entries = 1\n");
    let build = ["build", "two.zip", "-o", "out"];
    let variable = [("SYMDEX_MAX_ENTRIES", "2")];
    assert_eq!(run(&below, &[], &build).code, Some(6), "the file of a folder above");
    assert_eq!(run(&below, &variable, &build).code, Some(0), "the environment");
    let option = run(&below, &variable, &[&build[..], &["--max-entries", "1"]].concat());
    assert!(option.code == Some(6) && option.err.contains("more than 1 entries"), "{}", option.err);
    assert_eq!(run(&below, &[], &[&build[..], &["--no-config"]].concat()).code, Some(0));
    let other = root.path().join("other.toml");
    fs::write(&other, "max-entries = 9\n").expect("written");
    let named = run(&below, &[], &[&build[..], &["--config", other.to_str().expect("UTF-8")]].concat());
    assert_eq!(named.code, Some(0), "{}", named.err);
    assert_eq!(run(&below, &[], &["config", "--config=gone.toml"]).code, Some(5));
}

#[test]
fn lists_of_the_file_are_the_values_of_an_option_that_may_be_repeated() {
    let (root, below) = project("index = [\"empty\", \"indexes\"]\n");
    fs::create_dir(root.path().join("empty")).expect("a folder");
    crate::common::index_of("cxx", &root.path().join("indexes"));
    let id = fs::read_dir(root.path().join("indexes")).expect("there").next().expect("one").expect("one");
    let id = id.file_name().to_string_lossy().trim_end_matches(".symdex").to_owned();
    let frame =
        "Thread 0 Crashed:\n0   cxx                           \t0x0000000104a34400 0x104a34000 + 1024";
    let image = format!("0x104a34000 - 0x104a3ffff +cxx arm64  <{id}> /var/containers/cxx");
    let report = format!("Report Version:      104\n\n{frame}\n\nBinary Images:\n{image}\n");
    fs::write(below.join("stack"), report).expect("written");
    let needs = run(&below, &[], &["symbolicate", "--needs", "stack"]);
    assert!(needs.out.starts_with("found "), "{needs:?}");
}

#[test]
fn stores_of_the_file_are_used_if_no_option_and_no_variable_names_any() {
    let (root, below) = project("store = [\"one\", \"two stores\"]\n");
    let count = |name: &str| fs::read_dir(root.path().join(name)).map_or(0, Iterator::count);
    assert_eq!(run(&below, &[], &["build", "two.zip"]).code, Some(0));
    assert_eq!((count("one"), count("two stores")), (1, 1));
    let other = root.path().join("other").display().to_string();
    assert_eq!(run(&below, &[("SYMDEX_STORE", &other)], &["build", "two.zip"]).code, Some(0));
    assert_eq!(run(&below, &[], &["build", "two.zip", "--isolate", "-o", "out"]).code, Some(0));
    assert_eq!((count("other"), count("a/b/out")), (1, 1));
    fs::write(root.path().join("symdex.toml"), "\nstore = \"ftp://host\"\n").expect("written");
    let wrong = run(&below, &[], &["build", "two.zip"]);
    assert!(wrong.code == Some(2) && wrong.err.contains("symdex.toml:2: `store`: ftp: "), "{}", wrong.err);
    let without = run(&below, &[], &["build", "two.zip", "--no-config", "--isolate", "-o", "out"]);
    assert_eq!(without.code, Some(0), "{}", without.err);
}

#[test]
fn a_key_without_a_value_is_true_or_false() {
    let (_root, below) = project("unwind = true\n");
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/elf/gcc-parts.so");
    let has_rows = |output: &str, variables: &[(&str, &str)], options: &[&str]| {
        let build = [&["build", file.to_str().expect("UTF-8"), "-o", output], options].concat();
        assert_eq!(run(&below, variables, &build).code, Some(0));
        let index = format!("{output}/318e3a4a9b7cb3461e8534a38e7dc66e825362ea.symdex");
        run(&below, &[], &["inspect", &index]).ok().contains("unwind: 42 rows")
    };
    assert!(has_rows("file", &[], &[]));
    assert!(!has_rows("option", &[], &["--no-unwind"]));
    assert!(!has_rows("variable", &[("SYMDEX_UNWIND", "false")], &[]));
    assert!(has_rows("both", &[("SYMDEX_UNWIND", "false")], &["--unwind"]));
}

#[test]
fn the_configuration_in_force_is_shown_with_its_sources() {
    let (root, below) = project("debug-dir = [\"debug\", \"/usr/lib/debug\"]\nmax-memory = \"512MB\"\n");
    let shown = run(&below, &[("SYMDEX_JOBS", "3")], &["config", "--json"]);
    let row = |key: &str| shown.json().into_iter().find(|row| row["key"] == key).expect("a row");
    let file = root.path().canonicalize().expect("there").join("symdex.toml");
    let debug = file.with_file_name("debug").display().to_string();
    assert_eq!(row("debug-dir")["values"], serde_json::json!([debug, "/usr/lib/debug"]));
    assert_eq!(row("max-memory")["source"], format!("{}:2", file.display()));
    assert_eq!(
        row("jobs"),
        serde_json::json!({"key": "jobs", "values": ["3"], "source": "environment variable SYMDEX_JOBS"})
    );
    assert_eq!(
        (&row("max-ratio")["values"][0], &row("max-ratio")["source"]),
        (&"200".into(), &"built in".into())
    );
    assert_eq!(row("store")["source"], "not set");
    let text = run(&below, &[], &["config"]).ok();
    assert!(text.lines().any(|line| line.starts_with("max-memory      512MB ")), "{text}");
}

#[test]
fn an_unknown_key_names_the_line_and_the_keys() {
    let (_root, below) = project("jobs = 2\nmax-entry = 5\n");
    let failed = run(&below, &[], &["build", "two.zip"]);
    assert_eq!(failed.code, Some(2));
    assert!(
        failed.err.contains("symdex.toml:2: unknown key `max-entry`; the keys are store, "),
        "{}",
        failed.err
    );
}

#[cfg(unix)]
#[test]
fn a_password_needs_a_private_file_and_is_never_shown() {
    use std::os::unix::fs::PermissionsExt as _;
    let (root, below) = project("store = \"redis://user:geheim@host/0\"\n");
    let file = root.path().join("symdex.toml");
    let mode = |mode| fs::set_permissions(&file, fs::Permissions::from_mode(mode)).expect("changed");
    mode(0o644);
    let refused = run(&below, &[], &["config"]);
    assert_eq!(refused.code, Some(2));
    assert!(
        refused.err.contains(":1: `store` has a password") && refused.err.contains("SYMDEX_STORE"),
        "{}",
        refused.err
    );
    mode(0o600);
    let shown = run(&below, &[], &["config"]).ok();
    assert!(shown.contains("redis://user:***@host/0"), "{shown}");
    let variable = [("SYMDEX_STORE", "redis://user:geheim@other/0")];
    let outputs = [refused.err, shown, run(&below, &variable, &["config"]).ok()];
    let help = ["build", "symbolicate"].map(|command| run(&below, &variable, &[command, "--help"]).ok());
    assert!(outputs.iter().chain(&help).all(|text| !text.contains("geheim")));
}

#[test]
#[cfg(unix)]
fn a_file_of_another_user_is_refused_unless_it_is_named() {
    use std::os::unix::fs::PermissionsExt as _;

    let (root, below) = project("max-entries = 1\n");
    let file = root.path().join("symdex.toml");
    let named = file.to_str().expect("UTF-8");
    let build = |more: &[&str]| run(&below, &[], &[&["build", "two.zip", "-o", "out"], more].concat());
    let check = |why: &str| {
        let refused = build(&[]);
        assert_eq!(refused.code, Some(2), "{}", refused.err);
        for part in [named, why, "--config", "--no-config"] {
            assert!(refused.err.contains(part), "{part}: {}", refused.err);
        }
        assert_eq!(build(&["--config", named]).code, Some(6), "the limit of the file counts");
        assert_eq!(build(&["--no-config"]).code, Some(0));
    };
    let set_mode = |mode| fs::set_permissions(&file, fs::Permissions::from_mode(mode)).expect("our file");
    set_mode(0o646);
    check("every user may write to it");
    set_mode(0o664);
    assert_eq!(build(&[]).code, Some(6), "the group of the file may be the user's own");
    // Only root can give files away.
    if std::os::unix::fs::chown(&file, Some(12345), None).is_ok() {
        check("it belongs to another user");
    }
    let link = below.join("symdex.toml");
    std::os::unix::fs::symlink(&file, &link).expect("a link");
    if std::os::unix::fs::chown(&file, Some(0), None).is_ok()
        && std::os::unix::fs::lchown(&link, Some(12345), None).is_ok()
    {
        let refused = build(&[]);
        assert!(refused.err.contains("it belongs to another user"), "{}", refused.err);
    }
}
