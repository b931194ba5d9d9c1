//! The example of the README is equal to `examples/embed.rs`. Cargo compiles that file, so the example compiles too.

use std::fs;
use std::path::Path;

fn read(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).expect("a file of the repository")
}

/// The first code block of the README in `language`.
fn block<'r>(readme: &'r str, language: &str) -> &'r str {
    let (_, rest) = readme.split_once(&format!("\n```{language}\n")).expect("a block");
    rest.split_once("```").expect("the end of the block").0
}

#[test]
fn the_readme_has_the_example_that_is_compiled() {
    assert_eq!(block(&read("../../README.md"), "rust"), read("examples/embed.rs"));
}

#[test]
fn the_readme_names_the_crates_that_the_example_uses() {
    let readme = read("../../README.md");
    let dependencies = block(&readme, "toml");
    assert!(dependencies.starts_with("[dependencies]\n"), "{dependencies}");
    for name in ["symdex", "symdex-demangle"] {
        assert!(read("examples/embed.rs").contains(&format!("{}::", name.replace('-', "_"))), "{name}");
        assert!(
            dependencies.contains(&format!("{name} = {{ path = \"../symdex/crates/{name}\" }}\n")),
            "{dependencies}"
        );
    }
}
