//! The cost of inputs. An input that costs far more for each of its bytes than others do is a find, too.
//!
//! The cost is measured twice: as allocated bytes, and as CPU time. The first [`SAMPLES`] inputs, which are those of
//! the corpus, give the medians. An input that takes 100 times the median for each byte fails. Small costs are let
//! pass. CPU time varies, so an input must take as much three times.

use std::alloc::System;
use std::sync::LazyLock;
use std::sync::Mutex;

use cpu_time::ProcessTime;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// How many inputs give the median.
const SAMPLES: usize = 500;
/// How many times the median is a find.
const FACTOR: u64 = 100;
/// Added to the size of each input: even an empty one costs something.
const BASE_SIZE: u64 = 256;
/// Costs that are let pass: allocated bytes, and nanoseconds.
const PASSED: [u64; 2] = [32 << 20, 50_000_000];
const NAMES: [&str; 2] = ["allocated bytes", "nanoseconds"];

static IS_MEASURED: LazyLock<bool> = LazyLock::new(|| std::env::var_os("SYMDEX_FUZZ_COST").is_some());

/// The costs for each byte of the first inputs.
static SEEN: Mutex<Vec<[u64; 2]>> = Mutex::new(Vec::new());

/// Runs the target. If costs are measured, panics if the input costs too much.
pub fn measured(data: &[u8], run: fn(&[u8])) {
    if !*IS_MEASURED {
        return run(data);
    }
    let mut cost = cost(data, run);
    let mut seen = SEEN.lock().expect("no thread panicked");
    let size = data.len() as u64 + BASE_SIZE;
    if seen.len() < SAMPLES {
        seen.push(cost.map(|cost| cost / size));
        return;
    }
    for kind in 0..cost.len() {
        let median = median(&mut seen, kind).max(1);
        let limit = (median * FACTOR * size).max(PASSED[kind]);
        for _ in 0..2 {
            if cost[kind] > limit {
                cost[kind] = cost[kind].min(self::cost(data, run)[kind]);
            }
        }
        let (found, name) = (cost[kind], NAMES[kind]);
        assert!(found <= limit, "{found} {name} for {} bytes; the median is {median} for a byte", data.len());
    }
}

fn cost(data: &[u8], run: fn(&[u8])) -> [u64; 2] {
    let (allocated, time) = (Region::new(ALLOCATOR), ProcessTime::now());
    run(data);
    let nanoseconds = u64::try_from(time.elapsed().as_nanos()).unwrap_or(u64::MAX);
    [allocated.change().bytes_allocated as u64, nanoseconds]
}

fn median(seen: &mut [[u64; 2]], kind: usize) -> u64 {
    let middle = seen.len() / 2;
    seen.select_nth_unstable_by_key(middle, |cost| cost[kind]).1[kind]
}
