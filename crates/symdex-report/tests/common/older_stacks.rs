//! The stack of [`super::stacks`] in the formats of Apple's systems, of Android and of the first crash reporters.

use serde_json::{Value, json};

use super::stacks::{
    ALL, BASE, CALLERS, ID, LOAD, NONE, OFFSETS, Sample, addresses, frame_lines, pretty, sample, uuid,
};

pub(super) fn samples() -> Vec<Sample> {
    vec![
        sample("apple-crash", crash(), CALLERS),
        sample("apple-crash", legacy_ips(), CALLERS),
        sample("apple-crash", exception(), ALL),
        sample("apple-crash", crashlytics(), CALLERS),
        sample("apple-crash", umeng(), CALLERS),
        sample("apple-crash", without_text(), CALLERS),
        sample("apple-crash", microstackshots(), CALLERS),
        sample("apple-crash", kotlin(), NONE),
        sample("apple-ips", ips(), CALLERS),
        sample("apple-call-tree", sample_report(), CALLERS),
        sample("apple-call-tree", hang(), CALLERS),
        sample("metrickit", metrickit_crash(), CALLERS),
        sample("metrickit", metrickit_hang(), CALLERS),
        sample("kscrash", kscrash(), CALLERS),
        sample("sentry-event", sentry(), CALLERS),
        sample("android", tombstone(), NONE),
        sample("android", anr(), NONE),
        sample("harmonyos", harmony_os(), NONE),
        sample("sanitizer", sanitizer(), NONE),
        sample("address-list", list(), CALLERS),
    ]
}

/// The addresses in the image's file.
fn file_addresses() -> impl Iterator<Item = u64> {
    OFFSETS.iter().map(|offset| BASE + offset)
}

fn binary_images() -> String {
    format!("\nBinary Images:\n{LOAD:#x} - {:#x} App arm64  <{ID}> /var/App.app/App\n", LOAD + 0x3fff)
}

fn crash() -> String {
    let frames = frame_lines(|number, address| {
        format!("{number:<3} App                           \t{address:#018x} {LOAD:#x} + {}", address - LOAD)
    });
    format!(
        "Incident Identifier: 0D7B1E5C\nHardware Model:      iPhone11,2\nReport Version:      104\n\n\
         Thread 0 Crashed:\n{frames}8   libdyld.dylib                 \t0x00000001804c88b4 start + 4\n{}",
        binary_images()
    )
}

/// An `.ips` of bug type 109: a header, then a text report.
fn legacy_ips() -> String {
    format!("{{\"bug_type\":\"109\",\"name\":\"App\"}}\n{}", crash())
}

fn exception() -> String {
    let addresses: Vec<_> = addresses().map(|address| format!("{address:#x}")).collect();
    format!(
        "Incident Identifier: 0D7B1E5C\n\nLast Exception Backtrace:\n({})\n{}",
        addresses.join(" "),
        binary_images()
    )
}

fn crashlytics() -> String {
    let frames = OFFSETS.iter().enumerate().map(|(number, offset)| {
        format!("{number}  App                            {offset:#x} (Missing UUID {ID})\n")
    });
    format!(
        "# Crashlytics - plaintext stacktrace downloaded by x\n\nCrashed: com.apple.main-thread\n{}\
         8  libdyld.dylib                  0x4 start + 4\n",
        frames.collect::<String>()
    )
}

/// Frames without numbers. The image is stated below them, and has no name.
fn umeng() -> String {
    let frames =
        frame_lines(|_, address| format!("\t???                   {address:#018x} ??? + {}", address - LOAD));
    format!(
        "Application received signal SIGSEGV\n(null)\n((\n{frames}\tlibdyld.dylib     0x00000001804c88b4 <redacted> + 4\n\
         )\n\ndSYM UUID: {}\nCPU Type: arm64\nSlide Address: 0x0000000100000000\nBinary Image: ???\n\
         Base Address: {LOAD:#018x}\n",
        uuid()
    )
}

