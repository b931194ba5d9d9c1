//! Reports of each format that cost most for their size: many short frames, stacks and images.

use super::binary_stacks::{self, Part};

/// Reports of one format that repeat a part.
pub(crate) struct Shape {
    pub(crate) format: &'static str,
    before: Vec<u8>,
    /// The part with this number.
    part: Part,
    after: Vec<u8>,
}

impl Shape {
    /// The report of about `size` bytes.
    pub(crate) fn text(&self, size: usize) -> Vec<u8> {
        let mut text = self.before.clone();
        let mut number = 1;
        while text.len() < size {
            text.extend((self.part)(number));
            number += 1;
        }
        text.extend_from_slice(&self.after);
        // All tables of such a profile are in one message.
        if self.format == "otlp-profile" { binary_stacks::in_tables(&text) } else { text }
    }

    /// The part that is repeated, for messages.
    pub(crate) fn name(&self) -> String {
        format!("{}: {}", self.format, String::from_utf8_lossy(&(self.part)(1)).escape_debug())
    }
}

/// The shapes of all formats: each format has at least one. A text has its part repeated, with its number in place of
/// each `%`.
pub(crate) fn shapes() -> Vec<Shape> {
    let text = |(format, [before, part, after]): (&'static str, [&'static str; 3])| Shape {
        format,
        before: before.into(),
        part: Box::new(|number| part.replace('%', &number.to_string()).into_bytes()),
        after: after.into(),
    };
    let binary = |(format, before, part): (&'static str, &[u8], Part)| Shape {
        format,
        before: before.into(),
        part,
        after: Vec::new(),
    };
    // Values that no format knows, in each format in JSON.
    let unknown = JSON.into_iter().flat_map(|(format, after)| {
        ["1,", "[],", "\"\",", "{\"\":1},"].map(|part| (format, ["{\"x\":[", part, after]))
    });
    let texts = TEXTS.into_iter().chain(unknown).map(text);
    texts.chain(binary_stacks::parts().map(binary)).collect()
}

