//! Inputs that once failed, the seeds, and changed seeds are given to the targets, on stable Rust.

use std::path::Path;

use symdex_fuzz::{TARGETS, Target};
use symdex_testkit::images::Random;

/// How many changed seeds each target is given.
const CHANGED: usize = 300;

fn target(name: &str) -> &'static Target {
    TARGETS.iter().find(|target| target.name == name).unwrap_or_else(|| panic!("no target {name}"))
}

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

#[test]
fn every_target_has_its_program() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("libfuzzer/src/bin");
    let mut programs: Vec<String> = std::fs::read_dir(&folder)
        .expect("a folder of the repository")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    programs.sort();
    let mut targets: Vec<String> = TARGETS.iter().map(|target| format!("{}.rs", target.name)).collect();
    targets.sort();
    assert_eq!(programs, targets);
    for target in TARGETS {
        let program = std::fs::read_to_string(folder.join(format!("{}.rs", target.name))).expect("readable");
        assert!(program.contains(&format!("symdex_libfuzzer::program!({});", target.name)), "{program}");
    }
}
