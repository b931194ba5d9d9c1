//! The inputs of a build: paths, listings of paths, and archives.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use symdex_build::SymbolMaps;
use symdex_build::debug_files::{DebugFile, InputFiles};
use symdex_pipeline::archive::{Fault, Limits, Unpacked, Unpacker};
use symdex_pipeline::isolate::build::TaskFile;

use super::shard::Shard;
use crate::archive;
use crate::failure::{Failure, FailureKind};
use crate::number;
use crate::progress::Progress;

#[derive(clap::Args)]
pub(super) struct InputArgs {
    /// Debug files, bundles, folders, .xcarchives or archives. - is an archive on standard input
    #[arg(required_unless_present = "inputs_from", value_name = "INPUT")]
    inputs: Vec<PathBuf>,
    /// Also build the inputs that this file lists, one on each line. - is standard input
    #[arg(long, value_name = "FILE")]
    inputs_from: Option<PathBuf>,
    /// The listing of --inputs-from separates the inputs by zero bytes, as `find -print0` does
    #[arg(short = '0', long, requires = "inputs_from")]
    null: bool,
    /// Build only one of N parts of the inputs. I is from 0 to N-1. An input is in the same part whatever the other
    /// inputs are
    #[arg(long, value_name = "I/N")]
    shard: Option<Shard>,
    #[command(flatten)]
    limits: LimitArgs,
}

/// The heading of these options in the help.
const LIMITS: &str = "Limits of archives";

#[derive(clap::Args)]
struct LimitArgs {
    /// How many entries an archive may have, those of the archives in it included
    #[arg(long, help_heading = LIMITS, value_name = "N", default_value_t = Limits::default().entries)]
    max_entries: u64,
    /// How many bytes an archive may unpack to
    #[arg(long, help_heading = LIMITS, value_name = "SIZE", default_value = "64GB", value_parser = size)]
    max_unpacked: u64,
    /// How many bytes an entry may have
    #[arg(long, help_heading = LIMITS, value_name = "SIZE", default_value = "16GB", value_parser = size)]
    max_entry_size: u64,
    /// How many bytes may be unpacked for each compressed byte, beside the first 16 MiB
    #[arg(long, help_heading = LIMITS, value_name = "N", default_value_t = Limits::default().ratio)]
    max_ratio: u64,
    /// How deep archives in archives are read
    #[arg(long, help_heading = LIMITS, value_name = "N", default_value_t = Limits::default().nesting,
          value_parser = clap::value_parser!(u32).range(..=8))]
    max_nesting: u32,
    /// When the unpacked debug files take this much space in the folder for temporary files, build them and delete them
    /// before the next archive is unpacked. Only debug files that are built together are joined
    #[arg(long, help_heading = LIMITS, value_name = "SIZE", default_value = "8GB", value_parser = size)]
    max_temporary: u64,
}

/// [`number::parse_size`] for sizes beyond the memory.
fn size(text: &str) -> Result<u64, String> {
    number::parse_size(text).map(|size| size as u64)
}

impl InputArgs {
    /// The inputs of the command line and of the listing, those of other shards left out.
    pub(super) fn list(&self) -> Result<Vec<PathBuf>, Failure> {
        let mut inputs = self.inputs.clone();
        if let Some(path) = &self.inputs_from {
            let listing = match path.to_str() {
                Some("-") if inputs.iter().any(|input| archive::is_standard_input(input)) => {
                    let message =
                        "- is an input and the listing of inputs; only one of them can be standard input";
                    return Err(Failure::new(FailureKind::Usage, message));
                }
                Some("-") => read(io::stdin()),
                _ => File::open(path).and_then(read),
            };
            let listing = listing.map_err(|error| Failure::unreadable(path, &error))?;
            inputs.extend(listed(&listing, if self.null { 0 } else { b'\n' }));
        }
        if let Some(shard) = &self.shard {
            inputs.retain(|input| shard.has(input));
        }
        Ok(inputs)
    }

    fn limits(&self) -> Limits {
        let LimitArgs { max_entries, max_unpacked, max_entry_size, max_ratio, max_nesting, .. } = self.limits;
        Limits {
            entries: max_entries,
            unpacked: max_unpacked,
            entry_size: max_entry_size,
            ratio: max_ratio,
            nesting: max_nesting,
        }
    }
}

fn read(mut stream: impl io::Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The paths in `listing`, which `end` separates.
fn listed(listing: &[u8], end: u8) -> impl Iterator<Item = PathBuf> + '_ {
    let lines = listing.split(move |byte| *byte == end);
    let lines =
        lines.map(move |line| if end == b'\n' { line.strip_suffix(b"\r").unwrap_or(line) } else { line });
    lines.filter(|line| !line.is_empty()).map(path)
}

