//! The output of `llvm-symbolizer`, byte for byte beside LLVM's.

use std::collections::BTreeSet;
use std::process::Command;

use symdex_testkit::{corpus, program};

use super::compared::{Asked, Classes, Counts, answers, images, output, testdata_images, without_starts};
use crate::common::{command, debug_file, folder};

/// LLVM's program.
pub(crate) const LLVM: &str = "llvm-symbolizer-19";

pub(crate) fn ours() -> Command {
    let mut ours = command();
    ours.args(["--no-config", "llvm-symbolizer"]);
    ours
}

/// The answers of both programs, without demangling and with it.
struct Pair<'o> {
    theirs: Vec<&'o str>,
    ours: Vec<&'o str>,
    raw_theirs: Vec<&'o str>,
    raw_ours: Vec<&'o str>,
}

fn counts(images: &[Asked]) -> Counts {
    let mut counts = Counts::default();
    for (classes, shown) in images.iter().flat_map(classes) {
        counts.add(classes, || shown);
    }
    counts
}

/// For each address of `image`: why the answers of both programs differ, and the answers.
pub(crate) fn classes(image: &Asked) -> Vec<(Classes, String)> {
    let addresses: Vec<_> = image.addresses.iter().map(|address| format!("{address:#x}")).collect();
    let input = addresses.join("\n") + "\n";
    let asked = |mut command: Command, demangle: &str| {
        command.args(["--print-address", demangle, "--default-arch", &image.arch, "--obj"]).arg(&image.file);
        output(command, &input)
    };
    let texts = [
        asked(program(LLVM, "--version"), "--demangle"),
        asked(ours(), "--demangle"),
        asked(program(LLVM, "--version"), "--no-demangle"),
        asked(ours(), "--no-demangle"),
    ];
    let [theirs, ours, raw_theirs, raw_ours] = texts.each_ref().map(|text| answers(text, &addresses));
    let pair = |number: usize| Pair {
        theirs: theirs[number].clone(),
        ours: ours[number].clone(),
        raw_theirs: raw_theirs[number].clone(),
        raw_ours: raw_ours[number].clone(),
    };
    let of_pair = |(number, address): (usize, &String)| {
        let pair = pair(number);
        let shown = format!("{} {address}\n{:#?}\n{:#?}", image.file.display(), pair.theirs, pair.ours);
        (pair.classes(image), shown)
    };
    addresses.iter().enumerate().map(of_pair).collect()
}

impl Pair<'_> {
    /// Why the answers differ, line by line. The last line of an answer is empty.
    fn classes(&self, image: &Asked) -> Classes {
        if self.theirs.len() != self.ours.len() {
            return BTreeSet::from([self.class_of_frames()]);
        }
        let last_name = self.ours.len().saturating_sub(3);
        let mut classes = BTreeSet::new();
        for (number, (theirs, ours)) in self.theirs.iter().zip(&self.ours).enumerate() {
            if theirs != ours && number % 2 == 1 {
                classes.insert(class_of_location(theirs, ours));
            } else if theirs != ours {
                classes.insert(self.class_of_name(number, number == last_name, image));
            }
        }
        classes
    }

    fn class_of_frames(&self) -> Option<&'static str> {
        let unknown = ["??", "??:0:0"];
        match (&self.theirs[..], &self.ours[..]) {
            // The code is outside of the ranges that its unit states.
            ([name, place, ""], _) if [*name, *place] == unknown || place == &unknown[1] => {
                Some("undeclared code")
            }
            _ => None,
        }
    }

    fn class_of_name(&self, number: usize, is_outer: bool, image: &Asked) -> Option<&'static str> {
        let (theirs, ours) = (self.raw_theirs[number], self.raw_ours[number]);
        if theirs == ours {
            return match symdex_demangle::language(ours.as_bytes())? {
                symdex_demangle::Language::Swift => Some("Swift name"),
                symdex_demangle::Language::Rust => Some("Rust name"),
                symdex_demangle::Language::Cpp => Some("C++ name"),
                _ => None,
            };
        }
        if is_outer && image.symbols.contains(theirs) {
            return Some("name of the symbol table");
        }
        if theirs.strip_prefix('_') == Some(ours) {
            return Some("underscore");
        }
        if theirs == "??" && (ours.ends_with("@plt") || ours.starts_with("DYLD-STUB$$")) {
            return Some("stub");
        }
        // The debug information has only the name within its scope.
        self.ours[number].contains(self.theirs[number]).then_some("function without a linkage name")
    }
}

fn class_of_location(theirs: &str, ours: &str) -> Option<&'static str> {
    if ours.starts_with("<compiler-generated>:") && theirs.ends_with(&format!("/{ours}")) {
        return Some("compiler-generated file");
    }
    match (theirs, ours) {
        (_, "??:0:0") if theirs.ends_with(":0:0") => Some("file of a symbol"),
        ("??:0:0", _) => Some("line without file"),
        _ => None,
    }
}

pub(crate) fn every_difference_from_llvm_symbolizer_has_a_class() {
    let counts = counts(&testdata_images(&["dsyms", "elf", "demo"]));
    counts.assert_explained();
    println!("{}", Counts::table(&[("testdata", counts)]));
}

pub(crate) fn table_of_the_corpora() {
    let folder = folder();
    let mut columns = vec![("testdata", counts(&testdata_images(&["dsyms", "elf", "demo"])))];
    for name in ["cbundle.dSYM", "ripgrep.dSYM", "duckdb.dSYM"] {
        columns.push((name, counts(&images(&corpus(name, folder.path())))));
    }
    println!("{}", Counts::table(&columns));
    columns.iter().for_each(|(_, counts)| counts.assert_explained());
}

