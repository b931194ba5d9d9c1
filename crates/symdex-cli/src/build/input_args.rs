//! The inputs that the command line names: paths, and listings of paths.

use std::fs::File;
use std::io;
use std::path::PathBuf;

use symdex_pipeline::archive::Limits;
use symdex_pipeline::{Input, Intake};

use super::shard::Shard;
use crate::archive;
use crate::failure::{Cause, Failure};
use crate::number;

#[derive(clap::Args)]
pub(crate) struct InputArgs {
    /// Debug files, bundles, folders, .xcarchives or archives. - is a debug file or an archive on standard input
    #[arg(required_unless_present = "inputs_from", value_name = "INPUT")]
    pub(crate) inputs: Vec<PathBuf>,
    /// Also build the inputs that this file lists, one on each line. - is standard input
    #[arg(long, value_name = "FILE")]
    inputs_from: Option<PathBuf>,
    /// The inputs in the file of --inputs-from are separated by zero bytes, as `find -print0` writes them
    #[arg(short = '0', long, requires = "inputs_from")]
    null: bool,
    /// Build only one of N parts of the inputs. I is from 0 to N-1. An input always belongs to the same part,
    /// regardless of the other inputs
    #[arg(long, value_name = "I/N")]
    shard: Option<Shard>,
    #[command(flatten)]
    limits: LimitArgs,
}

/// The heading of these options in the help.
const LIMITS: &str = "Limits of archives";

#[derive(clap::Args)]
struct LimitArgs {
    /// The maximum number of entries in an archive, including those of nested archives
    #[arg(long, help_heading = LIMITS, value_name = "N", default_value_t = Limits::default().entries)]
    max_entries: u64,
    /// The maximum unpacked size of an archive
    #[arg(long, help_heading = LIMITS, value_name = "SIZE", default_value = "64GB", value_parser = size)]
    max_unpacked: u64,
    /// The maximum size of an entry
    #[arg(long, help_heading = LIMITS, value_name = "SIZE", default_value = "16GB", value_parser = size)]
    max_entry_size: u64,
    /// The maximum number of unpacked bytes per compressed byte, after the first 16 MiB
    #[arg(long, help_heading = LIMITS, value_name = "N", default_value_t = Limits::default().ratio)]
    max_ratio: u64,
    /// How many levels of nested archives are read
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
    pub(crate) fn list(&self) -> Result<Vec<PathBuf>, Failure> {
        let mut inputs = self.inputs.clone();
        if let Some(path) = &self.inputs_from {
            let listing = match path.to_str() {
                Some("-") if inputs.iter().any(|input| archive::is_standard_input(input)) => {
                    let message =
                        "- is an input and the listing of inputs; only one of them can be standard input";
                    return Err(Failure::new(Cause::Usage, message));
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

    /// Reads `inputs` within the limits of the options.
    pub(crate) fn intake(&self, inputs: &[PathBuf]) -> Intake {
        let inputs = inputs.iter().map(|path| Input::of_argument(path)).collect();
        let mut intake = Intake::new(inputs);
        (intake.limits, intake.max_temporary) = (self.limits(), self.limits.max_temporary);
        intake
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