#[cfg(unix)]
fn path(bytes: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt as _;
    std::ffi::OsStr::from_bytes(bytes).into()
}

#[cfg(not(unix))]
fn path(bytes: &[u8]) -> PathBuf {
    String::from_utf8_lossy(bytes).into_owned().into()
}

/// Debug files that are built together, and what is wrong with the archives that they come from.
#[derive(Default)]
pub(super) struct Batch {
    pub(super) inputs: InputFiles,
    /// The symbol maps that the options name and those of the archives.
    pub(super) maps: SymbolMaps,
    /// The symbol maps and property lists of the archives.
    pub(super) unpacked_maps: Vec<TaskFile>,
    pub(super) failures: Vec<Failure>,
    /// Entries that are not read although valid archives have them.
    pub(super) warnings: Vec<Fault>,
    /// Owns the folder of the unpacked files.
    unpacker: Option<Unpacker>,
    /// The size of the unpacked files.
    unpacked: u64,
}

/// Makes batches of inputs.
pub(super) struct Intake<'a> {
    args: &'a InputArgs,
    inputs: std::vec::IntoIter<PathBuf>,
    maps: SymbolMaps,
}

impl<'a> Intake<'a> {
    pub(super) fn new(args: &'a InputArgs, inputs: Vec<PathBuf>, maps: SymbolMaps) -> Self {
        Self { args, inputs: inputs.into_iter(), maps }
    }

    /// Takes inputs until their unpacked files reach `--max-temporary`. `None` if no inputs are left.
    pub(super) fn next_batch(&mut self, progress: &Progress) -> Result<Option<Batch>, Failure> {
        if self.inputs.len() == 0 {
            return Ok(None);
        }
        let mut batch = Batch { maps: self.maps.clone(), ..Batch::default() };
        while batch.unpacked < self.args.limits.max_temporary
            && let Some(input) = self.inputs.next()
        {
            match archive::open(&input, self.args.limits.max_unpacked) {
                Ok(Some(file)) => batch.add_archive(file, &input, self.args.limits(), progress)?,
                Ok(None) => batch.inputs.add(&input),
                Err(error) => batch.failures.push(Failure::unreadable(&input, &error)),
            }
        }
        Ok(Some(batch))
    }
}

impl Batch {
    fn add_archive(
        &mut self,
        file: File,
        input: &Path,
        limits: Limits,
        progress: &Progress,
    ) -> Result<(), Failure> {
        let unpacker = match &mut self.unpacker {
            Some(unpacker) => unpacker,
            none => none.insert(archive::unpacker(limits)?),
        };
        let Unpacked { files, faults, .. } = archive::unpack(unpacker, file, input, Some(progress));
        let mut is_empty = true;
        for file in files {
            self.unpacked += file.size;
            if SymbolMaps::may_be_one(Path::new(&file.entry)) {
                self.unpacked_maps.push(TaskFile::of_archive(&file.path, &*file.archive, &*file.entry));
            }
            let is_map = self.maps.add(Path::new(&file.entry), &file.path);
            let file = DebugFile::of_archive(file.path, &file.archive, &file.entry);
            is_empty &= !is_map && !self.inputs.add_unpacked(file);
        }
        let (warnings, faults): (Vec<_>, Vec<_>) =
            faults.into_iter().partition(|fault| fault.kind.is_harmless());
        if is_empty && faults.is_empty() {
            self.failures.push(archive::without_debug_files(input));
        }
        self.failures.extend(faults.iter().map(Failure::from));
        self.warnings.extend(warnings);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listings_have_a_path_on_each_line_or_before_each_zero_byte() {
        let paths = |listing: &[u8], end| listed(listing, end).collect::<Vec<_>>();
        assert_eq!(paths(b"a\n\nb c\r\nd", b'\n'), ["a", "b c", "d"].map(PathBuf::from));
        assert_eq!(paths(b"a\nb\0c\r\0", 0), ["a\nb", "c\r"].map(PathBuf::from));
    }

    #[test]
    fn the_limits_of_the_options_are_those_of_the_library() {
        #[derive(clap::Parser)]
        struct Cli {
            #[command(flatten)]
            inputs: InputArgs,
        }
        let cli = <Cli as clap::Parser>::parse_from(["symdex", "input"]);
        assert_eq!(cli.inputs.limits(), Limits::default());
    }
}
