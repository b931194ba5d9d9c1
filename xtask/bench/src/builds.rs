//! Builds indexes in child processes and measures their cost.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow, bail};
use symbolic_debuginfo::Object;
use symbolic_symcache::SymCacheConverter;
use symdex::Index;
use symdex_build::{Companions, Image};

use crate::cost::{Cost, Streams, measure, medians};
use crate::input::Input;
use crate::report::BuildFigures;
use crate::tool::{BUILDERS, Tool, llvm};

/// The path in `folder` of the index that `tool` makes.
pub fn artifact(folder: &Path, tool: Tool) -> PathBuf {
    folder.join(match tool {
        Tool::Symdex => "symdex/index",
        Tool::SymdexOneThread => "symdex-1/index",
        Tool::Symcache => "symcache",
        Tool::DumpSyms => "breakpad",
        _ => "gsym",
    })
}

/// Builds with each tool in turn, `runs` times, so that changes of the machine's speed affect all tools alike. A tool
/// that fails yields its error. `compress` also measures the size of each index after compression.
pub fn measure_all(input: &Input, folder: &Path, runs: usize, compress: bool) -> Vec<BuildFigures> {
    let mut costs: Vec<(Tool, Result<Vec<Cost>>)> = BUILDERS.map(|tool| (tool, Ok(Vec::new()))).into();
    for _ in 0..runs {
        for (tool, costs) in &mut costs {
            if let Ok(measured) = costs {
                match build(*tool, input, &artifact(folder, *tool)) {
                    Ok(cost) => measured.push(cost),
                    Err(error) => *costs = Err(error),
                }
            }
        }
    }
    let figures = |(tool, costs)| figures(tool, &artifact(folder, tool), costs, compress);
    costs.into_iter().map(figures).collect()
}

fn figures(tool: Tool, artifact: &Path, costs: Result<Vec<Cost>>, compress: bool) -> BuildFigures {
    let figures = costs.and_then(|costs| {
        let cost = medians(&costs).context("it was not run")?;
        let bytes = std::fs::read(artifact).with_context(|| format!("{} left no index", tool.name()))?;
        // The kernel caches a file in pieces of the sizes in which it was written, and page faults of small pieces take
        // longer. All indexes are written in one piece.
        std::fs::write(artifact, &bytes)?;
        let compressed = compress.then(|| zstd::bulk::compress(&bytes, 19)).transpose()?;
        Ok((cost, bytes.len() as u64, compressed.map(|compressed| compressed.len() as u64)))
    });
    match figures {
        Ok((cost, size, compressed_size)) => {
            BuildFigures { tool, cost: Some(cost), size, compressed_size, problem: None }
        }
        Err(error) => BuildFigures {
            tool,
            cost: None,
            size: 0,
            compressed_size: None,
            problem: Some(format!("{error:#}")),
        },
    }
}

/// Builds with `tool` in a separate process.
///
/// # Errors
/// The tool fails.
pub fn build(tool: Tool, input: &Input, to: &Path) -> Result<Cost> {
    if let Some(folder) = to.parent() {
        std::fs::create_dir_all(folder)?;
    }
    // symdex would compare an existing index with the new one.
    let _ = std::fs::remove_file(to);
    let text = |path: &Path| path.to_str().map(str::to_owned).context("a path that is not UTF-8");
    let (file, to) = (text(&input.file)?, text(to)?);
    let command = match tool {
        Tool::Gsym => {
            vec![llvm("llvm-gsymutil")?, "--quiet".into(), format!("--convert={file}"), "-o".into(), to]
        }
        Tool::DumpSyms => vec!["dump_syms".into(), "--inlines".into(), "-o".into(), to, file],
        _ => vec![text(&std::env::current_exe()?)?, "build".into(), tool.name().into(), file, to],
    };
    measure(&Streams::default(), &command)
}

/// The work of a child process: makes the index of `file` at `to`.
///
/// # Errors
/// The tool fails.
pub fn run(tool: Tool, file: &Path, to: &Path) -> Result<()> {
    match tool {
        Tool::Symdex => symdex_index(file, to),
        Tool::SymdexOneThread => {
            rayon::ThreadPoolBuilder::new().num_threads(1).build()?.install(|| symdex_index(file, to))
        }
        Tool::Symcache => symcache(file, to),
        _ => bail!("{} is a separate program", tool.name()),
    }
}

/// Builds and publishes the index as `symdex build` does, then renames it.
fn symdex_index(file: &Path, to: &Path) -> Result<()> {
    let bytes = symdex::map_file(file)?;
    let slices = symdex_build::slices(&bytes)?;
    let slice = slices.first().context("no slice")?;
    let companions = Companions::new(Vec::new());
    let image = Image::load(slice, file, &companions)?;
    let built = symdex_build::build(&image)?;
    let folder = to.parent().context("no folder")?;
    let published = symdex_store::IndexFolder::new(folder).publish(&Index::open(built.bytes)?)?;
    Ok(std::fs::rename(published.path, to)?)
}

fn symcache(file: &Path, to: &Path) -> Result<()> {
    let bytes = symdex::map_file(file)?;
    let object = Object::parse(&bytes)?;
    let mut converter = SymCacheConverter::new();
    converter.process_object(&object).map_err(|error| anyhow!("{error}"))?;
    let mut to = BufWriter::new(File::create(to)?);
    converter.serialize(&mut to)?;
    Ok(to.flush()?)
}
