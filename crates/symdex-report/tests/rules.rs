//! What holds for the reports of all formats: signed addresses, ids in place of names, placeholders, and frames of
//! images of which the report does not say where they were loaded.

use crate::common::stacks::{LOAD, OFFSETS, Sample, samples};
use crate::common::{APP, App, crash, rewritten};
use symdex_report::{
    AddressKind, Base, ImageOutcome, Options, Report, SymbolDetail, Symbolicated, Totals, Unresolved,
    symbolicate,
};

fn symbolicated<'r, 't>(report: &'r Report<'t>) -> Symbolicated<'r, 't> {
    symbolicate(report, &mut App { asked: Vec::new() }, &Options::new())
}

fn totals(text: &[u8]) -> Totals {
    let report = Report::parse(text).unwrap_or_else(|error| panic!("{error}"));
    symbolicated(&report).totals()
}

/// The sample with a pointer authentication code in each return address.
fn signed(text: &[u8]) -> Vec<u8> {
    let mut text = text.to_vec();
    for address in OFFSETS.iter().skip(1).map(|offset| LOAD + offset) {
        let signed = address | 0x552d_8100_0000_0000;
        for (old, new) in [
            (format!("0x{address:016x}"), format!("{signed:#x}")),
            (format!("{address:016x}"), format!("{signed:x}")),
            (format!("{address:#x}"), format!("{signed:#x}")),
            (address.to_string(), signed.to_string()),
        ] {
            while let Some(at) = memchr::memmem::find(&text, old.as_bytes()) {
                text.splice(at..at + old.len(), new.bytes());
            }
        }
    }
    text
}

#[test]
fn signed_addresses_are_answered_in_every_format() {
    let mut answered = 0;
    for Sample { format, text, .. } in samples() {
        let signed = signed(&text);
        assert_eq!(totals(&signed), totals(&text), "{format}: {}", String::from_utf8_lossy(&signed));
        answered += usize::from(signed != text && totals(&signed).symbolicated == OFFSETS.len() as u64);
    }
    assert!(answered > 12, "{answered}");
}

/// KSCrash and Bugsnag state where the function of a frame starts.
#[test]
fn the_start_of_a_function_has_no_code() {
    for format in ["kscrash", "bugsnag"] {
        let sample = samples().into_iter().find(|sample| sample.format == format).expect("a sample");
        let after = rewritten(&String::from_utf8(signed(&sample.text)).expect("text"));
        // The third frame is in the function at this address.
        let start = LOAD + 0x400;
        let member = [format!("\"symbol_addr\": {start},"), format!("\"symbolAddress\": \"{start:#x}\",")];
        assert!(member.iter().any(|member| after.contains(member)), "{after}");
    }
}

#[test]
fn a_uuid_in_place_of_a_name_is_the_id() {
    let uuid = "6DCD4E9D-D3B1-3A0E-8DFF-6A5A4BE1B1B0";
    let symbols = format!(
        "0   App   0x0000000100001011 App + 4113\n1   App   0x0000000100001021 {uuid} + 4129\n\
         2   App   0x552d810100001031 {uuid} + 4145\n3   Kit   0x0000000110001031 Kit + 4145\n"
    );
    let report = Report::parse(symbols.as_bytes()).expect("a report");
    // The first frame has the name and the load address of the image that the others identify.
    assert_eq!(report.images().len(), 2);
    let answered = symbolicated(&report);
    assert_eq!((answered.totals().symbolicated, answered.totals().unresolved_app), (3, 1));
    let tree = format!("  6  ??? (<{uuid}> + 4112) [0x100001010]\n");
    assert_eq!(totals(tree.as_bytes()).symbolicated, 1);
    // Apps may be called so.
    let report = format!("0   App   0x0000000100001011 {}\n", "6dcd4e9d-d3b1");
    assert_eq!(totals(report.as_bytes()).kept, 1);
}

#[test]
fn crashlytics_states_ids_in_any_language() {
    for placeholder in [
        format!("(Missing UUID {APP})"),
        format!("(シンボルが不足しています UUID {APP})"),
        format!("（缺少 UUID：{APP}）"),
        format!("(UUID de l'image {APP} manquant)"),
    ] {
        let text = format!("0  App   0x1011 {placeholder}\n");
        assert_eq!(totals(text.as_bytes()).symbolicated, 1, "{text}");
    }
}

