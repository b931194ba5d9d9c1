//! Cut and damaged reports yield an error or a partial result. They cause no panic and no endless loop.

use crate::common::samples::{KSCRASH, METRICKIT, SAMPLE, SPINDUMP};
use crate::common::stacks::samples;
use crate::common::{App, crash, ips};
use symdex::{ImageOffset, Table};
use symdex_report::{
    Answer, Answers, FormatKind, Function, Options, Question, Report, Unanswered, symbolicate,
};

/// Every byte would take minutes. Reports repeat their lines and members, so each is cut and changed in many places.
const STEP: usize = 7;

/// The rewritten report; `None` if it is refused.
fn rewritten(text: &[u8]) -> Option<Vec<u8>> {
    let report = Report::parse(text).ok()?;
    let symbolicated = symbolicate(&report, &mut App { asked: Vec::new() }, &Options::new());
    let mut out = Vec::new();
    symbolicated.write(&mut out).expect("memory");
    symbolicated.write_text(&mut Vec::new()).expect("memory");
    serde_json::to_string(&symbolicated.view(&[])).expect("JSON");
    assert_eq!(report.existing_symbols().len(), report.threads().len());
    Some(out)
}

#[test]
fn every_truncation_is_an_error_or_a_partial_result() {
    for sample in samples() {
        let lens = (0..sample.text.len()).step_by(STEP);
        let partial = lens.filter(|len| rewritten(&sample.text[..*len]).is_some());
        let of_json = |len: &usize| Report::parse(&sample.text[..*len]).is_ok_and(|report| !report.is_cut());
        let report = Report::parse(&sample.text).expect("a report");
        let is_json = report.format().kind() == FormatKind::Json;
        let partial = partial.filter(|len| !is_json || of_json(len)).count();
        let is_right = match report.format().kind() {
            // Text is read up to the cut.
            FormatKind::Text => partial > 50 / STEP,
            // Only the last line feed may be missing if the report does not say that it is cut.
            FormatKind::Json => partial <= 1,
            // A message may be cut between two fields, and in few other places.
            FormatKind::Binary => partial < 20,
        };
        assert!(is_right, "{}: {partial} of {} bytes", sample.format, sample.text.len());
    }
}

#[test]
fn changed_bytes_cause_no_panic() {
    for mut text in samples().into_iter().map(|sample| sample.text) {
        for at in (0..text.len()).step_by(STEP) {
            let byte = text[at];
            let changes = [byte ^ 1, byte ^ 0x20, byte ^ 0x80, 0, b'"', b'9', b'}', b'\n', 0xff];
            text[at] = changes[at % changes.len()];
            rewritten(&text);
            text[at] = byte;
        }
    }
}

/// Positions in the text have 32 bits and addresses have 64. Neither may wrap.
#[test]
fn numbers_at_the_edge_do_not_wrap() {
    let largest = u64::MAX.to_string();
    let edges = [
        crash(
            "0   App  0xffffffffffffffff 0xffffffffffffffff + 18446744073709551615\n1   App  0x0 App + 1\n",
            "arm64",
        ),
        crash("0   App  0x0 0x0 + 0\n1   App  0x0 0x0 + 0\n", "armv7"),
        crash("", "arm64").replace("0x10000ffff", "0xffffffffffffffff").replace("0x100000000 ", "0x0 "),
        ips("{\"imageOffset\":N,\"imageIndex\":0},{\"imageOffset\":N,\"imageIndex\":N}")
            .replace('N', &largest),
        ips("{\"imageOffset\":4112,\"imageIndex\":0}")
            .replace("4294967296", &largest)
            .replace("65536", &largest),
        "#18446744073709551615 pc ffffffffffffffff  a (f+18446744073709551615) (BuildId: ID)\n#0 pc 0  a"
            .replace("ID", crate::common::APP),
        "#0 0xffffffffffffffff (a+0xffffffffffffffff) (BuildId: ID)".replace("ID", crate::common::APP),
        "ID 0xffffffffffffffff 0x0\nID 0x0 0x0\nID 0x0 0xffffffffffffffff".replace("ID", crate::common::APP),
        ips("1,\"x\",[],{},null,{\"imageOffset\":-1,\"imageIndex\":\"0\",\"symbol\":7,\"inline\":1}"),
        KSCRASH.replace("4294971408", &largest).replace("4294967296", &largest),
        METRICKIT.replace("4294971408", &largest).replace("4294971425", "0").replace("4294967296", &largest),
        SAMPLE.replace("0x100000000", "0xffffffffffffffff").replace("0x100001021", "0x0"),
        SPINDUMP
            .replace("0x100001021", "0x0")
            .replace("4112", &largest)
            .replace("0x100001010", "0xffffffffffffffff"),
    ];
    for text in edges {
        assert!(rewritten(text.as_bytes()).is_some(), "{text}");
    }
}

