//! `cargo xtask corpus scatter`: a dSYM whose units have interleaved functions, as linking with an order file makes it.
//!
//! One unit is compiled. The others are its assembly with another namespace, which takes a fraction of the time.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::Result;

use crate::tools::Tools;

const UNITS: u32 = 64;
const FUNCTIONS: u32 = 500;
const TARGET: &str = "arm64-apple-macos12.0";
const NAME: &str = "libscatter.dylib";

/// Makes the dSYM in `folder`.
///
/// # Errors
/// A tool is missing or fails.
pub(super) fn make(sources: &Path, folder: &Path) -> Result<()> {
    let scratch = tempfile::tempdir()?;
    let tools = Tools::find(scratch.path(), &["clang++", "ld64.lld", "dsymutil"])?;
    let work = scratch.path().join("work");
    std::fs::create_dir_all(&work)?;
    std::fs::copy(sources.join("scatter.cpp"), work.join("scatter.cpp"))?;
    std::fs::write(work.join("functions.inc"), lines(|function| format!("ONE({function})")))?;
    let flags = ["-target", TARGET, "-O2", "-g", "-fdebug-compilation-dir=."];
    let first = unit(0);
    let compile = ["-S", &format!("-DUNIT={first}"), "scatter.cpp", "-o", "first.s"];
    tools.run("clang++", &work, flags.iter().chain(&compile))?;
    let assembly = std::fs::read_to_string(work.join("first.s"))?;
    let mut objects = Vec::new();
    for number in 0..UNITS {
        std::fs::write(work.join("unit.s"), assembly.replace(&first, &unit(number)))?;
        let object = format!("{}.o", unit(number));
        tools.run("clang++", &work, ["-target", TARGET, "-c", "unit.s", "-o", &object])?;
        objects.push(object);
    }
    // The first function of each unit, then the second of each, and so on.
    let symbol = |unit: &str, function| format!("__ZN{}{unit}4workILi{function}EEEiRNS_5StateEi", unit.len());
    let of_all_units = |function| {
        let symbols: Vec<_> = (0..UNITS).map(|number| symbol(&unit(number), function)).collect();
        symbols.join("\n")
    };
    std::fs::write(work.join("order"), lines(of_all_units))?;
    let link = ["-arch", "arm64", "-platform_version", "macos", "12.0", "12.0", "-oso_prefix", "."];
    let link = link.into_iter().chain(["-undefined", "dynamic_lookup", "-dylib", "-order_file", "order"]);
    let link = link.chain(["-install_name", "@rpath/libscatter.dylib", "-o", NAME]);
    tools.run("ld64.lld", &work, link.chain(objects.iter().map(String::as_str)))?;
    let bundle = folder.join(format!("{NAME}.dSYM"));
    std::fs::create_dir_all(folder)?;
    tools.run("dsymutil", &work, [NAME.as_ref(), "-o".as_ref(), bundle.as_os_str()])?;
    // Only dsymutil reads the relocations.
    let relocations = bundle.join("Contents/Resources/Relocations");
    if relocations.exists() {
        std::fs::remove_dir_all(relocations)?;
    }
    Ok(())
}

/// The namespace of a unit. All have the same length.
fn unit(number: u32) -> String {
    format!("unit_{number:03}")
}

/// One line for each function.
fn lines(line: impl Fn(u32) -> String) -> String {
    (0..FUNCTIONS).fold(String::new(), |mut lines, function| {
        let _ = writeln!(lines, "{}", line(function));
        lines
    })
}
