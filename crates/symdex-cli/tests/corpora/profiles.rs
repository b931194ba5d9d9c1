//! Real profiles: of Go programs, read back by pprof, and the dump of an eBPF profiler.

use crate::common::{folder, symbolicate};
use symdex_testkit::{corpus, program};

/// The profiles have addresses alone. They state the build ids that Go's compiler wrote into the programs, two of which
/// are without debug information.
pub(crate) fn profiles_of_go_programs_are_read_back_by_pprof() {
    let root = folder();
    let parca = corpus("profiles", root.path()).join("parca");
    let mut named = 0;
    for name in ["inlining-disabled-cpu", "normal-cpu", "stripped-cpu", "without-dwarf-cpu"] {
        let (report, out) = (parca.join(format!("{name}.stripped.pprof")), root.path().join(name));
        let done = symbolicate(root.path(), &parca, &["-o", &out.to_string_lossy()], [report]);
        assert_eq!(done.code, Some(0), "{name}: {}", done.err);
        for (option, expected) in [("-functions", "runtime."), ("-lines", ".go:")] {
            let mut go = program("go", "version");
            let read = go
                .args(["tool", "pprof", "-symbolize=none", "-top", option])
                .arg(&out)
                .output()
                .expect("runs");
            let text = String::from_utf8_lossy(&read.stdout);
            assert!(read.status.success(), "{name}: {}", String::from_utf8_lossy(&read.stderr));
            let rows = text.lines().filter(|line| line.contains(expected)).count();
            assert!(rows > 5, "{name} {option}: {text}");
            named += rows;
        }
    }
    assert!(named > 100, "{named}");
}

pub(crate) fn a_profile_without_an_index_stays_byte_for_byte() {
    let root = folder();
    let profiles = corpus("profiles", root.path());
    let report = profiles.join("pyroscope/otel-ebpf-profile.pb.bin");
    let out = root.path().join("out");
    let done = symbolicate(
        root.path(),
        &profiles.join("pyroscope/libfib.so"),
        &["-o", &out.to_string_lossy()],
        [&report],
    );
    assert!(done.err.contains("0 of 400 frames symbolicated, 21 already had names"), "{}", done.err);
    assert_eq!(std::fs::read(out).expect("written"), std::fs::read(report).expect("readable"));
}
