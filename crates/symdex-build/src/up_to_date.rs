//! Whether the index of an image without debug information is up to date, so that no build is needed.

use symdex::Index;
use xxhash_rust::xxh3::Xxh3Default;

use crate::built_before::coverage;
use crate::chunker::CHUNK_SPAN;
use crate::dwarf::Units;
use crate::image::Image;
use crate::limits::UnitLimits;
use crate::memory::Memory;
use crate::report::{BuildReport, HIDDEN_NAMES, Problems, TextCoverage};
use crate::symbol_map::SymbolMap;
use crate::symbols::FunctionSymbol;

/// Compares `index` with what [`build`](crate::build()) would build from `image`, without building it. Returns the
/// report of the build if both are equal, and `None` if the image has to be built. Of a Go program without DWARF, the
/// report lacks the steps of the build.
///
/// The comparison uses the digest of the input that is kept in the index's metadata. All bytes of the index are
/// verified. Returns `None` for:
///
/// * an image with DWARF;
/// * an index without a digest of its input, such as that of an image with DWARF;
/// * an index of other input, or by another version of symdex;
/// * a damaged index.
///
/// ```
/// # use std::path::Path;
/// use symdex::Index;
/// use symdex_build::{Companions, Image, build, slices, up_to_date};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let path = &Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/demo/DemoPlain.dylib");
/// let bytes = symdex::map_file(path)?;
/// let companions = Companions::default();
/// let image = Image::load(&slices(&bytes)?[0], path, &companions)?;
/// let built = build(&image)?;
/// let index = Index::open(built.bytes)?;
/// assert_eq!(up_to_date(&image, &index), Some(built.report));
/// # Ok(())
/// # }
/// ```
#[must_use]
pub fn up_to_date<B: AsRef<[u8]>>(image: &Image<'_>, index: &Index<B>) -> Option<BuildReport> {
    let stated = index.metadata().input_digest?;
    let mut problems = image.problems();
    // An image without debug information has no units.
    let memory = Memory::new(0);
    Units::read(image, UnitLimits::without_deadline(image, &memory), &mut problems).ok()?;
    if input_digest(image, &problems)? != stated {
        return None;
    }
    index.verify().ok()?;
    let partial = &index.metadata().partial;
    let hidden = partial.iter().find(|partial| partial.reason == HIDDEN_NAMES);
    problems.hidden(hidden.map_or(0, |hidden| hidden.count));
    let coverage = coverage(index, TextCoverage::of(&image.info))?;
    Some(problems.finish(image.has_lines(), coverage).1)
}

/// XXH3-128 of all input that the index of `image` depends on. `problems` counts what could not be read of the image.
/// Returns `None` if the image has debug information.
pub(crate) fn input_digest(image: &Image<'_>, problems: &Problems) -> Option<[u8; 16]> {
    if image.has_dwarf() {
        return None;
    }
    let info = &image.info;
    let mut input = Input(Xxh3Default::new());
    input.bytes(env!("CARGO_PKG_VERSION").as_bytes());
    input.number(u64::from(CHUNK_SPAN));
    input.bytes(info.id.to_string().as_bytes());
    input.bytes(info.image_name.as_bytes());
    input.bytes(info.arch.name.as_bytes());
    input.number(u64::from(info.arch.cputype));
    input.number(u64::from(info.arch.cpusubtype));
    input.number(info.base);
    input.number(info.image_size);
    input.number(info.executable.len() as u64);
    for (start, end) in &info.executable {
        input.number(*start);
        input.number(*end);
    }
    input.number(u64::from(info.text_exec_base.is_some()));
    input.number(info.text_exec_base.unwrap_or(0));
    // These limit how many bytes of names the index may have.
    input.number(image.debug_size);
    input.number(image.symbol_map.map_or(0, SymbolMap::size));
    let lost = problems.lost();
    input.number(lost.len() as u64);
    for (reason, count) in lost {
        input.bytes(reason.as_bytes());
        input.number(*count);
    }
    // A symbol map has resolved their names already.
    input.number(image.symbols.len() as u64);
    image.symbols.iter().for_each(|symbol| input.symbol(&symbol));
    // The tables of a Go program are in several sections.
    image.go.as_ref().into_iter().flat_map(|_| &image.files).for_each(|file| input.bytes(file));
    info.segments.iter().flatten().flatten().for_each(|number| input.number(*number));
    Some(input.0.digest128().to_le_bytes())
}

/// Digests a list of values. Different lists give different bytes.
struct Input(Xxh3Default);

impl Input {
    fn number(&mut self, number: u64) {
        self.0.update(&number.to_le_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.update(bytes);
    }

    fn symbol(&mut self, symbol: &FunctionSymbol<'_, '_>) {
        self.number(symbol.start);
        self.number(symbol.end);
        self.number(u64::from(symbol.name.is_some()));
        self.bytes(symbol.name.unwrap_or_default());
        self.number(symbol.aliases().count() as u64);
        symbol.aliases().for_each(|alias| self.bytes(alias));
    }
}
