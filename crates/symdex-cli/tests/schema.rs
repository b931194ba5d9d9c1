//! The JSON output conforms to docs/schema, which describes every member.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::store_verbs::indexes;
use crate::common::{command, dsym, folder, symbolicate, symdex, testdata};
use boon::{Compiler, SchemaIndex, Schemas};
use serde_json::{Value, json};

/// The text of `docs/schema/NAME.schema.json`.
fn document(name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../docs/schema/{name}.schema.json"));
    serde_json::from_str(&fs::read_to_string(path).expect("the schema")).expect("JSON")
}

/// The schema `docs/schema/NAME.schema.json`.
struct Schema {
    schemas: Schemas,
    index: SchemaIndex,
}

impl Schema {
    fn new(name: &str) -> Self {
        let mut compiler = Compiler::new();
        compiler.add_resource("schema.json", document(name)).expect("a schema");
        let mut schemas = Schemas::new();
        let index = compiler.compile("schema.json", &mut schemas).expect("a schema");
        Self { schemas, index }
    }

    fn is_valid(&self, value: &Value) -> bool {
        self.schemas.validate(value, self.index).is_ok()
    }

    /// Asserts that each of `lines` conforms to the schema, and that no further member does.
    #[track_caller]
    fn check(&self, lines: &[Value]) {
        for line in lines {
            if let Err(error) = self.schemas.validate(line, self.index) {
                panic!("{error:#}\n{}", line.to_string().chars().take(2000).collect::<String>());
            }
        }
    }
}

/// Copies of `value`, one for each object in it, with an additional member in that object.
fn with_a_member_more(value: &Value) -> Vec<Value> {
    let children: Vec<(String, &Value)> = match value {
        Value::Object(members) => members.iter().map(|(key, value)| (key.clone(), value)).collect(),
        Value::Array(elements) => {
            elements.iter().enumerate().map(|(n, value)| (n.to_string(), value)).collect()
        }
        _ => Vec::new(),
    };
    let mut all = Vec::new();
    for (key, child) in children {
        for changed in with_a_member_more(child) {
            let mut whole = value.clone();
            match &mut whole {
                Value::Array(elements) => elements[key.parse::<usize>().expect("a number")] = changed,
                object => object[&key] = changed,
            }
            all.push(whole);
        }
    }
    if value.is_object() {
        let mut whole = value.clone();
        whole["undocumented"] = json!([]);
        all.push(whole);
    }
    all
}

pub(crate) fn images_failures_and_totals_of_a_build_conform() {
    let schema = Schema::new("build");
    let root = folder();
    let demo = testdata().join("demo");
    let binary = testdata().join("demo/DemoPlain.dylib");
    let gone = root.path().join("gone.dSYM");
    let inputs = [&demo, &dsym("lto"), &binary, &gone];
    let build = |more: &[&str]| {
        let mut run = command();
        run.arg("build").args(inputs).arg("-o").arg(root.path()).arg("--json").args(more);
        crate::common::CommandOutput::from(run.output().expect("ran"))
    };
    let built = build(&["--verify"]);
    assert_eq!(built.code, Some(5), "{}", built.err);
    schema.check(&built.json());
    let again = build(&[]);
    schema.check(&again.json());
    let kinds = |kind: &str| again.json().iter().filter(|line| line.get(kind).is_some()).count();
    assert!(kinds("outcome") > 3 && kinds("error") == 1 && kinds("totals") == 1, "{}", again.out);
    for line in built.json() {
        for changed in with_a_member_more(&line) {
            assert!(!schema.is_valid(&changed), "{changed}");
        }
    }
    let mut without = built.json()[0].clone();
    without.as_object_mut().expect("an object").remove("outcome");
    assert!(!schema.is_valid(&without), "every member is required");
}

/// The id of an image without `LC_UUID` and build id is `h-` and a hash of its code.
pub(crate) fn the_id_of_an_image_without_a_stated_id_conforms() {
    for name in ["build", "inspect", "store", "symbolicate"] {
        let whole = document(name);
        let (mut compiler, mut schemas) = (Compiler::new(), Schemas::new());
        compiler.add_resource("id.json", whole["$defs"]["id"].clone()).expect("a schema");
        let index = compiler.compile("id.json", &mut schemas).expect("a schema");
        for (id, is_id) in [("4c4c44aa", true), ("h-e925fc00", true), ("h-", false), ("4C4C", false)] {
            assert_eq!(schemas.validate(&json!(id), index).is_ok(), is_id, "{name}: {id}");
        }
    }
}

