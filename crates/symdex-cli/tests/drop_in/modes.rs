//! Each mode of both tools, for code of each language: how many answers have the same bytes, how many differ by what
//! symdex does not print, and how many differ for a reason that the other tests count.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use rayon::prelude::*;
use symdex_testkit::program;

use super::compared::{Asked, Classes, answers, images, output, testdata_images, without_starts};
use super::{gnu, llvm};
use crate::common::{folder, testdata};

/// The most addresses of code that are asked of one image.
const ADDRESSES: usize = 50;

/// What a mode asks of each address.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asks {
    Code,
    /// Data symbols, at their addresses.
    Data,
}

/// How the answers of a mode are compared.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Style {
    /// Each answer begins with its address.
    Plain,
    /// Each answer is a line.
    Json,
}

/// The options of a mode, as the document names them.
struct Mode {
    options: &'static str,
    style: Style,
    asks: Asks,
    /// Whether docs/DROP-IN.md says that answers of this mode differ.
    is_documented: bool,
}

const fn mode(options: &'static str) -> Mode {
    Mode { options, style: Style::Plain, asks: Asks::Code, is_documented: false }
}

const fn json(options: &'static str) -> Mode {
    Mode { style: Style::Json, ..mode(options) }
}

const ADJUSTED: &str = "--adjust-vma=0x1000";

const OF_LLVM: [Mode; 16] = [
    mode(""),
    mode("-p"),
    mode("-s"),
    mode("-f=none"),
    mode("-f=short"),
    mode("--no-demangle"),
    Mode { is_documented: true, ..mode("--no-inlines") },
    mode("--verbose"),
    mode(ADJUSTED),
    mode("--output-style=GNU -f"),
    mode("--output-style=GNU -f -p"),
    mode("--output-style=GNU -f --no-inlines"),
    json("--output-style=JSON"),
    json("--output-style=JSON -s -f=none"),
    Mode { asks: Asks::Data, is_documented: true, ..mode("DATA") },
    Mode { asks: Asks::Data, ..json("DATA --output-style=JSON") },
];

const OF_GNU: [Mode; 9] = [
    mode(""),
    mode("-f"),
    mode("-i"),
    mode("-f -i"),
    mode("-f -i -C"),
    mode("-f -i -p"),
    mode("-s -f"),
    mode("-p -s -f -i -C"),
    mode("-f -j .text"),
];

