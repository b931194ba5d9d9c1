//! `symdex export`. What other tools read in its output is compared in the tests of `symdex-symbol-files`.

use std::fs;

use crate::common::{folder, index_of, symdex_on};

#[test]
fn a_file_has_what_standard_output_has() {
    let root = folder();
    let index = index_of("swift-names", root.path());
    for format in ["breakpad", "gsym", "json"] {
        let output = root.path().join(format);
        let to_file = format!("export {{}} --format {format} -o {}", output.display());
        assert_eq!(symdex_on(&index, &to_file).ok(), "");
        // The bytes of GSYM are no text.
        if format != "gsym" {
            let printed = symdex_on(&index, &format!("export {{}} --format {format} -o -")).ok();
            assert_eq!(printed, fs::read_to_string(&output).expect("written"));
        }
        assert!(fs::metadata(&output).expect("written").len() > 500);
    }
}

#[test]
fn names_and_ids_are_as_the_options_say() {
    let root = folder();
    let index = index_of("swift-names", root.path());
    let export = |options: &str| symdex_on(&index, &format!("export {{}} {options}")).ok();
    let breakpad = export("--format breakpad");
    assert!(
        breakpad.starts_with("MODULE mac arm64 4C4C442D55553144A16F02B9D32D2CE10 swift-names\n"),
        "{breakpad}"
    );
    assert!(breakpad.contains("FUNC 328 10 0 loadCount(_:)\n"), "{breakpad}");
    let android = export("--format breakpad --os android --no-demangle");
    let [module, code_id, ..] = android.lines().collect::<Vec<_>>()[..] else { panic!("{android}") };
    assert_eq!(module, "MODULE Android arm64 2D444C4C55554431A16F02B9D32D2CE10 swift-names");
    assert_eq!(code_id, "INFO CODE_ID 4C4C442D55553144A16F02B9D32D2CE1");
    assert!(android.contains("FUNC 328 10 0 $s4Feed9loadCountyS2iF\n"), "{android}");
    assert!(export("--format json").contains("\"name\":\"$s4Feed9loadCountyS2iF\""));
    assert!(export("--format json --demangle").contains("\"name\":\"loadCount(_:)\""));
}

#[test]
fn a_damaged_index_leaves_the_file_as_it_was() {
    let root = folder();
    let index = index_of("inline-dwarf4", root.path());
    let mut bytes = fs::read(&index).expect("an index");
    // In the chunks, which are not read when the index is opened.
    let size = bytes.len();
    let chunks = symdex::Index::open(bytes.clone()).expect("opens").sections()[5];
    let place = usize::try_from(chunks.offset).expect("small") + 8;
    assert!(place < size);
    bytes[place] ^= 1;
    fs::write(&index, bytes).expect("written");
    let output = root.path().join("out.sym");
    fs::write(&output, "old").expect("written");
    let exported = symdex_on(&index, &format!("export {{}} --format breakpad -o {}", output.display()));
    assert_eq!(exported.code, Some(4), "{}", exported.err);
    assert_eq!(fs::read_to_string(&output).expect("there"), "old");
}
