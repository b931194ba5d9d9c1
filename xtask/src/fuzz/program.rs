//! One program of a fuzzer: its seeds, its run, and its finds.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};

/// Inputs are at most as long.
const MAX_SIZE: u32 = 64 << 10;
/// An input that takes longer, in seconds, or more memory, in megabytes, fails.
const TIMEOUT: u32 = 60;
const MEMORY: u32 = 2048;

/// A compiled fuzzer.
pub(crate) struct Program {
    pub(crate) target: String,
    program: PathBuf,
    seeds: PathBuf,
    corpus: PathBuf,
    /// Where libFuzzer writes inputs that fail.
    artifacts: PathBuf,
    log: PathBuf,
    regressions: PathBuf,
}

/// What a fuzzer did.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Outcome {
    pub(crate) target: String,
    executions: u64,
    per_second: u64,
    coverage: u64,
    /// The inputs that failed, in `fuzz/regressions`.
    pub(crate) finds: Vec<PathBuf>,
}

impl Program {
    /// The program of `target` in the folder `programs`. It writes its corpus, its seeds and its log below `folder`.
    pub(crate) fn new(target: &str, programs: &Path, folder: &Path, regressions: &Path) -> Self {
        let below = |part: &str| folder.join(part).join(target);
        Self {
            target: target.to_owned(),
            program: programs.join(target),
            seeds: below("seeds"),
            corpus: below("corpus"),
            artifacts: below("artifacts"),
            log: folder.join("logs").join(format!("{target}.log")),
            regressions: regressions.join(target),
        }
    }

    /// Fuzzes for some seconds.
    ///
    /// # Errors
    /// A folder cannot be written, the program cannot be run, or it ends with an error without an input that failed.
    pub(crate) fn run(&self, seconds: u64, cost: bool) -> Result<Outcome> {
        for folder in [&self.seeds, &self.corpus, &self.artifacts] {
            std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        }
        std::fs::create_dir_all(self.log.parent().unwrap_or(Path::new("")))?;
        let seeded = Command::new(&self.program).env("SYMDEX_FUZZ_SEEDS", &self.seeds).status();
        let seeded = seeded.with_context(|| self.program.display().to_string())?;
        ensure!(seeded.success(), "{}: no seeds: {seeded}", self.target);
        let mut fuzzer = Command::new(&self.program);
        fuzzer.args([&self.corpus, &self.seeds]);
        if self.regressions.is_dir() {
            fuzzer.arg(&self.regressions);
        }
        if cost {
            fuzzer.env("SYMDEX_FUZZ_COST", "1");
        }
        let status = fuzzer
            .arg(format!("-max_total_time={seconds}"))
            .args([format!("-max_len={MAX_SIZE}"), format!("-timeout={TIMEOUT}")])
            .args([format!("-rss_limit_mb={MEMORY}"), "-print_final_stats=1".to_owned()])
            .arg(format!("-artifact_prefix={}/", self.artifacts.display()))
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(&self.log)?)
            .status()?;
        let log = String::from_utf8_lossy(&std::fs::read(&self.log)?).into_owned();
        let finds = self.finds()?;
        let log_path = self.log.display();
        ensure!(status.success() || !finds.is_empty(), "{}: {status}; see {log_path}", self.target);
        if !finds.is_empty() {
            eprintln!("{}: an input failed; see {log_path}\n{}", self.target, reason(&log));
        }
        Ok(Outcome { finds, ..outcome(&self.target, &log) })
    }

    /// Moves the inputs that failed to `fuzz/regressions`.
    fn finds(&self) -> Result<Vec<PathBuf>> {
        let mut finds = Vec::new();
        for artifact in std::fs::read_dir(&self.artifacts)? {
            let artifact = artifact?;
            let name = artifact.file_name().to_string_lossy().into_owned();
            // A slow unit is only a warning.
            if let Some((kind @ ("crash" | "oom" | "timeout" | "leak"), hash)) = name.split_once('-') {
                std::fs::create_dir_all(&self.regressions)?;
                let find = self.regressions.join(format!("{kind}-{}", hash.get(..12).unwrap_or(hash)));
                std::fs::copy(artifact.path(), &find)?;
                std::fs::remove_file(artifact.path())?;
                finds.push(find);
            }
        }
        Ok(finds)
    }
}

/// The line of a log that says why an input failed, and the next one.
fn reason(log: &str) -> String {
    let is_reason = |line: &&str| line.contains("panicked at") || line.contains("ERROR: ");
    let lines: Vec<&str> = log.lines().skip_while(|line| !is_reason(line)).take(2).collect();
    lines.join("\n")
}

/// The numbers in libFuzzer's log.
fn outcome(target: &str, log: &str) -> Outcome {
    let number = |text: &str| text.split_whitespace().next().and_then(|word| word.parse::<u64>().ok());
    let after = |key: &str| log.lines().rev().find_map(|line| number(line.split_once(key)?.1)).unwrap_or(0);
    Outcome {
        target: target.to_owned(),
        executions: after("stat::number_of_executed_units:"),
        per_second: after("stat::average_exec_per_sec:"),
        coverage: after(" cov: "),
        finds: Vec::new(),
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { target, executions, per_second, coverage, finds } = self;
        write!(f, "| {target} | {executions} | {per_second} | {coverage} | {} |", finds.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "#2\tINITED cov: 100 ft: 120 corp: 3/9b exec/s: 0 rss: 40Mb\n\
        #9\tREDUCE cov: 345 ft: 400 corp: 3/8b lim: 4 exec/s: 0\n\
        thread '<unnamed>' panicked at a.rs:1:2:\nwrong answer\n==1== ERROR: libFuzzer: deadly signal\n\
        stat::number_of_executed_units: 6616\nstat::average_exec_per_sec:     735\n";

    #[test]
    fn numbers_are_read_from_the_end_of_the_log() {
        let outcome = outcome("index", LOG);
        assert_eq!(outcome.to_string(), "| index | 6616 | 735 | 345 | 0 |");
        assert_eq!(reason(LOG), "thread '<unnamed>' panicked at a.rs:1:2:\nwrong answer");
    }

    #[test]
    fn an_input_that_fails_becomes_a_file_among_the_regressions() {
        let folder = std::env::temp_dir().join(format!("symdex-xtask-fuzz-{}", std::process::id()));
        let program = Program::new("index", &folder, &folder, &folder.join("regressions"));
        std::fs::create_dir_all(&program.artifacts).expect("a folder");
        for name in ["crash-0123456789abcdef", "slow-unit-0123"] {
            std::fs::write(program.artifacts.join(name), name).expect("written");
        }
        let find = folder.join("regressions/index/crash-0123456789ab");
        assert_eq!(program.finds().expect("moved"), std::slice::from_ref(&find));
        assert_eq!(std::fs::read(find).expect("there"), b"crash-0123456789abcdef");
        assert!(program.finds().expect("moved before").is_empty());
        std::fs::remove_dir_all(folder).expect("removed");
    }
}