/// The address ends the line of a frame. Lists of images have titles of all kinds, and other fields after the path.
fn without_text() -> String {
    let frames = frame_lines(|number, address| format!("{number}  App  v2 \t{address:#018x}"));
    format!(
        "Thread 0 Attributed:\n{frames}\nThread 0 crashed with ARM Thread State (64-bit):\n    x0: 0x0000000104a343d0\n\n\
         Binary Images (dpkg):\n\nBinary Images\n{LOAD:#x} - {:#x} + App  v2 arm64  <{ID}> /var/App.app/App \
         {{\"package\":{{}}}}\n",
        LOAD + 0x3fff
    )
}

/// A tree of iOS 8 in a `.crash`.
fn microstackshots() -> String {
    let tree = tree_lines(|offset| format!("1 App {LOAD:#x} + {offset} [{:#x}]", LOAD + offset));
    format!(
        "Incident Identifier: 0D7B1E5C\n\nBad magic 0x12345678\nMicrostackshots: 1 (from 1970-01-01 00:00:01 +0000)\n  \
         1 ??? [0x16fd7fab0]\n{tree}{}",
        binary_images()
    )
}

fn kotlin() -> String {
    let frames = frame_lines(|number, address| {
        format!("{number}   App                             {address:#x}        App + {} ", address - LOAD)
    });
    format!("Uncaught Kotlin exception: kotlin.RuntimeException: boom\n{frames}{}", binary_images())
}

fn ips() -> String {
    let frames: Vec<_> =
        OFFSETS.iter().map(|offset| json!({"imageOffset": offset, "imageIndex": 0})).collect();
    let body = json!({
        "faultingThread": 0, "threads": [{"triggered": true, "id": 7, "frames": frames}],
        "usedImages": [{"source": "P", "arch": "arm64", "base": LOAD, "size": 16384, "uuid": uuid().to_lowercase(),
            "path": "/var/App.app/App", "name": "App"}],
    });
    format!("{{\"app_name\":\"App\",\"bug_type\":\"309\"}}\n{}\n", pretty(&body))
}

/// The lines of a tree, from the outermost frame to the innermost.
fn tree_lines(line: impl Fn(u64) -> String) -> String {
    let frames = OFFSETS.iter().enumerate().rev();
    let lines = frames.map(|(number, offset)| {
        let indent = "  ".repeat(OFFSETS.len() - number);
        format!("    {indent}{}\n", line(*offset))
    });
    lines.collect()
}

fn sample_report() -> String {
    let frames = tree_lines(|offset| {
        format!("9 ???  (in App)  load address {LOAD:#x} + {offset:#x}  [{:#x}]", LOAD + offset)
    });
    format!(
        "Analysis of sampling App (pid 7) every 1 millisecond\nCode Type:       ARM64\n\nCall graph:\n    \
         9 Thread_12   DispatchQueue_1: com.apple.main-thread  (serial)\n{frames}\nSort by top of stack:\n\n\
         Binary Images:\n {LOAD:#x} - {:#x} +App (0) <{}> /var/App.app/App\n",
        LOAD + 0x3fff,
        uuid()
    )
}

/// The report that macOS writes if an app hangs.
fn hang() -> String {
    let frames = tree_lines(|offset| format!("9  ??? (App + {offset}) [{:#x}]", LOAD + offset));
    format!(
        "Date/Time:        2024-03-01\nEvent:            hang\nArchitecture:     arm64\n\nProcess:          App [42]\n\
         Architecture:     arm64\n\n  Thread 0x1    9 samples\n{frames}\n  Binary Images:\n           {LOAD:#x} -        \
         {:#x}  App 1.0 (1)  <{}>  /var/App.app/App\n",
        LOAD + 0x3fff,
        uuid()
    )
}

/// A tree of MetricKit whose first frame contains the second one.
fn metrickit_tree(offsets: impl DoubleEndedIterator<Item = &'static u64>, last: Option<Value>) -> Value {
    let tree = offsets.rev().fold(last, |inner, offset| {
        let mut frame = json!({
            "binaryName": "App", "binaryUUID": uuid(), "offsetIntoBinaryTextSegment": offset,
            "address": LOAD + offset, "sampleCount": 1,
        });
        if let Some(inner) = inner {
            frame["subFrames"] = json!([inner]);
        }
        Some(frame)
    });
    json!([{"callStackRootFrames": [tree]}])
}