/// A format, and what is before the repeated part, the part, and what is after it.
const TEXTS: [(&str, [&str; 3]); 89] = [
    ("apple-crash", ["", "0 A 0x1 0x1 + 1\n", ""]),
    ("apple-crash", ["", "0 A 0x1 0x1 + 1\n\n", ""]),
    ("apple-crash", ["", "0 A 0x% 0x% + 1\n", ""]),
    ("apple-crash", ["", "0 A 0x% 0x% + 1\n\n", ""]),
    ("apple-crash", ["", "0 A% 0x1 f + 1\n", ""]),
    ("apple-crash", ["", "0 A 0x1000000000000000\n", ""]),
    ("apple-crash", ["", "1 A 0x1 + 1 [0x1]\n", ""]),
    ("apple-crash", ["dSYM UUID: 1\n", "A  0x1 f + 1\n", ""]),
    ("apple-crash", ["Last Exception Backtrace:\n(", "0x1 ", "0x1)\nBinary Images:\n"]),
    ("apple-crash", ["Binary Images:\n", "0x% - 0x%0 A\n", ""]),
    ("apple-crash", ["Binary Images:\n", "0x% - 0x%0 A  <6dcd4e9dd3b13a0e8dff6a5a4be1b1b0> /a\n", ""]),
    ("apple-ips", ["{\"usedImages\":[{}],\"threads\":[{\"frames\":[", "{\"imageOffset\":1},", "1]}]}"]),
    (
        "apple-ips",
        ["{\"usedImages\":[{}],\"threads\":[{\"frames\":[", "{\"imageOffset\":%,\"imageIndex\":0},", "1]}]}"],
    ),
    ("apple-ips", ["{\"usedImages\":[],\"threads\":[", "{\"frames\":[]},", "1]}"]),
    ("apple-ips", ["{\"threads\":[],\"usedImages\":[", "{},", "{}]}"]),
    ("apple-ips", ["{\"threads\":[],\"usedImages\":[", "{\"name\":\"a\",\"path\":\"b\"},", "{}]}"]),
    ("apple-ips", ["{\"usedImages\":[],\"threads\":[],\"asiBacktraces\":[", "\"\",", "\"\"]}"]),
    ("apple-ips", ["{\"usedImages\":[],\"threads\":[],\"asiBacktraces\":[\"", "0 A 0x1 0x1 + 1\\n", "\"]}"]),
    (
        "apple-stackshot",
        ["{\"processByPid\":{\"1\":{\"threadById\":{\"1\":{\"userFrames\":[", "[0,%],", "1]}}}}}"],
    ),
    (
        "apple-stackshot",
        ["{\"processByPid\":{\"1\":{\"threadById\":{", "\"\":{\"userFrames\":[]},", "\"\":1}}}}"],
    ),
    ("apple-stackshot", ["{\"processByPid\":{},\"binaryImages\":[", "[],", "[]]}"]),
    ("apple-call-tree", ["", "1 ??? (a + 1) [0x1]\n", ""]),
    ("apple-call-tree", ["Call graph:\n", "1 ???  (in A)  load address 0x% + 0x1  [0x%]\n", ""]),
    ("apple-call-tree", ["Heaviest stack f\n1 ??? (a + 1) [0x1]\n\nBinary Images:\n", "0x% - 0x%0 A\n", ""]),
    ("metrickit", ["{\"callStacks\":[{\"callStackRootFrames\":[", "{\"address\":%},", "{}]}]}"]),
    ("metrickit", ["{\"callStacks\":[", "{\"callStackRootFrames\":[]},", "{}]}"]),
    (
        "metrickit",
        ["{\"callStacks\":[{\"callStackRootFrames\":[", "{\"address\":%,\"binaryName\":\"%\"},", "{}]}]}"],
    ),
    (
        "metrickit",
        ["[\"{\\\"callStacks\\\":[{\\\"callStackRootFrames\\\":[", "{\\\"address\\\":%},", "{}]}]}\"]"],
    ),
    ("metrickit", ["[\"{\\\"callStackRootFrames\\\":1,\\\"callStacks\\\":[", "{},", "{}]}\"]"]),
    ("metrickit", ["[", "\"{\\\"callStackRootFrames\\\":[]}\",", "1]"]),
    ("kscrash", [KSCRASH, "{\"instruction_addr\":%},", "{}]}}]}}"]),
    (
        "kscrash",
        [
            "{\"binary_images\":[],\"crash\":{\"threads\":[",
            "{\"backtrace\":1},",
            "{\"instruction_addr\":1}]}}",
        ],
    ),
    (
        "kscrash",
        [
            "{\"crash\":{\"backtrace\":{\"instruction_addr\":1}},\"binary_images\":[",
            "{\"image_addr\":%},",
            "{}]}",
        ],
    ),
    (
        "sentry-event",
        [
            "{\"debug_meta\":1,\"threads\":[{\"stacktrace\":{\"frames\":[",
            "{\"instruction_addr\":%},",
            "{}]}}]}",
        ],
    ),
    (
        "sentry-event",
        [
            "{\"debug_meta\":{\"instruction_addr\":1},\"threads\":[",
            "{\"stacktrace\":{\"frames\":[]}},",
            "{}]}",
        ],
    ),
    (
        "sentry-event",
        ["{\"stacktrace\":{\"instruction_addr\":1},\"debug_meta\":{\"images\":[", "{},", "{}]}}"],
    ),
    ("bugsnag", ["[{\"stacktrace\":[", "{\"frameAddress\":\"0x%\"},", "{}]}]"]),
    ("bugsnag", ["[{\"frameAddress\":1},", "{\"stacktrace\":[]},", "{}]"]),
    ("bugsnag", ["[{\"stacktrace\":[", "{\"frameAddress\":\"0x1\",\"loadAddress\":\"0x%\"},", "{}]}]"]),
    (
        "measure",
        [
            "{\"exceptions\":[{\"binary_images\":1,\"frames\":[",
            "{\"instruction_address\":\"0x%\"},",
            "{}]}]}",
        ],
    ),
    (
        "measure",
        ["{\"binary_images\":{\"instruction_address\":1},\"exceptions\":[", "{\"frames\":[]},", "{}]}"],
    ),
    (
        "measure",
        ["{\"instruction_address\":1,\"frames\":[],\"binary_images\":[", "{\"base_addr\":\"%\"},", "{}]}"],
    ),
    ("minidump-stackwalk", [MINIDUMP, "{\"offset\":\"0x%\"},", "{}]}]}"]),
    (
        "minidump-stackwalk",
        ["{\"crash_info\":{\"module_offset\":1},\"modules\":[],\"threads\":[", "{\"frames\":[]},", "{}]}"],
    ),
    (
        "minidump-stackwalk",
        ["{\"crash_info\":{\"module_offset\":1},\"threads\":[{\"frames\":[]}],\"modules\":[", "{},", "{}]}"],
    ),
    ("sentry-profile", [SENTRY_PROFILE, "{\"instruction_addr\":%},", "{}]}}"]),
    ("sentry-profile", [SENTRY_PROFILE, "1],\"stacks\":[[%]],\"frames\":[", "{}]}}"]),
    (
        "sentry-profile",
        ["", "{\"instruction_addr\":1}\n", "{\"sampled_profile\":{\"samples\":[{\"frames\":[]}]}}"],
    ),
    ("swift-json", ["{\"programCounter\":1,\"frames\":[", "{\"address\":\"0x%\"},", "{}]}"]),
    ("swift-json", ["{\"programCounter\":1,\"t\":[", "{\"frames\":[]},", "{}]}"]),
    ("swift-json", ["{\"returnAddress\":1,\"frames\":[],\"images\":[", "{},", "{}]}"]),
    ("app-center", ["{\"binaries\":1,\"startAddress\":1,\"frames\":[", "{\"address\":%},", "{}]}"]),
    ("xctrace", ["<trace-query-result>", "<frame addr=\"0x%\"/>", ""]),
    ("xctrace", ["<trace-query-result>", "<frame id=\"%\" addr=\"0x1\"/>", ""]),
    ("xctrace", ["<trace-query-result><frame id=\"1\" addr=\"0x1\"/>", "<frame ref=\"1\"/>", ""]),
    ("xctrace", ["<trace-query-result>", "<row><frame addr=\"0x1\"/>", ""]),
    ("xctrace", ["<trace-query-result>", "<binary id=\"%\" load-addr=\"0x1\"/>", ""]),
    ("firefox-profile", [FIREFOX, "%,", "1]}}]}"]),
    ("firefox-profile", ["{\"frameTable\":1,\"resourceTable\":1,\"libs\":[", "{},", "{}]}"]),
    (
        "firefox-profile",
        [
            "{\"libs\":[],\"shared\":{\"stringArray\":[]},\"threads\":[",
            "{\"frameTable\":{},\"funcTable\":{},\"resourceTable\":{}},",
            "1]}",
        ],
    ),
    ("android", ["", "#0 pc 1 /a\n", ""]),
    ("android", ["", "#0 pc 1 /%\n", ""]),
    ("android", ["", "#% pc 1 /a\n", ""]),
    ("android", ["#0 pc 1 /a\n", "/%(BuildId: 1)\n", ""]),
    ("android", ["#0 pc 1 /a\n", "/% (BuildId: 1)\n", ""]),
    ("harmonyos", ["", "#0 pc 1 /%(f+1)(42521ecd5a913b6984e2ff754dc45cf0)\n", ""]),
    ("sanitizer", ["", "#0 0x1 (a%+0x1)\n", ""]),
    ("sanitizer", ["", "#% 0x1 (a+0x1)\n", ""]),
    ("lldb", ["", "frame #0: 0x1 a`f\n", ""]),
    ("lldb", ["frame #0: 0x1 a`f\n", "[0] 00112233-4455-6677-8899-AABBCCDDEEFF 0x% a\n", ""]),
    ("gdb", ["", "#0 0x1 in ?? ()\n", ""]),
    ("gdb", ["#0 0x1 in ?? ()\n", "0x% 0x%0 0x1 0x0 /%\n", ""]),
    ("glibc-backtrace", ["", "a(+0x1) [0x%]\n", ""]),
    ("glibc-backtrace", ["", "%(+0x1) [0x2]\n\n", ""]),
    ("swift-backtrace", ["Program crashed\n", "1 [ra] 0x1 in A\n", ""]),
    ("rust-backtrace", ["", "1: 0x1 - <unknown>\n", ""]),
    ("go-panic", ["", "[signal SIGSEGV: segmentation violation code=0x1 addr=0x0 pc=0x1]\n", ""]),
    ("dart", ["", "#00 abs 1 virt 1 _kDartIsolateSnapshotInstructions+0x1\n", ""]),
    ("minidump-stackwalk-text", ["", " 1  a + 0x%\n", ""]),
    ("minidump-stackwalk-text", ["", " 1  % + 0x1\n\n", ""]),
    ("kernel-panic", ["", "0xffffff8000000001 : 0xffffff8000000002\n", ""]),
    ("linux-kernel", ["", "f+0x%/0x90000000 [m]\n", ""]),
    ("linux-kernel", ["", "f+0x1/0x2 [%]\n", ""]),
    (
        "kernel-panic",
        [
            "lr: 0xfffffe0000000001  fp: 0xfffffe0000000002\n",
            "a(1)[00112233-4455-6677-8899-AABBCCDDEEFF]@0x%->0x%0\n",
            "",
        ],
    ),
    ("runtime-stack", ["", "0x1001(a+1)\n", ""]),
    ("runtime-stack", ["", "0x%001(%+1)\n", ""]),
    ("runtime-stack", ["", "0x1 - /a :\n", ""]),
    ("address-list", ["", "A 0x1000 0x1000\n", ""]),
    ("address-list", ["", "A 0x%000 0x%000\n\n", ""]),
];