/// A frame of each format that has names in a member of its own, or at the end of a line.
const NAMED: [&str; 7] = [
    "0   App   0x0000000100001010 NAME\n",
    "  frame #1: 0x0000000100001010 App`NAME + 8\n",
    "  9 NAME  (in App) + 8  [0x100001010]\n",
    r#"{"usedImages":[],"threads":[{"frames":[{"imageOffset":1,"symbol":"NAME"}]}]}"#,
    r#"{"debug_meta":{},"threads":[{"stacktrace":{"frames":[{"instruction_addr":"0x1","function":"NAME"}]}}]}"#,
    r#"{"binary_images":[],"crash":{"threads":[{"backtrace":{"contents":[{"instruction_addr":1,"symbol_name":"NAME"}]}}]}}"#,
    r#"{"exceptions":[{"stacktrace":[{"frameAddress":"0x1","machoLoadAddress":"0x1","method":"NAME"}]}]}"#,
];

#[test]
fn placeholders_are_no_names() {
    let uuid = "6DCD4E9D-D3B1-3A0E-8DFF-6A5A4BE1B1B0";
    let missing = format!("(Missing UUID {APP})");
    let names = [
        "(Missing)",
        "<unavailable>",
        "<redacted>",
        "???",
        "<unknown>",
        "___lldb_unnamed_symbol3",
        uuid,
        &missing,
    ];
    for text in NAMED {
        let symbol = |name: &str| {
            let text = text.replace("NAME", name);
            let report = Report::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{error}: {text}"));
            (report.threads()[0].frames[0].detail, report.existing_symbols()[0][0].function.clone())
        };
        assert_eq!(symbol("Missing"), (SymbolDetail::Function, Some("Missing".to_owned())), "{text}");
        for name in names {
            assert_eq!(symbol(name), (SymbolDetail::AddressOnly, None), "{name}: {text}");
        }
    }
    // The name of the image alone is none either.
    assert_eq!(totals(b"0   App   0x100001010 App\n1   App   0x100001010 main\n").kept, 1);
}

const APPLES: &str =
    "the `Binary Images:` of a report of the same launch, or use `symdex atos -o X.dSYM -l LOAD_ADDRESS`";

/// The format, a frame that names its image, and what to add.
const WITHOUT_IMAGES: [(&str, &str, &str); 8] = [
    ("apple-crash", "0  Kit   0x1049902f0 (Missing)\n", APPLES),
    ("apple-call-tree", "  9 ???  (in Kit)  [0x1049902f0]\n", APPLES),
    ("lldb", "  frame #1: 0x1049902f0 Kit`___lldb_unnamed_symbol3 + 8\n", "the answer of `image list`"),
    ("gdb", "#1  0x1049902f0 in ?? () from /opt/Kit\n", "the answer of `info proc mappings`"),
    ("swift-backtrace", "1 [ra] 0x1049902f0 in Kit\n", "the `Images` of the report"),
    (
        "kscrash",
        r#"{"binary_images":[],"crash":{"threads":[{"backtrace":{"contents":[{"instruction_addr":4372103920,
           "object_name":"Kit"}]}}]}}"#,
        "the report's list of images",
    ),
    (
        "sentry-event",
        r#"{"debug_meta":{"images":[]},"threads":{"values":[{"stacktrace":{"frames":[
           {"instruction_addr":"0x1049902f0","package":"/var/App.app/Kit"}]}}]}}"#,
        "the report's list of images",
    ),
    (
        "apple-ips",
        r#"{"threads":[],"usedImages":[],"asiBacktraces":["0   Kit  0x1049902f0 ???\n"]}"#,
        "the report's list of images",
    ),
];

