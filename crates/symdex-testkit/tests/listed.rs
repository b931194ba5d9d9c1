//! A test program with `main!` runs the tests of its list. The attribute `#[test]` has no effect there.

use std::fs;
use std::path::{Path, PathBuf};

/// The Rust files below `folder`.
fn rust_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for path in fs::read_dir(folder).into_iter().flatten().map(|entry| entry.expect("readable").path()) {
        match path.is_dir() {
            true => rust_files(&path, found),
            false if path.extension().is_some_and(|extension| extension == "rs") => found.push(path),
            false => {}
        }
    }
}

#[test]
fn no_test_of_a_program_with_a_list_is_left_out_by_its_attribute() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut programs = 0;
    for tests in
        fs::read_dir(crates).expect("crates").map(|entry| entry.expect("readable").path().join("tests"))
    {
        let mut files = Vec::new();
        rust_files(&tests, &mut files);
        let text = |file: &Path| fs::read_to_string(file).expect("readable");
        let lists = |file: &&PathBuf| {
            ["main! {", "tests! {"].iter().any(|list| text(file).contains(&format!("symdex_testkit::{list}")))
        };
        for program in files.iter().filter(lists) {
            programs += 1;
            let (code, folder) = (text(program), program.with_file_name(""));
            let names = code.lines().filter_map(|line| line.strip_prefix("mod ")?.strip_suffix(';'));
            let mut modules = vec![program.clone()];
            for name in names {
                let file = folder.join(name).with_extension("rs");
                modules.extend(file.exists().then_some(file));
                rust_files(&folder.join(name), &mut modules);
            }
            for module in &modules {
                assert!(
                    !text(module).contains("\n#[test]\n"),
                    "{}: #[test] does nothing here",
                    module.display()
                );
            }
        }
    }
    assert!(programs > 9, "{programs}");
}
