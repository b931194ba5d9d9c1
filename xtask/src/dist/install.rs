//! The packages, installed where nothing else is.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Result, ensure};

use super::files::Packager;
use super::target::Target;
use super::{example, output};

/// What a package installs, besides the command.
const INSTALLED: [&str; 4] = [
    "usr/share/man/man1/symdex.1",
    "usr/share/man/man1/symdex-build.1",
    "usr/share/bash-completion/completions/symdex",
    "usr/share/fish/vendor_completions.d/symdex.fish",
];

/// The folder of the example, in the root.
const EXAMPLE: &str = "example";

/// Installs `package` in an empty root below `dist`, and answers the example of the README there. The root has the
/// files of the package, and the libraries of a command that is not static.
///
/// # Errors
/// The package cannot be installed, lacks a file, or its command fails the example.
pub(crate) fn check(dist: &Path, package: &str, packager: Packager, target: &Target) -> Result<()> {
    let root = dist.join("root");
    let begun = Instant::now();
    install(&dist.join(package), packager, &root)?;
    for file in INSTALLED {
        ensure!(root.join(file).is_file(), "{package} does not install {file}");
    }
    let symdex = root.join("usr/bin/symdex");
    target.copy_libraries(&symdex, &root)?;
    example::prepare(&root.join(EXAMPLE))?;
    let first = example::check(|| command(target, &root, &symdex))?;
    println!(
        "{package}: installed in an empty root; the example of the README is answered there. The first command took \
         {:.2} s, all of it {:.2} s",
        first.as_secs_f64(),
        begun.elapsed().as_secs_f64()
    );
    fs::remove_dir_all(&root)?;
    Ok(())
}

/// Installs the package with the package manager that it is for, as the root user of a namespace.
fn install(package: &Path, packager: Packager, root: &Path) -> Result<()> {
    let mut command = in_namespace();
    match packager {
        Packager::Deb => {
            let database = root.join("var/lib/dpkg");
            fs::create_dir_all(database.join("info"))?;
            fs::create_dir_all(database.join("updates"))?;
            fs::write(database.join("status"), "")?;
            command.args(["dpkg", "--force-architecture", "--log=/dev/null"]);
            command.arg(path_option("--root", root)).arg("--install");
        }
        Packager::Rpm => {
            fs::create_dir_all(root)?;
            command.args(["rpm", "--ignorearch"]).arg(path_option("--root", root)).arg("--install");
        }
    }
    output(command.arg(package))?;
    Ok(())
}

/// The installed command, run in the folder of the example. It sees only the root, unless it runs in an emulator.
fn command(target: &Target, root: &Path, symdex: &Path) -> Result<Command> {
    if target.is_emulated() {
        let mut command = target.command(symdex)?;
        command.current_dir(root.join(EXAMPLE));
        return Ok(command);
    }
    let mut command = in_namespace();
    command.arg(path_option("--root", root)).arg(format!("--wd=/{EXAMPLE}")).arg("/usr/bin/symdex");
    Ok(command)
}

/// Runs the program that follows as the root user of a namespace, so that no other rights are needed.
fn in_namespace() -> Command {
    let mut command = Command::new("unshare");
    command.arg("--map-root-user");
    command
}

fn path_option(option: &str, path: &Path) -> std::ffi::OsString {
    let mut text = std::ffi::OsString::from(option);
    text.push("=");
    text.push(path);
    text
}