impl Mode {
    /// Whether answers, without what symdex does not print, differ only because of what the mode prints.
    fn explains(&self, image: &Asked, theirs: &str, ours: &str) -> bool {
        let options: Vec<_> = self.options.split_whitespace().collect();
        // llvm-symbolizer prints the name of a file as the line table has it, which can be a path.
        let is_file = |theirs: &str, ours: &str| {
            let folder = regex::Regex::new(r#"^/.*/|("FileName":")[^"]*/"#).expect("valid");
            options.contains(&"-s") && folder.replace_all(theirs, "$1") == ours
        };
        // It prints the name that the debug information has without its scope: with type arguments in the words of
        // the compiler, and none for functions that have linkage names only.
        let is_name = |theirs: &str, ours: &str| {
            let is_method = matches!(theirs.as_bytes(), [b'-' | b'+', b'[', ..]);
            let is_unnamed = theirs == "??";
            let is_same =
                theirs.split('<').next() == ours.split('<').next() || ours == format!("{theirs}.abi0");
            options.contains(&"-f=short") && (is_method || is_unnamed || is_same)
        };
        // Texts of names differ as those of functions do, and symdex escapes control characters.
        let is_data = |theirs: &str, ours: &str| {
            let name = regex::Regex::new(r#""Name":"[^"]*""#).expect("valid");
            self.asks == Asks::Data && name.replace(theirs, "") == name.replace(ours, "")
        };
        // Two symbols at one address, whose names are the same if they are demangled.
        let is_alias = |theirs: &str| options.contains(&"--no-demangle") && image.symbols.contains(theirs);
        let is_explained = |(theirs, ours)| {
            is_file(theirs, ours) || is_name(theirs, ours) || is_data(theirs, ours) || is_alias(theirs)
        };
        let mut lines = theirs.lines().zip(ours.lines());
        theirs.lines().count() == ours.lines().count()
            && lines.all(|(theirs, ours)| theirs == ours || is_explained((theirs, ours)))
    }
}

/// How many answers there are of each kind.
#[derive(Clone, Copy, Default)]
struct Cell {
    same: usize,
    /// They differ by discriminators and where functions start.
    but_for_starts: usize,
    explained: usize,
}

/// The tables of both tools, with a row for each mode and a column for each language.
struct Tables {
    languages: Vec<&'static str>,
    rows: BTreeMap<(&'static str, usize), Vec<Cell>>,
    unexplained: Vec<String>,
}

const RUST: &str = r#"
use std::collections::BTreeMap;
#[inline(always)]
fn step<T: Into<u64>>(x: T, map: &mut BTreeMap<u64, String>) -> usize {
    let key = x.into().wrapping_mul(31);
    map.entry(key).or_insert_with(|| format!("{key:x}")).len()
}
pub trait Shape { fn area(&self) -> u64; }
pub struct Square(pub u64);
impl Shape for Square {
    #[inline(never)]
    fn area(&self) -> u64 { (0..self.0).filter(|n| n % 3 != 0).map(|n| n ^ self.0).sum() }
}
#[unsafe(no_mangle)]
pub extern "C" fn run(count: u32) -> usize {
    let mut map = BTreeMap::new();
    let shapes: Vec<Box<dyn Shape>> = (0..count).map(|n| Box::new(Square(n.into())) as _).collect();
    let areas: u64 = shapes.iter().map(|shape| shape.area()).sum();
    (0..count).map(|n| step(n, &mut map)).sum::<usize>() + areas as usize
}
"#;

const GO: &str = r#"
package main

import (
	"fmt"
	"os"
	"sort"
)

type shape interface{ area() int }
type square struct{ side int }

func (s *square) area() int { return double(s.side) * s.side / 2 }
func double(x int) int      { return x * 2 }

func largest[T any](all []T, less func(a, b T) bool) T {
	sort.Slice(all, func(i, j int) bool { return less(all[i], all[j]) })
	return all[len(all)-1]
}

func main() {
	var all []shape
	for i := range os.Args {
		all = append(all, &square{i})
	}
	fmt.Println(largest(all, func(a, b shape) bool { return a.area() < b.area() }).area())
}
"#;

/// What the compilers of the machine make of code in each language, and for Swift and Objective-C also the dSYMs of
/// `testdata`, which only llvm-symbolizer reads.
fn languages(folder: &Path) -> Vec<(&'static str, Vec<Asked>)> {
    let sources = testdata().join("src");
    std::fs::write(folder.join("main.rs"), RUST).expect("written");
    std::fs::write(folder.join("main.go"), GO).expect("written");
    // The names without Mach-O's underscore.
    let swift = ["Feed.swift.c", "Labels.c"];
    for file in swift {
        let source = std::fs::read_to_string(sources.join("swift").join(file)).expect("readable");
        std::fs::write(folder.join(file), source.replace("\"_\" mangled", "mangled")).expect("written");
    }
    let build = |name: &str, mut compiler: Command, options: &str, files: &[&str]| {
        let out = folder.join(name);
        compiler.args(options.split_whitespace()).arg("-o").arg(&out);
        compiler.args(files.iter().map(|file| sources.join(file))).current_dir(folder);
        let done = compiler.output().expect("it starts");
        assert!(done.status.success(), "{name}: {}", String::from_utf8_lossy(&done.stderr));
        images(&out)
    };
    let clang = || program("clang-19", "--version");
    const SHARED: &str = "-O2 -g -fPIC -shared -w";
    let objc = format!("{SHARED} -fobjc-arc -fblocks -fobjc-runtime=gnustep-2.0");
    let dsym = |name: &str| testdata_images(&[&format!("dsyms/{name}.dSYM")]);
    let mut rustc = program("rustc", "--version");
    rustc.args(["main.rs"]);
    let mut go = program("go", "version");
    go.env("CGO_ENABLED", "0").env("GO111MODULE", "off").arg("build");
    let mut languages = vec![
        ("C", build("c", clang(), SHARED, &["inline/main.c", "elf/parts.c", "elf/flow.c", "layout/fold.c"])),
        (
            "C++",
            build("cpp", clang(), &format!("{SHARED} -std=c++20"), &["shapes/shapes.cpp", "elf/parts.cpp"]),
        ),
        ("Rust", build("rust", rustc, "--edition=2024 --crate-type=cdylib -g -O", &[])),
        ("Swift names", build("swift", clang(), &format!("{SHARED} {}", swift.join(" ")), &[])),
        ("Objective-C", build("objc", clang(), &objc, &["objc/Player.m"])),
        ("Go", build("go", go, "", &[])),
    ];
    languages[3].1.extend(dsym("swift-names"));
    languages[4].1.extend(dsym("objc"));
    languages
}

impl Asked {
    /// The image with at most [`ADDRESSES`] of its addresses, at equal distances.
    fn thinned(mut self) -> Self {
        let step = self.addresses.len() / ADDRESSES + 1;
        self.addresses = self.addresses.into_iter().step_by(step).collect();
        self
    }

    fn is_elf(&self) -> bool {
        std::fs::read(&self.file).is_ok_and(|bytes| bytes.starts_with(b"\x7fELF"))
    }

    /// The addresses of its data symbols.
    fn data(&self) -> Vec<u64> {
        use object::{Object as _, ObjectSymbol as _};
        let bytes = std::fs::read(&self.file).expect("readable");
        let Ok(file) = object::File::parse(&*bytes) else { return Vec::new() };
        let data =
            file.symbols().filter(|symbol| symbol.kind() == object::SymbolKind::Data && symbol.size() > 0);
        let mut addresses: Vec<_> = data.map(|symbol| symbol.address()).collect();
        addresses.sort_unstable();
        addresses.dedup();
        addresses
    }

    /// Where its section `.text` starts.
    fn text(&self) -> u64 {
        use object::{Object as _, ObjectSection as _};
        let bytes = std::fs::read(&self.file).expect("readable");
        let file = object::File::parse(&*bytes).expect("an object file");
        file.section_by_name(".text").expect("it has code").address()
    }
}

impl Tables {
    fn of(languages: Vec<(&'static str, Vec<Asked>)>) -> Self {
        let names: Vec<_> = languages.iter().map(|(name, _)| *name).collect();
        let empty = || Self { languages: names.clone(), rows: BTreeMap::new(), unexplained: Vec::new() };
        let images = languages.into_iter().enumerate();
        let images =
            images.flat_map(|(column, (_, images))| images.into_iter().map(move |image| (column, image)));
        let images = images.collect::<Vec<_>>().into_par_iter();
        images
            .fold(empty, |mut tables, (column, image)| {
                tables.add_image(column, &image.thinned());
                tables
            })
            .reduce(empty, Self::with)
    }

    fn add_image(&mut self, column: usize, image: &Asked) {
        let of_code: Vec<_> = llvm::classes(image).into_iter().map(|(classes, _)| classes).collect();
        for (row, mode) in OF_LLVM.iter().enumerate() {
            let cell = self.llvm(image, mode, &of_code);
            self.add("llvm-symbolizer", row, column, cell);
        }
        if !image.is_elf() {
            return;
        }
        let of_code: Vec<_> = gnu::classes(image).into_iter().map(|(classes, _)| classes).collect();
        for (row, mode) in OF_GNU.iter().enumerate() {
            let cell = self.gnu(image, mode, &of_code);
            self.add("addr2line", row, column, cell);
        }
    }

    /// These tables and the numbers of `others`.
    fn with(mut self, others: Self) -> Self {
        for ((tool, row), cells) in others.rows {
            for (column, cell) in cells.into_iter().enumerate() {
                self.add(tool, row, column, cell);
            }
        }
        self.unexplained.extend(others.unexplained);
        self
    }

    fn add(&mut self, tool: &'static str, row: usize, column: usize, new: Cell) {
        let empty = || vec![Cell::default(); self.languages.len()];
        let cell = &mut self.rows.entry((tool, row)).or_insert_with(empty)[column];
        cell.same += new.same;
        cell.but_for_starts += new.but_for_starts;
        cell.explained += new.explained;
    }

    /// Asks both llvm-symbolizers. `of_code` has the classes of each address.
    fn llvm(&mut self, image: &Asked, mode: &Mode, of_code: &[Classes]) -> Cell {
        let data;
        let (asked, prefix) = match mode.asks {
            Asks::Code => (&image.addresses, "CODE "),
            Asks::Data => {
                data = image.data();
                (&data, "DATA ")
            }
        };
        let added = if mode.options == ADJUSTED { 0x1000 } else { 0 };
        let addresses: Vec<_> = asked.iter().map(|address| format!("{:#x}", address + added)).collect();
        let input: String = addresses.iter().map(|address| format!("{prefix}{address}\n")).collect();
        let options: Vec<_> = mode.options.split_whitespace().filter(|word| word.starts_with('-')).collect();
        let printed = [program(llvm::LLVM, "--version"), llvm::ours()].map(|mut command| {
            command.args(["-a", "--default-arch", &image.arch, "--obj"]).arg(&image.file).args(&options);
            output(command, &input)
        });
        let lines = |output: &str| -> Vec<String> {
            match mode.style {
                Style::Json => output.lines().map(str::to_owned).collect(),
                Style::Plain => answers(output, &addresses).iter().map(|answer| answer.join("\n")).collect(),
            }
        };
        let [theirs, ours] = printed.each_ref().map(|output| lines(output));
        let classes = |number: usize| match mode.asks {
            Asks::Data => Classes::new(),
            Asks::Code => of_code[number].clone(),
        };
        self.compare(image, mode, [&theirs, &ours], without_starts, classes)
    }

    /// Asks both addr2lines. `of_code` has the classes of each address.
    fn gnu(&mut self, image: &Asked, mode: &Mode, of_code: &[Classes]) -> Cell {
        let base = if mode.options.contains("-j") { image.text() } else { 0 };
        let (asked, of_code): (Vec<&u64>, Vec<&Classes>) =
            image.addresses.iter().zip(of_code).filter(|(address, _)| **address >= base).unzip();
        let addresses: Vec<_> = asked.iter().map(|address| format!("{:#018x}", *address - base)).collect();
        let input: String = addresses.iter().map(|address| format!("{address}\n")).collect();
        let printed = [program("addr2line", "--version"), gnu::ours()].map(|mut command| {
            command.args(["-a", "-e"]).arg(&image.file).args(mode.options.split_whitespace());
            output(command, &input)
        });
        let lines = |output: &str| -> Vec<String> {
            answers(output, &addresses).iter().map(|answer| answer.join("\n")).collect()
        };
        let [theirs, ours] = printed.each_ref().map(|output| lines(output));
        let without = |answer: &str| {
            answer.lines().map(|line| format!("{}\n", gnu::without_discriminator(line))).collect()
        };
        let classes = |number: usize| {
            let classes = of_code[number].iter().copied();
            classes.filter(|class: &Option<_>| *class != Some("discriminator")).collect()
        };
        self.compare(image, mode, [&theirs, &ours], without, classes)
    }

    fn compare(
        &mut self,
        image: &Asked,
        mode: &Mode,
        [theirs, ours]: [&[String]; 2],
        without: impl Fn(&str) -> String,
        classes: impl Fn(usize) -> Classes,
    ) -> Cell {
        assert_eq!(theirs.len(), ours.len(), "{} {}", image.file.display(), mode.options);
        let mut cell = Cell::default();
        for (number, (theirs, ours)) in theirs.iter().zip(ours).enumerate() {
            let classes = classes(number);
            match () {
                () if theirs == ours => cell.same += 1,
                () if without(theirs) == without(ours) => cell.but_for_starts += 1,
                () if mode.is_documented
                    || !classes.is_empty() && !classes.contains(&None)
                    || mode.explains(image, &without(theirs), &without(ours)) =>
                {
                    cell.explained += 1;
                }
                () => self.unexplained.push(format!(
                    "{} {} {:?}\n{theirs}\n{ours}",
                    image.file.display(),
                    mode.options,
                    image.addresses.get(number)
                )),
            }
        }
        cell
    }

    /// Both tables as the document has them: answers with the same bytes, but for discriminators and starts, and
    /// explained.
    fn text(&self) -> String {
        let mut text = String::new();
        for (tool, modes) in [("llvm-symbolizer", &OF_LLVM[..]), ("addr2line", &OF_GNU[..])] {
            let heads: String = self.languages.iter().map(|name| format!(" {name} |")).collect();
            let ruler = " ---: |".repeat(self.languages.len());
            writeln!(text, "\n| {tool} |{heads}\n| --- |{ruler}").expect("a string takes all");
            for (row, mode) in modes.iter().enumerate() {
                let cells: String = self.rows[&(tool, row)].iter().map(|cell| format!(" {cell} |")).collect();
                let options =
                    if mode.options.is_empty() { "(none)".to_owned() } else { format!("`{}`", mode.options) };
                writeln!(text, "| {options} |{cells}").expect("a string takes all");
            }
        }
        text
    }
}

impl std::fmt::Display for Cell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.same + self.but_for_starts + self.explained {
            0 => f.write_str("not there"),
            _ => write!(f, "{} / {} / {}", self.same, self.but_for_starts, self.explained),
        }
    }
}

pub(crate) fn every_mode_has_the_answers_of_the_tools_for_each_language() {
    let folder = folder();
    let tables = Tables::of(languages(folder.path()));
    println!("{}", tables.text());
    let some: Vec<_> = tables.unexplained.iter().step_by(tables.unexplained.len() / 9 + 1).collect();
    assert!(some.is_empty(), "{} unexplained: {some:#?}", tables.unexplained.len());
    let answered = |tool: &str, column: usize| {
        let cells = tables.rows.iter().filter(|((of, _), _)| *of == tool).map(|(_, cells)| cells[column]);
        cells.map(|cell| cell.same).sum::<usize>()
    };
    for (column, language) in tables.languages.iter().enumerate() {
        for tool in ["llvm-symbolizer", "addr2line"] {
            // addr2line of binutils 2.40 reads no unit of Go 1.27.
            let has_answers = (tool, *language) != ("addr2line", "Go");
            assert_eq!(answered(tool, column) > 0, has_answers, "{tool}: {language}");
        }
    }
}
