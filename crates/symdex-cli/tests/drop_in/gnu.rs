//! The output of `addr2line`, byte for byte beside GNU's.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use symdex_testkit::{corpus, program};

use super::compared::{Asked, Classes, Counts, answers, images, output, testdata_images};
use crate::common::{command, folder, testdata};

/// The answers of both programs and of llvm-symbolizer, which reads the same debug information.
struct Triple<'o> {
    theirs: Vec<&'o str>,
    ours: Vec<&'o str>,
    llvm: Vec<&'o str>,
}

fn counts(images: &[Asked]) -> Counts {
    let mut counts = Counts::default();
    for (classes, shown) in images.iter().flat_map(classes) {
        counts.add(classes, || shown);
    }
    counts
}

/// For each address of `image`: why the answers of addr2line and symdex differ, and the answers.
pub(crate) fn classes(image: &Asked) -> Vec<(Classes, String)> {
    let addresses: Vec<_> = image.addresses.iter().map(|address| format!("{address:#018x}")).collect();
    let input = addresses.join("\n") + "\n";
    let asked = |mut command: Command| {
        command.args(["-afiC", "-e"]).arg(&image.file);
        output(command, &input)
    };
    let mut llvm = program("llvm-symbolizer-19", "--version");
    llvm.args(["-afiC", "--output-style=GNU", "--obj"]).arg(&image.file);
    let texts = [asked(program("addr2line", "--version")), asked(ours()), output(llvm, &input)];
    let short: Vec<_> = image.addresses.iter().map(|address| format!("{address:#x}")).collect();
    let [theirs, ours] = [&texts[0], &texts[1]].map(|text| answers(text, &addresses));
    let llvm = answers(&texts[2], &short);
    let of_triple = |(number, address): (usize, &String)| {
        let triple =
            Triple { theirs: theirs[number].clone(), ours: ours[number].clone(), llvm: llvm[number].clone() };
        let shown = format!("{} {address}\n{:#?}\n{:#?}", image.file.display(), triple.theirs, triple.ours);
        (triple.classes(image), shown)
    };
    addresses.iter().enumerate().map(of_triple).collect()
}

pub(crate) fn ours() -> Command {
    let mut ours = command();
    ours.args(["--no-config", "addr2line"]);
    ours
}

/// A location without the discriminator, which only some rows have.
pub(crate) fn without_discriminator(location: &str) -> &str {
    location.split(" (discriminator ").next().unwrap_or(location)
}

/// Whether both are one place: only symdex knows that Swift's `<compiler-generated>` is in no folder.
fn is_same_place(theirs: &str, ours: &str) -> bool {
    theirs == ours || ours.starts_with("<compiler-generated>") && theirs.ends_with(&format!("/{ours}"))
}

