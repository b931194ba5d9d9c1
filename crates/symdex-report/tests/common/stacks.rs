//! A stack of an image of testdata, as a report of each format. A new format needs one here.

use serde_json::{Value, json};

use super::binary_stacks::{otlp, plcrash, pprof, tombstone};

/// The id of `testdata/dsyms/inline-dwarf4.dSYM`.
pub(crate) const ID: &str = "4c4c447055553144a1a22a1f1f7676f4";

/// The start of the image in its file.
pub(crate) const BASE: u64 = 0x1_0000_0000;

/// Where the image lies in the process.
pub(crate) const LOAD: u64 = 0x1_04a3_4000;

/// The frames, innermost first, as offsets from the start of the image.
pub(crate) const OFFSETS: [u64; 8] = [0x3d4, 0x3f0, 0x404, 0x390, 0x3b8, 0x3e0, 0x3d8, 0x38c];

/// A report with one stack: a frame of another image, if the format has room for it, and the frames of the image.
pub(crate) struct Sample {
    pub(crate) format: &'static str,
    pub(crate) text: Vec<u8>,
    /// Whether the frame with this number has a return address, which is looked up one byte before.
    pub(crate) adjusted: fn(usize) -> bool,
    /// Whether a frame of the format has room for the functions inlined into it, for files and for lines.
    pub(crate) has_lines: bool,
}

/// All addresses but the first are return addresses.
pub(super) const CALLERS: fn(usize) -> bool = |number| number != 0;
pub(super) const ALL: fn(usize) -> bool = |_| true;
pub(super) const NONE: fn(usize) -> bool = |_| false;

pub(super) fn sample(format: &'static str, text: String, adjusted: fn(usize) -> bool) -> Sample {
    Sample { format, text: text.into_bytes(), adjusted, has_lines: true }
}

/// The samples of all formats.
pub(crate) fn samples() -> Vec<Sample> {
    let of_names = |format, text, adjusted| Sample { format, text, adjusted, has_lines: false };
    let mut samples = vec![
        sample("apple-stackshot", stackshot(), CALLERS),
        sample("bugsnag", bugsnag(), ALL),
        sample("measure", measure(), CALLERS),
        sample("measure", measure_of_dart(), NONE),
        sample("metrickit", metrickit_string(), CALLERS),
        sample("minidump-stackwalk", minidump(), NONE),
        sample("android", bugly(), NONE),
        sample("apple-call-tree", spindump_of_ips(), CALLERS),
        sample("lldb", lldb(), CALLERS),
        sample("gdb", gdb(), |number| !matches!(number, 0 | 2)),
        sample("minidump-stackwalk-text", minidump_text(), NONE),
        sample("glibc-backtrace", glibc(), ALL),
        sample("swift-backtrace", swift(), CALLERS),
        sample("rust-backtrace", rust(), ALL),
        sample("go-panic", go(), |number| number > 1),
        sample("dart", dart(), NONE),
        sample("kernel-panic", panic(), ALL),
        sample("linux-kernel", oops(), CALLERS),
        sample("runtime-stack", crash_server(), CALLERS),
        sample("runtime-stack", dart_vm(), CALLERS),
        sample("runtime-stack", godot(), CALLERS),
        of_names("plcrash", plcrash(), CALLERS),
        of_names("android-protobuf", tombstone(), NONE),
        Sample { has_lines: true, ..of_names("pprof", pprof(), NONE) },
        Sample { has_lines: true, ..of_names("otlp-profile", otlp(), NONE) },
        of_names("firefox-profile", firefox().into_bytes(), NONE),
    ];
    samples.extend(super::older_stacks::samples());
    samples.extend(super::json_stacks::samples());
    samples
}

/// The id with dashes, in capitals.
pub(super) fn uuid() -> String {
    let parts = [&ID[..8], &ID[8..12], &ID[12..16], &ID[16..20], &ID[20..]];
    parts.join("-").to_uppercase()
}

pub(super) fn addresses() -> impl Iterator<Item = u64> {
    OFFSETS.iter().map(|offset| LOAD + offset)
}

