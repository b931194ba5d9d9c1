//! Checks that several targets share. They panic if an answer is wrong.

use std::cell::LazyCell;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::LazyLock;

use rayon::{ThreadPool, ThreadPoolBuilder};
use symdex::write::ChunkRanges;
use symdex::{
    Cause, Frame, FrameState, Frames, ImageId, ImageOffset, Index, LinePolicy, NonMaxU32, Scratch, Table,
};
use symdex_build::{BuildOptions, Companions, DirectLookup, Image, slices};
use xxhash_rust::xxh3::xxh3_64;

/// How many chunks are walked, and how many offsets are looked up.
const CHUNKS: usize = 32;
const OFFSETS: usize = 64;

/// One in so many images is built with two threads, too. Waiting for threads takes longer than the build.
const WITH_TWO_THREADS: u64 = 8;

thread_local! {
    /// A pool of only this thread, so that a build waits for no other thread.
    static ONE: LazyCell<ThreadPool> = LazyCell::new(|| {
        ThreadPoolBuilder::new().num_threads(1).use_current_thread().build().expect("in no pool yet")
    });
}
static TWO: LazyLock<ThreadPool> =
    LazyLock::new(|| ThreadPoolBuilder::new().num_threads(2).build().expect("threads"));

/// The frames under both policies, and the names of the function. `None` if a lookup fails.
type Answer = Option<[Vec<String>; 3]>;

/// Reads all of an index: what cannot be read is an error that says so.
pub fn index(bytes: &[u8]) {
    let index = match Index::open(bytes) {
        Ok(index) => index,
        Err(error) => {
            return assert!(error.cause().is_damage() || error.cause() == Cause::Unsupported, "{error}");
        }
    };
    let is_whole = match index.verify() {
        Ok(_) => true,
        Err(error) => {
            assert!(error.cause().is_damage(), "{error}");
            false
        }
    };
    let (mut offsets, mut scratch) = (BTreeSet::from([0, u64::MAX]), Scratch::default());
    if let Ok(rows) = index.unwind_rows() {
        for row in rows.take(OFFSETS).flatten() {
            offsets.insert(row.range().start.0);
            let found = index.unwind_row(row.range().start);
            assert!(!is_whole || found.is_ok_and(|found| found == Some(row)), "a walk and a lookup differ");
            let _ = row.find_cfa(&mut Registers).map(|cfa| row.find_register(0, cfa, &mut Registers));
        }
    }
    for &table in Table::ALL {
        for chunk in index.chunks(table).take(CHUNKS) {
            let Ok((_, chunk)) = chunk else {
                assert!(!is_whole, "verify accepts a chunk that cannot be read");
                continue;
            };
            for range in &chunk.ranges {
                offsets.extend([range.start.saturating_sub(1), range.start, range.end]);
                if is_whole && table == Table::Dwarf {
                    assert_walk_is_lookup(&index, &chunk, range.start, range.exact, &mut scratch);
                }
            }
        }
    }
    let offsets: Vec<u64> = offsets.iter().step_by(offsets.len() / OFFSETS + 1).copied().collect();
    let answers: Vec<Answer> = offsets.iter().map(|offset| answer(&index, *offset, &mut scratch)).collect();
    assert!(!is_whole || answers.iter().all(Option::is_some), "verify accepts what a lookup cannot read");
    assert_many_is_each(&index, &offsets, &answers, is_whole);
}

/// A frame whose registers are their numbers, and whose memory is its addresses.
struct Registers;

impl FrameState for Registers {
    fn register(&mut self, register: u16) -> Option<u64> {
        Some(register.into())
    }

    fn word(&mut self, address: u64) -> Option<u64> {
        Some(address)
    }
}

/// What `index` answers at `offset`.
fn answer<B: AsRef<[u8]>>(index: &Index<B>, offset: u64, scratch: &mut Scratch) -> Answer {
    let mut start = None;
    let mut frames = |policy| {
        let frames = index.lookup(ImageOffset(offset), policy, scratch).ok()?;
        let frames: Vec<Frame<'_>> = frames.iter().flat_map(|frames| frames.iter()).collect();
        start = frames.last().and_then(|frame| frame.function_start);
        Some(frames.iter().map(|frame| format!("{frame:?}")).collect::<Vec<_>>())
    };
    let (exact, statement) = (frames(LinePolicy::Exact)?, frames(LinePolicy::Statement)?);
    let names = start.map(|start| index.function_names(start, scratch)).transpose().ok()?;
    Some([
        exact,
        statement,
        names.into_iter().flatten().map(|name| name.escape_ascii().to_string()).collect(),
    ])
}

/// The answers of a batch, and of ascending lookups, are those of single lookups, also with working memory that has no
/// answers yet. If the index is not whole, its blocks can overlap, and the order decides which of them answers.
fn assert_many_is_each<B: AsRef<[u8]>>(
    index: &Index<B>,
    offsets: &[u64],
    answers: &[Answer],
    is_whole: bool,
) {
    let check = |position: usize, found: Result<Option<Frames<'_>>, symdex::Error>| {
        let found: Option<Vec<String>> = found.ok().map(|frames| {
            frames.iter().flat_map(|frames| frames.iter()).map(|frame| format!("{frame:?}")).collect()
        });
        // A single lookup also fails if the names of the function or the other policy cannot be read.
        if let Some([exact, _, _]) = answers[position].as_ref().filter(|_| is_whole) {
            assert_eq!(found.as_ref(), Some(exact), "{:#x}", offsets[position]);
        }
    };
    let asked: Vec<ImageOffset> = offsets.iter().rev().copied().map(ImageOffset).collect();
    index.lookup_many(&asked, LinePolicy::Exact, &mut Scratch::with_capacity(0), |position, found| {
        check(answers.len() - 1 - position, found);
    });
    let mut position = 0;
    index.lookup_ascending(offsets.iter().copied().map(ImageOffset), LinePolicy::Exact, |_, found| {
        check(position, found);
        position += 1;
    });
}

