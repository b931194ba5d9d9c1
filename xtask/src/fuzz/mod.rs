//! `cargo xtask fuzz`: compiles the programs of the fuzzers and runs them.

mod program;

use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context as _, Result, bail, ensure};

use self::program::{Outcome, Program};
use crate::workspace;

const HELP: &str = include_str!("help.txt");

/// What instruments code for libFuzzer and AddressSanitizer. cargo-fuzz uses the same flags.
const FLAGS: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares -Zsanitizer=address --cfg fuzzing";

/// The arguments of the command.
#[derive(Debug, PartialEq)]
struct Arguments {
    /// All targets if it is empty.
    targets: Vec<String>,
    seconds: u64,
    jobs: usize,
    /// Whether an input fails if it costs too much.
    cost: bool,
    list: bool,
}

impl Arguments {
    /// Parses the arguments of `fuzz`; `None` if they are invalid.
    fn parse(words: &[&str]) -> Option<Self> {
        let mut arguments = Self { targets: Vec::new(), seconds: 60, jobs: 1, cost: false, list: false };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let mut number = || words.next()?.parse::<u64>().ok().filter(|number| *number > 0);
            match *word {
                "--minutes" => arguments.seconds = number()?.checked_mul(60)?,
                "--seconds" => arguments.seconds = number()?,
                "--jobs" => arguments.jobs = usize::try_from(number()?).ok()?,
                "--cost" => arguments.cost = true,
                "--list" => arguments.list = true,
                option if option.starts_with('-') => return None,
                target => arguments.targets.push(target.to_owned()),
            }
        }
        Some(arguments)
    }
}

/// Runs the fuzzers that `words` name, and prints a table of what they did.
///
/// # Errors
/// The words are invalid, there is no nightly compiler, a program cannot be compiled, or an input failed.
pub(crate) fn run(words: &[&str]) -> Result<()> {
    if words.contains(&"--help") {
        print!("{HELP}");
        return Ok(());
    }
    let arguments = Arguments::parse(words).context("unknown arguments; see cargo xtask fuzz --help")?;
    let targets = chosen(&targets()?, &arguments.targets)?;
    if arguments.list {
        targets.iter().for_each(|(target, about)| println!("{target:15} {about}"));
        return Ok(());
    }
    let target_folder = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    let folder = workspace()?.join(target_folder).join("fuzz");
    let programs = compile(&folder, &targets)?;
    let outcomes = run_all(&programs, &arguments)?;
    println!("| target | executions | executions/s | edges covered | finds |\n|---|---|---|---|---|");
    outcomes.iter().for_each(|outcome| println!("{outcome}"));
    let finds: Vec<String> =
        outcomes.iter().flat_map(|outcome| &outcome.finds).map(|path| path.display().to_string()).collect();
    ensure!(
        finds.is_empty(),
        "{} inputs failed. `cargo test --package symdex-fuzz` replays them; commit them with the correction:\n{}",
        finds.len(),
        finds.join("\n")
    );
    Ok(())
}

/// The name of each target, and the first line of its documentation.
fn targets() -> Result<Vec<(String, String)>> {
    let folder = workspace()?.join("fuzz/src/targets");
    let mut targets = Vec::new();
    for entry in std::fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path)?;
        let about = text.lines().next().unwrap_or_default().trim_start_matches("//! ").to_owned();
        targets.extend((name != "mod").then_some((name, about)));
    }
    targets.sort();
    Ok(targets)
}

/// The targets with the names `wanted`; all if there are none.
fn chosen(targets: &[(String, String)], wanted: &[String]) -> Result<Vec<(String, String)>> {
    if let Some(unknown) = wanted.iter().find(|name| targets.iter().all(|(target, _)| target != *name)) {
        bail!("there is no target {unknown}; cargo xtask fuzz --list lists the targets");
    }
    let is_wanted = |target: &String| wanted.is_empty() || wanted.contains(target);
    Ok(targets.iter().filter(|(target, _)| is_wanted(target)).cloned().collect())
}

/// Compiles the programs of the targets with the nightly compiler.
fn compile(folder: &Path, targets: &[(String, String)]) -> Result<Vec<Program>> {
    let version = Command::new("rustup").args(["run", "nightly", "rustc", "-vV"]).output();
    let version = version.ok().filter(|output| output.status.success());
    let version = version.context("fuzzing needs a nightly compiler: rustup toolchain install nightly")?;
    let version = String::from_utf8(version.stdout)?;
    let host =
        version.lines().find_map(|line| line.strip_prefix("host: ")).context("no host in rustc -vV")?;
    // A target triple keeps the flags from programs that run while compiling.
    let status = Command::new("rustup")
        .args(["run", "nightly", "cargo", "build", "--release", "--locked", "--target", host, "--target-dir"])
        .arg(folder)
        .args(targets.iter().flat_map(|(target, _)| ["--bin", target]))
        .current_dir(workspace()?.join("fuzz/libfuzzer"))
        .env("RUSTFLAGS", FLAGS)
        // The cargo that runs this program has set these for its own compiler.
        .env_remove("CARGO")
        .env_remove("RUSTC")
        .status()
        .context("cannot run rustup")?;
    ensure!(status.success(), "compiling the fuzzers ended with {status}");
    let programs = folder.join(host).join("release");
    let regressions = workspace()?.join("fuzz/regressions");
    Ok(targets.iter().map(|(target, _)| Program::new(target, &programs, folder, &regressions)).collect())
}

/// Runs the programs, as many at a time as the arguments say, and returns what they did in their order.
fn run_all(programs: &[Program], arguments: &Arguments) -> Result<Vec<Outcome>> {
    let (next, outcomes) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        while let Some(program) = programs.get(next.fetch_add(1, Ordering::Relaxed)) {
            eprintln!("{} for {} seconds", program.target, arguments.seconds);
            let outcome = program.run(arguments.seconds, arguments.cost);
            outcomes.lock().expect("no thread panicked").push(outcome);
        }
    };
    std::thread::scope(|scope| (0..arguments.jobs).for_each(|_| _ = scope.spawn(work)));
    let outcomes = outcomes.into_inner().expect("no thread panicked");
    let mut outcomes = outcomes.into_iter().collect::<Result<Vec<Outcome>>>()?;
    outcomes.sort_by(|a, b| a.target.cmp(&b.target));
    Ok(outcomes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_given_in_minutes_or_seconds() {
        let seconds = |words: &[&str]| Arguments::parse(words).map(|arguments| arguments.seconds);
        assert_eq!(seconds(&["index", "--minutes", "2"]), Some(120));
        assert_eq!(seconds(&["--seconds", "5", "--jobs", "2", "--cost"]), Some(5));
        assert_eq!(seconds(&[]), Some(60));
        for wrong in [&["--seconds"][..], &["--seconds", "0"], &["--jobs", "x"], &["--fast"]] {
            assert_eq!(seconds(wrong), None);
        }
    }

    #[test]
    fn each_target_of_the_repository_can_be_chosen_and_says_what_it_is() {
        let targets = targets().expect("readable");
        assert!(targets.len() > 10 && targets.iter().all(|(_, about)| about.ends_with('.')), "{targets:?}");
        assert_eq!(chosen(&targets, &[]).expect("all").len(), targets.len());
        assert_eq!(chosen(&targets, &["index".to_owned()]).expect("one")[0].0, "index");
        let error = chosen(&targets, &["other".to_owned()]).expect_err("no such target");
        assert!(error.to_string().contains("no target other"), "{error}");
    }
}
