//! Reports and a source for the tests.
#![allow(dead_code, reason = "each test file uses some of it")]

mod binary_stacks;
mod json_stacks;
mod older_stacks;
pub(crate) mod samples;
pub(crate) mod shapes;
pub(crate) mod stacks;

use symdex::{Cause, ImageOffset, Table};
use symdex_report::{Answer, Answers, Function, Options, Question, Report, Source, Unanswered, symbolicate};

/// The id of the app's image in all reports of the tests.
pub(crate) const APP: &str = "6dcd4e9dd3b13a0e8dff6a5a4be1b1b0";

/// A source that answers for the app, and for the image of [`stacks`], also by its name. Offsets of the latter can be
/// addresses of the file. The function at each offset is `outer`, on line `offset / 16`. If that line is even, `inner`
/// is inlined into `outer`. Functions start at multiples of 256.
pub(crate) struct App {
    /// The images and offsets that were asked for, in order.
    pub(crate) asked: Vec<(String, Vec<u64>)>,
}

impl App {
    fn answer_one(&mut self, question: &Question<'_>) -> Result<Answers, Unanswered> {
        let Question { image, offsets, .. } = *question;
        let id = match &image.id {
            Some(id) => id.to_string(),
            None if image.file_name() == "inline-dwarf4" => stacks::ID.to_owned(),
            None => return Err(Unanswered::Missing),
        };
        self.asked.push((image.name.clone(), offsets.iter().map(|offset| offset.0).collect()));
        if [APP, stacks::ID].contains(&id.as_str()) {
            let answers: Vec<_> = offsets.iter().map(|offset| answer(offset.0 % stacks::BASE)).collect();
            Ok(answers.into())
        } else {
            Err(Unanswered::Missing)
        }
    }
}

impl Source for App {
    fn answer(&mut self, questions: &[Question<'_>]) -> Vec<Result<Answers, Unanswered>> {
        questions.iter().map(|question| self.answer_one(question)).collect()
    }
}

fn answer(offset: u64) -> Answer {
    let line = u32::try_from(offset / 16).unwrap_or(u32::MAX);
    let function = |name: &str, line| {
        let mut function = Function::new(Table::Dwarf, Some(name.as_bytes()), Some(b"/src/app/main.c"));
        (function.line, function.start) = (Some(line), Some(ImageOffset(offset & !0xff)));
        function
    };
    match offset {
        0x8000.. => Answer::NoFunction,
        0x7000.. => Answer::Unreadable(Cause::Damaged, "damaged here".to_owned()),
        0x6000.. => {
            let mut symbol = Function::new(Table::SymbolTable, Some(b"symbol"), None);
            symbol.start = Some(ImageOffset(offset & !0xff));
            Answer::functions(vec![symbol])
        }
        _ if line % 2 == 0 => {
            Answer::functions(vec![function("_ZN3app5innerEv", line), function("outer", 7)])
        }
        _ => Answer::functions(vec![function("outer", line)]),
    }
}

/// The rewritten report.
pub(crate) fn rewritten_with(text: &str, options: &Options) -> String {
    let report = Report::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
    let mut out = Vec::new();
    symbolicate(&report, &mut App { asked: Vec::new() }, options).write(&mut out).expect("memory");
    String::from_utf8(out).expect("text")
}

/// The report as text that people read.
pub(crate) fn readable(text: &str) -> String {
    let report = Report::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
    let mut out = Vec::new();
    let symbolicated = symbolicate(&report, &mut App { asked: Vec::new() }, &Options::new());
    symbolicated.write_text(&mut out).expect("memory");
    String::from_utf8(out).expect("text")
}

pub(crate) fn rewritten(text: &str) -> String {
    rewritten_with(text, &Options::new())
}

/// The lines of `after` that are not in `before`, in order.
pub(crate) fn new_lines<'a>(before: &str, after: &'a str) -> Vec<&'a str> {
    let known: Vec<&str> = before.lines().collect();
    after.lines().filter(|line| !known.contains(line)).collect()
}

/// The offsets that the source is asked for in the app's image.
pub(crate) fn asked(text: &str, options: &Options) -> Vec<u64> {
    let report = Report::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
    let mut source = App { asked: Vec::new() };
    symbolicate(&report, &mut source, options);
    source.asked.into_iter().filter(|(name, _)| name == "App").flat_map(|(_, offsets)| offsets).collect()
}

/// A `.crash` report with these lines as its frames.
pub(crate) fn crash(frames: &str, arch: &str) -> String {
    format!(
        "Incident Identifier: 0D7B1E5C\nReport Version:      104\n\nThread 0 name:  Dispatch queue\n\
         Thread 0 Crashed:\n{frames}\n\
         Thread 0 crashed with ARM Thread State (64-bit):\n    x0: 0x0000000000000000   x1: 0x0000000100001010\n\n\
         Binary Images:\n\
         0x100000000 - 0x10000ffff App {arch}  <{APP}> /var/App.app/App\n\
         0x180000000 - 0x18000ffff libsystem_c.dylib {arch}  <c4beb94cb8313889a4034b7a4aa4dcdf> \
         /usr/lib/system/libsystem_c.dylib\n\nEOF\n"
    )
}

/// An `.ips` report with these frames in its thread: JSON objects, separated by commas.
pub(crate) fn ips(frames: &str) -> String {
    format!(
        "{{\"app_name\":\"App\",\"bug_type\":\"309\"}}\n{{\n  \"version\" : 2,\n  \"x\" : 1.50,\n  \
         \"faultingThread\" : 0,\n  \
         \"threads\" : [{{\"triggered\":true,\"id\":7,\"frames\":[{frames}]}}],\n  \"usedImages\" : [\n  \
         {{\n    \"source\" : \"P\",\n    \"arch\" : \"arm64\",\n    \"base\" : 4294967296,\n    \
         \"size\" : 65536,\n    \
         \"uuid\" : \"6dcd4e9d-d3b1-3a0e-8dff-6a5a4be1b1b0\",\n    \"path\" : \"\\/var\\/App.app\\/App\",\n    \
         \"name\" : \"App\"\n  }},\n  \
         {{\n    \"size\" : 0,\n    \"source\" : \"A\",\n    \"base\" : 0,\n    \
         \"uuid\" : \"00000000-0000-0000-0000-000000000000\"\n  }}\n]\n}}\n"
    )
}