/// The output of both programs for the same arguments and the same input. Discriminators and the starts of functions
/// are left out, because symdex does not print them.
#[track_caller]
fn assert_same(arguments: &[&str], input: &str) {
    let [theirs, ours] = [program(LLVM, "--version"), ours()].map(|mut command| {
        command.args(arguments);
        without_starts(&output(command, input))
    });
    assert_eq!(ours, theirs, "{arguments:?} {input:?}");
}

pub(crate) fn every_option_has_the_output_of_llvm_symbolizer() {
    let file = debug_file("inline-dwarf4");
    let file = file.to_str().expect("text");
    let (object, inlined, entry) = (format!("--obj={file}"), "0x1000003cf", "0x1000003a0");
    for options in [
        "",
        "-a",
        "-p",
        "-p -a",
        "--print-address --pretty-print",
        "-f=none",
        "--functions=none -p",
        "--functions=short",
        "-s",
        "--basenames -apfC",
        "--verbose",
        "--output-style=GNU",
        "--output-style=GNU -apfi",
        "--output-style=GNU --no-inlines -f",
        "--output-style=JSON",
        "--output-style=JSON -p",
        "--output-style=JSON -s --functions=none",
        "--adjust-vma=0x10 -a",
        "--no-demangle",
        "-demangle=false -inlining=true",
        "--default-arch=x86_64 --no-debuginfod --dsym-hint=x --dwp=x",
    ] {
        let options = options.split_whitespace();
        let arguments: Vec<_> =
            options.chain([object.as_str(), inlined, "0x0", entry, "999999999999"]).collect();
        assert_same(&arguments, "");
        let input = format!("{inlined}\nCODE {entry}\nDATA {entry}\n{entry} and more\n\n0x12zz\n");
        assert_same(&arguments[..arguments.len() - 4], &input);
    }
    let fat = debug_file("fat");
    let fat = fat.to_str().expect("text");
    let names = format!(
        "{fat} 0x100000400\n{fat}:arm64 0x100000400\n\"{file}\" {inlined}\nCODE FILE:'{file}' {entry}\n"
    );
    assert_same(&["--default-arch=arm64"], &names);
    assert_same(&["--output-style=GNU", "-a"], &names);
}

pub(crate) fn symbols_have_the_code_of_llvm_symbolizer() {
    let (mut same, mut asked) = (0, 0);
    for image in testdata_images(&["dsyms", "elf", "demo"]) {
        let is_request =
            |name: &&String| !name.contains(' ') && !name.starts_with(|c: char| c.is_ascii_digit());
        let names: Vec<_> = image.symbols.iter().filter(is_request).filter(|name| !name.is_empty()).collect();
        let input: String = names.iter().map(|name| format!("{name}\n{name}+3\n")).collect();
        let [theirs, ours] = [program(LLVM, "--version"), ours()].map(|mut command| {
            command.arg(format!("--default-arch={}", image.arch)).arg("--obj").arg(&image.file);
            without_starts(&output(command, &input))
        });
        let [theirs, ours] = [&theirs, &ours].map(|text| text.split_terminator("\n\n").collect::<Vec<_>>());
        assert_eq!([theirs.len(), ours.len()], [2 * names.len(); 2], "{}", image.file.display());
        for ((name, theirs), ours) in input.lines().zip(theirs).zip(ours) {
            let is_explained = theirs == ours || reason(name, theirs, ours).is_some();
            assert!(is_explained, "{}: {name}:\n{ours}\ninstead of\n{theirs}", image.file.display());
            same += usize::from(theirs == ours);
            asked += 1;
        }
    }
    assert!(asked > 1000 && same > asked * 9 / 10, "{same} of {asked}");
    println!("{same} of {asked} requests by symbol have the same answer");
    let file = crate::common::testdata().join("elf/gcc-parts.so");
    let file = file.to_str().expect("text");
    let code = format!("{file} rescale+4\n{file} nope\n");
    let input = format!("{code}DATA {file} rescale\n");
    for options in ["-p", "--output-style=GNU", "-f=none", "-f=short", "--output-style=JSON"] {
        assert_same(&[options], &input);
    }
    // For a name after DATA, llvm-symbolizer 19 prints an address that it has not set.
    assert_same(&["-a", "-p"], &code);
    assert_same(&["-a"], "nofile rescale\n");
    // The folder of a dSYM, which llvm-symbolizer does not read.
    let bundle = crate::common::testdata().join("dsyms/inline-dwarf4.dSYM");
    let of_bundle = crate::common::symdex([
        "llvm-symbolizer".as_ref(),
        "-e".as_ref(),
        bundle.as_os_str(),
        "pyramid".as_ref(),
    ]);
    assert!(of_bundle.ok().starts_with("pyramid\n/src/symdex/inline/"));
}

/// Why the answers for a symbol differ.
fn reason(name: &str, theirs: &str, ours: &str) -> Option<&'static str> {
    const UNKNOWN: &str = "??\n??:0:0";
    let ((their_name, their_place), (our_name, our_place)) =
        (theirs.split_once('\n')?, ours.split_once('\n')?);
    match symdex_demangle::language(name.as_bytes()) {
        _ if theirs == UNKNOWN => Some("another symbol is at the address"),
        _ if ours == UNKNOWN && their_place.ends_with(":0:0") => Some("file of a symbol"),
        Some(symdex_demangle::Language::Swift) => Some("Swift name"),
        Some(symdex_demangle::Language::Cpp) if their_place == our_place => Some("C++ name"),
        _ if their_name == our_name => Some("line of an inlined function"),
        _ => None,
    }
}
