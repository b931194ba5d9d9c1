//! Compares the stacks of two programs that write the JSON of minidump-stackwalk.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use anyhow::{Context as _, Result};
use serde::Deserialize;

/// The stacks of a minidump.
#[derive(Deserialize)]
pub struct Walk {
    threads: Vec<Thread>,
}

#[derive(Deserialize)]
struct Thread {
    frames: Vec<Frame>,
}

#[derive(Deserialize)]
struct Frame {
    /// The address of the instruction.
    offset: String,
    trust: String,
    function: Option<String>,
    file: Option<String>,
    line: Option<u32>,
    inlines: Option<Vec<Inline>>,
}

#[derive(Deserialize)]
struct Inline {
    function: Option<String>,
    line: Option<u32>,
}

impl Walk {
    /// Reads the output of a program.
    ///
    /// # Errors
    /// It cannot be read, or is no such JSON.
    pub fn read(path: &Path) -> Result<Self> {
        serde_json::from_slice(&std::fs::read(path)?).with_context(|| path.display().to_string())
    }
}

impl Frame {
    fn address(&self) -> u64 {
        u64::from_str_radix(self.offset.trim_start_matches("0x"), 16).unwrap_or_default()
    }

    /// The lines of the inlined functions.
    fn inlined(&self) -> Vec<Option<u32>> {
        self.inlines.iter().flatten().map(|inline| inline.line).collect()
    }

    fn file_name(&self) -> Option<&str> {
        self.file.as_deref()?.rsplit('/').next()
    }

    fn show(&self) -> String {
        let function = |name: &Option<String>| name.clone().unwrap_or_else(|| "?".to_owned());
        let inlined = self.inlines.iter().flatten().map(|inline| function(&inline.function));
        let functions: Vec<_> = inlined.chain([function(&self.function)]).collect();
        let line = self.line.map_or_else(|| "?".to_owned(), |line| line.to_string());
        let file = self.file_name().unwrap_or("?");
        format!("{} {} {} {file}:{line}", self.offset, self.trust, functions.join(" in "))
    }
}

/// What differs, how often, and the first example.
type Classes = BTreeMap<String, (u64, String)>;

/// The frames of two programs in all minidumps: symdex, and minidump-stackwalk.
#[derive(Default)]
pub struct Comparison {
    /// By how they were found.
    frames: BTreeMap<String, [u64; 2]>,
    /// Frames of both, at the same depth and address.
    common: u64,
    differences: Classes,
}

impl Comparison {
    /// Adds the stacks of a minidump.
    pub fn add(&mut self, [own, peer]: &[Walk; 2]) {
        for (own, peer) in own.threads.iter().zip(&peer.threads) {
            for (at, thread) in [own, peer].into_iter().enumerate() {
                for frame in &thread.frames {
                    self.frames.entry(frame.trust.clone()).or_default()[at] += 1;
                }
            }
            self.add_thread(&own.frames, &peer.frames);
        }
    }

    fn add_thread(&mut self, own: &[Frame], peer: &[Frame]) {
        let pairs = own.iter().zip(peer);
        // The peer moves the address that a signal has interrupted back by one byte, as it does a return address.
        let common =
            pairs.clone().take_while(|(own, peer)| own.address().wrapping_sub(peer.address()) <= 1).count();
        for (own, peer) in pairs.take(common) {
            self.add_frame(own, peer);
        }
        for frame in &own[common..] {
            self.count(format!("frames of symdex alone: {}", frame.trust), frame.show());
        }
        for frame in &peer[common..] {
            self.count(format!("frames of minidump-stackwalk alone: {}", frame.trust), frame.show());
        }
    }

    fn add_frame(&mut self, own: &Frame, peer: &Frame) {
        let example = || format!("{} / {}", own.show(), peer.show());
        self.common += 1;
        if own.address() != peer.address() {
            self.count("the address is one byte less in minidump-stackwalk".to_owned(), example());
        }
        if own.trust != peer.trust {
            self.count(format!("found by {} / {}", own.trust, peer.trust), example());
        }
        self.add_values("function", own.function.as_deref(), peer.function.as_deref(), example);
        self.add_values("file", own.file_name(), peer.file_name(), example);
        self.add_values("line", own.line, peer.line, example);
        if own.inlined() != peer.inlined() {
            self.count("other inlined functions".to_owned(), example());
        }
    }

    fn add_values<T: PartialEq>(
        &mut self,
        what: &str,
        own: Option<T>,
        peer: Option<T>,
        example: impl Fn() -> String,
    ) {
        let class = match (&own, &peer) {
            (Some(_), None) => "in symdex alone",
            (None, Some(_)) => "in minidump-stackwalk alone",
            _ if own != peer => "differs",
            _ => return,
        };
        self.count(format!("{what} {class}"), example());
    }

    fn count(&mut self, class: String, example: String) {
        self.differences.entry(class).or_insert((0, example)).0 += 1;
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "| frames | symdex | minidump-stackwalk |\n|---|---:|---:|")?;
        for (trust, [own, peer]) in &self.frames {
            writeln!(f, "| {trust} | {own} | {peer} |")?;
        }
        writeln!(f, "\n{} frames are those of both. What differs:\n", self.common)?;
        writeln!(f, "| what | frames | first example (symdex / minidump-stackwalk) |\n|---|---:|---|")?;
        for (class, (count, example)) in &self.differences {
            writeln!(f, "| {class} | {count} | `{}` |", example.replace('|', "\\|"))?;
        }
        Ok(())
    }
}
