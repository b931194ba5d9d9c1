//! Small reports of ten formats, to cut and to change. [`super::stacks`] has a report of every format.

use super::{APP, crash, ips};

/// The reports, each with the name of its format.
pub(crate) fn samples() -> [(&'static str, String); 11] {
    let frames = "0   App  0x100001010 0x100000000 + 4112\n1   App  0x8001000100001021 old + 3\n\n\
                  Last Exception Backtrace:\n(0x180000010 0x100001011 0x100001021)\n";
    let json =
        r#"{"imageOffset":4112,"imageIndex":0},{ "imageOffset" : 4129, "imageIndex":0,"symbol":"\u00e4\"" }"#;
    let sentry = "{\"debug_meta\":{\"images\":[{\"cpu_type\":16777228,\"cpu_subtype\":0,\"uuid\":\"ID\",\
                  \"image_addr\":\"0x100000000\",\"image_size\":65536,\"name\":\"\\/var\\/App\"}]},\
                  \"threads\":{\"values\":[{\"crashed\":true,\"stacktrace\":{\
                  \"registers\":{\"pc\":\"0x100001010\"},\
                  \"frames\":[{\"instruction_addr\":\"0x100001021\",\"package\":\"a\"},\
                  {\"instruction_addr\":\"0x100001010\",\"function\":\"<redacted>\"}]}}]}}";
    let android = "ABI: 'arm64'\npid: 1, tid: 2, name: a  >>> b <<<\nF DEBUG :  #00 pc 1010  /x/App (BuildId: ID)\n\
                   F DEBUG :  #01 pc 0000000000001020  /x/b.apk!App (offset 0x1000) (f(int)+4) (BuildId: ID)\n\
                   F DEBUG :      src/a.c:12 (f(int))\n#02 pc 10  [vdso]";
    let harmony = "Fault thread info:\nTid:1, Name:a\n#00 pc 1010 /x/App(ID)\n\
                   #01 pc 1020(551020) /x/App(f(int)+32)(ID)\n";
    let sanitizer = "==1==ERROR: AddressSanitizer: SEGV on unknown address\n    \
                     #0 0x551010  (/x/App:arm64+0x1010) (BuildId: ID)\n    \
                     #1 0x551020 in f(int) (App+0x1020) (BuildId: ID)\n    #2 0x551030 in g() /src/t.c:1:2\n";
    let list = "# list\nApp 0x100001010 0x100000000 ID x\nApp\t0x100001021\t0x100000000\n";
    let with_id = |text: &str| text.replace("ID", APP);
    let [kscrash, metrickit] = [KSCRASH, METRICKIT].map(|text| text.replace("%ID", APP));
    let [sample, spindump] = [SAMPLE, SPINDUMP].map(|text| text.replace("%ID", APP));
    let [android, harmony, sanitizer, list] = [android, harmony, sanitizer, list].map(with_id);
    [
        ("apple-crash", crash(frames, "arm64")),
        ("apple-call-tree", sample),
        ("apple-call-tree", spindump),
        ("apple-ips", ips(json)),
        ("sentry-event", with_id(sentry)),
        ("kscrash", kscrash),
        ("metrickit", metrickit),
        ("android", android),
        ("harmonyos", harmony),
        ("sanitizer", sanitizer),
        ("address-list", list),
    ]
}

pub(crate) const KSCRASH: &str = r#"{"binary_images":[{"cpu_type":16777228,"cpu_subtype":0,"image_addr":4294967296,
"image_size":65536,"name":"/App","uuid":"%ID"}],"crash":{"error":{"type":"mach"},
"threads":[{"crashed":true,"registers":{"basic":{"pc":4294971408}},"backtrace":{"contents":[
{"instruction_addr":4294971408,"symbol_name":"<redacted>"},{ "instruction_addr" : 4294971425 }]}}]},
"recrash_report":{"crash":{"crashed_thread":{"backtrace":{"contents":[{"instruction_addr":4294971408}]}}}}}"#;

pub(crate) const METRICKIT: &str = r#"{"crashDiagnostics":[{"callStackTree":{"callStackPerThread":true,
"callStacks":[{"callStackRootFrames":[{"binaryUUID":"%ID","offsetIntoBinaryTextSegment":4129,
"subFrames":[{"binaryUUID":"%ID","offsetIntoBinaryTextSegment":4294967296,"address":4294971408,"symbol":"\u00e4",
"subFrames":[]},{"binaryUUID":"%ID","address":4294971456,"offsetIntoBinaryTextSegment":4160}],
"binaryName":"dyld","address":4294971425}]}]}}]}"#;

pub(crate) const SAMPLE: &str = "Call graph:\n    9 Thread_1\n    + 9 ???  (in App)  load address 0x100000000 + 0x1021  \
                      [0x100001021]\n    \
    + ! 4 old  (in App) + 3  [0x100001010,...]\n    + 3 f (in App) (a.c:1) [0x100001030]\n\nSort by top of stack:\n\n\
    Binary Images:\n 0x100000000 - 0x10000ffff +App (0) <%ID> /A\n";

pub(crate) const SPINDUMP: &str = "Heaviest stack for the target process:\n  9  ??? (App + 4129) [0x100001021]\n\n  \
                        Thread 0x1    9 samples\n  \
    9  ??? (App + 4129) [0x100001021] (running)\n    4  old + 3 (App + 4112) [0x100001010]\n      3  <QoS>\n     \
    *3  ??? (k + 1) [0xfffffe0000000001]\n\n  Binary Images:\n  0x100000000 - ???  App 1 (1)  <%ID>  /A\n  \
    *0xfffffe0000000000 - 0xfffffe0000000fff  k  <%ID>__TEXT_EXEC  /k\n";
