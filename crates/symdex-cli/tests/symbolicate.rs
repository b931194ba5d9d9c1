//! `symdex symbolicate` on the demo's crash: output, summary and exit codes.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::common::{
    CommandOutput, command, debug_file, folder, indexes_in, names_in, symbolicate, symdex, testdata,
};

fn crash() -> PathBuf {
    testdata().join("demo/demo.crash")
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).expect("readable")
}

/// The demo's crash, symbolicated with all of its debug files.
fn demo(root: &Path, options: &[&str]) -> CommandOutput {
    symbolicate(root, &testdata().join("demo"), options, [crash()])
}

#[test]
fn the_frames_of_the_demos_crash_are_answered_and_the_rest_is_unchanged() {
    let root = folder();
    let done = demo(root.path(), &["--lines", "exact"]);
    assert_eq!(done.code, Some(0), "{}", done.err);
    let expected = include_str!("../../../testdata/demo/demo.expected.tsv");
    let mut compared = 0;
    for row in expected.lines().filter(|row| !row.starts_with('#')) {
        let [thread, frame, _, _, depth, name, file, line] =
            row.split('\t').collect::<Vec<_>>().try_into().expect("eight columns");
        let lines = stack(&done.out, thread);
        let of_frame = lines.iter().filter(|line| line.split(' ').next() == Some(frame));
        let text = of_frame.copied().nth(depth.parse().expect("a number")).expect(row);
        let function = symdex_demangle::demangle(name.as_bytes());
        let file = file.rsplit('/').next().unwrap_or_default();
        let place = if line == "-" { String::new() } else { format!(" ({file}:{line})") };
        assert!(text.contains(&*function) && text.contains(&place), "{row}\n{text}");
        compared += 1;
    }
    assert!(compared > 40, "only {compared} functions");
    // All other lines, and frames of the system, are unchanged.
    let before = text(&crash());
    let others = before.lines().filter(|line| !(line.contains("\t0x") && line.contains("Demo")));
    let mut after = done.out.lines();
    for line in others {
        assert!(after.any(|other| other == line), "{line}");
    }
}

/// The lines of frames of a thread.
fn stack<'a>(report: &'a str, thread: &str) -> Vec<&'a str> {
    let head = format!("Thread {thread}");
    let is_head = |line: &&str| line.starts_with(&head) && !line.contains("name:") && line.contains(':');
    let lines = report.lines().skip_while(|line| !is_head(line)).skip(1);
    lines.take_while(|line| !line.is_empty()).collect()
}

#[test]
fn a_second_run_needs_no_debug_files() {
    let root = folder();
    let first = demo(root.path(), &[]);
    assert_eq!(indexes_in(&root.path().join("store")).len(), 3, "{}", first.err);
    let store = root.path().join("store");
    for option in ["--store", "--index"] {
        let mut run = command();
        run.arg("symbolicate").arg(crash()).arg(option).arg(&store);
        if option == "--index" {
            run.arg("--store").arg(root.path().join("none"));
        }
        let again = CommandOutput::from(run.output().expect("ran"));
        assert_eq!((again.code, &again.out, &again.err), (Some(0), &first.out, &first.err));
    }
    assert!(!root.path().join("none").exists());
    let mut run = command();
    run.arg("symbolicate").arg(crash()).arg("--store").arg(root.path().join("none"));
    run.arg("--index").arg(store.join("4c/4c4c444e55553144a1e5129c2dc95135.symdex"));
    let one = CommandOutput::from(run.output().expect("ran"));
    assert_eq!(one.code, Some(3), "{}", one.err);
    assert!(
        one.err.contains("found: DemoPlain.dylib") && one.err.contains("missing: DemoKit"),
        "{}",
        one.err
    );
}

#[test]
fn only_what_a_report_needs_is_built() {
    let root = folder();
    let dsym = testdata().join("dsyms");
    let done = symbolicate(root.path(), &dsym, &[], [crash()]);
    assert_eq!(done.code, Some(3), "{}", done.err);
    assert!(!root.path().join("store").exists());
    assert_eq!(done.out, text(&crash()), "without indexes nothing changes");
    let missing =
        "symdex: missing: DemoKit arm64 4C4C4427-5555-3144-A19D-BD913BE790E0 /private/var/containers/";
    assert!(done.err.contains(missing), "{}", done.err);
    assert!(
        done.err.contains("symdex: 1 report: 0 of 52 frames symbolicated, 7 already had names;"),
        "{}",
        done.err
    );
}

