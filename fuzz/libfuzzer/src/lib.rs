//! What all programs of the fuzzers do around their targets.

mod cost;

use std::path::PathBuf;

pub use cost::measured;
pub use libfuzzer_sys;

/// A program that fuzzes the target `$target`.
///
/// * `SYMDEX_FUZZ_SEEDS=FOLDER`: writes the seeds of the target to the folder, and ends.
/// * `SYMDEX_FUZZ_COST=1`: an input that costs too much fails, too; see [`measured`].
#[macro_export]
macro_rules! program {
    ($target:ident) => {
        $crate::libfuzzer_sys::fuzz_target!(
            init: $crate::write_seeds(symdex_fuzz::targets::$target::seeds),
            |data: &[u8]| $crate::measured(data, symdex_fuzz::targets::$target::run)
        );
    };
}

/// Writes the seeds and ends the process, if the environment asks for it.
pub fn write_seeds(seeds: fn() -> Vec<Vec<u8>>) {
    let Some(folder) = std::env::var_os("SYMDEX_FUZZ_SEEDS").map(PathBuf::from) else { return };
    for (number, seed) in seeds().into_iter().enumerate() {
        std::fs::write(folder.join(format!("seed-{number}")), seed).expect("the folder can be written");
    }
    std::process::exit(0);
}
