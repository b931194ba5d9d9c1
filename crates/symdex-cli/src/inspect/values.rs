//! The contents of an index that a store keeps as values.
//!
//! The store has the metadata of the index and parts of its chunks, not its sections.

use std::io::{self, BufWriter, Write};

use symdex::ImageOffset;
use symdex_store::OpenImage;

use super::ranges::digest;
use super::{Args, check_chunk, counts, json, metadata, print_chunk};
use crate::failure::{Cause, CommandError, CommandResult, Failure};
use crate::stores::ask;

/// The note that [`print`] prints after the metadata.
const NOT_SHOWN: &str = "sections, aliases and sizes of chunks are not shown, because the store keeps the index as values; the ranges of \
     one chunk are, with --chunk";

pub(super) fn print(args: &Args, image: &OpenImage) -> CommandResult {
    let mut out = BufWriter::new(io::stdout().lock());
    match args.chunk {
        Some(number) => chunk(args, &mut out, image, number)?,
        None => overview(args, &mut out, image)?,
    }
    out.flush()?;
    Ok(None)
}

/// The metadata, and what the store states of the index.
fn overview(args: &Args, out: &mut impl Write, image: &OpenImage) -> Result<(), CommandError> {
    let stated = image.metadata();
    let entry =
        image.store().map(|store| store.stat(&stated.id)).transpose().map_err(Failure::from)?.flatten();
    let (size, index_digest) = entry.map_or((None, None), |entry| (entry.index_size, entry.digest));
    if args.json {
        return json::metadata(out, image.location().as_ref(), stated, size, index_digest);
    }
    metadata(out, stated)?;
    if let Some(size) = size {
        writeln!(out, "size          {size} bytes")?;
    }
    if let Some(index_digest) = index_digest {
        writeln!(out, "digest        {}", digest(index_digest))?;
    }
    counts(out, stated.counts, None, size.unwrap_or(0))?;
    writeln!(out, "\n{NOT_SHOWN}")?;
    Ok(())
}

/// The ranges of chunk `number`, from the value that has the chunk.
fn chunk(args: &Args, out: &mut impl Write, image: &OpenImage, number: u64) -> Result<(), CommandError> {
    let (stated, location) = (image.metadata(), image.location());
    check_chunk(location.as_ref(), stated, args.table(), number)?;
    let offset = ImageOffset(number.saturating_mul(u64::from(stated.chunk_span)));
    let value = ask(image, |image| image.part_at(offset))?;
    let value = value.ok_or_else(|| {
        let message = format!("{location}: no chunk {number} since the index was replaced");
        Failure::new(Cause::NotFound, message)
    })?;
    print_chunk(args, out, location.as_ref(), &value, number)
}
