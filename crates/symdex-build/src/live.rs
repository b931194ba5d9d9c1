//! A unit whose ranges are not all merged yet, or a part of one.

use rustc_hash::FxHashMap;
use symdex::write::{Id32, Loc};

use crate::cutter::{ChunkJob, Pools};
use crate::dwarf::{Piece, UnitRange, UnitRanges};
use crate::pools::{Hashed, Pool};

/// A unit whose ranges are not all merged yet, or a part of one.
pub(crate) struct LiveUnit<'d> {
    /// The unit's number: which place it has among all units.
    pub(crate) order: u32,
    pub(crate) ranges: UnitRanges<'d>,
    /// Of a part, the number that each of its locs has in the unit; its locs name names and files by their places in the pools.
    pub(crate) part: Option<Vec<u32>>,
    /// How many of its segments are not merged yet.
    pub(crate) segments: usize,
    names: Vec<Pooled>,
    files: Vec<Pooled>,
    /// For each loc its number in the last chunk or part that got it, plus the first number of that one's own; 0 without any.
    numbers: Vec<u64>,
    /// Room for the locs that a chunk lacks.
    missing: Vec<u32>,
}

/// A name or a file of a unit in the pools.
#[derive(Clone, Copy)]
struct Pooled {
    /// Its place; none if the pool refuses it.
    place: Option<Id32>,
    /// Its number, once a chunk needed it.
    number: Option<Id32>,
}

/// What a part of a unit is made of.
#[derive(Debug, Default)]
pub(crate) struct Part {
    pub(crate) order: u32,
    pub(crate) ranges: Vec<UnitRange>,
    pub(crate) pieces: Vec<Piece>,
    pub(crate) locs: Vec<Loc>,
    /// The number that each loc has in the unit.
    pub(crate) numbers: Vec<u32>,
}

impl UnitRanges<'_> {
    /// About how many bytes of memory it takes.
    pub(crate) fn size(&self) -> usize {
        let Self { ranges, pieces, locs, names, files, .. } = self;
        size_of_val(&ranges[..])
            + size_of_val(&pieces[..])
            + size_of_val(&locs[..])
            + size_of_val(&names[..])
            + files.iter().map(|file| size_of_val(file) + file.len()).sum::<usize>()
    }
}

impl<'d> LiveUnit<'d> {
    pub(crate) fn new(order: u32, mut ranges: UnitRanges<'d>, pools: &mut Pools<'d>) -> Self {
        // All at once, as each waits for memory. Few are of functions that other functions cover, and are not needed in the end.
        let (names, files) = (std::mem::take(&mut ranges.names), std::mem::take(&mut ranges.files));
        let names = names.into_iter().map(|name| Pooled { place: pools.names.place(&name), number: None });
        let files = files.into_iter().map(|file| Hashed::new(file.into()));
        let files = files.map(|file| Pooled { place: pools.files.place(&file), number: None });
        let (names, files) = (names.collect(), files.collect());
        let numbers = vec![0; ranges.locs.len()];
        Self { order, part: None, segments: 0, names, files, numbers, missing: Vec::new(), ranges }
    }

    pub(crate) fn of_part(part: Part) -> Self {
        let Part { order, ranges, pieces, locs, numbers: in_unit } = part;
        let numbers = vec![0; locs.len()];
        let ranges = UnitRanges { ranges, pieces, locs, ..UnitRanges::default() };
        let (names, files, missing) = Default::default();
        Self { order, part: Some(in_unit), segments: 0, names, files, numbers, missing, ranges }
    }

    /// About how many bytes of memory it takes.
    pub(crate) fn size(&self) -> usize {
        self.ranges.size()
            + size_of_val(&self.numbers[..])
            + size_of_val(&self.names[..])
            + size_of_val(&self.files[..])
    }

