//! `cargo xtask audit`: compares every answer of an index with the debug file, addr2line and llvm-symbolizer.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail, ensure};
use symdex::Index;
use symdex_audit::{AskedPeer, AuditOptions, AuditReport};
use symdex_build::{Companions, Image};

use self::llvm::{LlvmPeer, LlvmSymbolizer};

mod llvm;
mod output;

/// The seed of the random addresses, fixed so that runs can be compared.
const SEED: u64 = 0x5eed;

/// A file with fewer addresses is small.
const SMALL: u64 = 10_000;

/// The arguments of the command.
#[derive(Default)]
pub(crate) struct Arguments {
    /// Random addresses for each slice.
    sample: u64,
    /// Only one in `every` runs of addresses is compared.
    every: usize,
    no_llvm: bool,
    /// Folders of debug files.
    debug_dirs: Vec<PathBuf>,
    markdown: bool,
    debug_files: Vec<PathBuf>,
}

impl Arguments {
    /// Parses the arguments of `audit`; `None` if they are invalid.
    pub(crate) fn parse(words: &[&str]) -> Option<Self> {
        let mut arguments = Self { every: 1, ..Self::default() };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match *word {
                "--sample" => arguments.sample = words.next()?.parse().ok()?,
                "--every" => arguments.every = words.next()?.parse().ok().filter(|every| *every > 0)?,
                "--debug-dir" => arguments.debug_dirs.push((*words.next()?).into()),
                "--no-llvm" => arguments.no_llvm = true,
                "--markdown" => arguments.markdown = true,
                option if option.starts_with('-') => return None,
                path => arguments.debug_files.push(path.into()),
            }
        }
        (!arguments.debug_files.is_empty()).then_some(arguments)
    }
}

/// A slice that was compared.
struct Audited {
    file: PathBuf,
    arch: String,
    id: String,
    report: AuditReport,
}

/// The slices of one DEBUGFILE argument.
struct Corpus {
    name: String,
    slices: Vec<Audited>,
    /// Files and slices that cannot be read, and why.
    unreadable: Vec<String>,
}

/// Builds the index of every slice and compares it.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let llvm = if arguments.no_llvm { None } else { Some(LlvmSymbolizer::find(&arguments.debug_dirs)?) };
    let llvm_version = llvm.as_ref().map_or("without llvm-symbolizer", |llvm| &llvm.version);
    eprintln!("{llvm_version}; random addresses from seed {SEED:#x}");
    let mut corpora = Vec::new();
    for debug_file in &arguments.debug_files {
        corpora.push(corpus(arguments, llvm.as_ref(), debug_file)?);
    }
    print!("{}", if arguments.markdown { output::markdown(&corpora) } else { output::text(&corpora) });
    let failed: Vec<String> = corpora.iter().flat_map(failures).collect();
    failed.iter().for_each(|failure| eprintln!("{failure}"));
    ensure!(failed.is_empty(), "the audit fails");
    Ok(())
}

fn corpus(arguments: &Arguments, llvm: Option<&LlvmSymbolizer>, debug_file: &Path) -> Result<Corpus> {
    let name = debug_file.file_name().unwrap_or(debug_file.as_os_str()).to_string_lossy().into_owned();
    let mut corpus = Corpus { name, slices: Vec::new(), unreadable: Vec::new() };
    for found in symdex_build::find(debug_file) {
        let file = found?;
        let bytes = match std::fs::read(&file) {
            Ok(bytes) => bytes,
            Err(error) => {
                corpus.unreadable.push(format!("{}: {error}", file.display()));
                continue;
            }
        };
        match symdex_build::slices(&bytes) {
            Ok(slices) => {
                for slice in slices {
                    let arch = slice.arch.name.clone();
                    match audited(arguments, llvm, &file, &slice) {
                        Ok(audited) => corpus.slices.push(audited),
                        Err(error) => {
                            corpus.unreadable.push(format!("{} {arch}: {error}", file.display()));
                        }
                    }
                }
            }
            Err(error) => corpus.unreadable.push(format!("{}: {error}", file.display())),
        }
    }
    let (slices, unreadable) = (corpus.slices.len(), corpus.unreadable.len());
    let addresses: u64 = corpus.slices.iter().map(|slice| slice.report.addresses).sum();
    eprintln!("{}: {slices} slices, {addresses} addresses; {unreadable} not compared", corpus.name);
    if corpus.slices.is_empty() {
        bail!("{}: nothing to compare: {}", debug_file.display(), corpus.unreadable.join("; "));
    }
    Ok(corpus)
}

fn audited(
    arguments: &Arguments,
    llvm: Option<&LlvmSymbolizer>,
    file: &Path,
    slice: &symdex_build::Slice<'_>,
) -> Result<Audited, symdex_build::Error> {
    let arch = slice.arch.name.clone();
    let companions = Companions::new(arguments.debug_dirs.clone());
    let image = Image::load(slice, file, &companions)?;
    let built = symdex_build::BuildOptions::new().unwind_rows(true).build(&image)?;
    let index = Index::open(built.bytes)?;
    let ask = |svmas: Vec<u64>| match llvm {
        Some(llvm) => llvm.ask(file, &arch, svmas),
        None => Ok(Box::new(std::iter::empty()) as _),
    };
    let peer = LlvmPeer::of(&image);
    let mut options = AuditOptions::new().random(arguments.sample, SEED).every(arguments.every);
    if llvm.is_some() {
        options = options.peer(AskedPeer { peer: &peer, ask: &ask });
    }
    let report = options.audit(&image, &index)?;
    Ok(Audited { file: file.to_owned(), arch, id: image.info().id.to_string(), report })
}

/// The findings in a report, unless it is that of a small file: there, one function can have 1 % of the addresses.
fn findings(report: &AuditReport) -> Vec<String> {
    if report.addresses < SMALL { Vec::new() } else { report.findings() }
}

/// Why a corpus does not pass.
fn failures(corpus: &Corpus) -> Vec<String> {
    let of_slice = |slice: &Audited| {
        let head = format!("{} {}", slice.file.display(), slice.arch);
        let failures = slice.report.failures();
        let shown: String = slice.report.unexplained.iter().map(ToString::to_string).collect();
        let findings = findings(&slice.report);
        let failures = failures.into_iter().map(|failure| format!("{head}: {failure}\n{shown}"));
        failures.chain(findings.iter().map(|finding| format!("{head}: {finding}"))).collect::<Vec<_>>()
    };
    let findings = findings(&output::total(corpus));
    let of_all = findings.iter().map(|finding| format!("all of {}: {finding}", corpus.name));
    let compared: u64 = corpus.slices.iter().map(|slice| slice.report.addresses).sum();
    let nothing = (compared == 0).then(|| format!("all of {}: nothing was compared", corpus.name));
    corpus.slices.iter().flat_map(of_slice).chain(of_all).chain(nothing).collect()
}
