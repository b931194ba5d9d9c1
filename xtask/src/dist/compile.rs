//! Compiles the static command.

use std::path::PathBuf;

use anyhow::{Context as _, Result};

use super::target::{Std, Target};
use super::{Variant, output};
use crate::{cargo, demo, workspace};

/// How the C code of the slim program, zstd, is compiled: without unwind tables, variants of the decoder, and the texts
/// of errors.
const C_FLAGS: &str = "-fno-asynchronous-unwind-tables -fno-unwind-tables -DDYNAMIC_BMI2=0 -DHUF_FORCE_DECOMPRESS_X1=1 \
    -DZSTD_FORCE_DECOMPRESS_SEQUENCES_SHORT=1 -DZSTD_STRIP_ERROR_STRINGS=1";

/// Compiles the command with `profile`, or else that of the variant, and returns the path of the program.
///
/// The C and C++ code is compiled and linked by zig, which has the musl and the libc++ of each target.
///
/// # Errors
/// There is no standard library for the target, or the command does not compile.
pub(crate) fn symdex(target: &Target, variant: Variant, profile: Option<&str>) -> Result<PathBuf> {
    let profile = profile.unwrap_or(variant.profile());
    let mut cargo = cargo();
    cargo.args(["auditable", "zigbuild", "--locked", "--package", "symdex-cli", "--bin", "symdex"]);
    cargo.args(["--profile", profile, "--target", &target.name, "--message-format=json-render-diagnostics"]);
    if variant == Variant::Slim {
        cargo.arg("--no-default-features");
        // Panics abort, so nothing unwinds Rust and C. The Swift demangler, in C++, throws and catches.
        cargo.args([
            "--config",
            &format!(r#"target.{}.rustflags = ["-Cforce-unwind-tables=no"]"#, target.name),
        ]);
        let c_flags = format!("CFLAGS_{}", target.name.replace('-', "_"));
        cargo.env(c_flags, C_FLAGS);
    }
    match target.find_std()? {
        Std::Installed => println!("{}: with the installed standard library", target.name),
        Std::Source { rustc } => {
            println!(
                "{}: with the standard library compiled from the sources of {}",
                target.name,
                rustc.display()
            );
            // Only nightly compilers have build-std, unless this variable is set.
            match variant {
                Variant::Full => cargo.arg("-Zbuild-std=std,panic_unwind"),
                // No backtraces, which would have no names.
                Variant::Slim => cargo.args(["-Zbuild-std=std,panic_abort", "-Zbuild-std-features="]),
            };
            cargo.env("RUSTC", rustc).env("RUSTC_BOOTSTRAP", "1");
            // The objects that start a program come with an installed standard library. Here, they are zig's.
            let own_objects = r#"rustflags = ["-Clink-self-contained=no"]"#;
            cargo.arg("-Zprofile-rustflags");
            cargo.args(["--config", &format!("profile.{profile}.package.symdex-cli.{own_objects}")]);
        }
    }
    // The Swift demangler asks for libstdc++, by default.
    cargo.env("CXXSTDLIB", "c++");
    let messages = String::from_utf8(output(cargo.current_dir(workspace()?))?).context("cargo's messages")?;
    demo::program_in(&messages).context("cargo does not say where it put the program symdex")
}