    /// The number of one of the unit's locs in the chunk of `job`, which gets it and its callers if it lacks them.
    #[inline]
    pub(crate) fn loc(&mut self, loc: u32, job: &mut ChunkJob, pools: &mut Pools<'d>) -> u32 {
        match number_since(job.first_loc, self.numbers[loc as usize]) {
            Some(number) => number,
            None => self.add_loc(loc, job, pools),
        }
    }

    fn add_loc(&mut self, loc: u32, job: &mut ChunkJob, pools: &mut Pools<'d>) -> u32 {
        // Most often it lacks the loc alone.
        let caller = self.ranges.locs[loc as usize].parent;
        let in_chunk = caller.map(|caller| number_since(job.first_loc, self.numbers[caller.index()]));
        match in_chunk {
            None if self.part.is_none() => self.add_below(loc, None, job, pools),
            Some(Some(caller)) if self.part.is_none() => self.add_below(loc, Some(caller), job, pools),
            _ => self.add_chain(loc, job, pools),
        }
    }

    fn add_chain(&mut self, loc: u32, job: &mut ChunkJob, pools: &mut Pools<'d>) -> u32 {
        let mut missing = std::mem::take(&mut self.missing);
        let (mut next, mut parent) = (Some(loc), None);
        while let Some(loc) = next {
            parent = number_since(job.first_loc, self.numbers[loc as usize]);
            if parent.is_some() {
                break;
            }
            parent = self.of_other_part(loc, job);
            if let Some(number) = parent {
                self.numbers[loc as usize] = job.first_loc + u64::from(number);
                break;
            }
            missing.push(loc);
            next = self.ranges.locs[loc as usize].parent.map(Id32::get);
        }
        for number in missing.drain(..).rev() {
            let in_chunk = self.add_below(number, parent, job, pools);
            if let Some(numbers) = &self.part {
                job.of_parts.insert((self.order, numbers[number as usize]), in_chunk);
            }
            parent = Some(in_chunk);
        }
        self.missing = missing;
        // The last one made is `loc` itself, or it was there.
        parent.unwrap_or(u32::MAX)
    }

    /// Puts a loc into the chunk of `job`, which has its caller at `caller`; its number there.
    #[inline]
    fn add_below(&mut self, loc: u32, caller: Option<u32>, job: &mut ChunkJob, pools: &mut Pools<'d>) -> u32 {
        let Loc { name, file, line, .. } = self.ranges.locs[loc as usize];
        let (name, file) = (self.name(name, pools), self.file(file, pools));
        let in_chunk = u32::try_from(job.ranges.locs.len()).unwrap_or(u32::MAX);
        let parent = caller.and_then(|caller| Id32::new(u64::from(caller)));
        job.ranges.locs.push(Loc { parent, name, file, line });
        self.numbers[loc as usize] = job.first_loc + u64::from(in_chunk);
        in_chunk
    }

    /// The number in the chunk of `job` of a loc that another part of this unit has put there.
    fn of_other_part(&self, loc: u32, job: &ChunkJob) -> Option<u32> {
        let number = *self.part.as_ref()?.get(loc as usize)?;
        job.of_parts.get(&(self.order, number)).copied()
    }

    /// Tells `job` which locs it has from this unit, of which only parts will be left.
    pub(crate) fn note_locs(&self, job: &mut ChunkJob) {
        for (number, in_chunk) in (0u32..).zip(&self.numbers) {
            if let Some(in_chunk) = number_since(job.first_loc, *in_chunk) {
                let number = self.part.as_ref().map_or(number, |numbers| numbers[number as usize]);
                job.of_parts.insert((self.order, number), in_chunk);
            }
        }
    }

