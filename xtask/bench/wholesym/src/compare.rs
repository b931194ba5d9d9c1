//! The differences between two frames of version 5, by kind.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::facts::Facts;

/// How often answers are equal, and each kind of difference with examples.
#[derive(Default)]
pub struct Tally {
    asked: usize,
    equal: usize,
    kinds: BTreeMap<Kind, (usize, Vec<String>)>,
}

/// How two answers differ. The first that fits counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// All else is equal, and wholesym's names are what its demanglers make of ours.
    Demangled,
    /// Wholesym answers outside of executable sections, from the symbol before the offset.
    OutsideOfCode,
    /// Wholesym states the source file by its repository or package.
    MappedPath,
    /// Wholesym has a folder before `<compiler-generated>`.
    CompilerGenerated,
    OnlyOurs,
    OnlyTheirs,
    /// Only one has a file and a line.
    OnlyOursHasLines,
    OnlyTheirsHasLines,
    /// The number of inlined functions.
    Inlines,
    FunctionOffset,
    /// Wholesym has no line, or only it has one.
    OnlyOursHasALine,
    OnlyTheirsHasALine,
    Line,
    File,
    Name,
}

impl Tally {
    /// Compares the answers for one offset. `what` describes it.
    pub fn compare(&mut self, what: &str, facts: &Facts, ours: &Value, theirs: &Value) {
        self.asked += 1;
        match difference(facts, ours, theirs) {
            None => self.equal += 1,
            Some(kind) => {
                let (count, examples) = self.kinds.entry(kind).or_default();
                *count += 1;
                // Of each image a few, so that they are not all of the first.
                if examples.len() < 100 && count.is_power_of_two() {
                    examples.push(format!("{what}\n      symdex   {ours}\n      wholesym {theirs}"));
                }
            }
        }
    }

    pub fn add(&mut self, other: Self) {
        self.asked += other.asked;
        self.equal += other.equal;
        for (kind, (count, examples)) in other.kinds {
            let all = self.kinds.entry(kind).or_default();
            all.0 += count;
            all.1.extend(examples);
        }
    }

    /// The numbers of offsets, of equal answers, of those whose names are demangled otherwise, and of the others.
    pub fn row(&self) -> [usize; 4] {
        let names = self.kinds.get(&Kind::Demangled).map_or(0, |(count, _)| *count);
        [self.asked, self.equal, names, self.asked - self.equal - names]
    }

    /// The kinds of differences, with their numbers and examples.
    pub fn kinds(&self) -> impl Iterator<Item = (String, &(usize, Vec<String>))> {
        self.kinds.iter().map(|(kind, counted)| (format!("{kind:?}"), counted))
    }
}

/// How two frames differ; `None` if they do not. Members that only samply has, such as `function_size`, do not count.
fn difference(facts: &Facts, ours: &Value, theirs: &Value) -> Option<Kind> {
    let has = |frame: &Value, member| frame.get(member).is_some();
    match (has(ours, "function"), has(theirs, "function")) {
        (false, false) => return None,
        (true, false) => return Some(Kind::OnlyOurs),
        (false, true) if !facts.is_code => return Some(Kind::OutsideOfCode),
        (false, true) => return Some(Kind::OnlyTheirs),
        (true, true) => {}
    }
    let [our_chain, their_chain] = [ours, theirs].map(chain);
    let has_lines = |chain: &[Function<'_>]| chain.iter().any(|function| function.file.is_some());
    match (has_lines(&our_chain), has_lines(&their_chain)) {
        (true, false) => return Some(Kind::OnlyOursHasLines),
        (false, true) => return Some(Kind::OnlyTheirsHasLines),
        _ => {}
    }
    if our_chain.len() != their_chain.len() {
        return Some(Kind::Inlines);
    }
    if ours["function_offset"] != theirs["function_offset"] {
        return Some(Kind::FunctionOffset);
    }
    let mut kind = None;
    for ((ours, theirs), expected) in our_chain.iter().zip(&their_chain).zip(&facts.names) {
        match (ours.line, theirs.line) {
            (ours, theirs) if ours == theirs => {}
            (Some(_), None) => return Some(Kind::OnlyOursHasALine),
            (None, Some(_)) => return Some(Kind::OnlyTheirsHasALine),
            _ => return Some(Kind::Line),
        }
        let file = match (ours.file, theirs.file) {
            (ours, theirs) if ours == theirs => None,
            (Some("<compiler-generated>"), Some(_)) => Some(Kind::CompilerGenerated),
            (Some(_), Some(theirs)) if is_mapped(theirs) => Some(Kind::MappedPath),
            _ => return Some(Kind::File),
        };
        if theirs.name != expected.as_deref() && theirs.name != ours.name {
            return Some(Kind::Name);
        }
        let name = (ours.name != theirs.name).then_some(Kind::Demangled);
        kind = kind.max(file).max(name);
    }
    kind
}

/// Whether a path names a repository or a package, as in `git:github.com/rust-lang/rust:library/core/src/lib.rs:1a2b`.
fn is_mapped(path: &str) -> bool {
    ["git:", "hg:", "s3:", "cargo:"].iter().any(|scheme| path.starts_with(scheme))
}

struct Function<'f> {
    name: Option<&'f str>,
    file: Option<&'f str>,
    line: Option<u64>,
}

/// The functions of a frame, innermost first.
fn chain(frame: &Value) -> Vec<Function<'_>> {
    let inlines = frame.get("inlines").and_then(Value::as_array).into_iter().flatten();
    inlines.chain([frame]).map(Function::of).collect()
}

impl<'f> Function<'f> {
    fn of(value: &'f Value) -> Self {
        let text = |member| value.get(member).and_then(Value::as_str);
        // Without a file, Eliot leaves the line out.
        let file = text("file");
        Self { name: text("function"), file, line: value["line"].as_u64().filter(|_| file.is_some()) }
    }
}
