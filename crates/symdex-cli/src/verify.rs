//! `symdex verify`: whether an index is whole, and whether its answers are those of a debug file.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use symdex::{ImageId, Index, Verified};
use symdex_build::audit::{AuditReport, audit};
use symdex_build::{Companions, Image, SymbolMaps};

use crate::build::symbol_maps;
use crate::failure::{self, Failure, Kind, complain};
use crate::joined::Joined;
use crate::open;

/// Check all of an index: every checksum, and that all of it decodes and makes sense
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// An index file, or a folder of indexes together with --id
    #[arg(value_name = "INDEX")]
    index: PathBuf,
    /// The image whose index in the folder is wanted: its UUID, with or without dashes, or its build id
    #[arg(long, value_name = "ID")]
    id: Option<ImageId>,
    /// Compare every answer with this debug file (a dSYM, an ELF file) or, where the image is in several files, with the folder of them
    #[arg(long, value_name = "DEBUGFILE")]
    against: Option<PathBuf>,
    /// The symbol maps the index was built with: <UUID>.bcsymbolmap, or a folder of them; may be repeated
    #[arg(long, value_name = "FILE|DIR", requires = "against")]
    symbol_map: Vec<PathBuf>,
    /// The folders of debug files the index was built with; may be repeated
    #[arg(long, value_name = "DIR", requires = "against")]
    debug_dir: Vec<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  symdex verify 0c37c502aba03641a08f84c794684f36.symdex
  symdex verify 0c37c502aba03641a08f84c794684f36.symdex --against App.dSYM

Exit codes: 0 the index is whole, 1 its answers are not those of the debug file, 3 the debug file has no such image, 4 it is damaged, 5 it is missing, 6 it was made for a newer symdex.";

pub(crate) fn run(args: &Args) -> failure::Outcome {
    let path = open::index_path(&args.index, args.id.as_ref())?;
    let index = open::index(&path, args.id.as_ref())?;
    let verified = index.verify().map_err(|error| Failure::index(&path, &error))?;
    let Verified { chunks, ranges, pages } = verified;
    writeln!(io::stdout(), "{}: whole: {chunks} chunks, {ranges} ranges, {pages} pages", path.display())?;
    match &args.against {
        Some(debug_file) => report_against(&path, &index, debug_file, args),
        None => Ok(None),
    }
}

/// Prints how the index compares with the image of its id in `debug_file`.
fn report_against<B: AsRef<[u8]> + Sync>(
    path: &Path,
    index: &Index<B>,
    debug_file: &Path,
    args: &Args,
) -> failure::Outcome {
    let companions = Companions::new(args.debug_dir.clone());
    let report = audit_against(path, index, debug_file, &symbol_maps(&args.symbol_map)?, &companions)?;
    write!(io::stdout(), "{report}")?;
    let failures = report.failures();
    failures.iter().for_each(|failure| complain(&format!("{}: {failure}", path.display())));
    Ok((!failures.is_empty()).then_some(Kind::Other))
}

fn audit_against<B: AsRef<[u8]> + Sync>(
    path: &Path,
    index: &Index<B>,
    debug_file: &Path,
    maps: &SymbolMaps,
    companions: &Companions,
) -> Result<AuditReport, Failure> {
    let arch = &index.metadata().arch.name;
    // A slice that cannot be read may be another architecture's: it counts only where nothing else is found.
    let mut joined = Joined::default();
    for found in symdex_build::find(debug_file) {
        let file = found.map_err(|error| Failure::debug_file(debug_file, &error))?;
        match Image::find(&file, index.id(), arch, companions) {
            Ok(None) | Err(symdex_build::Error::NoSuchArch { .. }) => {}
            Ok(Some(image)) => joined.add(&file, Ok(image)),
            Err(error) => joined.add(&file, Err(error)),
        }
    }
    if let (Some(image), Some(file)) = (joined.image, joined.paths.first()) {
        let of_file = |error| Failure::debug_file(file, &error);
        let map = maps.of(&image.info.id, file).map_err(of_file)?;
        let image = match &map {
            Some(map) => image.with_symbol_map(map),
            None => image,
        };
        return audit(&image, index).map_err(|error| match error {
            symdex_build::Error::Index(error) => Failure::index(path, &error),
            error => of_file(error),
        });
    }
    if let Some(failure) = joined.failures.into_iter().next() {
        return Err(failure);
    }
    let message = format!("{}: no image {} in it", debug_file.display(), index.id());
    Err(Failure::new(Kind::NotFound, message))
}