/// The walk of a chunk has the frames of a lookup.
fn assert_walk_is_lookup<B: AsRef<[u8]>>(
    index: &Index<B>,
    chunk: &ChunkRanges,
    start: u64,
    innermost: u32,
    scratch: &mut Scratch,
) {
    let frame = |number: NonMaxU32| &chunk.frames[number.index()];
    let chain = std::iter::successors(NonMaxU32::new(innermost.into()), |number| frame(*number).parent);
    let mut strings = index.strings();
    let mut walked = Vec::new();
    for frame in chain.map(frame) {
        let name = frame.name.map(|id| strings.name(id).expect("verified").to_vec());
        let file = frame.file.map(|id| strings.file(id).expect("verified").to_vec());
        walked.push((name, file, frame.line.map(NonMaxU32::get)));
    }
    let found = index.lookup(ImageOffset(start), LinePolicy::Exact, scratch).expect("verified");
    let found = found.expect("a range of the walk").to_vec();
    assert_eq!(walked.len(), found.len(), "{start:#x}");
    for ((name, file, line), found) in walked.into_iter().zip(found) {
        // The symbol table names code that no function of the debug information covers.
        assert!(name.is_none() || name == found.name, "{start:#x}: {name:?}, {found:?}");
        assert_eq!((file, line), (found.file, found.line), "{start:#x}");
    }
}

/// Builds the index of every slice of a debug file, and checks it.
pub fn debug_file(bytes: &[u8], path: &Path) {
    for slice in slices(bytes).unwrap_or_default() {
        let companions = Companions::default();
        if let Ok(image) = Image::load(&slice, path, &companions) {
            self::image(&image);
        }
    }
}

/// The index of an image is whole, does not depend on threads, and has the answers of direct lookups.
pub fn image(image: &Image<'_>) {
    ONE.with(|one| one.install(|| image_on_this_thread(image)));
}

fn image_on_this_thread(image: &Image<'_>) {
    let build = || BuildOptions::new().unwind_rows(true).build(image).map(|built| built.bytes);
    let Ok(bytes) = build() else { return };
    if xxh3_64(&bytes).is_multiple_of(WITH_TWO_THREADS) {
        let again = TWO.install(build);
        assert!(again.is_ok_and(|again| again == bytes), "another index with two threads");
    }
    index(&bytes);
    let index = Index::open(bytes).expect("just written");
    index.verify().expect("just written");
    // `DirectLookup` documents how its answers may differ if there are several units, or if limits are exceeded.
    let partial = &index.metadata().partial;
    if index.metadata().counts.units <= 1
        && !partial.iter().any(|partial| partial.reason.contains("left out"))
    {
        assert_direct_is_index(image, &index);
    }
}

/// The index of a symbol file is whole, and does not depend on threads.
pub fn symbol_file(bytes: &[u8]) {
    ONE.with(|one| one.install(|| symbol_file_on_this_thread(bytes)));
}

fn symbol_file_on_this_thread(bytes: &[u8]) {
    let Ok(mut file) = symdex_symbol_files::read(bytes) else { return };
    if file.id().is_none() {
        file = file.with_id(ImageId::of_hash(1));
    }
    let options = BuildOptions::new().unwind_rows(true);
    let build = || options.build_symbol_file_into(&file, Vec::new()).map(|built| built.bytes);
    let Ok(bytes) = build() else { return };
    if xxh3_64(&bytes).is_multiple_of(WITH_TWO_THREADS) {
        let again = TWO.install(build);
        assert!(again.is_ok_and(|again| again == bytes), "another index with two threads");
    }
    index(&bytes);
    Index::open(bytes).expect("just written").verify().expect("just written");
}

/// Direct lookups have the answers of the index, where these change.
fn assert_direct_is_index(image: &Image<'_>, index: &Index<Vec<u8>>) {
    let mut offsets = BTreeSet::new();
    for &table in Table::ALL {
        for (_, chunk) in index.chunks(table).take(CHUNKS).flatten() {
            offsets.extend(chunk.ranges.iter().flat_map(|range| [range.start, range.end - 1, range.end]));
        }
    }
    let offsets: Vec<ImageOffset> =
        offsets.iter().step_by(offsets.len() / OFFSETS + 1).copied().map(ImageOffset).collect();
    let mut lookup = DirectLookup::new(image).expect("the image was built");
    let (mut of_index, mut of_direct) = (Scratch::default(), Scratch::default());
    for offsets in [&offsets[..offsets.len().min(1)], &offsets] {
        let direct = lookup.answer(offsets).expect("the image was built");
        for ImageOffset(offset) in offsets {
            let expected = answer(index, *offset, &mut of_index);
            assert_eq!(answer(direct, *offset, &mut of_direct), expected, "{offset:#x}");
        }
    }
}

/// The text of a name keeps to its limits, and is one line.
pub fn demangled(name: &[u8]) {
    let text = symdex_demangle::demangle(name);
    assert!(text.len() <= symdex_demangle::limits::MAX_TEXT, "{} bytes of text", text.len());
    assert!(!symdex_demangle::printable(text).contains(char::is_control));
}
