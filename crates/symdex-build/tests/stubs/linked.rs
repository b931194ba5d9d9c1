//! Stubs of libraries that compilers and linkers of the machine make, against the names that disassemblers print.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use symdex_build::{Companions, Image, slices};
use symdex_testkit::program;

/// A library that calls three functions of others. It also takes the address of one of them, which then has a stub in
/// `.plt.got` in some links.
const SOURCE: &str = "\
int first(int), second(int), third(int), _ZN5Stubs6fourthEi(int);
int call(int n) { return first(n) + second(n) * third(n) + _ZN5Stubs6fourthEi(n); }
int (*address(void))(int) { return second; }
";
/// The targets in [`SOURCE`], sorted.
const TARGETS: [&str; 4] = ["_ZN5Stubs6fourthEi", "first", "second", "third"];
const SECTIONS: [&str; 4] = [".plt", ".plt.sec", ".plt.got", ".iplt"];

fn run(command: &mut Command) -> String {
    let output = command.output().expect("runs");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The stubs of the library at `path`: names by address.
fn stubs(path: &Path) -> BTreeMap<u64, String> {
    let bytes = std::fs::read(path).expect("linked");
    let companions = Companions::default();
    let image = Image::load(&slices(&bytes).expect("an ELF file")[0], path, &companions).expect("loads");
    super::assert_audited(&image);
    let text = |name: Option<&[u8]>| String::from_utf8_lossy(name.unwrap_or_default()).into_owned();
    let named = image.symbols().iter().map(|symbol| (image.info().base + symbol.start, text(symbol.name)));
    named.filter(|(_, name)| name.ends_with("@plt")).collect()
}

/// The labels `<name@plt>:` in a disassembly, by address.
fn labels(disassembly: &str) -> BTreeMap<u64, String> {
    let label = |line: &str| {
        let (address, name) = line.strip_suffix(">:")?.split_once(" <")?;
        Some((u64::from_str_radix(address, 16).ok()?, name.to_owned()))
    };
    disassembly.lines().filter_map(label).filter(|(_, name)| name.ends_with("@plt")).collect()
}

/// Checks that the library at `path` has a stub for each target, and those of `labels` at their addresses. Returns how
/// many labels there are.
fn check(path: &Path, labels: &BTreeMap<u64, String>) -> usize {
    let stubs = stubs(path);
    let mut targets: Vec<&str> = stubs.values().filter_map(|name| name.strip_suffix("@plt")).collect();
    targets.sort_unstable();
    targets.dedup();
    assert_eq!(targets, TARGETS, "{}", path.display());
    for (address, name) in labels {
        // llvm-objdump's labels are at the jump, which is after an instruction for branch tracking.
        let stub = stubs.get(address).or_else(|| stubs.get(&(address - 4)));
        assert_eq!(stub, Some(name), "{} at {address:#x}", path.display());
    }
    labels.len()
}

pub(crate) fn stubs_of_clang_and_lld_have_the_names_that_llvm_objdump_prints() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = folder.path().join("source.c");
    std::fs::write(&source, SOURCE).expect("written");
    let _ = program("ld.lld-19", "--version");
    let mut labelled = 0;
    for (target, protection) in [
        ("x86_64-linux-gnu", &["-fcf-protection", "-Wl,-z,force-ibt"][..]),
        ("i686-linux-gnu", &["-fcf-protection", "-Wl,-z,force-ibt"]),
        ("aarch64-linux-gnu", &["-mbranch-protection=standard", "-Wl,-z,force-bti,-z,pac-plt"]),
        ("armv7a-linux-gnueabihf", &["-mthumb"]),
    ] {
        for (number, flags) in [&[][..], &["-Wl,-z,now"], protection].into_iter().enumerate() {
            let path = folder.path().join(format!("{target}-{number}.so"));
            let mut clang = program("clang-19", "--version");
            clang.args(["-target", target, "-shared", "-fPIC", "-nostdlib", "-O1", "--ld-path=ld.lld-19"]);
            run(clang.args(flags).arg("-o").arg(&path).arg(&source));
            let sections = SECTIONS.map(|section| format!("--section={section}"));
            let objdump = &mut program("llvm-objdump-19", "--version");
            labelled += check(&path, &labels(&run(objdump.arg("-d").args(sections).arg(&path))));
        }
    }
    // It has no labels for ARM, nor for branch tracking on x86.
    assert!(labelled >= 4 * 7, "{labelled} labels");
}

pub(crate) fn stubs_of_the_c_compiler_have_the_names_that_objdump_prints() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = folder.path().join("source.c");
    std::fs::write(&source, SOURCE).expect("written");
    for (number, flags) in [&[][..], &["-Wl,-z,now"], &["-Wl,-z,lazy"]].into_iter().enumerate() {
        let path = folder.path().join(format!("{number}.so"));
        let mut gcc = program("gcc", "--version");
        gcc.args(["-shared", "-fPIC", "-nostdlib", "-O1"]).args(flags).arg("-o").arg(&path).arg(&source);
        run(&mut gcc);
        let sections = SECTIONS.map(|section| format!("--section={section}"));
        let objdump = &mut program("objdump", "--version");
        // It fails for sections that are not there.
        let output = objdump.arg("-d").args(sections).arg(&path).output().expect("runs");
        assert!(check(&path, &labels(&String::from_utf8_lossy(&output.stdout))) >= 4);
    }
}