/// The innermost frame is the root.
fn metrickit_crash() -> String {
    let stacks = metrickit_tree(OFFSETS.iter(), None);
    pretty(
        &json!({"crashDiagnostics": [{"callStackTree": {"callStackPerThread": true, "callStacks": stacks}}]}),
    )
}

/// The outermost frame is the root.
fn metrickit_hang() -> String {
    let stacks = metrickit_tree(OFFSETS.iter().rev(), None);
    pretty(
        &json!({"hangDiagnostics": [{"callStackTree": {"callStackPerThread": false, "callStacks": stacks}}]}),
    )
}

fn kscrash() -> String {
    let frames: Vec<_> = addresses().map(|address| json!({"instruction_addr": address})).collect();
    pretty(&json!({
        "binary_images": [{"cpu_type": 16_777_228, "cpu_subtype": 0, "image_addr": LOAD, "image_size": 16384,
            "name": "/var/App.app/App", "uuid": uuid()}],
        "crash": {"error": {"type": "mach"}, "threads": [{"crashed": true, "index": 0,
            "registers": {"basic": {"pc": LOAD + OFFSETS[0]}}, "backtrace": {"contents": frames}}]},
    }))
}

fn sentry() -> String {
    let frame = |address: u64| json!({"instruction_addr": format!("{address:#x}"), "package": "/var/App"});
    let mut frames: Vec<_> = addresses().map(frame).collect();
    // The outermost frame comes first.
    frames.reverse();
    pretty(&json!({
        "debug_meta": {"images": [{"type": "macho", "debug_id": uuid(), "image_addr": format!("{LOAD:#x}"),
            "image_size": 16384, "code_file": "/var/App.app/App", "arch": "arm64"}]},
        "threads": {"values": [{"id": 0, "crashed": true, "stacktrace": {"frames": frames}}]},
    }))
}

fn native_lines(line: impl Fn(usize, u64) -> String) -> String {
    file_addresses().enumerate().map(|(number, address)| line(number, address) + "\n").collect()
}

fn tombstone() -> String {
    let frames = native_lines(|number, address| {
        format!("      #{number:02} pc {address:016x}  /data/app/libapp.so (BuildId: {ID})")
    });
    format!(
        "*** *** *** *** *** *** *** ***\nABI: 'arm64'\npid: 42, tid: 42, name: main  >>> com.example <<<\n\
         signal 11 (SIGSEGV), code 1 (SEGV_MAPERR), fault addr 0x8\n\nbacktrace:\n{frames}      \
         #08 pc 0000000000001020  /apex/lib64/libc.so (start+4) (BuildId: 0a0b)\n"
    )
}

fn anr() -> String {
    let frames = native_lines(|number, address| {
        format!("  native: #{number:02} pc {address:016x}  /data/app/libapp.so (???) (BuildId: {ID})")
    });
    format!(
        "----- pid 42 at 2024-03-01 -----\nABI: 'arm64'\n\n\"main\" prio=5 tid=1 Native\n  | sysTid=42 nice=0\n{frames}  \
         at com.example.Main.run(Main.java:5)\n"
    )
}

fn harmony_os() -> String {
    let frames = native_lines(|number, address| {
        format!("#{number:02} pc {address:016x} /data/storage/libapp.so({ID})")
    });
    format!("Reason:Signal:SIGSEGV\nFault thread info:\nTid:42, Name:main\n{frames}")
}

fn sanitizer() -> String {
    let frames = native_lines(|number, address| {
        format!("    #{number} 0x{:x}  (/opt/app:arm64+{address:#x}) (BuildId: {ID})", LOAD + address)
    });
    format!("==42==ERROR: AddressSanitizer: SEGV on unknown address\n{frames}")
}

fn list() -> String {
    frame_lines(|_, address| format!("App {address:#x} {LOAD:#x} {ID}"))
}
