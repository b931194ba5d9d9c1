//! Recorded answers of Apple's atos.

mod common;

use std::path::Path;
use std::process::Command;

use common::{CommandOutput, command, folder};

/// Compares every row of the corpora's atos-golden.tsv, byte for byte. The corpora are not in the repository; without
/// them, this test says so, and the output of atos is tested on testdata only.
#[test]
fn answers_equal_those_of_apples_atos() {
    let corpora = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpora");
    let Ok(golden) = std::fs::read_to_string(corpora.join("atos-golden.tsv")) else {
        eprintln!("not compared with Apple's atos: {} is missing", corpora.display());
        return;
    };
    let root = folder();
    let unpacked =
        Command::new(corpora.join("unpack")).arg("-d").arg(root.path()).arg("atos-reports").status();
    assert!(unpacked.expect("sh").success(), "unpack needs zstd and tar");
    let mut rows = 0;
    for row in golden.lines().skip(1) {
        let fields: Vec<_> = row.split('\t').collect();
        let [_, _, arch, _, load, pc, _, expected, dsym] = fields[..] else { panic!("{row}") };
        let dsym = root.path().join("atos-reports").join(dsym);
        if !dsym.exists() {
            continue;
        }
        let answer = command().args(["atos", "-arch", arch, "-l", load, "-o"]).arg(&dsym).arg(pc).output();
        assert_eq!(CommandOutput::from(answer.expect("ran")).ok(), format!("{expected}\n"), "{row}");
        rows += 1;
    }
    assert!(rows >= 20, "only {rows} rows have their dSYM");
}
