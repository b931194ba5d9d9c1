//! The reader on a made-up image of 20,000 functions: `cargo bench -p symdex --all-features`.
//!
//! `SYMDEX_BENCH_INDEX` names an index file for the benchmarks of the three ways to open one.

#![allow(missing_docs, reason = "criterion's macros make public functions")]
#![allow(clippy::cast_possible_truncation, reason = "numbers of benchmarks are small")]

use std::hint::black_box;
use std::path::PathBuf;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use symdex::write::{ChunkRanges, CodeRange, InlineFrame, NonMaxU32};
use symdex::{ImageId, ImageOffset, Index, LinePolicy, Metadata, Scratch};
use symdex_testkit::images::{Image, Random};

const FUNCTIONS: u64 = 20_000;
/// Bytes from one function to the next, and of its code; the rest is a gap.
const STRIDE: u64 = 512;
const CODE_SIZE: u64 = 480;
const RANGES: u64 = 8;
/// Frames of the deep function's chain, which is the first.
const DEPTH: u64 = 64;

/// Functions of eight ranges with chains of one to six frames.
fn image() -> Image {
    let mut random = Random::new(1);
    let mut dwarf = ChunkRanges::default();
    for function in 0..FUNCTIONS {
        let start = function * STRIDE;
        for range in 0..RANGES {
            let depth = if function == 0 { DEPTH } else { 1 + random.below(6) };
            let exact = chain(&mut dwarf.frames, function, depth, &mut random);
            let (from, to) = (start + range * CODE_SIZE / RANGES, start + (range + 1) * CODE_SIZE / RANGES);
            let function_start = Some(start);
            dwarf.ranges.push(CodeRange { start: from, end: to, function_start, exact, statement: exact });
        }
    }
    let name = |n| format!("_ZN7project{}component{}function{n}Ev", n % 40, n % 311).into_bytes();
    Image {
        id: ImageId::new(&[7; 16]).expect("16 bytes are an id"),
        chunk_span: 32 << 10,
        names: (0..FUNCTIONS).map(name).collect(),
        readable: Vec::new(),
        files: (0..500).map(|n| format!("/src/project{}/file{n}.cpp", n % 40).into_bytes()).collect(),
        tables: [dwarf, ChunkRanges::default()],
        without_code: 0,
    }
}

/// The innermost inline frame of a new chain that ends in `function`.
fn chain(frames: &mut Vec<InlineFrame>, function: u64, depth: u64, random: &mut Random) -> u32 {
    let mut parent = None;
    for frame in 0..depth {
        let name = if frame == 0 { function } else { random.below(FUNCTIONS) };
        let (file, line) = (NonMaxU32::new(name % 500), NonMaxU32::new(1 + random.below(3000)));
        frames.push(InlineFrame { parent, name: NonMaxU32::new(name), file, line });
        parent = NonMaxU32::new(frames.len() as u64 - 1);
    }
    frames.len() as u32 - 1
}

/// How many frames there are at `offset`.
fn frames(index: &Index<&[u8]>, offset: u64, scratch: &mut Scratch) -> usize {
    let answer = index.lookup(ImageOffset(offset), LinePolicy::Statement, scratch).expect("an intact index");
    black_box(answer).map_or(0, |frames| frames.len())
}

fn reader(criterion: &mut Criterion) {
    let bytes = image().index();
    let index = Index::open(bytes.as_slice()).expect("as written");
    let mut random = Random::new(2);
    let offset = |random: &mut Random| random.below(FUNCTIONS) * STRIDE + random.below(CODE_SIZE);
    let offsets: Vec<u64> = (0..1000).map(|_| offset(&mut random)).collect();
    let mut scratch = Scratch::default();
    for offset in &offsets {
        assert_ne!(frames(&index, *offset, &mut scratch), 0);
    }
    assert_eq!(frames(&index, 0, &mut scratch) as u64, DEPTH);
    assert_eq!(frames(&index, CODE_SIZE, &mut scratch), 0);

    criterion.bench_function("open", |bench| bench.iter(|| Index::open(black_box(bytes.as_slice()))));
    let mut next = offsets.iter().cycle();
    criterion.bench_function("warm", |bench| {
        bench.iter(|| next.next().map(|offset| frames(&index, *offset, &mut scratch)));
    });
    // What was not asked before: a scratch that keeps no answers.
    let mut forgetful = Scratch::with_capacity(0);
    criterion.bench_function("fresh", |bench| {
        bench.iter(|| next.next().map(|offset| frames(&index, *offset, &mut forgetful)));
    });
    criterion.bench_function("cold", |bench| {
        let offsets = || (Scratch::default(), offset(&mut random));
        bench.iter_batched(
            offsets,
            |(mut scratch, offset)| (frames(&index, offset, &mut scratch), scratch),
            BatchSize::LargeInput,
        );
    });
    criterion.bench_function("miss", |bench| bench.iter(|| frames(&index, CODE_SIZE, &mut forgetful)));
    criterion.bench_function("deep inlining", |bench| bench.iter(|| frames(&index, 0, &mut forgetful)));
    criterion.bench_function("batch of 1000", |bench| {
        let batch: Vec<_> = offsets.iter().copied().map(ImageOffset).collect();
        bench.iter(|| {
            let mut frames = 0;
            index.lookup_many(&batch, LinePolicy::Statement, &mut forgetful, |_, answer| {
                frames += answer.expect("an intact index").map_or(0, |frames| frames.len());
            });
            frames
        });
    });
    criterion.bench_function("report of 100 frames", |bench| {
        bench.iter(|| {
            let mut scratch = Scratch::default();
            offsets[..100].iter().map(|offset| frames(&index, *offset, &mut scratch)).sum::<usize>()
        });
    });
}

/// The three ways to open an index, each with a first answer: a mapped file, a file that is read, and bytes in memory.
fn ways_to_open(criterion: &mut Criterion) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = std::env::var_os("SYMDEX_BENCH_INDEX").map(PathBuf::from).unwrap_or_else(|| {
        let path = folder.path().join("index.symdex");
        std::fs::write(&path, image().index()).expect("written");
        path
    });
    let bytes = std::fs::read(&path).expect("an index file");
    let index = Index::open(bytes.as_slice()).expect("an index");
    let mut scratch = Scratch::default();
    let code = index.metadata().executable.first().map_or(0, |(start, _)| *start);
    let is_answered = |offset: &u64| frames(&index, *offset, &mut scratch) != 0;
    let offset = (code..).step_by(4).take(1 << 20).find(is_answered).expect("code");
    println!("ways to open: an index of {} bytes", bytes.len());

    criterion.bench_function("open bytes, first answer", |bench| {
        bench.iter(|| first_answer(Index::open(bytes.as_slice()), offset));
    });
    criterion.bench_function("map, first answer", |bench| {
        bench.iter(|| first_answer(Index::open_file(&path), offset));
    });
    criterion.bench_function("read, first answer", |bench| {
        bench.iter(|| first_answer(symdex::read_index_file(&path).and_then(Index::open), offset));
    });
    criterion.bench_function("read metadata only", |bench| bench.iter(|| Metadata::read_file(&path)));
}

/// How many frames there are at `offset` of a new index.
fn first_answer<B: AsRef<[u8]>>(index: Result<Index<B>, symdex::Error>, offset: u64) -> usize {
    let (index, mut scratch) = (index.expect("an index"), Scratch::default());
    let answer = index.lookup(ImageOffset(offset), LinePolicy::Statement, &mut scratch);
    answer.expect("an intact index").map_or(0, |frames| frames.len())
}

criterion_group!(benches, reader, ways_to_open);
criterion_main!(benches);
