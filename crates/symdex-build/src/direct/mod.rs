//! Answers directly from a debug file.
//!
//! A few addresses need a few units. The code of a build walks these units, merges what they have at the addresses,
//! and writes it as a small index. So each answer is the one that the index of the whole image gives.

mod columns;
mod cut;
mod unit_cache;

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use rayon::prelude::*;
use symdex::{ImageOffset, Index};

pub(crate) use self::columns::add_column;
pub use self::columns::split_column;
use self::cut::cut;
use self::unit_cache::UnitCache;
use crate::build::{WALK_AHEAD, build_parts};
use crate::dwarf::{Claims, Part, Units, unit_ranges, unit_ranges_at};
use crate::error::Error;
use crate::flatten::{Interval, Stretch, flatten};
use crate::image::Image;
use crate::keyed::KeyedSet;
use crate::limits::UnitLimits;
use crate::memory::Memory;
use crate::options::{BuildOptions, MAX_MEMORY};
use crate::report::Problems;
use crate::symbol_ranges::{kept_aliases, symbol_ranges};
use crate::symbols::FunctionSymbol;
use crate::unit_ranges::UnitRanges;

/// How many bytes of units are cached for later questions.
const CACHE_SIZE: usize = 64 << 20;
/// If more than this many times the bytes of the debug information were read, the whole index is built.
const MAX_READS: usize = 2;

/// Answers image offsets from a debug file without building its index. Only the units that have code there are read.
///
/// Use it for a few addresses of an image that has no index. The answers are those of the index that
/// [`build`](crate::build()) makes of the image: the same frames under both line policies, and the same aliases.
///
/// At the first question about a unit, only the functions around the addresses are read in full. At the second
/// question, the whole unit is read and cached. The cache has up to 64 MiB. If the cache is too small, units are read
/// again. After twice the bytes of the debug information were read, the index of the whole image is made in memory, and
/// answers all later questions.
///
/// `.debug_aranges` and the root entries of all units say which units to read. They may be wrong or missing:
///
/// * A unit whose root entry states no range is read in outline: the ranges of its subprograms, and its line rows.
/// * All units are read in outline, once, if the units that claim an address have no function there, or if a unit has
///   functions outside of its stated ranges.
///
/// An answer can still differ from the index's in three cases:
/// * Two units have a function at the address. The function that starts later is in a unit that was not read, and the
///   stated ranges of that unit leave the code out.
/// * The address has line rows of several units and no function, and the units are not in address order.
/// * The file exceeds the limits of a build, which bound its work in proportion to the size of the file. In a build,
///   all units share these limits, so it may omit what a direct lookup still reads.
///
/// ```
/// # use std::path::Path;
/// use symdex::{ImageOffset, LinePolicy, Scratch};
/// use symdex_build::{Companions, DirectLookup, Image, slices};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let path = "../../testdata/dsyms/inline-dwarf4.dSYM/Contents/Resources/DWARF/inline-dwarf4";
/// # let path = &Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
/// let bytes = symdex::map_file(path)?;
/// let companions = Companions::default();
/// let image = Image::load(&slices(&bytes)?[0], path, &companions)?;
/// let mut lookup = DirectLookup::new(&image)?;
///
/// let offset = ImageOffset(0x400);
/// let index = lookup.answer(&[offset])?;
/// let mut scratch = Scratch::default();
/// let frames = index.lookup(offset, LinePolicy::Statement, &mut scratch)?.ok_or("nothing there")?;
/// let names: Vec<_> = frames.iter().filter_map(|frame| frame.name).collect();
/// assert_eq!(names, [&b"row"[..], b"mip", b"pyramid"]);
/// # Ok(())
/// # }
/// ```
pub struct DirectLookup<'i, 'd> {
    image: &'i Image<'d>,
    /// What is added to offsets of the image.
    shift: u64,
    /// What the list of units takes, and the units that are being read.
    memory: Memory,
    units: Units<'d>,
    problems: Problems,
    claims: Claims,
    /// For each unit whether it was read. The next time it is read as a whole and cached.
    was_walked: Vec<bool>,
    cache: UnitCache<'d>,
    /// How many bytes of debug information were read.
    walked: usize,
    /// The symbol that owns each address, and how many aliases of each symbol are kept. They are made when they are
    /// first needed.
    symbols: Option<(Vec<Stretch>, Vec<usize>)>,
    /// The index that answered the last question.
    index: Index<Vec<u8>>,
    is_whole: bool,
}

impl<'i, 'd> DirectLookup<'i, 'd> {
    /// Reads the headers and root entries of the units of `image`.
    ///
    /// # Errors
    ///
    /// As [`Self::answer`].
    pub fn new(image: &'i Image<'d>) -> Result<Self, Error> {
        let mut problems = image.missing();
        let memory = Memory::new(MAX_MEMORY);
        let limits = UnitLimits::without_deadline(image, &memory);
        let units = Units::read(image, limits, &mut problems)?;
        let claims = Claims::new(image, &units, limits);
        let nothing = build_parts(image, Vec::new(), UnitRanges::default(), problems.clone(), 0)?;
        let (index, cache) = (Index::open(nothing)?, UnitCache::new(CACHE_SIZE));
        let was_walked = vec![false; units.own];
        let (walked, symbols, is_whole) = (0, None, false);
        Ok(Self {
            image,
            shift: 0,
            memory,
            units,
            problems,
            claims,
            was_walked,
            cache,
            walked,
            symbols,
            index,
            is_whole,
        })
    }

