//! `POST /symbolicate/v5` and `/symbolicate/v4`. What is expected is what llvm-symbolizer says about the same address,
//! in the form of Eliot.

use serde_json::{Value, json};

use crate::server::{TestServer, elf_store, store_of};

const GRID: &str = "/src/symdex/inline/level/../grid.h";
const MIP: &str = "/src/symdex/inline/level/mip.h";

/// The debug id of a Mach-O image: its UUID and the age.
fn debug_id(id: &str) -> String {
    format!("{}0", id.replace('-', "").to_ascii_uppercase())
}

fn found(server: &TestServer, path: &str, request: &Value) -> Value {
    let answer = server.post_json(path, request);
    assert_eq!(
        (answer.status, answer.header("content-type")),
        (200, "application/json"),
        "{}",
        answer.text()
    );
    answer.json()
}

pub(crate) fn frames_have_functions_lines_and_inlined_functions() {
    let (store, ids) = store_of(&["inline-dwarf4"]);
    let server = TestServer::start(store.path(), &[]);
    let (module, other) = (debug_id(&ids[0]), "00112233445566778899AABBCCDDEEFF0");
    let request = json!({"jobs": [{
        "memoryMap": [["inline-dwarf4", module], ["libother.dylib", other], ["libunused.so", "12345"], ["", ""]],
        "stacks": [
            [[0, 0x3cf], [0, 0x6e0], [0, 0x61b], [0, 0xfff_ffff], [0, -1]],
            [[-1, 12345], [1, 16], [3, 4]],
            [],
        ],
    }]});
    let expected = json!({"results": [{
        "stacks": [
            [
                {"frame": 0, "module": "inline-dwarf4", "module_offset": "0x3cf",
                    "function": "pyramid", "function_offset": "0x2f", "file": MIP, "line": 11,
                    "inlines": [
                        {"function": "cell", "file": GRID, "line": 9},
                        {"function": "row", "file": GRID, "line": 16},
                        {"function": "mip", "file": MIP, "line": 6},
                    ]},
                {"frame": 1, "module": "inline-dwarf4", "module_offset": "0x6e0",
                    "function": "plain_entry", "function_offset": "0x0"},
                {"frame": 2, "module": "inline-dwarf4", "module_offset": "0x61b",
                    "function": "depth", "function_offset": "0xb", "file": "/src/symdex/inline/main.c", "line": 25},
                {"frame": 3, "module": "inline-dwarf4", "module_offset": "0xfffffff"},
                {"frame": 4, "module": "inline-dwarf4", "module_offset": "-0x1"},
            ],
            [
                {"frame": 0, "module": "<unknown>", "module_offset": "0x3039"},
                {"frame": 1, "module": "libother.dylib", "module_offset": "0x10"},
                {"frame": 2, "module": "<unknown>", "module_offset": "0x4"},
            ],
            [],
        ],
        "found_modules": {
            format!("inline-dwarf4/{module}"): true,
            format!("libother.dylib/{other}"): false,
            "libunused.so/12345": null,
            "/": null,
        },
    }]});
    assert_eq!(found(&server, "/symbolicate/v5", &request), expected);
    // One job may stand alone.
    assert_eq!(found(&server, "/symbolicate/v5", &request["jobs"][0]), expected);
    // Digits in lower case name the same module. A module that only one job asks for is found in all.
    let lower = json!([["a (b).dylib", module.to_lowercase()]]);
    let jobs = json!({"jobs": [
        {"memoryMap": lower, "stacks": [[[0, -1]]]},
        {"memoryMap": lower, "stacks": [[]], "version": 5},
    ]});
    let results = found(&server, "/symbolicate/v5", &jobs)["results"].take();
    let modules = json!({format!("a (b).dylib/{}", module.to_lowercase()): true});
    assert_eq!((&results[0]["found_modules"], &results[1]["found_modules"]), (&modules, &modules));
    // Other ages are of other files.
    let aged = json!({"memoryMap": [["a", format!("{}1", &module[..32])]], "stacks": [[[0, 0x3cf]]]});
    let results = found(&server, "/symbolicate/v5", &aged)["results"].take();
    assert_eq!(results[0]["stacks"][0][0].get("function"), None);
}

pub(crate) fn line_0_is_left_out_and_names_are_demangled() {
    let (store, ids) = store_of(&["swift-names", "cxx"]);
    let server = TestServer::start(store.path(), &[]);
    let modules = json!([["swift-names", debug_id(&ids[0])], ["cxx", debug_id(&ids[1])]]);
    let request = json!({"memoryMap": modules, "stacks": [[[0, 0x500], [0, 0x400]]]});
    let results = found(&server, "/symbolicate/v5", &request)["results"].take();
    let [getter, closure] = [0, 1].map(|at| &results[0]["stacks"][0][at]);
    // llvm-symbolizer: $s4Feed8TimelineC5countSivgTo, line 0 of <compiler-generated>.
    assert_eq!(getter["function"], "@objc Timeline.count.getter");
    assert!(getter["file"].as_str().is_some_and(|file| file.ends_with("<compiler-generated>")), "{getter}");
    assert_eq!(getter.get("line"), None);
    // llvm-symbolizer: $s4Feed8TimelineC6appendyS2iFS2iXEfU_, line 58.
    assert_eq!(closure["function"], "closure #1 in Timeline.append(_:)");
    assert_eq!((&closure["file"], &closure["line"]), (&json!("/src/symdex/swift/Feed.swift.c"), &json!(58)));
}

