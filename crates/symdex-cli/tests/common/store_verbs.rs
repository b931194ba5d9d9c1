//! Running `symdex store`, and indexes to put into stores.

use std::ffi::OsStr;
use std::path::PathBuf;

use super::{CommandOutput, command, testdata};

/// Three golden indexes and the ids of their images.
pub(crate) fn indexes() -> Vec<(PathBuf, String)> {
    let index = |name: &str| {
        let path = testdata().join(format!("golden/v1/{name}.symdex"));
        let id = symdex::Metadata::read_file(&path).expect("an index").id.to_string();
        (path, id)
    };
    ["inline-dwarf4-1", "icf-1", "swift-names-1"].map(index).into()
}

/// Runs `symdex store VERB URLS MORE`.
pub(crate) fn store<U: AsRef<OsStr>, A: AsRef<OsStr>>(
    verb: &str,
    urls: impl IntoIterator<Item = U>,
    more: impl IntoIterator<Item = A>,
) -> CommandOutput {
    let mut run = command();
    run.args(["store", verb]).args(urls).args(more);
    CommandOutput::from(run.output().expect("the command starts"))
}

/// The totals of a command with `--json`.
pub(crate) fn totals(finished: &CommandOutput) -> serde_json::Value {
    finished.json().last().expect("a line")["totals"].clone()
}
