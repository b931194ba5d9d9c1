//! `symdex build --readable-names`: indexes for readers without a demangler.

use std::path::Path;

use crate::common::{dsym, folder, symdex};
use symdex::{Index, NonMaxU32};

/// Builds `swift-names`, and returns its index.
fn built(output: &Path, options: &[&str]) -> Index<Vec<u8>> {
    let words = [
        "build".as_ref(),
        dsym("swift-names").into_os_string().as_os_str(),
        "-o".as_ref(),
        output.as_os_str(),
    ]
    .map(std::ffi::OsStr::to_owned);
    let done = symdex(words.into_iter().chain(options.iter().map(Into::into)));
    assert_eq!(done.code, Some(0), "{}", done.err);
    let found = std::fs::read_dir(output).expect("there").map(|entry| entry.expect("readable").path());
    let path = found.into_iter().find(|path| path.extension().is_some_and(|end| end == "symdex"));
    Index::open(std::fs::read(path.expect("an index")).expect("readable")).expect("whole")
}

#[test]
fn each_name_has_the_text_of_the_demangler_also_in_a_child_and_in_place_of_an_index_without() {
    let root = folder();
    assert!(!built(root.path(), &[]).has_readable_names());
    let index = built(root.path(), &["--readable-names"]);
    index.verify().expect("whole");
    let mut strings = index.strings();
    let mut readable = 0;
    for id in (0..index.metadata().counts.names).filter_map(NonMaxU32::new) {
        let name = strings.name(id).expect("intact").to_vec();
        let found = strings.readable_name(id).expect("intact");
        let expected = symdex_demangle::demangle(&name);
        assert_eq!(found.unwrap_or(&name), expected.as_bytes());
        readable += usize::from(found.is_some());
    }
    assert!(readable > 5, "{readable}");
    // The index with readable names stays.
    assert!(built(root.path(), &["--force"]).has_readable_names());
    // Another option is no second debug file with the same id.
    for (options, expected) in [(vec!["--unwind", "--readable-names"], "replaced"), (vec!["--force"], "kept")]
    {
        let done = symdex(
            ["build", "--json", "-o"].map(Into::into).into_iter().chain(
                [root.path().as_os_str().to_owned(), dsym("swift-names").into_os_string()]
                    .into_iter()
                    .chain(options.into_iter().map(Into::into)),
            ),
        );
        let image = &done.json()[0];
        assert_eq!((&image["outcome"], &image["conflict"]), (&expected.into(), &false.into()), "{image}");
    }
    let other = folder();
    let of_child = built(other.path(), &["--readable-names", "--isolate"]);
    assert!(of_child.as_bytes() == index.as_bytes());
}
