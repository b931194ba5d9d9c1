//! Small reports, to change in tests. `%ID` stands for the id of the image. [`super::stacks`] has a report of each
//! format.

pub(crate) const SENTRY: &str = "{\"debug_meta\":{\"images\":[{\"cpu_type\":16777228,\"cpu_subtype\":0,\"uuid\":\"%ID\",\
                  \"image_addr\":\"0x100000000\",\"image_size\":65536,\"name\":\"\\/var\\/App\"}]},\
                  \"threads\":{\"values\":[{\"crashed\":true,\"stacktrace\":{\
                  \"registers\":{\"pc\":\"0x100001010\"},\
                  \"frames\":[{\"instruction_addr\":\"0x100001021\",\"package\":\"a\"},\
                  {\"instruction_addr\":\"0x100001010\",\"function\":\"<redacted>\"}]}}]}}";

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
