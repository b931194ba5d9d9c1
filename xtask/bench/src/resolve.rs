//! Measures what ten million ascending addresses cost in a process that keeps the answers as columns: numbers, and each
//! string of a batch once.

use std::collections::HashMap;
use std::path::Path;

use anyhow::{Context as _, Result, anyhow, ensure};
use symdex::{ImageOffset, Index, LinePolicy};
use symdex_answer::resolve::BATCH;
use symdex_answer::{Symbolicator, SymbolicatorOptions};

use crate::cost::{Cost, Streams, measure, medians};
use crate::lookups::ascending_offsets;
use crate::questions::Questions;
use crate::readers::{Frame, GsymReader, Reader, SymcacheReader};
use crate::tool::Tool;

/// The tools that are measured. The others read one address at a time from the debug file.
const TOOLS: [Tool; 3] = [Tool::Symdex, Tool::Symcache, Tool::Gsym];

/// Measures each tool in turn, `runs` times. `artifact` is the index of a tool.
pub fn measure_all(
    artifact: impl Fn(Tool) -> std::path::PathBuf,
    questions: &Path,
    runs: usize,
) -> Vec<(Tool, Result<Cost, String>)> {
    let mut costs = TOOLS.map(|tool| (tool, Ok(Vec::new())));
    for _ in 0..runs {
        for (tool, costs) in &mut costs {
            if let Ok(measured) = costs {
                match in_child(*tool, &artifact(*tool), questions) {
                    Ok(cost) => measured.push(cost),
                    Err(error) => *costs = Err(format!("{error:#}")),
                }
            }
        }
    }
    let medians = |costs: Vec<_>| medians(&costs).ok_or_else(|| "it was not run".to_owned());
    costs.into_iter().map(|(tool, costs)| (tool, costs.and_then(medians))).collect()
}

fn in_child(tool: Tool, file: &Path, questions: &Path) -> Result<Cost> {
    ensure!(file.exists(), "there is no index to ask");
    let program = std::env::current_exe()?;
    let command = [&program, Path::new("resolve"), Path::new(tool.name()), file, questions];
    let command = command.map(|word| word.to_str().map(str::to_owned).context("a path that is not UTF-8"));
    measure(&Streams::default(), &command.into_iter().collect::<Result<Vec<_>>>()?)
}

/// The work of a child process.
///
/// # Errors
/// The tool fails.
pub fn run(tool: Tool, file: &Path, questions: &Questions) -> Result<()> {
    let offsets = ascending_offsets(questions)?;
    let frames = match tool {
        Tool::Symdex => resolve(file, offsets)?,
        Tool::Symcache => collect::<SymcacheReader>(file, questions.base, offsets)?,
        Tool::Gsym => collect::<GsymReader>(file, questions.base, offsets)?,
        tool => anyhow::bail!("{} is not measured", tool.name()),
    };
    eprintln!("{}: {frames} frames", tool.name());
    Ok(())
}

/// Resolves a few batches at a time, so that the offsets take no memory that would be measured.
fn resolve(file: &Path, offsets: impl Iterator<Item = u64>) -> Result<u64> {
    let options = SymbolicatorOptions::new().index(file);
    let symbolicator = Symbolicator::open(&options, &mut |_| ())?;
    let id = Index::open_file(file)?.id().clone();
    let mut session = symbolicator.session(&|_| ());
    let (mut frames, mut some, mut offsets) = (0, Vec::new(), offsets.map(ImageOffset));
    loop {
        some.clear();
        some.extend(offsets.by_ref().take(BATCH));
        if some.is_empty() {
            return Ok(frames);
        }
        for batch in symbolicator.resolve(&mut session, &[(id.clone(), &some)], LinePolicy::Exact) {
            let failed = batch.outcomes.iter().find(|outcome| outcome.reason.is_some());
            failed.map_or(Ok(()), |outcome| Err(anyhow!("{}: {:?}", outcome.status, outcome.reason)))?;
            frames += std::hint::black_box(batch).frames.len() as u64;
        }
    }
}

/// The columns of a batch.
#[derive(Default)]
struct Columns {
    names: HashMap<Vec<u8>, u32>,
    files: HashMap<(Vec<u8>, Vec<u8>), u32>,
    name: Vec<u32>,
    file: Vec<u32>,
    line: Vec<u32>,
    ends: Vec<usize>,
}

impl Columns {
    fn add(&mut self, frame: &Frame<'_>) {
        let text = |text: Option<&[u8]>| text.unwrap_or_default().to_vec();
        let next = self.names.len() as u32;
        self.name.push(match self.names.get(frame.name.unwrap_or_default()) {
            Some(number) => *number,
            None => *self.names.entry(text(frame.name)).or_insert(next),
        });
        let next = self.files.len() as u32;
        self.file.push(*self.files.entry((text(frame.folder), text(frame.file))).or_insert(next));
        self.line.push(frame.line.unwrap_or(u32::MAX));
    }
}

fn collect<R: Reader>(file: &Path, base: u64, offsets: impl Iterator<Item = u64>) -> Result<u64> {
    let mut reader = R::open(file, base)?;
    let (mut frames, mut columns) = (0, Columns::default());
    for offset in offsets {
        reader.lookup(offset, &mut |frame| columns.add(frame))?;
        columns.ends.push(columns.line.len());
        if columns.ends.len() == BATCH {
            frames += std::hint::black_box(std::mem::take(&mut columns)).line.len() as u64;
        }
    }
    Ok(frames + columns.line.len() as u64)
}
