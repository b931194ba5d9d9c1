//! `POST /symbolicate` and `GET /requests/{id}`. What is expected is what llvm-symbolizer says about the same address,
//! in the form of Symbolicator.

use serde_json::{Value, json};
use symdex_testkit::folders::folder;
use symdex_testkit::images::seal::seal_header;
use symdex_testkit::testdata::testdata;

use crate::server::{ELF_BUILD_ID, TestServer, elf_store, store_of};

const GRID: &str = "/src/symdex/inline/level/../grid.h";
const MIP: &str = "/src/symdex/inline/level/mip.h";
const MAIN: &str = "/src/symdex/inline/main.c";

fn found(server: &TestServer, request: &Value) -> Value {
    let answer = server.post_json("/symbolicate", request);
    assert_eq!(
        (answer.status, answer.header("content-type")),
        (200, "application/json"),
        "{}",
        answer.text()
    );
    let answer = answer.json();
    assert_eq!(answer["status"], "completed");
    answer
}

/// A module of the image with this UUID, loaded at 0x10000.
fn macho(id: &str) -> Value {
    json!({
        "type": "macho", "debug_id": id, "code_file": "/app/inline-dwarf4", "image_addr": "0x10000",
        "image_size": 0x4000,
    })
}

/// The status and the function of each frame of the first stack trace.
fn functions(answer: &Value) -> Vec<(String, Option<String>)> {
    let frames = answer["stacktraces"][0]["frames"].as_array().expect("a list");
    let text = |value: &Value| value.as_str().map(str::to_owned);
    frames
        .iter()
        .map(|frame| (text(&frame["status"]).unwrap_or_default(), text(&frame["function"])))
        .collect()
}

pub(crate) fn frames_are_symbolicated_with_inlined_functions() {
    let (store, ids) = store_of(&["inline-dwarf4"]);
    let server = TestServer::start(store.path(), &[]);
    let other = "00112233-4455-6677-8899-aabbccddeeff";
    let request = json!({
        "platform": "native",
        "signal": 11,
        "sources": [{"type": "http", "id": "x", "url": "http://symbols.example/"}],
        "stacktraces": [{
            "registers": {"pc": "0x103cc", "sp": "0x7000"},
            "frames": [
                {"instruction_addr": "0x103cc"},
                {"instruction_addr": "0x1061c", "package": "somewhere"},
                {"instruction_addr": "0x20010"},
                {"instruction_addr": "0x9000", "symbol": "_ZN3foo3barEi", "lineno": 7},
                {"instruction_addr": "0x30", "addr_mode": "rel:1"},
                {"instruction_addr": "0x14000"},
            ],
        }],
        "modules": [
            macho(&ids[0].to_uppercase()),
            {"type": "elf", "debug_id": other, "code_id": "ABCD", "image_addr": "0x20000", "image_size": "0x1000"},
            {"type": "macho", "debug_id": "x", "image_addr": "0x40000", "image_size": 16},
        ],
    });
    let at = "0x103cc";
    let package = "/app/inline-dwarf4";
    let inlined = |function, path: &str, lineno| {
        let filename = path.rsplit('/').next().expect("a name");
        json!({
            "status": "symbolicated", "original_index": 0, "instruction_addr": at, "package": package,
            "symbol": function, "function": function, "abs_path": path, "filename": filename, "lineno": lineno,
        })
    };
    // The names of C say nothing, and these functions are in headers: only main.c says what its language is.
    let mut concrete = inlined("pyramid", MIP, 11);
    concrete["sym_addr"] = json!("0x103a0");
    let features = |has| json!({"has_debug_info": has, "has_unwind_info": false, "has_symbols": has, "has_sources": false});
    let expected = json!({
        "status": "completed",
        "signal": 11,
        "stacktraces": [{
            "registers": {"pc": "0x103cc", "sp": "0x7000"},
            "frames": [
                // llvm-symbolizer 0x1000003cc
                inlined("cell", GRID, 9), inlined("row", GRID, 16), inlined("mip", MIP, 6), concrete,
                // llvm-symbolizer 0x100000618: the call is the instruction before.
                {"status": "symbolicated", "original_index": 1, "instruction_addr": "0x10618", "package": package,
                    "lang": "c", "symbol": "depth", "sym_addr": "0x10610", "function": "depth", "abs_path": MAIN,
                    "filename": "main.c", "lineno": 25},
                {"status": "missing", "original_index": 2, "instruction_addr": "0x20010"},
                {"status": "unknown_image", "original_index": 3, "instruction_addr": "0x9000",
                    "symbol": "_ZN3foo3barEi", "function": "foo::bar(int)", "lineno": 7},
                {"status": "missing", "original_index": 4, "addr_mode": "rel:1", "instruction_addr": "0x30"},
                {"status": "missing_symbol", "original_index": 5, "instruction_addr": "0x14000", "package": package},
            ],
        }],
        "modules": [
            {"debug_status": "found", "features": features(true), "arch": "arm64", "type": "macho",
                "code_file": package, "debug_id": "4c4c4470-5555-3144-a1a2-2a1f1f7676f4", "image_addr": "0x10000", "image_size": 0x4000},
            {"debug_status": "missing", "features": features(false), "arch": "unknown", "type": "elf",
                "code_id": "abcd", "debug_id": other, "image_addr": "0x20000", "image_size": 0x1000},
            {"debug_status": "unused", "features": features(false), "arch": "unknown", "type": "macho",
                "image_addr": "0x40000", "image_size": 16},
        ],
    });
    assert_eq!(found(&server, &request), expected);
    // `threads` is another name of `stacktraces`.
    let mut threads = request;
    threads["threads"] = threads["stacktraces"].take();
    threads.as_object_mut().expect("an object").remove("stacktraces");
    assert_eq!(found(&server, &threads), expected);
}

