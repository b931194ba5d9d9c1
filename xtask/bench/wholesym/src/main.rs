//! `cargo xtask bench --wholesym`: compares `POST /symbolicate/v5` of `symdex serve` with the crate wholesym, which is
//! what samply answers the same request with, and counts the differences by kind.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;
use serde_json::{Value, json};
use symdex::Index;
use wholesym::debugid::DebugId;
use wholesym::{LibraryInfo, SymbolManager, SymbolManagerConfig};

mod compare;
mod facts;
mod questions;
mod server;

use compare::Tally;
use facts::Facts;
use server::Server;

const USAGE: &str = "\
usage: cargo xtask bench --wholesym FILE...

    FILE   a debug file, a bundle, or a folder of these
    The program symdex is SYMDEX, or target/release/symdex.
";

/// How many examples of each kind of difference are printed.
const EXAMPLES: usize = 3;

/// What `symdex build --json` prints about an image.
#[derive(Deserialize)]
struct Image {
    image: String,
    id: String,
    arch: String,
    file: PathBuf,
    index: PathBuf,
}

fn main() -> ExitCode {
    let files: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    if files.is_empty() || files.iter().any(|file| file.to_string_lossy().starts_with('-')) {
        eprint!("{USAGE}");
        return ExitCode::from(2);
    }
    match run(&files) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(files: &[PathBuf]) -> Result<()> {
    let symdex = std::env::var_os("SYMDEX").map_or_else(|| "target/release/symdex".into(), PathBuf::from);
    let store = tempfile::tempdir()?;
    let images = build(&symdex, files, store.path())?;
    let server = Server::start(&symdex, store.path())?;
    println!("| image | arch | offsets | equal | names only | differ |");
    println!("| --- | --- | --- | --- | --- | --- |");
    let mut total = Tally::default();
    for image in &images {
        let tally = compare(&server, image).with_context(|| format!("{} {}", image.image, image.arch))?;
        let [asked, equal, names, other] = tally.row();
        println!("| {} | {} | {asked} | {equal} | {names} | {other} |", image.image, image.arch);
        total.add(tally);
    }
    let [asked, equal, names, other] = total.row();
    println!("| **all** | | {asked} | {equal} | {names} | {other} |\n");
    for (kind, (count, examples)) in total.kinds() {
        println!("{kind}: {count}");
        examples.iter().take(EXAMPLES).for_each(|example| println!("    {example}"));
    }
    Ok(())
}

/// Builds the indexes of `files` into `store`. Returns their images.
fn build(symdex: &Path, files: &[PathBuf], store: &Path) -> Result<Vec<Image>> {
    let output = Command::new(symdex)
        .args(["--no-config", "build", "--json", "--store"])
        .arg(store)
        .args(files)
        .output()
        .with_context(|| symdex.display().to_string())?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = output.stdout.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let lines = lines.map(serde_json::from_slice::<Value>).collect::<Result<Vec<_>, _>>()?;
    let images = lines.into_iter().filter(|line| line.get("index").is_some());
    // Several files may have one image.
    let by_id = images.map(|line| Ok((line["id"].to_string(), serde_json::from_value(line)?)));
    Ok(by_id.collect::<Result<BTreeMap<_, _>>>()?.into_values().collect())
}

/// Compares the answers for the offsets of one image.
fn compare(server: &Server, image: &Image) -> Result<Tally> {
    let index = Index::open_file(&image.index)?;
    let offsets = questions::offsets(&index)?;
    let debug_id = DebugId::from_breakpad(&format!("{}0", image.id))?;
    let stack: Vec<_> = offsets.iter().map(|offset| json!([0, offset])).collect();
    let module = json!([image.image, debug_id.breakpad().to_string()]);
    let request = json!({"memoryMap": [module], "stacks": [stack]}).to_string();
    let ours = frames(&server.post("/symbolicate/v5", &request)?)?;
    let mut manager = SymbolManager::with_config(SymbolManagerConfig::default());
    let path = Some(image.file.canonicalize()?.to_string_lossy().into_owned());
    manager.add_known_library(LibraryInfo {
        debug_name: Some(image.image.clone()),
        debug_id: Some(debug_id),
        path: path.clone(),
        debug_path: path,
        arch: Some(image.arch.clone()),
        ..LibraryInfo::default()
    });
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let theirs = frames(&runtime.block_on(manager.query_json_api("/symbolicate/v5", &request)))?;
    ensure!(ours.len() == offsets.len() && theirs.len() == offsets.len(), "frames are missing");
    let mut tally = Tally::default();
    let facts = Facts::of(&index, &offsets)?;
    for (((offset, facts), ours), theirs) in offsets.iter().zip(&facts).zip(&ours).zip(&theirs) {
        tally.compare(&format!("{} {} {offset:#x}", image.image, image.arch), facts, ours, theirs);
    }
    Ok(tally)
}

/// The frames of the only stack of an answer.
fn frames(answer: &str) -> Result<Vec<Value>> {
    let mut answer: Value = serde_json::from_str(answer)?;
    let frames = answer["results"][0]["stacks"][0].take();
    serde_json::from_value(frames).with_context(|| format!("no frames: {answer:.500}"))
}