/// Reports of several formats, and some that cannot be read.
fn reports(root: &Path) -> Vec<PathBuf> {
    let crash = fs::read_to_string(testdata().join("demo/demo.crash")).expect("there");
    let ips = r#"{"bug_type":"309"}
        {"procName":"App","pid":1,"exception":{"type":"EXC_CRASH"},"threads":[{"id":7,"triggered":true,"frames":[
        {"imageOffset":17136,"imageIndex":0,"symbol":"old","symbolLocation":1},{"imageOffset":4112,"imageIndex":1}]}],"usedImages":[
        {"source":"P","base":4294967296,"size":65536,"arch":"arm64","uuid":"4c4c4427-5555-3144-a19d-bd913be790e0","name":"DemoKit"},
        {"source":"P","base":4311744512,"size":65536,"arch":"arm64","uuid":"4c4c4427-5555-3144-a19d-bd913be790ff","name":"DemoKit"}]}"#;
    let files = [
        ("demo.crash", crash.as_str()),
        ("demo.ips", ips),
        (
            "tombstone",
            "pid: 1, tid: 2, name: a  >>> b <<<\nsignal 6 (SIGABRT), code -1\n#00 pc 10  /x/App (f+4) (BuildId: 0a0b0c0d)\n",
        ),
        ("list", "App 0x100001010 0x100000000\n"),
        ("cut.ips", "{\"bug_type\":\"309\"}\n{\"threads\":["),
        ("readme.txt", "nothing"),
    ];
    let write = |(name, text): (&str, &str)| {
        let path = root.join(name);
        fs::write(&path, text).expect("written");
        path
    };
    files.into_iter().map(write).collect()
}

pub(crate) fn reports_and_failures_conform() {
    let schema = Schema::new("symbolicate");
    let root = folder();
    let done =
        symbolicate(root.path(), &testdata().join("demo"), &["--format", "json"], reports(root.path()));
    assert_eq!(done.code, Some(4), "{}", done.err);
    let lines = done.json();
    assert_eq!(lines.len(), 6, "a line for each report");
    schema.check(&lines);
    assert_eq!(lines[4]["error"]["kind"], "damaged");
    assert_eq!(lines[5]["error"]["kind"], "unsupported");
    assert_eq!(lines[1]["images"][1]["near"][0]["nearness"], "other_build");
    assert_eq!(lines[1]["totals"]["frames"], 2);
    for line in &lines[1..] {
        for changed in with_a_member_more(line) {
            assert!(!schema.is_valid(&changed), "{changed}");
        }
    }
}

pub(crate) fn needed_images_and_answers_matched_by_name_conform() {
    let schema = Schema::new("symbolicate");
    let root = folder();
    let demo = testdata().join("demo");
    let needs = symbolicate(root.path(), &demo, &["--needs", "--format", "json"], reports(root.path()));
    assert!(needs.json().len() > 5, "{}", needs.err);
    schema.check(&needs.json());
    let lines = needs.json();
    let near = lines.iter().find(|line| line["near"][0]["nearness"] == "other_build").expect("an image near");
    for changed in [&lines[0], near].into_iter().flat_map(with_a_member_more) {
        assert!(!schema.is_valid(&changed), "{changed}");
    }
    let pasted = root.path().join("pasted.crash");
    let raw = "Thread 0 Crashed:\n0   DemoKit    0x00000001049902f0 0x10498c000 + 17136\n";
    fs::write(&pasted, raw).expect("written");
    let by_name = symbolicate(root.path(), &demo, &["--match-by-name", "--format", "json"], [&pasted]);
    schema.check(&by_name.json());
    let report = &by_name.json()[0];
    assert_eq!(report["images"][0]["matched_by"], "name", "{report}");
    assert_eq!(report["threads"][0]["frames"][0]["matched_by"], "name", "{report}");
}

