//! Answers as text, in the styles LLVM and GNU of llvm-symbolizer.

use std::io::{self, Write};

use symdex_build::Declaration;

use super::modules::{Data, Frame, ModuleInfo};
use super::names::{Functions, Naming};
use crate::text;

/// What stands for a name or a file that is unknown.
const UNKNOWN: &str = "??";

/// How answers are printed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plain {
    pub(super) naming: Naming,
    /// Whether a column follows each line, and an empty line each answer.
    pub(super) is_llvm: bool,
    /// Whether an answer begins with its address.
    pub(super) addresses: bool,
    /// Whether a frame is one line.
    pub(super) pretty: bool,
    /// Whether a location has a line for each of its parts.
    pub(super) verbose: bool,
}

impl Plain {
    /// Prints the frames at `address`, which is missing if the request could not be read.
    pub(super) fn frames(
        self,
        address: Option<u64>,
        frames: &[Frame],
        info: Option<ModuleInfo>,
        out: &mut impl Write,
    ) -> io::Result<()> {
        self.header(address, out)?;
        if frames.is_empty() {
            self.frame(None, info, false, out)?;
        }
        for (number, frame) in frames.iter().enumerate() {
            self.frame(Some(frame), info, number > 0, out)?;
        }
        self.footer(out)
    }

    /// Prints the functions of symbols, of which none contains another one.
    pub(super) fn locations(
        self,
        locations: &[Frame],
        info: ModuleInfo,
        out: &mut impl Write,
    ) -> io::Result<()> {
        if locations.is_empty() {
            self.frame(None, None, false, out)?;
        }
        locations.iter().try_for_each(|frame| self.frame(Some(frame), Some(info), false, out))?;
        self.footer(out)
    }

    /// Prints the data at `address`. Without a declaration, the file is that of the symbol table, and the line is 0.
    pub(super) fn data(self, address: u64, data: &Data, out: &mut impl Write) -> io::Result<()> {
        self.header(Some(address), out)?;
        let Data { symbol, declaration } = data;
        let name = symbol.as_ref().map_or(UNKNOWN.into(), |symbol| self.naming.data(symbol));
        let (start, size) = symbol.as_ref().map_or((0, 0), |symbol| (symbol.start, symbol.size));
        writeln!(out, "{name}\n{start} {size}")?;
        let file = symbol.as_ref().and_then(|symbol| symbol.file.as_deref());
        match (declaration, file) {
            (Some(Declaration { file, line }), _) => writeln!(out, "{}:{line}", text::lossy(file))?,
            (None, Some(file)) => writeln!(out, "{}:0", text::lossy(file))?,
            (None, None) => writeln!(out, "{UNKNOWN}:?")?,
        }
        self.footer(out)
    }

    fn header(self, address: Option<u64>, out: &mut impl Write) -> io::Result<()> {
        match address.filter(|_| self.addresses) {
            Some(address) => write!(out, "{address:#x}{}", if self.pretty { ": " } else { "\n" }),
            None => Ok(()),
        }
    }

    fn footer(self, out: &mut impl Write) -> io::Result<()> {
        if self.is_llvm { writeln!(out) } else { Ok(()) }
    }

    fn frame(
        self,
        frame: Option<&Frame>,
        info: Option<ModuleInfo>,
        is_caller: bool,
        out: &mut impl Write,
    ) -> io::Result<()> {
        if self.naming.functions != Functions::None {
            let name = frame.and_then(|frame| self.naming.function(frame));
            let before = if self.pretty && is_caller { " (inlined by) " } else { "" };
            let after = if self.pretty { " at " } else { "\n" };
            write!(out, "{before}{}{after}", name.as_deref().unwrap_or(UNKNOWN))?;
        }
        let file = frame.and_then(|frame| self.naming.file(frame));
        let file = file.as_deref().unwrap_or(UNKNOWN);
        let line = frame.and_then(|frame| frame.line).unwrap_or(0);
        let column = frame.map_or(0, |frame| frame.column);
        if self.verbose {
            writeln!(out, "  Filename: {file}")?;
            if let Some(start) = frame.zip(info).and_then(|(frame, info)| start_address(frame, info)) {
                writeln!(out, "  Function start address: {start:#x}")?;
            }
            return writeln!(out, "  Line: {line}\n  Column: {column}");
        }
        write!(out, "{file}:{line}")?;
        if self.is_llvm { writeln!(out, ":{column}") } else { writeln!(out) }
    }
}

/// The address at which the function of the frame starts. For an inlined function it is unknown.
pub(super) fn start_address(frame: &Frame, info: ModuleInfo) -> Option<u64> {
    let start = frame.function_start.filter(|_| !frame.inlined)?;
    Some(info.base.wrapping_add(start.0))
}