/// The lines of the frames, each made of its number and its address.
pub(super) fn frame_lines(line: impl Fn(usize, u64) -> String) -> String {
    addresses().enumerate().map(|(number, address)| line(number, address) + "\n").collect()
}

pub(super) fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).expect("JSON")
}

fn stackshot() -> String {
    let frames: Vec<_> = OFFSETS.iter().map(|offset| json!([1, offset])).collect();
    let body = json!({
        "build": "iPhone OS 17.5.1 (21F90)",
        "binaryImages": [["00000000-0000-0000-0000-000000000000", 0, "A"], [uuid().to_lowercase(), LOAD, "P"]],
        "processByPid": {"42": {"procname": "App", "threadById": {
            "7": {"userFrames": frames, "kernelFrames": [[0, 12345]], "name": "worker"}}}},
    });
    format!("{{\"bug_type\":\"288\",\"timestamp\":\"2024-03-01\"}}\n{}\n", pretty(&body))
}

fn bugsnag() -> String {
    let frame = |address: u64| {
        json!({
            "frameAddress": format!("{address:#x}"), "machoFile": "/var/App.app/App", "machoUUID": uuid(),
            "machoLoadAddress": format!("{LOAD:#x}"), "machoVMAddress": "0x100000000",
        })
    };
    let mut frames: Vec<_> = addresses().map(frame).collect();
    frames.push(json!({
        "frameAddress": "0x1804c88b4", "machoLoadAddress": "0x180395000", "method": "start_wqthread",
        "machoFile": "/usr/lib/libSystem.dylib", "machoUUID": "00112233-4455-6677-8899-AABBCCDDEEFF",
    }));
    pretty(
        &json!({"exceptions": [{"errorClass": "NSRangeException", "type": "cocoa", "stacktrace": frames}]}),
    )
}

fn measure() -> String {
    let frame = |(number, address): (usize, u64)| {
        json!({
            "frame_index": number, "binary_name": "App", "binary_address": format!("{LOAD:016x}"), "in_app": true,
            "symbol_address": format!("{address:016x}"), "offset": address - LOAD, "method_name": "", "line_num": 0,
        })
    };
    let frames: Vec<_> = addresses().enumerate().map(frame).collect();
    let image = json!({
        "name": "App", "path": "/var/App.app/App", "arch": "arm64", "uuid": ID, "system": false,
        "start_addr": format!("{LOAD:016x}"), "end_addr": format!("{:016x}", LOAD + 0x4000),
    });
    let exception =
        json!({"type": "SIGABRT", "signal": "SIGABRT", "thread_name": "Thread 0", "frames": frames});
    pretty(&json!({"exceptions": [exception], "threads": [], "binary_images": [image], "framework": "apple"}))
}

fn measure_of_dart() -> String {
    let frame = |address: u64| json!({"instruction_address": format!("{address:#x}")});
    let frames: Vec<_> = addresses().map(frame).collect();
    let image = json!({"uuid": ID, "arch": "arm64", "base_addr": format!("{LOAD:x}")});
    let event = json!({"exceptions": [{"frames": frames}], "binary_images": [image], "framework": "dart"});
    pretty(&json!({"type": "exception", "exception": event}))
}

fn metrickit_string() -> String {
    // The innermost frame is the root.
    let last = json!({"binaryName": "libdyld.dylib", "address": 6_442_450_944_u64});
    let tree = OFFSETS.iter().rev().fold(last, |inner, offset| {
        json!({
            "binaryName": "A\u{e4}\u{1f600}\"/p", "binaryUUID": uuid(), "offsetIntoBinaryTextSegment": offset,
            "address": LOAD + offset, "sampleCount": 1, "subFrames": [inner],
        })
    });
    let stacks = json!({"callStackPerThread": true, "callStacks": [{"callStackRootFrames": [tree]}]});
    let string = json!(stacks.to_string()).to_string();
    // Escapes that a writer need not use.
    let string =
        string.replace('/', "\\/").replace('\u{e4}', "\\u00e4").replace('\u{1f600}', "\\ud83d\\ude00");
    format!("[ {{\"platform\" : \"ios\", \"type\":\"crash\", \"callStack\": {string}, \"x\": 1.50 }} ]\n")
}