#[test]
fn frames_of_an_image_without_a_place_count_as_frames_of_a_missing_image() {
    for (format, text, add) in WITHOUT_IMAGES {
        let report = Report::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{format}: {error}"));
        let [image] = report.images() else { panic!("{format}: {:?}", report.images()) };
        assert_eq!((report.format_name(), image.name.as_str(), image.base), (format, "Kit", Base::Unknown));
        let answered = symbolicated(&report);
        assert_eq!(answered.images(), [ImageOutcome::NotLoaded(add)], "{format}");
        let why = answered.unresolved(0, 0).expect("unresolved");
        assert_eq!((why, why.status(answered.images().first())), (&Unresolved::NoImage, "unknown_image"));
        assert!(why.reason(answered.images().first()).ends_with(&format!("loaded; add {add}")), "{format}");
        assert_eq!((answered.totals().unresolved_app, answered.totals().kept), (1, 0), "{format}");
        let mut out = Vec::new();
        answered.write(&mut out).expect("memory");
        assert_eq!(out, text.as_bytes(), "{format}");
        let mut readable = Vec::new();
        answered.write_text(&mut readable).expect("memory");
        let readable = String::from_utf8(readable).expect("text");
        assert!(readable.contains("Kit") && !readable.contains("0x1049902f0 + "), "{readable}");
        // An image of the shared cache belongs to the system.
        let system = text.replace("0x1049902f0", "0x18ec897a4").replace("4372103920", "6692567972");
        let (Totals { unresolved_app, unresolved_system, .. }, is_path) =
            (totals(system.as_bytes()), text.contains("/Kit"));
        assert_eq!((unresolved_app, unresolved_system), if is_path { (1, 0) } else { (0, 1) }, "{format}");
    }
}

/// Linux loads executables above the addresses of Apple's shared cache.
#[test]
fn an_executable_of_linux_without_a_place_is_of_the_app() {
    let of_app = |address: &str| {
        let text = format!("  frame #1: {address} a.out`___lldb_unnamed_symbol3 + 8\n");
        totals(text.as_bytes()).unresolved_app
    };
    assert_eq!(["0x555555555149", "0x7ffff7d8a740", "0x18ec897a4"].map(of_app), [1, 0, 0]);
}

/// A frame that has a name keeps it.
#[test]
fn only_frames_without_a_name_and_without_an_image_make_one() {
    let text =
        crash("0   Kit   0x200000010 f + 4\n1   Kit   0x100000010 ???\n2   Kit   0x200000020 ???\n", "arm64");
    let report = Report::parse(text.as_bytes()).expect("a report");
    let names: Vec<_> = report.images().iter().map(|image| image.name.as_str()).collect();
    assert_eq!(names, ["App", "libsystem_c.dylib", "Kit"]);
    let images: Vec<_> = report.threads()[0].frames.iter().map(|frame| frame.image()).collect();
    assert_eq!(images, [None, None, Some(2)]);
    // A limit of memory holds for them, too.
    let many: String = (0..100_000).map(|number| format!("0 K{number} 0x104990000 ???\n")).collect();
    let report = Report::parse(many.as_bytes()).expect("a report");
    assert!(report.memory() <= symdex_report::most_memory(many.len()));
    let frames = report.threads().iter().flat_map(|thread| &thread.frames);
    let without = frames.filter(|frame| frame.image().is_none()).count();
    assert!(without != 0 && report.unread_frames() >= without as u64);
}

#[test]
fn stacks_of_crashlytics_have_titles() {
    let text = "Crashed: com.apple.main-thread\n0  App   0x1011 main + 4\n1  App   0x1021 start + 4\n\n\
                com.apple.uikit.eventfetch-thread\n0  App   0x1031 f + 4\n";
    let stacks = |text: &str| {
        let report = Report::parse(text.as_bytes()).expect("a report");
        let stacks =
            report.threads().iter().map(|thread| (thread.name.clone(), thread.crashed, thread.label.clone()));
        (stacks.collect::<Vec<_>>(), report.threads()[0].frames[0].kind, report.info().clone())
    };
    let (titles, kind, _) = stacks(text);
    let label = Some("com.apple.main-thread".to_owned());
    let other = "com.apple.uikit.eventfetch-thread".to_owned();
    assert_eq!(titles, [("Crashed: com.apple.main-thread".to_owned(), true, label), (other, false, None)]);
    assert_eq!(kind, AddressKind::ProgramCounter);
    let (titles, kind, info) =
        stacks(&text.replace("Crashed: com.apple.main-thread", "Fatal Exception: NSRangeException"));
    assert_eq!(titles[0], ("Fatal Exception: NSRangeException".to_owned(), true, None));
    assert_eq!(kind, AddressKind::ReturnAddress);
    assert_eq!(info.exception.and_then(|exception| exception.kind).as_deref(), Some("NSRangeException"));
}
