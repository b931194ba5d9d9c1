//! Inputs that once failed, the seeds, and changed seeds are given to the targets, on stable Rust.

use std::path::Path;

use symdex_fuzz::{TARGETS, target};
use symdex_testkit::images::Random;

/// How many changed seeds each target is given.
const CHANGED: usize = 300;

#[test]
fn inputs_that_once_failed_pass() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("regressions");
    let mut replayed = 0;
    for entry in std::fs::read_dir(folder).expect("a folder of the repository") {
        let entry = entry.expect("an entry");
        if !entry.path().is_dir() {
            continue;
        }
        let target = target(&entry.file_name().to_string_lossy());
        for input in std::fs::read_dir(entry.path()).expect("a folder") {
            let path = input.expect("an entry").path();
            println!("{}", path.display());
            (target.run)(&std::fs::read(path).expect("readable"));
            replayed += 1;
        }
    }
    assert!(replayed > 0, "no inputs in fuzz/regressions");
}

#[test]
fn seeds_pass() {
    for target in TARGETS {
        let seeds = (target.seeds)();
        assert!(!seeds.is_empty(), "{} has no seeds", target.name);
        for seed in seeds {
            (target.run)(&seed);
        }
    }
}

/// Without a fuzzer's knowledge of what an input reaches, but in each run of the tests.
#[test]
fn changed_seeds_pass() {
    for target in TARGETS {
        let (seeds, mut random) = ((target.seeds)(), Random::new(7));
        for _ in 0..CHANGED {
            let mut input = seeds[below(seeds.len(), &mut random)].clone();
            change(&mut input, &mut random);
            (target.run)(&input);
        }
    }
}

fn below(end: usize, random: &mut Random) -> usize {
    usize::try_from(random.below(end as u64)).expect("less than a length")
}

/// Flips one to eight bits, and in half of the cases cuts the input or repeats a part of it in another place.
fn change(input: &mut Vec<u8>, random: &mut Random) {
    if input.is_empty() {
        return;
    }
    for _ in 0..=random.below(8) {
        let at = below(input.len(), random);
        input[at] ^= 1 << random.below(8);
    }
    let [from, to] = [(); 2].map(|()| below(input.len(), random));
    match random.below(4) {
        0 => input.truncate(to),
        1 => {
            let end = input.len().min(from + 1 + below(64, random));
            let part = input[from..end].to_vec();
            input.splice(to..to, part);
        }
        _ => {}
    }
}