/// The index of a binary has functions only. With the debug file, the frames have lines.
#[test]
fn a_debug_file_is_preferred_to_an_index_of_symbols_alone() {
    let root = folder();
    let debug =
        fs::read(testdata().join("demo/DemoApp.app.dSYM/Contents/Resources/DWARF/DemoApp")).expect("there");
    let mut stripped = debug;
    let section = stripped.windows(12).position(|name| name == b"__debug_info").expect("DWARF");
    stripped[section..section + 12].copy_from_slice(b"__other_info");
    // Binaries have a bit in their subtype that debug files do not have.
    stripped[11] |= 0x80;
    let binary = root.path().join("DemoApp");
    fs::write(&binary, stripped).expect("written");
    let before = symbolicate(root.path(), &binary, &[], [crash()]);
    let frame =
        |done: &CommandOutput| done.out.lines().rfind(|line| line.starts_with("14 ")).map(str::to_owned);
    let line = "14  DemoApp                       \t0x0000000104838230 \
                engine::Renderer::visit(engine::Node const&, engine::Visitor&) + 116";
    assert_eq!((before.code, frame(&before).as_deref()), (Some(3), Some(line)));
    let both = root.path().join("both");
    fs::create_dir_all(&both).expect("a folder");
    fs::rename(&binary, both.join("DemoApp")).expect("moved");
    let demo = testdata().join("demo/DemoApp.app.dSYM/Contents/Resources/DWARF/DemoApp");
    fs::copy(demo, both.join("DemoApp.debug")).expect("copied");
    let after = symbolicate(root.path(), &both, &[], [crash()]);
    assert_eq!(frame(&after), Some(format!("{line} (Engine.cpp:31)")), "{}", after.err);
}

#[test]
fn images_near_a_missing_image_are_named() {
    let root = folder();
    let other =
        text(&crash()).replace("4c4c442755553144a19dbd913be790e0", "00000000111122223333444444444444");
    let other = other.replace("DemoApp arm64 ", "DemoApp armv7 ");
    let path = root.path().join("other.crash");
    fs::write(&path, other).expect("written");
    let done = symbolicate(root.path(), &testdata().join("demo"), &[], [path]);
    assert_eq!(done.code, Some(3), "{}", done.err);
    for line in [
        "  near: DemoKit arm64 4C4C4427-5555-3144-A19D-BD913BE790E0: another build of that name\n",
        "  near: DemoApp arm64 4C4C4479-5555-3144-A170-308419376AFA: the same id for another architecture\n",
        "DemoApp armv7 4C4C4479-5555-3144-A170-308419376AFA",
        "its index is for arm64\n",
        "found: DemoPlain.dylib arm64",
    ] {
        assert!(done.err.contains(line), "{line}: {}", done.err);
    }
}

/// The report states the load address of the kernel's code, not of its header.
#[test]
fn offsets_from_text_exec_are_those_of_the_image() {
    let root = folder();
    let mut bytes = fs::read(debug_file("inline-dwarf4")).expect("there");
    // The segment gets the name of the kernel's, and starts 0x20 after the header.
    let segment = bytes.windows(16).position(|name| name == b"__LINKEDIT\0\0\0\0\0\0").expect("a segment");
    bytes[segment..segment + 16].copy_from_slice(b"__TEXT_EXEC\0\0\0\0\0");
    bytes[segment + 16..segment + 24].copy_from_slice(&0x1_0000_0020_u64.to_le_bytes());
    let kernel = root.path().join("kernel");
    fs::write(&kernel, bytes).expect("written");
    let report = root.path().join("report.ips");
    let of_image = |source: &str, base: u64| {
        format!(
            "{{\"bug_type\":\"309\"}}\n{{\"threads\":[{{\"frames\":[{{\"imageOffset\":992,\"imageIndex\":0}}]}}],\
             \"usedImages\":[{{\"source\":\"{source}\",\"base\":{base},\"size\":4096,\"arch\":\"arm64e\",\
             \"uuid\":\"4c4c4470-5555-3144-a1a2-2a1f1f7676f4\",\"name\":\"kernel\"}}]}}\n"
        )
    };
    let store = root.path().join("store");
    for (source, offset) in [("T", "0x400"), ("P", "0x3e0")] {
        fs::write(&report, of_image(source, 0x7000_0000)).expect("written");
        let done =
            symbolicate(root.path(), &kernel, &["--addresses", "as-given", "--format", "json"], [&report]);
        assert_eq!(done.code, Some(0), "{}", done.err);
        let functions = &done.json()[0]["threads"][0]["frames"][0]["functions"];
        let function = functions.as_array().and_then(|functions| functions.last()).expect("a function");
        let id = "4c4c447055553144a1a22a1f1f7676f4";
        let known = symdex([
            "lookup".as_ref(),
            store.as_os_str(),
            "--id".as_ref(),
            id.as_ref(),
            offset.as_ref(),
            "--json".as_ref(),
        ]);
        let known = &known.json()[0]["functions"];
        let known = known.as_array().and_then(|frames| frames.last()).expect("a function");
        assert_eq!(
            (&function["function"], &function["line"]),
            (&known["function"], &known["line"]),
            "{source}"
        );
        assert_eq!(known["function_offset"], function["function_offset"], "{source}");
    }
}

