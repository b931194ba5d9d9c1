//! Recorded answers of Apple's atos.

use crate::common::{CommandOutput, command, folder};
use symdex_testkit::{corpora, corpus};

/// Compares every row of the corpora's atos-golden.tsv, byte for byte.
pub(crate) fn answers_equal_those_of_apples_atos() {
    let root = folder();
    let reports = corpus("atos-reports", root.path());
    let golden = std::fs::read_to_string(corpora().join("atos-golden.tsv")).expect("it is there");
    let mut rows = 0;
    for row in golden.lines().skip(1) {
        let fields: Vec<_> = row.split('\t').collect();
        let [_, _, arch, _, load, pc, _, expected, dsym] = fields[..] else { panic!("{row}") };
        let dsym = reports.join(dsym);
        if !dsym.exists() {
            continue;
        }
        let answer = command().args(["atos", "-arch", arch, "-l", load, "-o"]).arg(&dsym).arg(pc).output();
        assert_eq!(CommandOutput::from(answer.expect("ran")).ok(), format!("{expected}\n"), "{row}");
        rows += 1;
    }
    assert!(rows >= 20, "only {rows} rows have their dSYM");
}