pub(crate) fn only_the_first_frame_has_the_address_of_an_instruction() {
    let (store, ids) = store_of(&["inline-dwarf4"]);
    let server = TestServer::start(store.path(), &[]);
    let ask = |stacktrace: Value, signal: Value| {
        let request = json!({"signal": signal, "stacktraces": [stacktrace], "modules": [macho(&ids[0])]});
        let answer = found(&server, &request);
        let frames = answer["stacktraces"][0]["frames"].as_array().expect("a list");
        frames.iter().map(|frame| frame["function"].as_str().unwrap_or("-").to_owned()).collect::<Vec<_>>()
    };
    // `depth` begins at 0x610, after `choose`.
    let two = json!([{"instruction_addr": "0x10610"}, {"instruction_addr": "0x10610"}]);
    assert_eq!(ask(json!({"frames": two}), json!(11)), ["depth", "choose"]);
    assert_eq!(ask(json!({"frames": two}), Value::Null), ["depth", "choose"]);
    // The instruction pointer is elsewhere after a crash: the first frame is the caller of a signal handler.
    let registers = json!({"pc": "0x4242"});
    assert_eq!(ask(json!({"frames": two, "registers": registers}), json!(11)), ["choose", "choose"]);
    assert_eq!(ask(json!({"frames": two, "registers": registers}), json!(6)), ["depth", "choose"]);
    // A frame that says what its address is changes the others as well.
    let stated = json!([
        {"instruction_addr": "0x10610"},
        {"instruction_addr": "0x10610", "adjust_instruction_addr": false},
        {"instruction_addr": "0x10610", "adjust_instruction_addr": true},
    ]);
    assert_eq!(ask(json!({"frames": stated}), json!(11)), ["choose", "depth", "choose"]);
}

