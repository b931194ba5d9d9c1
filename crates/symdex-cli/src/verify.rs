//! `symdex verify`: whether an index is whole.

use std::io::{self, Write as _};
use std::path::PathBuf;

use symdex::{ImageId, Verified};

use crate::failure::{self, Failure};
use crate::open;

/// Check all of an index: every checksum, and that all of it decodes and makes sense
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// An index file, or a folder of indexes together with --id
    #[arg(value_name = "INDEX")]
    index: PathBuf,
    /// The image whose index in the folder is wanted: its UUID, with or without dashes
    #[arg(long, value_name = "UUID")]
    id: Option<ImageId>,
}

const EXAMPLES: &str = "\
Examples:
  symdex verify 0c37c502aba03641a08f84c794684f36.symdex

Exit codes: 0 the index is whole, 4 it is damaged, 5 it is missing, 6 it was made for a newer symdex.";

pub(crate) fn run(args: &Args) -> failure::Outcome {
    let path = open::index_path(&args.index, args.id.as_ref())?;
    let index = open::index(&path, args.id.as_ref())?;
    let verified = index.verify().map_err(|error| Failure::index(&path, &error))?;
    let Verified { chunks, ranges, blocks } = verified;
    writeln!(
        io::stdout(),
        "{}: whole: {chunks} chunks, {ranges} ranges, {blocks} string blocks",
        path.display()
    )?;
    Ok(None)
}