#[test]
fn json_has_the_status_of_each_frame_and_image() {
    let root = folder();
    let done = demo(root.path(), &["--format", "json"]);
    let [report] = &done.json()[..] else { panic!("{}", done.out) };
    assert_eq!((report["format"].as_str(), done.code), (Some("apple-crash"), Some(0)));
    assert_eq!(report["report"].as_str(), crash().to_str());
    let statuses: Vec<_> =
        report["images"].as_array().expect("images").iter().map(|i| i["status"].clone()).collect();
    assert_eq!(statuses.iter().filter(|status| *status == "found").count(), 3);
    let first = &report["threads"][0]["frames"][0];
    assert_eq!(report["threads"][0]["crashed"], true);
    assert_eq!(
        (first["status"].as_str(), first["functions"][0]["inlined"].as_bool()),
        (Some("symbolicated"), Some(true))
    );
    assert_eq!(first["functions"][2]["function_offset"], 36);
    let of_system =
        report["threads"][0]["frames"].as_array().and_then(|frames| frames.last()).expect("frames");
    assert_eq!(
        (of_system["status"].as_str(), of_system["reason"].as_str()),
        (Some("missing"), Some("no index or debug file has its id"))
    );
}

#[test]
fn several_reports_come_out_in_order_and_each_in_its_file() {
    let root = folder();
    let reports: Vec<PathBuf> = (0..20).map(|n| root.path().join(format!("{n:02}.crash"))).collect();
    for (n, path) in reports.iter().enumerate() {
        fs::write(path, text(&crash()).replace("4242", &n.to_string())).expect("written");
    }
    let one = demo(root.path(), &[]).out;
    let expected: Vec<_> = reports
        .iter()
        .enumerate()
        .map(|(n, path)| format!("==> {} <==\n{}", path.display(), one.replace("4242", &n.to_string())))
        .collect();
    let expected = expected.join("\n");
    let dsym = testdata().join("demo");
    let all = symbolicate(root.path(), &dsym, &[], &reports);
    assert_eq!((all.code, all.out == expected), (Some(0), true), "{}", all.err);
    assert!(all.err.starts_with("symdex: 20 reports: "), "{}", all.err);
    let out = root.path().join("out");
    let files = symbolicate(root.path(), &dsym, &["-o", out.to_str().expect("UTF-8")], &reports);
    assert_eq!((files.code, files.out.as_str(), names_in(&out).len()), (Some(0), "", 20));
    assert_eq!(text(&out.join("07.crash")), one.replace("4242", "7"));
    let single = root.path().join("single.crash");
    let single_text = symbolicate(root.path(), &dsym, &["-o", single.to_str().expect("UTF-8")], [crash()]);
    assert_eq!((single_text.code, text(&single)), (Some(0), one));
}

/// The folders below the common folder of all reports.
#[test]
fn reports_of_one_name_keep_their_folders() {
    let root = folder();
    let paths = ["a/1/x.crash", "a/2/x.crash", "a/2/y.crash"].map(|path| root.path().join(path));
    for (n, path) in paths.iter().enumerate() {
        fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
        fs::write(path, text(&crash()).replace("4242", &n.to_string())).expect("written");
    }
    let (out, dsym) = (root.path().join("out"), testdata().join("demo"));
    let options = ["-o", out.to_str().expect("UTF-8")];
    let done = symbolicate(root.path(), &dsym, &options, &paths);
    assert_eq!((done.code, done.out.as_str()), (Some(0), ""), "{}", done.err);
    let one = demo(root.path(), &[]).out;
    for (n, path) in ["1/x.crash", "2/x.crash", "2/y.crash"].iter().enumerate() {
        assert_eq!(text(&out.join(path)), one.replace("4242", &n.to_string()), "{path}");
    }
    let other = root.path().join("a/2/../1/x.crash");
    let twice = symbolicate(root.path(), &dsym, &options, [&paths[0], &other]);
    assert_eq!((twice.code, twice.out.as_str()), (Some(2), ""));
    assert!(twice.err.contains("would be overwritten; give each report once"), "{}", twice.err);
}