fn minidump() -> String {
    let frame = |(number, address): (usize, u64)| {
        json!({
            "file": null, "frame": number, "function": null, "function_offset": null, "inlines": null, "line": null,
            "module": "App", "module_offset": format!("{:#010x}", address - LOAD), "offset": format!("{address:#018x}"),
            "missing_symbols": true, "trust": if number == 0 { "context" } else { "cfi" },
        })
    };
    let frames: Vec<_> = addresses().enumerate().map(frame).collect();
    let module = json!({
        "base_addr": format!("{LOAD:#018x}"), "end_addr": format!("{:#018x}", LOAD + 0x4000), "filename": "App",
        "debug_file": "App", "debug_id": format!("{}0", ID.to_uppercase()), "code_id": ID,
    });
    pretty(&json!({
        "crash_info": {"type": "EXC_BAD_ACCESS"}, "modules": [module], "pid": 42,
        "system_info": {"os": "iOS", "os_ver": "17.5.1", "cpu_arch": "arm64"},
        "threads": [{"thread_id": 7, "thread_name": "main", "frames": frames}],
    }))
}

fn bugly() -> String {
    frame_lines(|number, address| {
        let file_address = BASE + address - LOAD;
        format!(
            "{number} #{number:02}    pc {file_address:016x}    /data/app/lib/arm64/libapp.so [arm64-v8a::{ID}]"
        )
    })
}

/// An `.ips` of bug type 202: a header, then a report of spindump.
fn spindump_of_ips() -> String {
    let frames = OFFSETS.iter().enumerate().rev().map(|(number, offset)| {
        let indent = "  ".repeat(OFFSETS.len() - number);
        format!("  {indent}9  ??? (App + {offset}) [{:#x}]\n", LOAD + offset)
    });
    format!(
        "{{\"bug_type\":\"202\",\"name\":\"App\"}}\nDate/Time: 2024-03-01\nArchitecture:     arm64\n\n\
         Process:          App [42]\nArchitecture:     arm64\n\n  Thread 0x1    9 samples\n{}\n  \
         Binary Images:\n           {LOAD:#x} -        {:#x}  App 1.0 (1)  <{}>  /var/App.app/App\n",
        frames.collect::<String>(),
        LOAD + 0x3fff,
        uuid()
    )
}

fn lldb() -> String {
    let frames = frame_lines(|number, address| {
        let mark = if number == 0 { '*' } else { ' ' };
        format!("  {mark} frame #{number}: {address:#018x} App`___lldb_unnamed_symbol{number} + 20")
    });
    format!(
        "(lldb) bt\n* thread #1, queue = 'com.apple.main-thread', stop reason = signal SIGABRT\n{frames}    \
         frame #8: 0x00000001804c88b4 dyld`start + 2360\n(lldb) image list\n[  0] {} {LOAD:#018x} /var/App.app/App \n\
         [  1] 00112233-4455-6677-8899-AABBCCDDEEFF 0x0000000180395000 /usr/lib/dyld \n",
        uuid()
    )
}

fn glibc() -> String {
    let frames = frame_lines(|number, address| match number {
        // The name of an exported function and the distance from it.
        2 => format!("./inline-dwarf4(paint+0x7c) [{address:#x}]"),
        _ => format!("./inline-dwarf4(+{:#x}) [{address:#x}]", address - LOAD),
    });
    format!("caught a signal\n{frames}/lib/libc.so.6(__libc_start_main+0x80) [0x7f5140250080]\nend\n")
}

