//! `cargo xtask bench`: compares symdex with its peers on the same debug files and addresses, in one run.
//!
//! Each measurement runs in a separate process, which is this program with a subcommand.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result, ensure};
use symdex::Index;

mod answers;
mod batch;
mod builds;
mod cost;
mod goals;
mod input;
mod lookups;
mod machine;
mod markdown;
mod questions;
mod readers;
mod report;
mod resolve;
mod service;
mod tool;

use input::Input;
use questions::Questions;
use report::{InputFigures, LookupFigures, Report};
use tool::{READERS, Tool};

const USAGE: &str = include_str!("usage.txt");

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["measure", streams, ..] => measure(streams, &args[2..]),
        ["build", tool, file, to] => {
            Tool::named(tool).and_then(|tool| builds::run(tool, Path::new(file), Path::new(to)))
        }
        ["lookup", tool, file, questions, to] => lookup(tool, Path::new(file), questions, Path::new(to)),
        ["resolve", tool, file, questions] => resolve(tool, Path::new(file), questions),
        words => match Arguments::parse(words) {
            Some(arguments) => arguments.run(),
            None => {
                eprint!("{USAGE}");
                return ExitCode::from(2);
            }
        },
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

struct Arguments {
    corpora: Vec<String>,
    runs: usize,
    builds_alone: bool,
    service: bool,
    folder: PathBuf,
}

/// The options without a value.
const FLAGS: [&str; 2] = ["--builds", "--service"];

impl Arguments {
    fn run(&self) -> Result<()> {
        let scratch = tempfile::tempdir()?;
        let corpora = if self.corpora.is_empty() { input::default_corpora()? } else { self.corpora.clone() };
        let inputs = corpora.iter().map(|corpus| input::inputs(corpus, scratch.path()));
        let inputs: Vec<Input> = inputs.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect();
        if self.service {
            return service::run(&inputs, self.runs, &self.folder, scratch.path());
        }
        bench(self, &inputs, scratch.path())
    }

    fn parse(words: &[&str]) -> Option<Self> {
        let (flags, pairs): (Vec<&str>, Vec<&str>) = words.iter().partition(|word| FLAGS.contains(word));
        let mut arguments = Self {
            corpora: Vec::new(),
            runs: 5,
            builds_alone: flags.contains(&"--builds"),
            service: flags.contains(&"--service"),
            folder: "docs/bench".into(),
        };
        for pair in pairs.chunks(2) {
            match pair {
                ["--corpus", corpus] => arguments.corpora.push((*corpus).to_owned()),
                ["--runs", runs] => arguments.runs = runs.parse().ok().filter(|runs| *runs > 0)?,
                ["-o", folder] => arguments.folder = folder.into(),
                _ => return None,
            }
        }
        Some(arguments)
    }
}

fn measure(streams: &str, command: &[String]) -> Result<()> {
    let cost = cost::measured(&serde_json::from_str(streams)?, command)?;
    Ok(serde_json::to_writer(std::io::stdout(), &cost)?)
}

fn resolve(tool: &str, file: &Path, questions: &str) -> Result<()> {
    resolve::run(Tool::named(tool)?, file, &serde_json::from_slice(&std::fs::read(questions)?)?)
}

fn lookup(tool: &str, file: &Path, questions: &str, to: &Path) -> Result<()> {
    let questions: Questions = serde_json::from_slice(&std::fs::read(questions)?)?;
    let figures = match Tool::named(tool)? {
        Tool::Symdex => lookups::run::<readers::SymdexReader>(file, &questions, to),
        Tool::Symcache => lookups::run::<readers::SymcacheReader>(file, &questions, to),
        Tool::Gsym => lookups::run::<readers::GsymReader>(file, &questions, to),
        Tool::Addr2line => lookups::run::<readers::Addr2lineReader>(file, &questions, to),
        tool => anyhow::bail!("{} does not answer in process", tool.name()),
    }?;
    Ok(serde_json::to_writer(std::io::stdout(), &figures)?)
}

