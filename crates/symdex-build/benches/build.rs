//! The parts of a build: `cargo bench -p symdex-build`. `SYMDEX_BENCH_INPUT` names the debug file. The default is a
//! small one of testdata.

#![allow(missing_docs, reason = "criterion's macros make public functions")]

use std::hint::black_box;
use std::path::PathBuf;

use criterion::{Criterion, criterion_group, criterion_main};
use symdex::write::ChunkEncoder;
use symdex::{Index, Table};
use symdex_build::{Companions, Image, build, find, slices};

fn input() -> PathBuf {
    let default = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/dsyms/inline-dwarf4.dSYM");
    let named = std::env::var_os("SYMDEX_BENCH_INPUT").map_or_else(|| default.into(), PathBuf::from);
    find(&named).swap_remove(0).expect("a debug file")
}

fn parts_of_a_build(criterion: &mut Criterion) {
    let path = input();
    let bytes = symdex::map_file(&path).expect("it can be mapped");
    let slice = slices(&bytes).expect("an object file").swap_remove(0);
    let companions = Companions::new(Vec::new());
    let image = Image::load(&slice, &path, &companions).expect("a debug file");
    let one_thread = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a thread");
    let whole = || one_thread.install(|| build(&image)).expect("an index");
    let index = Index::open(whole().bytes).expect("as written");
    let chunks: Vec<_> = index.chunks(Table::Dwarf).map(|chunk| chunk.expect("intact")).collect();
    let mut encoder = ChunkEncoder::new(index.metadata().chunk_span, index.metadata().image_size);

    criterion.bench_function("load", |bench| bench.iter(|| Image::load(&slice, &path, &companions).is_ok()));
    criterion.bench_function("chunks", |bench| {
        bench.iter(|| {
            for (number, chunk) in &chunks {
                black_box(encoder.encode(Table::Dwarf, *number, chunk)).expect("as it was");
            }
        });
    });
    criterion.bench_function("everything", |bench| bench.iter(|| whole().bytes.len()));
}

criterion_group!(benches, parts_of_a_build);
criterion_main!(benches);
