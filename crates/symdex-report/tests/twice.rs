//! Symbolicating a report twice is the same as symbolicating it once.

use crate::common::stacks::{Sample, samples};
use crate::common::{App, crash, rewritten};
use symdex_report::{Options, Report, symbolicate};

/// The rewritten report; `None` if it is refused.
fn once(text: &[u8]) -> Option<Vec<u8>> {
    let report = Report::parse(text).ok()?;
    let mut out = Vec::new();
    symbolicate(&report, &mut App { asked: Vec::new() }, &Options::new()).write(&mut out).expect("memory");
    Some(out)
}

#[test]
fn the_second_time_changes_nothing_in_any_format() {
    for Sample { format, text, .. } in samples() {
        let first = once(&text).expect("a report");
        let second = once(&first).expect("a report");
        assert_eq!(String::from_utf8_lossy(&second), String::from_utf8_lossy(&first), "{format}");
    }
}

/// Offsets from 0x6000 on get a symbol without a line, so that the second time asks for them again.
#[test]
fn a_symbol_without_a_line_is_not_written_twice() {
    let id = crate::common::APP;
    let list = format!("App 0x100006030 0x100000000 {id}\nApp 0x100006041 0x100000000\n");
    let first = rewritten(&list);
    assert!(first.starts_with(&format!("App 0x100006030 0x100000000 {id} symbol + 48\n")), "{first}");
    assert_eq!(rewritten(&first), first);
    for format in [0, 1, 2, 3] {
        let text = match format {
            0 => crash(
                "0   App  0x100006030 0x100000000 + 24624\n1   App  0x100006041 0x100000000 + 24641\n",
                "arm64",
            ),
            1 => format!("#00 pc 6030  /x/App (BuildId: {id})\n#01 pc 6041  /x/App (BuildId: {id})\n"),
            2 => format!("#00 pc 6030 /x/App({id})\n"),
            _ => format!("#0 0x551010  (/x/App:arm64+0x6030) (BuildId: {id})\n"),
        };
        let first = rewritten(&text);
        assert!(first.contains("symbol"), "{first}");
        assert_eq!(rewritten(&first), first);
    }
}