/// Missing images are sorted by the number of their frames, and at most 100 are listed.
#[test]
fn a_long_list_of_missing_images_is_cut() {
    let root = folder();
    let frame = |n: u64| format!("{n}   L{n}  {:#x} {:#x} + 16\n", (n << 16) + 16, n << 16);
    let image =
        |n: u64| format!("{:#x} - {:#x} L{n} arm64  <{n:032x}> /var/L{n}\n", n << 16, (n << 16) + 0xfff);
    let [mut frames, images]: [String; 2] = [(1..=150).map(frame).collect(), (1..=150).map(image).collect()];
    frames += &frame(120);
    let report = root.path().join("many.crash");
    fs::write(&report, format!("Thread 0:\n{frames}\nBinary Images:\n{images}")).expect("written");
    let done = symbolicate(root.path(), &testdata().join("demo"), &[], [report]);
    let missing: Vec<_> = done.err.lines().filter(|line| line.starts_with("symdex: missing: ")).collect();
    assert_eq!((done.code, missing.len()), (Some(3), 100));
    assert!(
        missing[0].starts_with("symdex: missing: L120 ") && missing[0].contains(": 2 frames: "),
        "{}",
        missing[0]
    );
    assert!(done.err.contains("\nsymdex: ... and 50 more\n"), "{}", done.err);
}

#[test]
fn standard_input_is_a_report() {
    let root = folder();
    let expected = demo(root.path(), &[]);
    for arguments in [&[][..], &["-"]] {
        let mut run = command();
        run.arg("symbolicate").args(arguments).arg("--store").arg(root.path().join("store"));
        let mut child =
            run.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("starts");
        child.stdin.take().expect("a pipe").write_all(text(&crash()).as_bytes()).expect("read");
        let done = CommandOutput::from(child.wait_with_output().expect("ran"));
        assert_eq!((done.code, done.out, done.err), (Some(0), expected.out.clone(), expected.err.clone()));
    }
}

#[test]
fn unreadable_inputs_are_reported_and_the_others_are_used() {
    let root = folder();
    let expected = demo(root.path(), &[]);
    let path = |name: &str, text: &str| {
        let path = root.path().join(name);
        fs::write(&path, text).expect("written");
        path
    };
    let dsym = testdata().join("demo");
    let cases = [
        (path("cut.ips", "{\"bug_type\":\"309\"}\n{\"threads\":["), 4, "because it is cut"),
        (path("jetsam.ips", "{\"bug_type\":\"298\"}\n{}"), 6, "an .ips of bug type \"298\""),
        (path("readme.txt", "nothing"), 6, "not a crash report of a known format"),
        (root.path().join("gone.crash"), 5, "cannot read"),
    ];
    for (path, code, message) in cases {
        let done = symbolicate(root.path(), &dsym, &[], [&path, &crash()]);
        let expected = format!("==> {} <==\n{}", crash().display(), expected.out);
        assert_eq!((done.code, &done.out), (Some(code), &expected), "{}", done.err);
        assert!(done.err.contains(message), "{}", done.err);
    }
    // An unreadable debug file does not end the run.
    let cache = path("dyld_shared_cache_arm64", "dyld_v1   arm64\0");
    for (dsym, code, message) in [
        (&cache, 6, "a dyld shared cache; build indexes of its images with `symdex build`"),
        (&path("notes.txt", "nothing"), 6, "not a debug file"),
        (&root.path().join("gone.dSYM"), 5, "gone.dSYM"),
    ] {
        let done = symbolicate(root.path(), dsym, &[], [crash()]);
        assert_eq!((done.code, &done.out), (Some(code), &expected.out), "{}", done.err);
        assert!(done.err.contains(message), "{}", done.err);
    }
    let usage = symbolicate(root.path(), &dsym, &["--lines", "none"], [crash()]);
    assert_eq!(usage.code, Some(2));
}