fn oops() -> String {
    let frames: String = OFFSETS
        .iter()
        .enumerate()
        .map(|(number, offset)| {
            let (function, start, size) =
                if *offset < 0x3a0 { ("paint", 0x388, 0x18) } else { ("pyramid", 0x3a0, 0x148) };
            let frame = format!("{function}+{:#x}/{size:#x} [inline-dwarf4]\n", offset - start);
            match number {
                0 => format!(
                    "RIP: 0010:{frame}Code: 0f 0b <0f> 0b\nRAX: 0000000000000004\nCall Trace:\n <TASK>\n"
                ),
                3 => format!(" ? {frame}"),
                _ => format!(" {frame}"),
            }
        })
        .collect();
    format!(
        "BUG: kernel NULL pointer dereference, address: 0000000000000004\nCPU: 1 PID: 42 Comm: crash Tainted: G   OE \
         6.1.0 #1 Debian 6.1.55-1\n{frames} </TASK>\n"
    )
}

fn gdb() -> String {
    let frames = frame_lines(|number, address| {
        // A signal interrupted the third frame.
        let before = if number == 2 { "#2  <signal handler called>\n" } else { "" };
        let number = if number < 2 { number } else { number + 1 };
        format!("{before}#{number}  {address:#018x} in ?? () from /opt/inline-dwarf4")
    });
    format!(
        "(gdb) bt\n{frames}#9  0x00007f5140250080 in __libc_start_main () from /lib/libc.so.6\n#10 main () at a.c:3\n\
         (gdb) info proc mappings\n          Start Addr           End Addr       Size     Offset  Perms  \
         objfile\n      {LOAD:#x}        {:#x}     0x1000        0x0  r-xp   /opt/inline-dwarf4\n",
        LOAD + 0x1000
    )
}

fn minidump_text() -> String {
    let frames = OFFSETS.iter().enumerate().map(|(number, offset)| {
        format!(
            " {number}  inline-dwarf4 + {offset:#x}\n     pc = {:#018x}\n    Found by: call frame info\n",
            LOAD + offset
        )
    });
    format!(
        "Operating system: Linux\nCrash reason:  SIGSEGV\n\nThread 0  (crashed) - tid: 1304\n{}\n\nLoaded modules:\n\
         {LOAD:#x} - {:#x}  inline-dwarf4  ???  (main)\n",
        frames.collect::<String>(),
        LOAD + 0x3fff
    )
}

fn swift() -> String {
    let frames = frame_lines(|number, address| {
        format!("{number}{} {address:#018x} in App", if number == 0 { "     " } else { " [ra]" })
    });
    format!(
        "*** Program crashed: Bad pointer dereference at 0x0000000000000004 ***\n\nThread 0 crashed:\n\n{frames}\n\n\
         Registers:\n\nx0 0x0000000000000001  1\n\nImages (22 omitted):\n\n\
         {LOAD:#018x}\u{2013}{:#018x} {ID}  App  /opt/App\n",
        LOAD + 0x4000
    )
}

/// The mappings of the image, as `/proc/PID/maps` has them.
fn memory_map() -> String {
    let (middle, end) = (LOAD + 0x380, LOAD + 0x4000);
    format!(
        "{LOAD:x}-{middle:x} r--p 00000000 fe:01 1234    /opt/inline-dwarf4\n\
         {middle:x}-{end:x} r-xp 00000380 fe:01 1234    /opt/inline-dwarf4\n"
    )
}

fn rust() -> String {
    let frames = frame_lines(|number, address| format!("{number:4}: {address:#18x} - <unknown>"));
    format!(
        "thread 'main' (42) panicked at src/main.rs:2:37:\ntoo large\nstack backtrace:\n{frames}   \
         8:     0x7f516501a24a - __libc_start_call_main\n                               \
         at ./csu/../sysdeps/nptl/libc_start_call_main.h:58:16\n   9:                0x0 - <unknown>\n\n{}",
        memory_map()
    )
}

fn go() -> String {
    let frames = frame_lines(|number, address| match number {
        0 => format!(
            "[signal SIGSEGV: segmentation violation code=0x1 addr=0x0 pc={address:#x}]\n\ngoroutine 1 [syscall]:"
        ),
        _ if number % 2 == 0 => format!("non-Go function\n\tpc={address:#x}"),
        _ => format!("non-Go function at pc={address:#x}"),
    });
    format!(
        "fatal error: unexpected signal during runtime execution\n{frames}main.main()\n\
         \t/src/main.go:5 +0x1d\n\n{}",
        memory_map()
    )
}

