//! symdex and its peers.

use std::process::Command;

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

/// A measured tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Tool {
    /// symdex with its default number of threads.
    Symdex,
    /// symdex's build on one thread. The index is the same.
    SymdexOneThread,
    /// symbolic-symcache, a crate.
    Symcache,
    /// llvm-gsymutil, a program. The crate blazesym reads its files.
    Gsym,
    /// dump_syms, a program that makes Breakpad symbol files. They are not read here.
    DumpSyms,
    /// addr2line, a crate that reads the debug file.
    Addr2line,
    /// llvm-symbolizer, a program that reads the debug file.
    LlvmSymbolizer,
}

/// The tools that make an index.
pub const BUILDERS: [Tool; 5] =
    [Tool::Symdex, Tool::SymdexOneThread, Tool::Symcache, Tool::Gsym, Tool::DumpSyms];
/// The tools that answer in the same process.
pub const READERS: [Tool; 4] = [Tool::Symdex, Tool::Symcache, Tool::Gsym, Tool::Addr2line];

impl Tool {
    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Tool::Symdex => "symdex",
            Tool::SymdexOneThread => "symdex, 1 thread",
            Tool::Symcache => "symcache",
            Tool::Gsym => "GSYM",
            Tool::DumpSyms => "dump_syms",
            Tool::Addr2line => "addr2line",
            Tool::LlvmSymbolizer => "llvm-symbolizer",
        }
    }

    /// The tool with this name.
    ///
    /// # Errors
    /// No tool has the name.
    pub fn named(name: &str) -> Result<Self> {
        let all = BUILDERS.into_iter().chain([Tool::Addr2line, Tool::LlvmSymbolizer]);
        all.into_iter().find(|tool| tool.name() == name).with_context(|| format!("no tool is called {name}"))
    }

    /// The version of the tool, and how it is used if that is not obvious.
    ///
    /// # Errors
    /// The program cannot be run. The error says how to install it.
    pub fn version(self) -> Result<String> {
        Ok(match self {
            Tool::Symdex | Tool::SymdexOneThread => format!("symdex {}", locked("symdex")),
            Tool::Symcache => format!("symbolic-symcache {}", locked("symbolic-symcache")),
            Tool::Gsym => {
                let version = program_version("llvm-gsymutil")?;
                format!("llvm-gsymutil ({version}), read by blazesym {}", locked("blazesym"))
            }
            Tool::DumpSyms => {
                let output = Command::new("dump_syms").arg("--version").output();
                let output = output.context("dump_syms is not on the PATH: `cargo install dump_syms`")?;
                String::from_utf8_lossy(&output.stdout).trim().to_owned()
            }
            Tool::Addr2line => format!("addr2line {}", locked("addr2line")),
            Tool::LlvmSymbolizer => format!("llvm-symbolizer ({})", program_version("llvm-symbolizer")?),
        })
    }
}

/// The LLVM program `name`, in the folder `LLVM_BIN` if that is set, else on the PATH. Version 19 is preferred.
///
/// # Errors
/// The program is missing. The error says where it was searched and how to install it.
pub fn llvm(name: &str) -> Result<String> {
    let candidates = match std::env::var("LLVM_BIN") {
        Ok(bin) => vec![format!("{bin}/{name}")],
        Err(_) => vec![format!("{name}-19"), name.to_owned()],
    };
    let runs = |program: &String| {
        Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
    };
    candidates.into_iter().find(runs).with_context(|| {
        format!("{name} is neither in the folder LLVM_BIN names nor on the PATH. Debian: `apt-get install llvm-19`")
    })
}

fn program_version(name: &str) -> Result<String> {
    let output = Command::new(llvm(name)?).arg("--version").output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text.lines().find(|line| line.contains("version")).unwrap_or("version unknown");
    Ok(line.trim().to_owned())
}

/// The version of the crate `name` in this program.
fn locked(name: &str) -> &'static str {
    let lock = include_str!("../Cargo.lock");
    let entry = format!("name = \"{name}\"\nversion = \"");
    let version = lock.split_once(&entry).and_then(|(_, rest)| rest.split_once('"'));
    version.map_or("version unknown", |(version, _)| version)
}