impl Triple<'_> {
    fn classes(&self, image: &Asked) -> Classes {
        let mut classes = BTreeSet::new();
        if self.theirs.iter().any(|line| line.contains(" (discriminator ")) {
            classes.insert(Some("discriminator"));
        }
        let theirs: Vec<_> = self.theirs.iter().map(|line| without_discriminator(line)).collect();
        if theirs == self.ours {
            return classes;
        }
        match (&theirs[..], &self.ours[..]) {
            (["??", "??:0"], [name, "??:?"]) if name.ends_with("@plt") => {
                classes.insert(Some("stub"));
            }
            (["??", "??:0"], ["??", "??:?"]) => {
                classes.insert(Some("symbol without a name"));
            }
            ([_, place], ["??", "??:0"]) if place.ends_with(":?") => {
                classes.insert(Some("after the end of a symbol"));
            }
            ([name, place], [our_name, "??:?"]) if name == our_name && place.ends_with(":?") => {
                classes.insert(Some("file of a symbol"));
            }
            // A row that ends later than the function and its symbol.
            _ if self.ours[0] == "??" && self.llvm == ["??", "??:0"] => {
                classes.insert(Some("after the end of a symbol"));
            }
            ([_, place], _) if place.ends_with(":?") && self.is_as_llvm(false) => {
                classes.insert(Some("unit that is not read"));
            }
            _ if self.is_as_llvm(false) && theirs.len() < self.ours.len() => {
                classes.insert(Some("inlined functions missed"));
            }
            _ if theirs.len() != self.ours.len() => {
                classes.insert(self.is_as_llvm(false).then_some("other inlined functions"));
            }
            _ => {
                for (number, (theirs, ours)) in theirs.iter().zip(&self.ours).enumerate() {
                    if theirs != ours {
                        classes.insert(self.class_of_line(number, theirs, image));
                    }
                }
            }
        }
        classes
    }

    fn class_of_line(&self, number: usize, theirs: &str, image: &Asked) -> Option<&'static str> {
        let ours = self.ours[number];
        if number % 2 == 1 {
            return match self.is_as_llvm(false) {
                _ if is_same_place(theirs, ours) => Some("compiler-generated file"),
                true if ours.ends_with(":?") => Some("line of code without a line"),
                true if theirs.rsplit(':').next() == ours.rsplit(':').next() => Some("other file"),
                _ => None,
            };
        }
        if symdex_demangle::language(theirs.as_bytes()) == Some(symdex_demangle::Language::Swift) {
            return Some("Swift name");
        }
        let is_clone = theirs.split(" [clone ").next() == ours.split(" [clone ").next();
        if is_clone || image.symbols.contains(theirs) {
            return Some("name of the symbol table");
        }
        let caller = self.ours.len().checked_sub(2).filter(|caller| *caller > number);
        let without_clone = |name: &str| name.split(" [clone ").next().map(str::to_owned);
        if caller.is_some_and(|caller| without_clone(self.ours[caller]) == without_clone(theirs)) {
            return Some("inlined function named as its caller");
        }
        if ours.contains(theirs) || theirs.contains(ours) {
            return Some("function without a linkage name");
        }
        // The linkage names are equal, or LLVM has our name.
        self.is_as_llvm(true).then_some("text of a C++ name")
    }

    /// Whether llvm-symbolizer has the locations of our answer, and its names but for their style if they are asked
    /// for.
    fn is_as_llvm(&self, names: bool) -> bool {
        let plain = |name: &str| name.replace(' ', "").replace("[clone", "(").replace(['(', ')', ']'], "");
        let is_same = |(number, (llvm, ours)): (usize, (&&str, &&str))| match number % 2 {
            0 => !names || plain(llvm) == plain(ours),
            _ => {
                let (llvm, ours) = (without_discriminator(llvm), ours.trim_end_matches(":?"));
                is_same_place(llvm.strip_suffix(":0").unwrap_or(llvm), ours)
            }
        };
        self.llvm.len() == self.ours.len() && self.llvm.iter().zip(&self.ours).enumerate().all(is_same)
    }
}

/// Shared objects that the compilers of the machine make of the sources of `testdata`.
fn compiled(folder: &Path) -> Vec<Asked> {
    let sources = testdata().join("src");
    for (name, compiler, options) in [
        ("gcc", program("g++", "--version"), ["-O2", "-gdwarf-5"]),
        ("gcc-0", program("g++", "--version"), ["-O0", "-gdwarf-4"]),
        ("clang", program("clang++-19", "--version"), ["-O2", "-gdwarf-5"]),
    ] {
        let mut compiler = compiler;
        compiler.args(options).args(["-fPIC", "-shared", "-std=c++20", "-w", "-o"]).arg(folder.join(name));
        compiler.args(
            ["shapes/shapes.cpp", "elf/parts.cpp", "elf/drain.cpp", "elf/fill.cpp"]
                .map(|file| sources.join(file)),
        );
        assert!(compiler.status().expect("it starts").success(), "{name}");
    }
    images(folder)
}

pub(crate) fn every_difference_from_addr2line_has_a_class() {
    let folder = folder();
    let columns =
        [("testdata", counts(&testdata_images(&["elf"]))), ("compiled", counts(&compiled(folder.path())))];
    println!("{}", Counts::table(&columns));
    columns.iter().for_each(|(_, counts)| counts.assert_explained());
}

pub(crate) fn table_of_the_corpora() {
    let folder = folder();
    let samply = corpus("samply-fixtures", folder.path()).join("samply/fixtures");
    let files =
        ["linux64-ci/firefox", "other/simple-example/out/with-dwo/main"].map(|file| samply.join(file));
    let mut columns = vec![("testdata", counts(&testdata_images(&["elf"])))];
    columns
        .push(("samply-fixtures", counts(&files.iter().flat_map(|file| images(file)).collect::<Vec<_>>())));
    let compiled_into = crate::common::folder();
    columns.push(("compiled", counts(&compiled(compiled_into.path()))));
    println!("{}", Counts::table(&columns));
    columns.iter().for_each(|(_, counts)| counts.assert_explained());
}