/// The end of a report of each format in JSON, with what it is recognised by, after a list of other values.
const JSON: [(&str, &str); 12] = [
    ("apple-ips", "1],\"usedImages\":[],\"threads\":[]}"),
    ("apple-stackshot", "1],\"processByPid\":{}}"),
    ("metrickit", "1],\"callStacks\":[{\"callStackRootFrames\":[]}]}"),
    ("kscrash", "1],\"binary_images\":[],\"crash\":{\"backtrace\":{\"instruction_addr\":1}}}"),
    ("sentry-event", "1],\"debug_meta\":{},\"stacktrace\":{\"instruction_addr\":1}}"),
    ("sentry-profile", "1],\"profile\":{\"samples\":[],\"frames\":[{\"instruction_addr\":1}]}}"),
    ("swift-json", "1],\"frames\":[{\"kind\":\"programCounter\"}]}"),
    ("app-center", "1],\"frames\":[],\"binaries\":[{\"startAddress\":1}]}"),
    ("bugsnag", "1],\"stacktrace\":[{\"frameAddress\":1}]}"),
    ("measure", "1],\"binary_images\":[],\"frames\":[{\"instruction_address\":1}]}"),
    (
        "minidump-stackwalk",
        "1],\"crash_info\":{},\"modules\":[],\"threads\":[{\"frames\":[{\"module_offset\":1}]}]}",
    ),
    ("firefox-profile", "1],\"frameTable\":1,\"resourceTable\":1,\"libs\":[]}"),
];

const KSCRASH: &str = "{\"binary_images\":[],\"crash\":{\"threads\":[{\"backtrace\":{\"contents\":[";
const SENTRY_PROFILE: &str =
    "{\"debug_meta\":{},\"profile\":{\"samples\":[],\"instruction_addr\":1,\"frames\":[";
const MINIDUMP: &str = "{\"crash_info\":{},\"modules\":[],\"threads\":[{\"module_offset\":1,\"frames\":[";
const FIREFOX: &str = "{\"libs\":[],\"threads\":[{\"stringArray\":[],\"funcTable\":{},\"resourceTable\":{\"lib\":[]},\
                       \"frameTable\":{\"address\":[";
