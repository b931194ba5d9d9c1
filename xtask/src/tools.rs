//! Runs the LLVM programs that make debug files.
//!
//! All of them are of LLVM 19. No SDK is needed: the sources include no headers of a system, and the linker leaves
//! undefined symbols to dyld.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

/// The folder of LLVM 19 on Debian and Ubuntu.
const DEFAULT_BIN: &str = "/usr/lib/llvm-19/bin";

/// The folder in the scratch folder that is the PATH of the tools.
const PATH: &str = "path";

const HOW_TO_GET: &str = "Debian: `apt-get install clang-19 lld-19 llvm-19`; \
    elsewhere, set LLVM_BIN to the `bin` folder of an LLVM 19";

/// The LLVM programs. They run in a scratch folder, with an empty environment.
pub(crate) struct Tools {
    bin: PathBuf,
    scratch: PathBuf,
}

impl Tools {
    /// Finds the tools in `LLVM_BIN` or in Debian's folder. They may write to `scratch`.
    ///
    /// # Errors
    /// Tools of `needed` are missing. The error lists them and says how to install them.
    pub(crate) fn find(scratch: &Path, needed: &[&str]) -> Result<Self> {
        let bin = std::env::var_os("LLVM_BIN").map_or_else(|| PathBuf::from(DEFAULT_BIN), PathBuf::from);
        let missing: Vec<&str> = needed.iter().copied().filter(|tool| !bin.join(tool).is_file()).collect();
        ensure!(missing.is_empty(), "{} not in {}. {HOW_TO_GET}", missing.join(", "), bin.display());
        std::fs::create_dir_all(scratch.join(PATH))?;
        Ok(Self { bin, scratch: scratch.to_path_buf() })
    }

    /// Lets the tools run `tool` as `name` from their PATH.
    ///
    /// # Errors
    /// The scratch folder cannot be written.
    pub(crate) fn put_on_path(&self, tool: &str, name: &str) -> Result<()> {
        Ok(link(&self.bin.join(tool), &self.scratch.join(PATH).join(name))?)
    }

    /// A command that runs `tool` in `folder`.
    pub(crate) fn command(&self, tool: &str, folder: &Path) -> Command {
        let mut command = Command::new(self.bin.join(tool));
        command
            .current_dir(folder)
            .env_clear()
            .env("PATH", self.scratch.join(PATH))
            .env("TMPDIR", &self.scratch)
            // The linker then writes 0 as the time of each object, and dsymutil does not compare times.
            .env("ZERO_AR_DATE", "1");
        command
    }

    /// Runs `tool` in `folder` and returns its output.
    ///
    /// # Errors
    /// The tool fails, or prints anything to standard error: dsymutil omits an object with only a warning. The error
    /// has the command line and that text.
    pub(crate) fn run<A: AsRef<OsStr>>(
        &self,
        tool: &str,
        folder: &Path,
        args: impl IntoIterator<Item = A>,
    ) -> Result<String> {
        let mut command = self.command(tool, folder);
        command.args(args);
        let output = command.output().with_context(|| format!("cannot run {tool}"))?;
        if !output.status.success() || !output.stderr.is_empty() {
            bail!("{command:?} failed:\n{}", String::from_utf8_lossy(&output.stderr));
        }
        String::from_utf8(output.stdout).with_context(|| format!("{tool} printed text that is not UTF-8"))
    }

    /// The versions of the tools that affect the output, one a line.
    ///
    /// # Errors
    /// A tool cannot be run.
    pub(crate) fn versions(&self) -> Result<String> {
        let mut text = String::new();
        for tool in ["clang", "ld64.lld", "dsymutil"] {
            let printed = self.run(tool, &self.scratch, ["--version"])?;
            let version = printed.lines().find(|line| line.contains("19.") || line.contains("version"));
            text += &format!("{tool}: {}\n", version.unwrap_or("unknown").trim());
        }
        Ok(text)
    }

    /// Folders whose names must not appear in committed files.
    pub(crate) fn private_folders(&self) -> Vec<String> {
        [&self.bin, &self.scratch].iter().map(|folder| folder.display().to_string()).collect()
    }
}
/// Makes `link` a symbolic link to `file`, or a copy on systems where links need a privilege.
pub(crate) fn link(file: &Path, link: &Path) -> std::io::Result<()> {
    #[cfg(unix)]
    return std::os::unix::fs::symlink(file, link);
    #[cfg(not(unix))]
    return std::fs::copy(file, link).map(|_| ());
}
