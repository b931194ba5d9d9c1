//! Every format's sample, pasted in every way that people paste reports: the same answers as without, in place, and
//! every other byte stays.

use std::collections::BTreeMap;

use crate::common::App;
use crate::common::stacks::{Sample, samples};
use symdex_report::{FormatKind, Options, Report, Symbolicated, formats, symbolicate};

/// What a text becomes when it is pasted.
enum Way {
    /// Each line, which has this number, begins and ends so. The start has as many bytes in each line.
    Lines(fn(usize) -> String, &'static str),
    /// Text stands before and after it.
    Around(&'static str, &'static str),
    /// Characters have other names.
    Characters(fn(&str) -> String),
    /// It is a string of JSON, between these texts.
    String(&'static str, &'static str),
}

const WAYS: [(&str, Way); 24] = [
    ("`> ` of a quote", Way::Lines(|_| "> ".to_owned(), "")),
    ("`> > ` of a quote in a quote", Way::Lines(|_| "> > ".to_owned(), "")),
    ("`- ` of a list", Way::Lines(|_| "- ".to_owned(), "")),
    ("a table with bars", Way::Lines(|_| "| ".to_owned(), " |")),
    ("four spaces", Way::Lines(|_| "    ".to_owned(), "")),
    ("a tab", Way::Lines(|_| "\t".to_owned(), "")),
    ("GitHub's times", Way::Lines(|number| format!("2024-03-01T09:41:{:02}.1234567Z ", number % 60), "")),
    (
        "times and levels",
        Way::Lines(|number| format!("[2024-05-23 12:37:{:02},123] ERROR main: ", number % 60), ""),
    ),
    ("syslog", Way::Lines(|number| format!("Mar  1 09:41:{:02} host DemoApp[147]: ", number % 60), "")),
    (
        "NSLog",
        Way::Lines(|number| format!("2018-12-04 13:15:{:02}.003 DemoApp[342:16833830] ", number % 60), ""),
    ),
    ("os_log", Way::Lines(|number| format!("default\t09:41:{:02}.123456+0800\tDemoApp\t", number % 60), "")),
    (
        "logcat",
        Way::Lines(|number| format!("11-27 10:00:{:02}.000  1234  5678 F DEBUG   : ", number % 60), ""),
    ),
    ("docker compose", Way::Lines(|_| "web-1  | ".to_owned(), "")),
    ("`cat -n`", Way::Lines(|number| format!("{:>6}\t", number + 1), "")),
    ("`grep -n`", Way::Lines(|number| format!("{}:", number + 100), "")),
    ("`at `", Way::Lines(|_| "at ".to_owned(), "")),
    ("`[1] `", Way::Lines(|number| format!("[{:>2}] ", number % 100), "")),
    ("colours", Way::Lines(|_| "\u{1b}[31m".to_owned(), "\u{1b}[0m")),
    ("`<br>`", Way::Lines(|_| String::new(), "<br>")),
    ("`&lt;`", Way::Characters(|text| text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;"))),
    ("no-break spaces", Way::Characters(|text| text.replace(' ', "\u{a0}"))),
    ("a sentence before", Way::Around("Hi, it crashed:\n\n", "\n\nThanks!\n")),
    ("a fence", Way::Around("### Crash\n\n```json\n", "\n```\nMore text\n")),
    ("a string in JSON", Way::String("{\"level\":\"error\",\"message\":\"", "\",\"time\":1}")),
];

impl Way {
    fn paste(&self, text: &str) -> String {
        match self {
            Self::Lines(prefix, suffix) => {
                let line = |(number, line): (usize, &str)| {
                    let content = line.trim_end_matches(['\r', '\n']);
                    format!("{}{content}{suffix}{}", prefix(number), &line[content.len()..])
                };
                text.split_inclusive('\n').enumerate().map(line).collect()
            }
            Self::Around(before, after) => format!("{before}{text}{after}"),
            Self::Characters(change) => change(text),
            Self::String(before, after) => {
                let quoted = serde_json::Value::from(text).to_string();
                format!("{before}{}{after}", &quoted[1..quoted.len() - 1])
            }
        }
    }

    /// The text that was pasted. Panics if what is around it has changed.
    fn unpaste(&self, pasted: &str) -> String {
        match self {
            Self::Lines(prefix, suffix) => {
                let line = |line: &str| {
                    let content = line.trim_end_matches(['\r', '\n']);
                    let start = prefix(0).len();
                    let kept = content.get(start..).and_then(|rest| rest.strip_suffix(suffix));
                    format!("{}{}", kept.unwrap_or("(what is around it has changed)"), &line[content.len()..])
                };
                pasted.split_inclusive('\n').map(line).collect()
            }
            Self::Around(before, after) => {
                let inner = pasted.strip_prefix(before).and_then(|rest| rest.strip_suffix(after));
                inner.expect("the text around stays").to_owned()
            }
            Self::Characters(_) => {
                let text = pasted.replace('\u{a0}', " ").replace("&lt;", "<").replace("&gt;", ">");
                text.replace("&amp;", "&")
            }
            Self::String(before, after) => {
                let inner = pasted.strip_prefix(before).and_then(|rest| rest.strip_suffix(after));
                let inner = inner.expect("the text around stays");
                serde_json::from_str(&format!("\"{inner}\"")).expect("a string")
            }
        }
    }
}

/// The answers of all frames, and the written report.
fn answered(text: &str) -> Result<(Vec<String>, String), symdex_report::Error> {
    let report = Report::parse(text.as_bytes())?;
    let symbolicated = symbolicate(&report, &mut App { asked: Vec::new() }, &Options::new());
    let mut out = Vec::new();
    symbolicated.write(&mut out).expect("memory");
    Ok((answers(&symbolicated), String::from_utf8(out).expect("text")))
}

fn answers(symbolicated: &Symbolicated<'_, '_>) -> Vec<String> {
    let answer = |(thread, frame): (usize, usize)| {
        let resolution = symbolicated.resolution(thread, frame)?;
        let functions =
            resolution.frames.iter().map(|function| format!("{:?}:{:?}", function.readable(), function.line));
        Some(format!("{:#x} {}", resolution.offset, functions.collect::<Vec<_>>().join(" ")))
    };
    symbolicated.frames().filter_map(answer).collect()
}

#[test]
fn pasted_reports_have_the_same_answers_and_keep_every_other_byte() {
    let mut wrong = Vec::new();
    let mut rows: BTreeMap<&str, Vec<bool>> = BTreeMap::new();
    for Sample { format, text, .. } in samples() {
        let kind = formats().iter().find(|known| known.name() == format).expect("a format").kind();
        let (Ok(text), true) = (String::from_utf8(text), kind != FormatKind::Binary) else { continue };
        let (plain, written) = answered(&text).unwrap_or_else(|error| panic!("{format}: {error}"));
        assert!(!plain.is_empty(), "{format}");
        let row = rows.entry(format).or_insert_with(|| vec![true; WAYS.len()]);
        for ((name, way), holds) in WAYS.iter().zip(row) {
            let pasted = way.paste(&text);
            assert_eq!(way.unpaste(&pasted), text, "{name}");
            let failure = match answered(&pasted) {
                Err(error) => Some(error.to_string()),
                Ok((answers, _)) if answers != plain => {
                    Some(format!("{} of {} answers", answers.len(), plain.len()))
                }
                Ok((_, out)) if way.unpaste(&out) != written => {
                    let out = way.unpaste(&out);
                    let line = out.lines().zip(written.lines()).find(|(out, written)| out != written);
                    Some(format!("{line:?}"))
                }
                Ok(_) => None,
            };
            *holds &= failure.is_none();
            wrong.extend(failure.map(|failure| format!("{format}, {name}: {failure}")));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), rows.len() * WAYS.len(), wrong.join("\n"));
    let table = table(&rows);
    let document = include_str!("../../../docs/REPORTS.md");
    assert!(document.contains(&table), "docs/REPORTS.md needs this table:\n{table}");
}

/// The table of the document: a row for each format, a column for each way of pasting.
fn table(rows: &BTreeMap<&str, Vec<bool>>) -> String {
    let cells = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let names = WAYS.iter().enumerate().map(|(number, (name, _))| format!("{} {name}", number + 1));
    let head: Vec<_> = (1..=WAYS.len()).map(|number| number.to_string()).collect();
    let row = |(format, holds): (&&str, &Vec<bool>)| {
        let holds = holds.iter().map(|holds| if *holds { "+" } else { "-" }.to_owned());
        cells([(*format).to_owned()].into_iter().chain(holds).collect())
    };
    let ways: Vec<_> = names.collect();
    let rows: String = rows.iter().map(row).collect();
    let line = cells(vec!["---".to_owned(); WAYS.len() + 1]);
    format!("{}.\n\n{}{line}{rows}", ways.join(", "), cells([vec!["format".to_owned()], head].concat()))
}
