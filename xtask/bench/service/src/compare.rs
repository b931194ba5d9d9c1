//! The differences between two frames of version 5, by kind.

use std::collections::BTreeMap;

use serde_json::Value;

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
    /// All else is equal.
    NamesOnly,
    OnlyOurs,
    OnlyTheirs,
    /// Only one has a file and a line.
    OnlyOursHasLines,
    OnlyTheirsHasLines,
    /// The number of inlined functions.
    Inlines,
    /// The start of the function, and the name or not.
    FunctionOffset,
    /// The line of the innermost function, in the same file.
    InnermostLine,
    /// The line of another function, in the same file.
    OuterLine,
    File,
}

impl Tally {
    /// Compares the answers for one offset. `what` describes it.
    pub fn compare(&mut self, what: &str, ours: &Value, theirs: &Value) {
        self.asked += 1;
        match difference(ours, theirs) {
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

    /// The numbers of offsets, of equal answers, of those that differ in names only, and of the others.
    pub fn row(&self) -> [usize; 4] {
        let names = self.kinds.get(&Kind::NamesOnly).map_or(0, |(count, _)| *count);
        [self.asked, self.equal, names, self.asked - self.equal - names]
    }

    /// The kinds of differences, with their numbers and examples.
    pub fn kinds(&self) -> impl Iterator<Item = (String, &(usize, Vec<String>))> {
        self.kinds.iter().map(|(kind, counted)| (format!("{kind:?}"), counted))
    }
}

/// How two frames differ; `None` if they do not. Members that only samply has, such as `function_size`, do not count.
fn difference(ours: &Value, theirs: &Value) -> Option<Kind> {
    let has = |frame: &Value, member| frame.get(member).is_some();
    match (has(ours, "function"), has(theirs, "function")) {
        (false, false) => return None,
        (true, false) => return Some(Kind::OnlyOurs),
        (false, true) => return Some(Kind::OnlyTheirs),
        (true, true) => {}
    }
    let chains = [ours, theirs].map(chain);
    let [our_chain, their_chain] = &chains;
    let has_lines = chains.each_ref().map(|chain| chain.iter().any(|function| function.file.is_some()));
    match has_lines {
        [true, false] => return Some(Kind::OnlyOursHasLines),
        [false, true] => return Some(Kind::OnlyTheirsHasLines),
        _ => {}
    }
    if our_chain.len() != their_chain.len() {
        return Some(Kind::Inlines);
    }
    if ours["function_offset"] != theirs["function_offset"] {
        return Some(Kind::FunctionOffset);
    }
    for (at, (ours, theirs)) in our_chain.iter().zip(their_chain).enumerate() {
        if ours.file != theirs.file {
            return Some(Kind::File);
        }
        if ours.line != theirs.line {
            return Some(if at == 0 { Kind::InnermostLine } else { Kind::OuterLine });
        }
    }
    let has_other_name = our_chain.iter().zip(their_chain).any(|(ours, theirs)| ours.name != theirs.name);
    has_other_name.then_some(Kind::NamesOnly)
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