    /// The part of the unit that `segments` are, half-open and in order, as [`crate::merge::Merge`] made them. The locs of no
    /// chunk and no other part have numbers from `first_loc` on.
    pub(crate) fn part(&mut self, segments: impl Iterator<Item = (u64, u64)>, first_loc: u64) -> Part {
        let mut part = Part { order: self.order, ..Part::default() };
        let mut pieces: FxHashMap<Id32, Option<Id32>> = FxHashMap::default();
        for (start, end) in segments {
            let first = self.ranges.ranges.partition_point(|range| range.end <= start);
            for number in first..self.ranges.ranges.len() {
                let mut range = self.ranges.ranges[number];
                if range.start >= end {
                    break;
                }
                range.exact = self.loc_of_part(range.exact, &mut part, first_loc);
                range.statement = self.loc_of_part(range.statement, &mut part, first_loc);
                range.piece = range.piece.and_then(|piece| {
                    *pieces.entry(piece).or_insert_with(|| {
                        let mut piece = self.ranges.pieces[piece.index()];
                        let entry =
                            piece.entry.map(|entry| self.loc_of_part(entry.get(), &mut part, first_loc));
                        piece.entry = entry.and_then(|entry| Id32::new(u64::from(entry)));
                        part.pieces.push(piece);
                        Id32::new(part.pieces.len() as u64 - 1)
                    })
                });
                part.ranges.push(range);
            }
        }
        part
    }

    /// The number in `part` of one of the unit's locs; the part gets it and its callers if it lacks them.
    fn loc_of_part(&mut self, loc: u32, part: &mut Part, first_loc: u64) -> u32 {
        let mut missing = Vec::new();
        let mut next = Some(loc);
        while let Some(loc) = next.filter(|loc| self.numbers[*loc as usize] < first_loc) {
            missing.push(loc);
            next = self.ranges.locs[loc as usize].parent.map(Id32::get);
        }
        for number in missing.into_iter().rev() {
            let Loc { parent, name, file, line } = self.ranges.locs[number as usize];
            let parent = parent.and_then(|parent| Id32::new(self.numbers[parent.index()] - first_loc));
            let (name, file) = (self.place(name, &self.names), self.place(file, &self.files));
            let in_part = u32::try_from(part.locs.len()).unwrap_or(u32::MAX);
            part.locs.push(Loc { parent, name, file, line });
            part.numbers.push(self.part.as_ref().map_or(number, |numbers| numbers[number as usize]));
            self.numbers[number as usize] = first_loc + u64::from(in_part);
        }
        number_since(first_loc, self.numbers[loc as usize]).unwrap_or(u32::MAX)
    }

    /// The number of a name in the pools.
    fn name(&mut self, name: Option<Id32>, pools: &mut Pools<'d>) -> Option<Id32> {
        number(name, &mut self.names, self.part.is_some(), &mut pools.names)
    }

    /// The number of a file in the pools.
    fn file(&mut self, file: Option<Id32>, pools: &mut Pools<'d>) -> Option<Id32> {
        number(file, &mut self.files, self.part.is_some(), &mut pools.files)
    }

    /// The place in the pools of a string of the unit, of which `pooled` knows all: of a part's string, itself.
    fn place(&self, string: Option<Id32>, pooled: &[Pooled]) -> Option<Id32> {
        if self.part.is_some() { string } else { pooled[string?.index()].place }
    }
}

/// The number of a string in its pool; `pooled` knows all of a unit, and strings of a part are places themselves.
#[inline(always)]
fn number(
    string: Option<Id32>,
    pooled: &mut [Pooled],
    is_of_part: bool,
    pool: &mut Pool<'_>,
) -> Option<Id32> {
    let string = string?;
    if is_of_part {
        return pool.number(string);
    }
    let Pooled { place, number } = &mut pooled[string.index()];
    if number.is_none() {
        *number = place.and_then(|place| pool.number(place));
    }
    *number
}

/// The number of a loc in the chunk or part whose first is `first`, of what [`LiveUnit::numbers`] has for it; those of older ones are
/// below.
fn number_since(first: u64, number: u64) -> Option<u32> {
    number.checked_sub(first).and_then(|number| u32::try_from(number).ok())
}
