//! Fuzzes the target that the environment names. `fuzz/run` starts it.
//!
//! * `SYMDEX_FUZZ_TARGET=NAME`: the target.
//! * `SYMDEX_FUZZ_SEEDS=FOLDER`: first writes the seeds of the target to the folder.
//! * `SYMDEX_FUZZ_COST=1`: an input that costs too much fails, too; see [`cost`].

#![no_main]

mod cost;

use std::path::PathBuf;
use std::sync::LazyLock;

use symdex_fuzz::Target;

static TARGET: LazyLock<&Target> = LazyLock::new(|| {
    symdex_fuzz::target(&std::env::var("SYMDEX_FUZZ_TARGET").expect("the name of a target"))
});

libfuzzer_sys::fuzz_target!(init: write_seeds(), |data: &[u8]| cost::measured(data, TARGET.run));

fn write_seeds() {
    let Some(folder) = std::env::var_os("SYMDEX_FUZZ_SEEDS").map(PathBuf::from) else { return };
    for (number, seed) in (TARGET.seeds)().into_iter().enumerate() {
        std::fs::write(folder.join(format!("seed-{number}")), seed).expect("the folder can be written");
    }
}