/// The work is linear in the length of the text. If it were quadratic, these reports would take hours.
#[test]
fn long_reports_are_read_in_linear_time() {
    let frames: String = (0..10_000)
        .map(|n| format!("{n}   App  {:#x} 0x100000000 + 4112\n", 0x1_0000_1010_u64 + n % 999))
        .collect();
    let images: String = (0..10_000)
        .map(|n| format!("{:#x} - {:#x} L{n} arm64  <{n:032x}> /l\n", n << 16, n << 16 | 0xfff))
        .collect();
    let objects = vec!["{\"imageOffset\":4112,\"imageIndex\":0}"; 10_000].join(",");
    let long = [
        crash(&frames, "arm64") + &images,
        ips(&objects),
        format!("Binary Images:\n{}", "<".repeat(100_000)),
        format!("0 {} 0x1", "a ".repeat(50_000)),
        format!("Binary Images:\n0x1 - 0x2 {}", "<".repeat(100_000)),
        format!("Last Exception Backtrace:\n({}\nBinary Images:\n", "0x100001010 ".repeat(10_000)),
        format!("{{\"bug_type\":\"309\"}}\n{}", "[{\"a\":".repeat(30_000)),
        format!("{{\"usedImages\":{}", "{".repeat(100_000)),
        // A tree in which every line is deeper, with inlined functions at every depth.
        format!(
            "Call graph:\n{}",
            (0..1500)
                .map(|n| format!(
                    "{:n$}9 ???  (in App)  load address 0x100000000 + 0x1021  [0x100001021]\n",
                    ""
                ))
                .collect::<String>()
        ) + "Binary Images:\n0x100000000 - 0x10000ffff App (0) <"
            + crate::common::APP
            + "> /A\n",
        "Heaviest stack f\n".to_owned() + &"1 ??? (a + 1) [0x100001021]\n".repeat(30_000),
        (0..30_000).map(|n| format!("1 ??? (a + {n}) [0x100001021]\n")).collect::<String>(),
        format!("1 {} [0x1]", " (in (1 + 1 in ".repeat(20_000)),
        format!("1 {} [0x1]", "(1".repeat(150_000)),
        "Thread 0x\n".repeat(30_000) + "1 a (b + 1) [0x1]\n",
        format!(
            "{{\"callStackRootFrames\":[],\"callStacks\":[{{\"callStackRootFrames\":[{}]}}]}}",
            vec!["{\"address\":1}"; 30_000].join(",")
        ),
        format!(
            "{{\"callStacks\":[{{\"callStackRootFrames\":[{}1{}]}}]}}",
            "{\"address\":1,\"subFrames\":[".repeat(30_000),
            "]}".repeat(30_000)
        ),
        format!(
            "{{\"recrash_report\":{}1{}}}",
            "{\"crash\":{},\"recrash_report\":".repeat(50_000),
            "}".repeat(50_000)
        ),
        "#0 pc 1010  /x/App (f+1) (BuildId: 0a0b0c0d)\n".repeat(10_000),
        (0..10_000).map(|n| format!("#{n} pc {n:x}  /x/{n} (BuildId: {n:032x})\n")).collect(),
        format!("#0 pc 0 {}", "(".repeat(100_000)),
        format!("#0 pc 0 a{}", " (deleted)".repeat(10_000)),
        format!("#0 pc 0 a{}{}", "(".repeat(50_000), ")".repeat(50_000)),
        "#0 0x1 ".repeat(20_000),
        "#0 pc ".repeat(20_000),
        format!("#0 0x1 in {}", "(a+0x1) (BuildId: ".repeat(20_000)),
        format!("#0 0x1 {}+0x1{}", "(".repeat(50_000), ")".repeat(50_000)),
        format!("{}#0 pc 1010 /x/App({})\n", " ".repeat(100_000), crate::common::APP).repeat(3),
        (0..10_000).map(|n| format!("App{n} 0x{n:x} 0x1 {}\n", crate::common::APP)).collect(),
        format!("App 0x1000 0x1000 {}", "a ".repeat(50_000)),
    ];
    for text in long {
        rewritten(text.as_bytes());
    }
}

#[test]
fn threads_of_a_firefox_profile_have_their_strings_in_common() {
    // A list of its own for each thread would take gigabytes.
    let strings = vec!["0"; 10_000].join(",");
    let threads =
        vec![r#"{"frameTable":{"address":[1]},"funcTable":{},"resourceTable":{"lib":[]}}"#; 10_000].join(",");
    let text = format!(r#"{{"libs":[],"shared":{{"stringArray":[{strings}]}},"threads":[{threads}]}}"#);
    let report = Report::parse(text.as_bytes()).expect("a report");
    assert_eq!(report.threads().len(), 10_000);
}

#[test]
fn rows_are_not_added_to_any_number_of_columns_of_a_firefox_profile() {
    let numbers = (0..2000).map(|number| number.to_string()).collect::<Vec<_>>().join(",");
    let zeros = vec!["0"; 2000].join(",");
    let columns: String = (0..5000).map(|number| format!(r#","column{number}":[]"#)).collect();
    let text = format!(
        r#"{{"libs":[{{"name":"App","breakpadId":"6DCD4E9DD3B13A0E8DFF6A5A4BE1B1B00"}}],"threads":[
        {{"frameTable":{{"address":[{numbers}],"func":[{zeros}],"line":[{zeros}]}},
        "funcTable":{{"name":[0],"fileName":[0],"resource":[0]{columns}}},
        "resourceTable":{{"lib":[0]}},"stringArray":["0x3d0"]}}]}}"#
    );
    // Each frame has a function of its own.
    let mut source = |question: &Question<'_>| -> Result<Answers, Unanswered> {
        let answer = |offset: &ImageOffset| {
            let name = format!("f{}", offset.0);
            Answer::functions(vec![Function::new(Table::SymbolTable, Some(name.as_bytes()), None)])
        };
        Ok(question.offsets.iter().map(answer).collect::<Vec<_>>().into())
    };
    let report = Report::parse(text.as_bytes()).expect("a report");
    let mut after = Vec::new();
    symbolicate(&report, &mut source, &Options::new()).write(&mut after).expect("memory");
    assert!(String::from_utf8_lossy(&after).contains("\"f1999\""), "the frames have answers");
    assert!(after.len() < 8 * text.len(), "{} bytes of {}", after.len(), text.len());
}
