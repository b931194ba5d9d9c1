//! What a run of `symdex` has printed.

use std::ffi::OsString;
use std::path::Path;
use std::process::Output;

#[derive(Debug)]
pub struct CommandOutput {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl From<Output> for CommandOutput {
    fn from(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).expect("text");
        Self { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }
}

impl CommandOutput {
    /// The output of a command. Panics unless it succeeded without messages.
    #[track_caller]
    pub fn ok(self) -> String {
        assert_eq!((self.code, self.err.as_str()), (Some(0), ""), "{}", self.out);
        self.out
    }

    /// Each line as JSON.
    pub fn json(&self) -> Vec<serde_json::Value> {
        self.out.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
    }

    /// The images of `build --json`, without the failures and the totals.
    pub fn images(&self) -> Vec<serde_json::Value> {
        self.json().into_iter().filter(|line| line.get("outcome").is_some()).collect()
    }
}

/// The arguments in `line`, separated by spaces. `{}` stands for `path`.
pub fn arguments(line: &str, path: &Path) -> impl Iterator<Item = OsString> {
    line.split(' ').map(move |word| if word == "{}" { path.into() } else { word.into() })
}