pub(crate) fn addresses_may_be_offsets_in_modules() {
    let (store, ids) = store_of(&["inline-dwarf4"]);
    let server = TestServer::start(store.path(), &[]);
    let mut module = macho(&ids[0]);
    let frames = json!([
        {"instruction_addr": "0x610", "addr_mode": "rel:0"},
        {"instruction_addr": "0x610", "addr_mode": "rel:0"},
        {"instruction_addr": "0x610", "addr_mode": "rel:9"},
        {"instruction_addr": "0x10614", "addr_mode": "abs"},
    ]);
    let ask = |module: &Value| {
        found(&server, &json!({"stacktraces": [{"frames": frames}], "modules": [module]}))["stacktraces"]
            .take()
    };
    let answered = ask(&module);
    let member = |stacktraces: &Value, member| {
        let frames = stacktraces[0]["frames"].as_array().expect("a list");
        frames.iter().map(|frame| frame[member].as_str().unwrap_or("-").to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(member(&answered, "function"), ["depth", "choose", "-", "depth"]);
    assert_eq!(member(&answered, "status")[2], "unknown_image");
    assert_eq!(member(&answered, "instruction_addr"), ["0x10610", "0x1060c", "0x610", "0x10610"]);
    assert_eq!(member(&answered, "addr_mode"), ["-", "-", "rel:9", "-"]);
    // A module at 0 has no place in memory: offsets in it are looked up as they are, and there are no addresses.
    module["image_addr"] = json!("0x0");
    let answered = ask(&module);
    assert_eq!(member(&answered, "function"), ["depth", "depth", "-", "-"]);
    assert_eq!(member(&answered, "addr_mode"), ["rel:0", "rel:0", "rel:9", "-"]);
    assert_eq!(member(&answered, "sym_addr")[..2], ["0x610", "0x610"]);
}

pub(crate) fn frames_may_be_sent_in_the_other_order() {
    let (store, ids) = store_of(&["inline-dwarf4"]);
    let server = TestServer::start(store.path(), &[]);
    let request = json!({
        "stacktraces": [{"frames": [{"instruction_addr": "0x1061c"}, {"instruction_addr": "0x103cc"}]}],
        "modules": [macho(&ids[0])],
        "options": {"frame_order": "caller_first", "dif_candidates": true, "apply_source_context": false},
    });
    let functions: Vec<_> =
        functions(&found(&server, &request)).into_iter().filter_map(|(_, name)| name).collect();
    assert_eq!(functions, ["depth", "pyramid", "mip", "row", "cell"]);
}

pub(crate) fn an_elf_image_is_found_by_its_build_id_or_its_debug_id() {
    let store = elf_store();
    let server = TestServer::start(store.path(), &[]);
    let debug_id = "33221100-5544-7766-8899-aabbccddee01";
    let code_id = ELF_BUILD_ID;
    for ids in [
        json!({"debug_id": debug_id, "code_id": code_id}),
        json!({"debug_id": debug_id}),
        json!({"code_id": code_id}),
    ] {
        let mut module = json!({"type": "elf", "image_addr": "0x70000000", "image_size": 0x10000});
        module.as_object_mut().expect("an object").extend(ids.as_object().expect("an object").clone());
        let frames = json!([{"instruction_addr": "0x70001010"}]);
        let answer = found(&server, &json!({"stacktraces": [{"frames": frames}], "modules": [module]}));
        assert_eq!(functions(&answer), [("symbolicated".to_owned(), Some("f".to_owned()))], "{ids}");
        assert_eq!(answer["modules"][0]["debug_status"], "found");
    }
}

pub(crate) fn a_damaged_index_is_malformed() {
    let (store, ids) = store_of(&["inline-dwarf4"]);
    let index = std::fs::read_dir(store.path())
        .expect("a folder")
        .flat_map(|entry| std::fs::read_dir(entry.expect("an entry").path()).into_iter().flatten())
        .map(|entry| entry.expect("an entry").path())
        .find(|path| path.extension().is_some_and(|extension| extension == "symdex"))
        .expect("an index");
    std::fs::write(&index, b"not an index").expect("written");
    let server = TestServer::start(store.path(), &[]);
    let frames = json!([{"instruction_addr": "0x103cc"}]);
    let request = json!({"stacktraces": [{"frames": frames}], "modules": [macho(&ids[0])]});
    let answer = found(&server, &request);
    assert_eq!(
        (functions(&answer), &answer["modules"][0]["debug_status"]),
        (vec![("malformed".to_owned(), None)], &json!("malformed"))
    );
}

pub(crate) fn an_answer_that_is_not_ready_in_time_is_fetched_later() {
    let (store, ids) = store_of(&["inline-dwarf4"]);
    let server = TestServer::start(store.path(), &[]);
    let frames = json!([{"instruction_addr": "0x103cc"}]);
    let request = json!({"stacktraces": [{"frames": frames}], "modules": [macho(&ids[0])]});
    let pending = server.post_json("/symbolicate?timeout=0&scope=a", &request).json();
    assert_eq!((&pending["status"], pending["retry_after"].is_u64()), (&json!("pending"), true));
    let path = format!("/requests/{}", pending["request_id"].as_str().expect("an id"));
    assert_eq!(server.get(&format!("{path}?timeout=0")).json()["request_id"], pending["request_id"]);
    let answer = server.get(&path);
    assert_eq!((answer.status, answer.header("content-type")), (200, "application/json"));
    assert_eq!(answer.json(), found(&server, &request));
    // It may be fetched again for a while.
    assert_eq!(server.get(&format!("{path}?timeout=30")).json()["status"], "completed");
    assert_eq!(server.post_json("/symbolicate?timeout=30", &request).json(), answer.json());
    for path in ["/requests/00000000-0000-0000-0000-000000000000", "/requests/x"] {
        let missing = server.get(path);
        assert_eq!((missing.status, &missing.json()["type"]), (404, &json!("urn:symdex:problem:not-found")));
    }
}

pub(crate) fn requests_that_are_wrong_are_refused_with_problem_details() {
    let server = TestServer::empty(&[]);
    for (body, detail) in [
        ("", "EOF while parsing"),
        (r#"{"stacktraces": [{}]}"#, "missing field `frames`"),
        (r#"{"stacktraces": [{"frames": [{}]}]}"#, "missing field `instruction_addr`"),
        (r#"{"stacktraces": [{"frames": [{"instruction_addr": "12"}]}]}"#, "an address"),
        (r#"{"stacktraces": [{"frames": [{"instruction_addr": 1, "addr_mode": "x"}]}]}"#, "`abs` or `rel:N`"),
        (r#"{"signal": "SIGSEGV"}"#, "invalid type"),
    ] {
        let answer = server.post("/symbolicate", body);
        assert_eq!(answer.status, 400, "{body}");
        let problem = answer.json();
        assert!(problem["detail"].as_str().is_some_and(|found| found.contains(detail)), "{problem}");
    }
    assert_eq!(server.post("/symbolicate?timeout=soon", "{}").status, 400);
    assert_eq!(
        server.post("/symbolicate", "{}").json(),
        json!({"status": "completed", "stacktraces": [], "modules": []})
    );
}

/// What Symbolicator answers to the requests of its own tests has this form: members, their order of nesting and their
/// words. The files here are ours.
pub(crate) fn answers_have_the_form_of_symbolicators_own() {
    let (store, ids) = store_of(&["inline-dwarf4"]);
    let server = TestServer::start(store.path(), &[]);
    let (id, path) = (&ids[0], store.path().to_str().expect("UTF-8"));
    let uuid = "4c4c4470-5555-3144-a1a2-2a1f1f7676f4";
    let file = |id: &str| format!("{path}/{}/{id}.symdex", &id[..2]);
    let features = |has| json!({"has_debug_info": has, "has_unwind_info": false, "has_symbols": has, "has_sources": false});
    let ask = |modules: Value, stacktraces: Value, options: Value| {
        found(
            &server,
            &json!({"modules": modules, "stacktraces": stacktraces, "options": options, "sources": []}),
        )
    };
    let with = |mut value: Value, more: Value| {
        value.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        value
    };
    let completed = |stacktraces: Value, modules: Value| json!({"status": "completed", "stacktraces": stacktraces, "modules": modules});

    // A Mach-O module that no source has, and the same module that a source has.
    let place = json!({"image_addr": "0x100000000", "image_size": 4096});
    let stated = with(json!({"type": "macho", "debug_id": uuid, "code_id": id}), place);
    let frames = json!([{"frames": [{"instruction_addr": "0x100000610"}]}]);
    let absent = "502fc0a51ec13e479998684fa139dca7";
    let other =
        with(stated.clone(), json!({"debug_id": "502fc0a5-1ec1-3e47-9998-684fa139dca7", "code_id": absent}));
    let missing = json!({"debug_status": "missing", "features": features(false), "arch": "unknown"});
    assert_eq!(
        ask(json!([other]), frames.clone(), json!({})),
        completed(
            json!([{"frames": [{"status": "missing", "original_index": 0, "instruction_addr": "0x100000610"}]}]),
            json!([with(missing.clone(), other)]),
        )
    );
    let depth = json!({
        "status": "symbolicated", "original_index": 0, "instruction_addr": "0x100000610", "lang": "c",
        "symbol": "depth", "sym_addr": "0x100000610", "function": "depth", "filename": "main.c",
        "abs_path": MAIN, "lineno": 25,
    });
    let is_found = json!({"debug_status": "found", "features": features(true), "arch": "arm64"});
    let candidates = json!({"candidates": [{
        "source": path, "location": file(id), "download": {"status": "ok", "features": features(true)},
        "debug": {"status": "ok"},
    }]});
    let module = with(is_found.clone(), stated);
    assert_eq!(
        ask(json!([module.clone()]), frames.clone(), json!({"dif_candidates": true})),
        completed(json!([{"frames": [depth.clone()]}]), json!([with(module.clone(), candidates.clone())]))
    );
    // Without the option, an answer has no candidates.
    assert_eq!(
        ask(json!([module.clone()]), frames, json!({"dif_candidates": false})),
        completed(json!([{"frames": [depth.clone()]}]), json!([module]))
    );

    // A module without a place in memory, of a kind that is not native, and an offset in it.
    let stated = json!({"type": "wasm", "debug_id": uuid, "code_id": id});
    let offset = json!({"instruction_addr": "0x610", "addr_mode": "rel:0"});
    let frame = with(depth, with(offset.clone(), json!({"sym_addr": "0x610"})));
    let module = with(with(is_found, json!({"image_addr": "0x0"})), with(stated.clone(), candidates));
    assert_eq!(
        ask(json!([stated]), json!([{"frames": [offset]}]), json!({"dif_candidates": true})),
        completed(json!([{"frames": [frame]}]), json!([module]))
    );

    // A module of Windows with registers and a name; its file is not found.
    let dll = r"C:\Windows\System32\kernel32.dll";
    let stated = json!({
        "type": "pe", "debug_id": "ff9f9f78-41db-88f0-cded-a9e1e9bff3b5-1", "code_file": dll,
        "debug_file": r"C:\Windows\System32\wkernel32.pdb", "image_addr": "0x749d0000", "image_size": 851_968,
    });
    let not_found = json!({"candidates": [{
        "source": path, "location": file("ff9f9f7841db88f0cdeda9e1e9bff3b5"), "download": {"status": "notfound"},
    }]});
    let registers = json!({"eip": "0x1509530"});
    let request =
        json!([{"registers": {"eip": "0x0000000001509530"}, "frames": [{"instruction_addr": "0x749e8630"}]}]);
    let frame =
        json!({"status": "missing", "original_index": 0, "instruction_addr": "0x749e8630", "package": dll});
    assert_eq!(
        ask(json!([stated]), request, json!({"dif_candidates": true})),
        completed(
            json!([{"registers": registers, "frames": [frame]}]),
            json!([with(with(missing, stated), not_found)])
        )
    );

    // Members that are not known do not matter.
    let unknown = json!({"stacktraces": [], "modules": [], "sources": [], "unknown": "value"});
    assert_eq!(found(&server, &unknown), completed(json!([]), json!([])));
}

pub(crate) fn candidates_say_what_each_store_has() {
    let (second, ids) = store_of(&["inline-dwarf4"]);
    let (first, damaged) = (folder(), folder());
    let file = damaged.path().join(&ids[0][..2]).join(format!("{}.symdex", ids[0]));
    std::fs::create_dir(file.parent().expect("a folder")).expect("made");
    // An index of a newer format, which symdex does not replace with the one of the other store.
    let mut newer = std::fs::read(testdata().join("golden/v1/inline-dwarf4-1.symdex")).expect("there");
    newer[8] = 0xff;
    seal_header(&mut newer);
    std::fs::write(&file, newer).expect("written");
    let [damaged_path, second_path] = [&damaged, &second].map(|store| store.path().to_str().expect("UTF-8"));
    let server = TestServer::start(first.path(), &["--store", damaged_path, "--store", second_path]);
    let request = json!({
        "stacktraces": [{"frames": [{"instruction_addr": "0x103cc"}]}], "modules": [macho(&ids[0])],
        "options": {"dif_candidates": true},
    });
    let answer = found(&server, &request);
    let candidates = answer["modules"][0]["candidates"].as_array().expect("a list");
    let statuses: Vec<_> = candidates.iter().map(|one| &one["download"]["status"]).collect();
    assert_eq!(statuses, ["notfound", "malformed", "ok"]);
    assert_eq!((&candidates[1]["location"], &candidates[2]["source"]), (&json!(file), &json!(second_path)));
}