fn dart() -> String {
    let frames = frame_lines(|number, address| {
        let offset = address - LOAD;
        // The address in the image's file.
        let file_address = BASE + offset;
        format!(
            "    #{number:02} abs {address:016x} virt {file_address:016x} _kDartIsolateSnapshotInstructions+{offset:#x}"
        )
    });
    format!(
        "*** *** *** *** *** *** *** *** *** *** *** *** *** *** *** ***\npid: 42, tid: 43, name 1.ui\n\
         os: android arch: arm64 comp: no sim: no\nbuild_id: '{ID}'\nisolate_dso_base: {LOAD:x}, \
         vm_dso_base: {LOAD:x}\n{frames}"
    )
}

/// A kernel extension lies in the upper half of the addresses.
fn panic() -> String {
    let load = 0xffff_ff7f_8810_0000_u64;
    let frames = frame_lines(|_, address| format!("0xffffff92250a31d0 : {:#018x} ", address - LOAD + load));
    format!(
        "*** Panic Report ***\npanic(cpu 1 caller 0xffffff7f8903c9cf): \"x\"\nBacktrace (CPU 1), Frame : Return Address\n\
         {frames}0xffffff92250a3fa0 : 0xffffff801735a486 mach_kernel : _hndl_mach_scall64 + 0x16\n      \
         Kernel Extensions in backtrace:\n         com.example.App(1.0)[{}]@{load:#x}->{:#x}\n\n  \
         Calendar: 0x60000004 0x00030306\n",
        uuid(),
        load + 0x3fff
    )
}

fn crash_server() -> String {
    let frames = frame_lines(|number, address| {
        let tab = if number == 0 { "" } else { "\t" };
        format!("{address:#018x}{tab}(inline-dwarf4 + {:#010x})", address - LOAD)
    });
    format!("Thread 0  (id: 0x00000303) CRASHED [EXC_BAD_ACCESS @ 0x000002e0 ]\n{frames}")
}

fn dart_vm() -> String {
    let frames = frame_lines(|_, address| {
        format!("  pc {address:#x} fp 0x885fef58 /opt/inline-dwarf4+{:#x}", address - LOAD)
    });
    format!("===== CRASH =====\nversion=2.10.1 on \"ios_arm64\"\n{frames}-- End of DumpStackTrace\n")
}

fn godot() -> String {
    let frames = frame_lines(|_, address| format!("{address:x} (inline-dwarf4+{:x}) - old", address - LOAD));
    format!(
        "handle_crash: Program crashed with signal 11\nLoad address: {LOAD:x}\n\n{frames}-- END OF C++ BACKTRACE --\n"
    )
}

fn firefox() -> String {
    let count = OFFSETS.len();
    let column = |value: Value| vec![value; count];
    let rows: Vec<_> = (0..count).collect();
    let names: Vec<_> = OFFSETS.iter().map(|offset| format!("{offset:#x}")).collect();
    pretty(&json!({
        "meta": {"symbolicated": false, "product": "App", "preprocessedProfileVersion": 41},
        "libs": [{"name": "App", "path": "/opt/App", "breakpadId": format!("{}0", ID.to_uppercase()), "codeId": null,
            "arch": "arm64"}],
        "threads": [{
            "name": "main", "pid": 42, "stringArray": names,
            "frameTable": {"length": count, "address": OFFSETS, "func": rows, "nativeSymbol": column(Value::Null),
                "line": column(Value::Null), "inlineDepth": column(json!(0))},
            "funcTable": {"length": count, "name": rows, "isJS": column(json!(false)), "resource": column(json!(0)),
                "fileName": column(Value::Null), "lineNumber": column(Value::Null)},
            "resourceTable": {"length": 1, "lib": [0], "name": [0], "host": [null], "type": [1]},
            "nativeSymbols": {"length": 0, "libIndex": [], "address": [], "name": [], "functionSize": []},
            "stackTable": {"length": 1, "frame": [0], "prefix": [null]}, "samples": {"stack": [0]},
        }],
    }))
}
