//! `symdex symbolicate --list-formats`.

use crate::common::symdex;
use symdex_report::formats;

#[test]
fn formats_are_listed_with_an_example_each() {
    let text = symdex(["symbolicate", "--list-formats"]).ok();
    let json = symdex(["symbolicate", "--list-formats", "--json"]);
    assert_eq!(json.json().len(), formats().len());
    for (format, json) in formats().iter().zip(json.json()) {
        // A binary format has no line to show.
        let example = format.example().trim_start();
        assert!(example.is_empty() || text.contains(&format!("\n    {example}\n")), "{text}");
        assert!(text.contains(&format!("{:<16} {}\n", format.name(), format.description())), "{text}");
        assert_eq!(json["format"], format.name());
        assert_eq!(
            (&json["description"], &json["example"]),
            (&format.description().into(), &format.example().into())
        );
    }
}