pub(crate) fn a_report_that_failed_has_its_object_in_its_own_file() {
    let root = folder();
    let out = root.path().join("out");
    let options = ["--format", "json", "-o", out.to_str().expect("UTF-8")];
    let done = symbolicate(root.path(), &testdata().join("demo"), &options, reports(root.path()));
    assert_eq!((done.code, done.out.as_str()), (Some(4), ""), "{}", done.err);
    assert_eq!(crate::common::names_in(&out).len(), 6);
    let failed: Value =
        serde_json::from_str(&fs::read_to_string(out.join("cut.ips.json")).expect("there")).expect("JSON");
    assert_eq!(failed["error"]["kind"], "damaged");
    Schema::new("symbolicate").check(&[failed]);
}

pub(crate) fn answers_of_addresses_conform() {
    let schema = Schema::new("lookup");
    let root = folder();
    let index = crate::common::index_of("inline-dwarf4", root.path());
    let looked_up = crate::common::symdex_on(&index, "lookup {} --json 0x400 0x61b 0x0 nonsense");
    assert_eq!(looked_up.code, Some(2), "{}", looked_up.err);
    let lines = looked_up.json();
    schema.check(&lines);
    let with = |member: &str| lines.iter().filter(|line| !line[member].is_null()).count();
    assert_eq!((lines.len(), with("reason"), with("error")), (4, 1, 1));
    for changed in lines.iter().flat_map(with_a_member_more) {
        assert!(!schema.is_valid(&changed), "{changed}");
    }
    let folded = crate::common::index_of("icf", root.path());
    let folded = crate::common::symdex_on(&folded, "lookup {} --json 0x374").json();
    assert!(folded[0]["functions"][0]["aliases"].is_array(), "{folded:?}");
    schema.check(&folded);
}

pub(crate) fn exported_indexes_conform() {
    let schema = Schema::new("export");
    let root = folder();
    let index = crate::common::index_of("inline-dwarf4", root.path());
    let lines = crate::common::symdex_on(&index, "export {} --format json").json();
    schema.check(&lines);
    assert!(lines.iter().any(|line| line["inlined"][1]["parent"].is_number()), "{lines:?}");
    for changed in lines.iter().flat_map(with_a_member_more) {
        assert!(!schema.is_valid(&changed), "{changed}");
    }
}

/// The help abbreviates the header, the totals and registers.
pub(crate) fn the_help_lists_the_members() {
    let definitions = ["image", "thread", "frame", "function", "needed", "report", "failure", "error"];
    for (command, definitions) in [("symbolicate", &definitions[..]), ("lookup", &["function", "error"])] {
        let help = symdex([command, "--help"]).ok();
        let schema = document(command);
        let whole = (command == "lookup").then_some(&schema);
        for definition in definitions.iter().map(|name| &schema["$defs"][name]).chain(whole) {
            let members = definition["properties"].as_object().expect("an object");
            for member in members.keys() {
                assert!(help.contains(&format!("\"{member}\"")), "{command}: {member}");
            }
        }
    }
}

/// The reports of the corpora: real output of programs. Not every format has one.
pub(crate) fn real_reports_conform() {
    let schema = Schema::new("symbolicate");
    let root = folder();
    let mut paths = Vec::new();
    for name in ["atos-reports", "memory-leaking-app", "kscrash-testers", "real-reports"] {
        let corpus = symdex_testkit::corpus(name, root.path());
        paths.extend(files_in(&corpus));
    }
    let done = symbolicate(root.path(), &testdata().join("demo"), &["--format", "json"], &paths);
    let lines = done.json();
    schema.check(&lines);
    // Debug files among the reports have no lines.
    let reported: Vec<_> = lines.iter().filter_map(|line| line["report"].as_str()).collect();
    assert!(reported.len() > paths.len() / 2, "{}", done.err);
    for path in paths.iter().filter(|path| !reported.contains(&path.to_str().expect("UTF-8"))) {
        let is_debug_file = symdex_build::slices(&fs::read(path).expect("readable")).is_ok();
        assert!(is_debug_file, "{}: {}", path.display(), done.err);
    }
}

