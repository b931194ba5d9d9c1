//! `cargo xtask demo`: the main job from end to end, on the demo app's debug files and its crash.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

const INDEXES: &str = "target/demo";

/// Builds the indexes of the demo's debug files and answers every frame of its crash from them.
pub(crate) fn run() -> Result<()> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    step("cargo build --release --package symdex-cli");
    checked(Command::new(cargo).args(["build", "--quiet", "--release", "--package", "symdex-cli"]))?;
    let symdex = Path::new("target/release").join(format!("symdex{}", std::env::consts::EXE_SUFFIX));

    step(&format!("symdex build testdata/demo -o {INDEXES}"));
    checked(Command::new(&symdex).args(["build", "testdata/demo", "-o", INDEXES]))?;

    step("symdex atos -i -o INDEX -l LOAD ADDRESS    for each frame of testdata/demo/demo.crash");
    let report = std::fs::read_to_string("testdata/demo/demo.crash").context("testdata/demo/demo.crash")?;
    let images: Vec<Image<'_>> = report.lines().filter_map(image).collect();
    let (mut answered, mut without) = (0, 0);
    for line in report.lines() {
        if line.starts_with("Thread ") && line.contains(':') && !line.contains("State") {
            println!("\n{line}");
        }
        let Some(frame) = frame(line) else { continue };
        let image = images.iter().find(|image| image.load == frame.load);
        let index = image.map(|image| Path::new(INDEXES).join(format!("{}.symdex", image.id)));
        match index.filter(|index| index.exists()) {
            Some(index) => {
                print!("{}", answer(&symdex, &index, &frame)?);
                answered += 1;
            }
            None => {
                println!("{:<3} {}  (no debug file)", frame.number, frame.image);
                without += 1;
            }
        }
    }
    println!("\n{answered} frames answered, {without} in system libraries without a debug file");
    if answered < 20 { bail!("the demo should answer at least 20 frames") } else { Ok(()) }
}

fn step(command: &str) {
    println!("$ {command}");
}

/// Runs a command whose output the user sees.
fn checked(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot run {command:?}"))?;
    if status.success() { Ok(()) } else { bail!("{command:?} failed: {status}") }
}

/// An unsymbolicated frame of a `.crash` report.
struct Frame<'r> {
    number: u32,
    image: &'r str,
    address: u64,
    load: &'r str,
}

/// `NUMBER  IMAGE  0xADDRESS 0xLOAD + OFFSET`
fn frame(line: &str) -> Option<Frame<'_>> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [number, image, address, load, "+", _] = words.as_slice() else { return None };
    let address = u64::from_str_radix(address.strip_prefix("0x")?, 16).ok()?;
    load.starts_with("0x").then_some(())?;
    Some(Frame { number: number.parse().ok()?, image, address, load })
}

/// A line of the report's list of images.
struct Image<'r> {
    load: &'r str,
    id: String,
}

/// `0xLOAD - 0xEND +NAME ARCH  <UUID> PATH`
fn image(line: &str) -> Option<Image<'_>> {
    let (load, rest) = line.trim_start().split_once(" - ")?;
    let (_, rest) = rest.split_once('<')?;
    let (id, _) = rest.split_once('>')?;
    load.starts_with("0x").then(|| Image { load, id: id.replace('-', "").to_lowercase() })
}

/// The frame's whole inline chain, one line for each function, innermost first.
fn answer(symdex: &Path, index: &Path, frame: &Frame<'_>) -> Result<String> {
    // Frame 0 holds the address of an instruction, the others where execution returns to: behind the call.
    let address = frame.address - u64::from(frame.number != 0);
    let mut command = Command::new(symdex);
    command.args(["atos", "-i", "-o"]).arg(index).args(["-l", frame.load, &format!("{address:#x}")]);
    let output = command.output().with_context(|| format!("cannot run {command:?}"))?;
    if !output.status.success() {
        bail!("{command:?} failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    let mut lines = String::new();
    for (depth, line) in
        String::from_utf8_lossy(&output.stdout).lines().filter(|line| !line.is_empty()).enumerate()
    {
        let number = if depth == 0 { frame.number.to_string() } else { String::new() };
        lines += &format!("{number:<3} {line}\n");
    }
    Ok(lines)
}