    /// Makes offsets count from the base of `image`, another part of the same image; see [`Companions::load_near`]. An
    /// offset below this base wraps around.
    ///
    /// [`Companions::load_near`]: crate::Companions::load_near
    #[must_use]
    pub fn relative_to(self, image: &Image<'_>) -> Self {
        Self { shift: self.image.info.base.wrapping_sub(image.info.base), ..self }
    }

    /// Whether the code at `offset` is in this part of the image.
    #[must_use]
    pub fn has_code(&self, offset: ImageOffset) -> bool {
        self.image.is_executable(offset.0.wrapping_sub(self.shift))
    }

    /// Makes the answers of all later questions state columns: a file in their indexes is a path and a column, as
    /// [`split_column`] returns them. The line policy `statement` has the column only where it has the line of `exact`.
    pub fn state_columns(&mut self) {
        self.units.with_columns = true;
        (self.cache, self.is_whole) = (UnitCache::new(CACHE_SIZE), false);
    }

    /// An index that answers `offsets` as the index of the whole image does. Other offsets may have no answers in it.
    /// Its metadata describes the whole image, but its counts are of the parts that were read.
    ///
    /// # Errors
    ///
    /// [`Error::Index`] if the index would be too large for the format; [`Error::Io`] if a temporary file
    /// cannot be written. A unit or a function that cannot be read is left out and counted in the metadata, as in a
    /// build.
    pub fn answer(&mut self, offsets: &[ImageOffset]) -> Result<&Index<Vec<u8>>, Error> {
        if self.is_whole {
            return Ok(&self.index);
        }
        let mut offsets: Vec<u64> = offsets.iter().map(|offset| offset.0.wrapping_sub(self.shift)).collect();
        offsets.sort_unstable();
        offsets.dedup();
        // Outside of the executable sections there is no answer.
        offsets.retain(|offset| self.image.is_executable(*offset));
        let mut parts = BTreeMap::new();
        self.walk(&offsets, &mut parts)?;
        let functions = self.image.go.as_ref().map(|go| go.functions().units_at(&offsets));
        for (number, unit) in functions.into_iter().flatten().enumerate() {
            parts.insert((0, number), cut(&unit, &offsets));
        }
        let unsure = without_function(&offsets, &parts);
        let limits = UnitLimits::without_deadline(self.image, &self.memory);
        if self.claims.outline(self.image, &self.units, limits, !unsure.is_empty()) {
            self.walk(&offsets, &mut parts)?;
        }
        if self.walked > MAX_READS * self.units.own_size() && self.shift == 0 {
            self.cache = UnitCache::new(0);
            let columns = self.units.with_columns;
            let options = BuildOptions { columns, allow_empty: true, ..BuildOptions::new() };
            self.index = Index::open(options.build(self.image)?.bytes)?;
            self.is_whole = true;
            return Ok(&self.index);
        }
        let symbols = self.symbols(&without_function(&offsets, &parts), &parts);
        let units = parts.into_values().collect();
        let parts = build_parts(self.image, units, symbols, self.problems.clone(), self.shift)?;
        self.index = Index::open(parts)?;
        Ok(&self.index)
    }
}

