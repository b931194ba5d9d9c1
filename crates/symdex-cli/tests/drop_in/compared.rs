//! Two programs asked for the same addresses, and their answers side by side.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use symdex_build::{Companions, Image};

/// The most addresses that are asked of one image.
const ADDRESSES: u64 = 4000;

/// One architecture of a file, and what its file says about it.
pub(crate) struct Asked {
    pub(crate) file: PathBuf,
    pub(crate) arch: String,
    /// Addresses of code: all of a small image, and at equal distances of a large one.
    pub(crate) addresses: Vec<u64>,
    /// The names in its symbol table, and those of its aliases.
    pub(crate) symbols: BTreeSet<String>,
}

/// The images of the debug files at and below `path`.
pub(crate) fn images(path: &Path) -> Vec<Asked> {
    let mut images = Vec::new();
    for file in symdex_build::find(path) {
        let file = file.expect("a readable file");
        let bytes = std::fs::read(&file).expect("readable");
        for slice in symdex_build::slices(&bytes).expect("a debug file") {
            let companions = Companions::default();
            let image = Image::load(&slice, &file, &companions).expect("loads");
            let info = image.info();
            let size: u64 = info.executable.iter().map(|(start, end)| end - start).sum();
            let step = usize::try_from(size / ADDRESSES + 1).expect("a step");
            let code = info.executable.iter().flat_map(|(start, end)| *start..*end).step_by(step);
            let lossy = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
            let names = image.files().iter().flat_map(|bytes| symbol_names(bytes));
            images.push(Asked {
                file: file.clone(),
                arch: slice.arch.name.clone(),
                addresses: code.map(|offset| info.base + offset).collect(),
                symbols: names.map(|name| lossy(&name)).collect(),
            });
        }
    }
    assert!(!images.is_empty(), "{} has debug files", path.display());
    images
}

/// The names of all symbols of a file, without Mach-O's underscore too.
fn symbol_names(bytes: &[u8]) -> Vec<Vec<u8>> {
    use object::{Object as _, ObjectSymbol as _};
    let Ok(file) = object::File::parse(bytes) else { return Vec::new() };
    let names = file.symbols().chain(file.dynamic_symbols()).filter_map(|symbol| symbol.name_bytes().ok());
    names.flat_map(|name| [name, name.strip_prefix(b"_").unwrap_or(name)]).map(<[u8]>::to_vec).collect()
}

/// What `command` prints for `input`.
pub(crate) fn output(mut command: Command, input: &str) -> String {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().expect("the program starts");
    let mut stdin = child.stdin.take().expect("piped");
    let input = input.to_owned();
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output().expect("the program ends");
    writer.join().expect("no panic").expect("the program reads all lines");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// An output of llvm-symbolizer without what symdex does not print: discriminators, and where functions start.
pub(crate) fn without_starts(output: &str) -> String {
    let discriminator = regex::Regex::new(r"(?m) \(discriminator [0-9]+\)$").expect("valid");
    let output = discriminator.replace_all(output, "");
    let parts = r#"("(?:StartLine|Discriminator)": ?)[0-9]+"#;
    let output = regex::Regex::new(parts).expect("valid").replace_all(&output, "${1}0").into_owned();
    let start = r#"("Start(?:Address|FileName)": ?)"[^"]*""#;
    let output = regex::Regex::new(start).expect("valid").replace_all(&output, "$1\"\"").into_owned();
    let is_left_out =
        |line: &str| ["  Function start", "  Discriminator"].iter().any(|part| line.starts_with(part));
    let lines = output.lines().filter(|line| !is_left_out(line));
    lines.map(|line| format!("{line}\n")).collect()
}

/// Why two answers differ: `None` for a part that no class explains. Empty if they are the same.
pub(crate) type Classes = BTreeSet<Option<&'static str>>;

/// The answers in the output of a program that prints the address before each, in a line of its own or before a colon:
/// the lines of each answer.
pub(crate) fn answers<'o>(output: &'o str, addresses: &[String]) -> Vec<Vec<&'o str>> {
    let mut answers: Vec<Vec<&str>> = Vec::new();
    for line in output.lines() {
        match addresses.get(answers.len()).and_then(|address| line.strip_prefix(address)) {
            Some("") => answers.push(Vec::new()),
            Some(rest) if rest.starts_with(": ") => answers.push(vec![&rest[2..]]),
            _ => answers.last_mut().expect("an address first").push(line),
        }
    }
    assert_eq!(answers.len(), addresses.len(), "one answer for each address");
    answers
}

/// How often each class occurs, and the answers without one.
#[derive(Default)]
pub(crate) struct Counts {
    pub(crate) answers: usize,
    pub(crate) same: usize,
    pub(crate) classes: BTreeMap<&'static str, usize>,
    pub(crate) unexplained: Vec<String>,
}

impl Counts {
    /// Counts an answer with its classes: `None` for a part of it that no class explains.
    pub(crate) fn add(&mut self, classes: Classes, shown: impl FnOnce() -> String) {
        self.answers += 1;
        self.same += usize::from(classes.is_empty());
        if classes.contains(&None) {
            self.unexplained.push(shown());
        }
        classes.into_iter().flatten().for_each(|class| *self.classes.entry(class).or_default() += 1);
    }

    /// A row for each class, with a column for each of `columns`, as the document has it.
    pub(crate) fn table(columns: &[(&str, Counts)]) -> String {
        let row = |name: &str, count: &dyn Fn(&Counts) -> usize| {
            let cells: String = columns.iter().map(|(_, counts)| format!(" {} |", count(counts))).collect();
            format!("| {name} |{cells}\n")
        };
        let heads: String = columns.iter().map(|(name, _)| format!(" {name} |")).collect();
        let mut table = format!("| |{heads}\n| --- |{}\n", " ---: |".repeat(columns.len()));
        table += &row("answers", &|counts| counts.answers);
        table += &row("the same", &|counts| counts.same);
        let classes: BTreeSet<_> = columns.iter().flat_map(|(_, counts)| counts.classes.keys()).collect();
        for class in classes {
            table += &row(class, &|counts| counts.classes.get(class).copied().unwrap_or(0));
        }
        table + &row("unexplained", &|counts| counts.unexplained.len())
    }

    #[track_caller]
    pub(crate) fn assert_explained(&self) {
        let shown: String = self
            .unexplained
            .iter()
            .step_by(self.unexplained.len() / 5 + 1)
            .map(|answer| format!("{answer}\n"))
            .collect();
        assert!(self.unexplained.is_empty(), "{} unexplained:\n{shown}", self.unexplained.len());
        assert!(self.answers > 0 && self.same + self.classes.len() > 0);
    }
}

/// The files of `testdata`, and the folder that they are in.
pub(crate) fn testdata_images(folders: &[&str]) -> Vec<Asked> {
    let root = crate::common::testdata();
    folders.iter().flat_map(|folder| images(&root.join(folder))).collect()
}
