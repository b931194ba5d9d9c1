//! Whether an index of an image with debug information already exists, so that no build is needed.

use symdex::{ChunkRanges, Index, Table};

use crate::dwarf::{Headers, headers};
use crate::image::Image;
use crate::report::{BuildReport, TextCoverage};
use crate::symbol_ranges::{kept_aliases, symbol_ranges};

/// Returns a build report if `index` is complete for `image`, judged by its metadata alone: the debug information of
/// `image` is not read. The report lacks what the build dropped, and its steps.
///
/// The index has to be undamaged, not partial, and written by this version of symdex. It must have the id, the name,
/// the architecture, the addresses of the code, the number of compile units, and the number of symbols of `image`. A
/// different debug file with the same id that agrees in all of these counts as the same file.
///
/// Returns `None` if the image has to be built. See [`up_to_date`](crate::up_to_date()) for an image without debug
/// information.
#[must_use]
pub fn built_before<B: AsRef<[u8]>>(image: &Image<'_>, index: &Index<B>) -> Option<BuildReport> {
    let (metadata, info) = (index.metadata(), &image.info);
    let is_whole = metadata.partial.is_empty() && image.missing.is_empty();
    let is_image = metadata.id == info.id
        && metadata.image_name == info.image_name
        && metadata.arch == info.arch
        && metadata.base == info.base
        && metadata.executable == info.executable
        && metadata.segments == info.segments;
    if !image.has_dwarf() || !is_whole || !is_image || metadata.builder != env!("CARGO_PKG_VERSION") {
        return None;
    }
    let Headers { units, types, error } = headers(&image.dwarf);
    let symbols: Vec<_> = image.symbols.iter().collect();
    let symbols = symbol_ranges(&symbols, &kept_aliases(image.symbols.iter()));
    let counts = metadata.counts;
    if error.is_some()
        || counts.units != units.len() as u64 + types + u64::from(image.go.as_ref().is_some())
        || counts.symbols != symbols.ranges.len() as u64
    {
        return None;
    }
    index.verify().ok()?;
    let coverage = coverage(index, TextCoverage::of(info))?;
    Some(BuildReport { has_dwarf: true, coverage, ..BuildReport::default() })
}

/// How much code has answers in `index`; `none` states the code.
pub(crate) fn coverage<B: AsRef<[u8]>>(index: &Index<B>, none: TextCoverage) -> Option<TextCoverage> {
    let mut coverage = none;
    let span = u64::from(index.metadata().chunk_span);
    for &table in Table::ALL {
        for chunk in index.chunks(table) {
            let (number, ChunkRanges { ranges, frames, .. }) = chunk.ok()?;
            let start = number.saturating_mul(span);
            for range in ranges {
                let end = range.end.min(start.saturating_add(span));
                let size = end.saturating_sub(range.start.max(start));
                let has_function = frames.get(range.exact as usize).is_some_and(|frame| frame.name.is_some());
                match table {
                    Table::Dwarf => {
                        coverage.dwarf += size;
                        coverage.dwarf_function += if has_function { size } else { 0 };
                    }
                    Table::SymbolTable => coverage.symbol_table += size,
                }
            }
        }
    }
    Some(coverage)
}