impl<'d> DirectLookup<'_, 'd> {
    /// The index that answered the last question. Before the first question it has no answers, only its metadata.
    #[must_use]
    pub fn index(&self) -> &Index<Vec<u8>> {
        &self.index
    }

    /// Reads the units that claim one of `offsets` and that `parts` lacks, and adds their ranges at the offsets.
    fn walk(&mut self, offsets: &[u64], parts: &mut Parts<'d>) -> Result<(), Error> {
        let mut missing = self.claims.units_at(offsets);
        missing.retain(|unit| !parts.contains_key(&(self.units.low(*unit), *unit)));
        let (image, units) = (self.image, &self.units);
        while !missing.is_empty() {
            // As many bytes are read at a time as a build reads ahead. Only the ranges at the offsets are kept of them.
            let mut size = 0;
            let fits = |unit: &usize| {
                let fits = size < WALK_AHEAD;
                size += units.size(*unit);
                fits
            };
            let rest = missing.split_off(missing.iter().copied().take_while(fits).count());
            let cached: Vec<_> = missing.iter().map(|unit| (*unit, self.cache.get(*unit))).collect();
            let was_walked = &self.was_walked;
            let limits = UnitLimits::without_deadline(self.image, &self.memory);
            let walk = |(unit, cached): (usize, Option<Arc<UnitRanges<'d>>>)| match cached {
                Some(ranges) => Some(Walked::Cached(ranges)),
                None if was_walked[unit] => {
                    let ranges = unit_ranges(image, units, unit, limits)?;
                    limits.memory.give_back(ranges.size());
                    Some(Walked::Whole(Arc::new(ranges)))
                }
                None => Some(Walked::Part(Box::new(unit_ranges_at(image, units, unit, limits, offsets)?))),
            };
            let walked: Option<Vec<_>> = cached.into_par_iter().map(walk).collect();
            let walked = walked.ok_or(Error::TooLarge { limit: MAX_MEMORY, what: "the units it reads" })?;
            for (unit, walked) in missing.into_iter().zip(walked) {
                self.walked += if matches!(walked, Walked::Cached(_)) { 0 } else { units.size(unit) };
                self.was_walked[unit] = true;
                let part = match walked {
                    Walked::Cached(ranges) => cut(&ranges, offsets),
                    Walked::Whole(ranges) => {
                        let part = cut(&ranges, offsets);
                        self.cache.put(unit, ranges);
                        part
                    }
                    Walked::Part(part) => {
                        self.claims.learn(unit, part.code, &part.functions);
                        cut(&part.ranges, offsets)
                    }
                };
                parts.insert((units.low(unit), unit), part);
            }
            missing = rest;
        }
        Ok(())
    }

    /// The symbols at `offsets`, and those at the start of each function there, because aliases are looked up by the
    /// start of the function.
    fn symbols(&mut self, offsets: &[u64], parts: &Parts<'d>) -> UnitRanges<'d> {
        let symbols = &self.image.symbols;
        let (owners, kept) = self.symbols.get_or_insert_with(|| {
            let interval = |symbol: FunctionSymbol<'_, '_>| {
                let priority = (symbol.start, Reverse(symbol.end - symbol.start));
                Interval { start: symbol.start, end: symbol.end, priority }
            };
            (flatten(symbols.iter().map(interval)), kept_aliases(symbols.iter()))
        });
        let owner = |offset: u64| {
            let stretch = owners.get(owners.partition_point(|stretch| stretch.end <= offset))?;
            (stretch.start <= offset).then_some(stretch.owner)
        };
        let starts = parts.values().flat_map(|part| &part.function_ranges).map(|function| function.start);
        let mut wanted: Vec<u64> = starts.chain(offsets.iter().copied()).collect();
        let mut owning: Vec<usize> = wanted.iter().filter_map(|offset| owner(*offset)).collect();
        owning.sort_unstable();
        owning.dedup();
        let kept: Vec<_> = owning.iter().map(|symbol| kept[*symbol]).collect();
        let owning: Vec<_> = owning.into_iter().filter_map(|symbol| symbols.get(symbol)).collect();
        wanted.extend(owning.iter().map(|symbol| symbol.start));
        wanted.sort_unstable();
        wanted.dedup();
        cut(&symbol_ranges(&owning, &kept), &wanted)
    }
}

impl fmt::Debug for DirectLookup<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DirectLookup({:?}, {} bytes read)", self.image, self.walked)
    }
}

/// A unit that was read.
enum Walked<'d> {
    Cached(Arc<UnitRanges<'d>>),
    Whole(Arc<UnitRanges<'d>>),
    Part(Box<Part<'d>>),
}

/// The ranges of units at the offsets of a question, in the order in which units are merged.
type Parts<'d> = BTreeMap<(u64, usize), UnitRanges<'d>>;

/// The `offsets` at which none of `parts` has a function.
fn without_function(offsets: &[u64], parts: &Parts<'_>) -> Vec<u64> {
    let ranges = parts.values().flat_map(|part| &part.ranges);
    let with: KeyedSet<u64> =
        ranges.filter(|range| range.function_range.is_some()).map(|range| u64::from(range.start)).collect();
    offsets.iter().copied().filter(|offset| !with.contains(offset)).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use symdex::{LinePolicy, Scratch};

    use super::*;
    use crate::{Companions, slices};

    #[test]
    fn units_that_are_read_again_and_again_lead_to_the_whole_index() {
        let path = "../../testdata/dsyms/inline-dwarf4.dSYM/Contents/Resources/DWARF/inline-dwarf4";
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
        let file = std::fs::read(&path).expect("readable");
        let companions = Companions::default();
        let slice = slices(&file).expect("a Mach-O file").remove(0);
        let image = Image::load(&slice, &path, &companions).expect("loads");
        let mut lookup = DirectLookup::new(&image).expect("reads");
        let names = |lookup: &DirectLookup<'_, '_>, offset| {
            let mut scratch = Scratch::default();
            let found = lookup.index().lookup(offset, LinePolicy::Exact, &mut scratch).expect("intact");
            found.map_or(0, |frames| frames.iter().filter(|frame| frame.name.is_some()).count())
        };
        let (asked, other) = (ImageOffset(0x400), ImageOffset(0x61b));
        for _ in 0..20 {
            lookup.answer(&[asked]).expect("answers");
            assert_eq!((names(&lookup, asked), names(&lookup, other)), (3, 0));
        }
        // Without a cache, each question reads the unit.
        lookup.cache = UnitCache::new(0);
        for _ in 0..20 {
            lookup.answer(&[asked]).expect("answers");
            assert_eq!(names(&lookup, asked), 3);
        }
        assert_eq!((lookup.is_whole, names(&lookup, other)), (true, 1));
    }
}