fn bench(arguments: &Arguments, inputs: &[Input], scratch: &Path) -> Result<()> {
    let date = jiff::Timestamp::now().strftime("%Y-%m-%d").to_string();
    let tools =
        [Tool::Symdex, Tool::Symcache, Tool::Gsym, Tool::DumpSyms, Tool::Addr2line, Tool::LlvmSymbolizer];
    let mut report = Report {
        date: date.clone(),
        machine: machine::describe(),
        runs: arguments.runs,
        tools: tools.map(|tool| (tool, tool.version().map_err(|error| format!("{error:#}")))).into(),
        inputs: Vec::new(),
    };
    for input in inputs {
        eprintln!("{} ...", input.name);
        let folder = tempfile::tempdir_in(scratch)?;
        let figures = of_input(input, folder.path(), arguments);
        report.inputs.push(figures.with_context(|| input.name.clone())?);
    }
    report::write(&arguments.folder, &date, &markdown::render(&report)?, &report)
}

fn of_input(input: &Input, folder: &Path, arguments: &Arguments) -> Result<InputFigures> {
    let &Arguments { runs, builds_alone, .. } = arguments;
    let builds = builds::measure_all(input, folder, runs, !builds_alone);
    let index = Index::open_file(&builds::artifact(folder, Tool::Symdex)).context("symdex left no index")?;
    let counts = index.metadata().counts;
    let figures = InputFigures {
        name: input.name.clone(),
        size: input.size,
        functions: counts.functions,
        ranges: counts.ranges,
        builds,
        lookups: Vec::new(),
        resolves: Vec::new(),
        batch: Err("not asked for".to_owned()),
        agreements: Vec::new(),
    };
    if builds_alone {
        return Ok(figures);
    }
    let questions = Questions::of(&index)?;
    let asked = folder.join("questions");
    std::fs::write(&asked, serde_json::to_vec(&questions)?)?;
    let lookups = lookups_of(input, folder, &asked, runs);
    let resolves = resolve::measure_all(|tool| builds::artifact(folder, tool), &asked, runs);
    let own = answers::read(&answers_of(folder, Tool::Symdex))?;
    let batch = batch::measure_all(input, &questions, folder, runs);
    let mut agreements = Vec::new();
    for tool in READERS.into_iter().filter(|tool| *tool != Tool::Symdex) {
        if let Ok(answers) = answers::read(&answers_of(folder, tool)) {
            agreements.push((tool, answers::compare(&own, &answers)));
        }
    }
    let batch = batch.map(|(figures, answers)| {
        agreements.push((Tool::LlvmSymbolizer, answers::compare(&own, &answers)));
        figures
    });
    let batch = batch.map_err(|error| format!("{error:#}"));
    Ok(InputFigures { lookups, resolves, batch, agreements, ..figures })
}

fn answers_of(folder: &Path, tool: Tool) -> PathBuf {
    folder.join(format!("answers of {}", tool.name()))
}

/// Measures the lookups of every tool. The tools take turns.
fn lookups_of(
    input: &Input,
    folder: &Path,
    questions: &Path,
    runs: usize,
) -> Vec<(Tool, Result<LookupFigures, String>)> {
    let mut figures = READERS.map(|tool| (tool, Ok(Vec::new())));
    for _ in 0..runs {
        for (tool, figures) in &mut figures {
            if let Ok(measured) = figures {
                match lookups_in_child(*tool, input, folder, questions) {
                    Ok(run) => measured.push(run),
                    Err(error) => *figures = Err(format!("{error:#}")),
                }
            }
        }
    }
    let medians = |runs: Vec<_>| report::medians(&runs).ok_or_else(|| "it was not run".to_owned());
    figures.into_iter().map(|(tool, runs)| (tool, runs.and_then(medians))).collect()
}

fn lookups_in_child(tool: Tool, input: &Input, folder: &Path, questions: &Path) -> Result<LookupFigures> {
    let artifact = builds::artifact(folder, tool);
    let file = if tool == Tool::Addr2line { &input.file } else { &artifact };
    ensure!(file.exists(), "there is no index to ask");
    let output = Command::new(std::env::current_exe()?)
        .args(["lookup", tool.name()])
        .args([file, questions, &answers_of(folder, tool)])
        .output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr).trim());
    let figures: LookupFigures = serde_json::from_slice(&output.stdout)?;
    ensure!(tool != Tool::Symdex || figures.wrong == 0, "{} answers changed", figures.wrong);
    Ok(figures)
}
