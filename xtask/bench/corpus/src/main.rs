//! Optimises a WebAssembly module with Binaryen's wasm-opt. The program is here for its debug information, and is not
//! run.

use std::error::Error;

use wasm_opt::OptimizationOptions;

fn main() -> Result<(), Box<dyn Error>> {
    let paths: Vec<String> = std::env::args().skip(1).collect();
    let [from, to] = paths.as_slice() else { return Err("usage: binaryen FROM TO".into()) };
    Ok(OptimizationOptions::new_optimize_for_size().run(from, to)?)
}