/// The files below a folder that may be reports.
fn files_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let mut files = Vec::new();
    for path in entries {
        let is_debug_file = path.extension().is_some_and(|extension| extension == "dSYM");
        if path.is_dir() && !is_debug_file {
            files.extend(files_in(&path));
        } else if path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    files
}

pub(crate) fn an_index_and_its_ranges_conform() {
    let schema = Schema::new("inspect");
    let root = folder();
    for name in ["inline-dwarf4", "cxx", "lto"] {
        let index = crate::common::index_of(name, root.path());
        let inspect = |more: &[&str]| {
            let arguments = ["inspect".as_ref(), index.as_os_str(), "--json".as_ref()];
            symdex(arguments.into_iter().chain(more.iter().map(AsRef::as_ref)))
        };
        let whole = inspect(&[]).json();
        schema.check(&whole);
        let ranges = inspect(&["--chunk", "0"]).json();
        schema.check(&ranges);
        assert_eq!(whole[0]["chunks"][0]["ranges"], ranges.len());
        let symbols = inspect(&["--chunk", "0", "--table", "symbol_table"]).json();
        schema.check(&symbols);
        for line in [&whole[0], &ranges[0], &symbols[0]] {
            assert!(with_a_member_more(line).iter().all(|changed| !schema.is_valid(changed)), "{line}");
        }
    }
}

pub(crate) fn an_index_in_redis_conforms() {
    let server = symdex_testkit::redis::Server::start(&[]);
    let (schema, url) = (Schema::new("inspect"), server.url());
    for (file, id) in indexes() {
        symdex(["store", "put", &url, &file.display().to_string()]);
        let inspect = |more: &[&str]| {
            let found = symdex(["inspect", "--store", &url, "--id", &id, "--json"].iter().chain(more));
            assert_eq!(found.code, Some(0), "{}", found.err);
            schema.check(&found.json());
            found.json()
        };
        let [overview] = &inspect(&[])[..] else { panic!("one line") };
        assert!(with_a_member_more(overview).iter().all(|changed| !schema.is_valid(changed)), "{overview}");
        assert!(!inspect(&["--chunk", "0", "--table", "symbol_table"]).is_empty());
    }
}

pub(crate) fn every_line_of_the_commands_for_stores_conforms() {
    let schema = Schema::new("store");
    let root = folder();
    let [from, to, got] = ["from", "to", "got"].map(|name| root.path().join(name).display().to_string());
    let run = |line: String| symdex(["store"].into_iter().chain(line.split(' ')).chain(["--json"]));
    let indexes = indexes();
    let files: Vec<_> = indexes.iter().map(|(file, _)| file.display().to_string()).collect();
    let (first, second) = (&indexes[0].1, &indexes[1].1);
    let mut kinds = Vec::new();
    for (line, code) in [
        (format!("put {from} {} {got}", files.join(" ")), 5),
        (format!("ls {from}"), 0),
        (format!("stat {from} {first} 00000000"), 3),
        (format!("get {from} {first} -o {got}"), 0),
        (format!("copy {from} {to}"), 0),
        (format!("copy {from} {to}"), 0),
        (format!("verify {to}"), 0),
        (format!("gc {to} --older-than 0s --dry-run"), 0),
        (format!("rm {to} {first} 00000000"), 3),
        (format!("gc {to} --older-than 0s --force"), 0),
    ] {
        let done = run(line.clone());
        assert_eq!(done.code, Some(code), "{line}: {}", done.err);
        let lines = done.json();
        assert!(lines.len() > 1, "{line}: {}", done.out);
        schema.check(&lines);
        kinds.extend(lines);
    }
    // A damaged index has a line of its own.
    let path = std::path::Path::new(&from).join(&second[..2]).join(format!("{second}.symdex"));
    let whole = fs::read(&path).expect("there");
    fs::write(&path, &whole[1..]).expect("written");
    let damaged = run(format!("verify {from}"));
    schema.check(&damaged.json());
    for line in kinds.iter().chain(&damaged.json()) {
        for changed in with_a_member_more(line).iter().filter(|changed| changed["totals"].is_null()) {
            assert!(!schema.is_valid(changed), "{changed}");
        }
    }
}