pub(crate) fn version_4_has_only_names() {
    let (store, ids) = store_of(&["inline-dwarf4"]);
    let server = TestServer::start(store.path(), &[]);
    let request = json!({
        "memoryMap": [["inline-dwarf4", debug_id(&ids[0])], ["libother.dylib", "ABC0"], ["libunused.so", "1"]],
        "stacks": [[[0, 0x3cf], [0, 0xfff_ffff]], [[-1, 1000], [1, -1]]],
        "version": 4,
    });
    let expected = json!({
        "symbolicatedStacks": [
            ["pyramid (in inline-dwarf4)", "0xfffffff (in inline-dwarf4)"],
            ["0x3e8 (in <unknown>)", "-0x1 (in libother.dylib)"],
        ],
        "knownModules": [true, false, null],
    });
    assert_eq!(found(&server, "/symbolicate/v4", &request), expected);
}

pub(crate) fn a_debug_id_of_an_elf_image_has_the_start_of_its_build_id() {
    let store = elf_store();
    let server = TestServer::start(store.path(), &[]);
    // 00112233 4455 6677, each field in the order of a GUID.
    let module = "33221100554477668899AABBCCDDEE010";
    let request = json!({"memoryMap": [["libapp.so", module]], "stacks": [[[0, 0x1010]]]});
    let results = found(&server, "/symbolicate/v5", &request)["results"].take();
    assert_eq!(results[0]["found_modules"], json!({format!("libapp.so/{module}"): true}));
    let frame = &results[0]["stacks"][0][0];
    assert_eq!((&frame["function"], &frame["function_offset"]), (&json!("f"), &json!("0x10")));
}

pub(crate) fn the_header_debug_adds_counts_and_times() {
    let (store, ids) = store_of(&["inline-dwarf4"]);
    let server = TestServer::start(store.path(), &[]);
    let module = debug_id(&ids[0]);
    let job = json!({"memoryMap": [["a", module], ["b", "ABC"]], "stacks": [[[0, 0x3cf], [1, 2]]]});
    let request = json!({"jobs": [job, job]}).to_string();
    let ask = |value| server.post_with("/symbolicate/v5", &[("debug", value)], &request).json();
    let debug = ask("true")["debug"].take();
    assert_eq!(
        debug["modules"],
        json!({"count": 4, "stacks_per_module": {format!("a/{module}"): 2, "b/ABC": 2}})
    );
    assert_eq!((&debug["cache_lookups"]["count"], &debug["cache_lookups"]["hits"]), (&json!(2), &json!(1)));
    assert_eq!((&debug["downloads"]["count"], &debug["downloads"]["size"]), (&json!(0), &json!(0)));
    for time in [&debug["time"], &debug["cache_lookups"]["time"], &debug["downloads"]["time"]] {
        assert!(time.as_f64().is_some_and(|time| time >= 0.0), "{debug}");
    }
    assert_eq!(ask("false").get("debug"), None);
}

pub(crate) fn requests_that_are_wrong_are_refused_with_a_title() {
    let server = TestServer::empty(&[]);
    // The unit tests of the server have every title.
    for (body, title) in [
        ("", "Payload is not valid JSON"),
        ("{}", "job 0 is invalid: no stacks specified"),
        (r#"{"stacks": [[]]}"#, "job 0 is invalid: no memoryMap specified"),
        (r#"{"stacks": [], "memoryMap": []}"#, "job 0 has invalid stacks: no stacks specified"),
        (
            r#"{"stacks": [[]], "memoryMap": [["a", "x"]]}"#,
            "job 0 has invalid modules: module index 0 has an invalid debug_id",
        ),
        (
            r#"{"stacks": [[[0, 1]]], "memoryMap": []}"#,
            "job 0 has invalid stacks: stack 0 frame 0 has a module_index that isn't in modules",
        ),
    ] {
        for path in ["/symbolicate/v5", "/symbolicate/v4"] {
            let answer = server.post(path, body);
            assert_eq!((answer.status, &answer.json()["title"]), (400, &json!(title)), "{path} {body}");
        }
    }
    let many = json!({"jobs": vec![json!({"stacks": [[]], "memoryMap": []}); 11]});
    let answer = server.post_json("/symbolicate/v5", &many);
    let title = "please limit number of jobs in a single request to <= 10";
    assert_eq!((answer.status, &answer.json()["title"]), (400, &json!(title)));
    assert_eq!(server.get("/symbolicate/v5").status, 405);
}

/// The request of the Firefox Profiler, which is the front end of samply: a job for each library with one stack of its
/// addresses. Browsers send it as text, so that they need not ask before.
pub(crate) fn the_firefox_profiler_may_ask_if_its_origin_is_allowed() {
    let (store, ids) = store_of(&["inline-dwarf4"]);
    let job = |id: &str| json!({"memoryMap": [["inline-dwarf4", id]], "stacks": [[[0, 0x3cf], [0, 0x6e0]]]});
    let body =
        json!({"jobs": [job(&debug_id(&ids[0])), job("00112233445566778899AABBCCDDEEFF0")]}).to_string();
    let origin = "https://profiler.firefox.com";
    let headers =
        [("content-type", "text/plain;charset=UTF-8"), ("origin", origin), ("sec-fetch-site", "cross-site")];
    let server = TestServer::start(store.path(), &[]);
    assert_eq!(server.post_with("/symbolicate/v5", &headers, &body).status, 403);
    for allowed in [origin, "*"] {
        let server = TestServer::start(store.path(), &["--cors-origin", allowed]);
        let answer = server.post_with("/symbolicate/v5", &headers, &body);
        assert_eq!((answer.status, answer.header("access-control-allow-origin")), (200, allowed));
        let results = answer.json()["results"].take();
        let functions = [0, 1].map(|at| &results[0]["stacks"][0][at]["function"]);
        assert_eq!(functions, ["pyramid", "plain_entry"]);
        assert_eq!(
            results[1]["found_modules"],
            json!({"inline-dwarf4/00112233445566778899AABBCCDDEEFF0": false})
        );
    }
}
