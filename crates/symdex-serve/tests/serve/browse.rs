//! `GET /v1/images/{id}/functions` and `/files`, compared with the ranges that `symdex inspect` prints.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use crate::server::{TestServer, store_of, symdex};

/// The ranges of chunk 0 of a table, which has all in small images.
fn ranges(store: &Path, id: &str, table: &str) -> Vec<Value> {
    let store = store.to_str().expect("text");
    let arguments = ["--no-config", "inspect", store, "--id", id, "--chunk", "0", "--table", table, "--json"];
    let printed = symdex(arguments);
    assert_eq!(printed.code, Some(0), "{}", printed.err);
    printed.json()
}

fn hexadecimal(value: &Value) -> u64 {
    let digits = value.as_str().and_then(|text| text.strip_prefix("0x")).expect("0x");
    u64::from_str_radix(digits, 16).expect("an address")
}

fn size(range: &Value) -> u64 {
    hexadecimal(&range["end"]) - hexadecimal(&range["start"])
}

/// Start, size and number of ranges of each function in `ranges`, and its linkage name.
fn functions(ranges: &[Value]) -> BTreeMap<u64, (u64, u64, Value)> {
    let mut functions = BTreeMap::new();
    for range in ranges.iter().filter(|range| !range["function_start"].is_null()) {
        let name = range["functions"].as_array().and_then(|chain| chain.last()).expect("a function");
        let entry = functions.entry(hexadecimal(&range["function_start"]));
        let (bytes, count, _) = entry.or_insert_with(|| (0, 0, name["name"].clone()));
        *bytes += size(range);
        *count += 1;
    }
    functions
}

/// The same in the order of a list.
const IMAGES_BY_NAME: [&str; 4] = ["icf", "inline-dwarf4", "outliner", "swift-names"];

const IMAGES: [&str; 4] = ["inline-dwarf4", "swift-names", "icf", "outliner"];

pub(crate) fn functions_are_those_of_the_index() {
    let (store, ids) = store_of(&IMAGES);
    let server = TestServer::start(store.path(), &[]);
    let mut symbols = 0;
    for id in &ids {
        let dwarf = ranges(store.path(), id, "dwarf");
        let mut expected = functions(&dwarf);
        for (start, symbol) in functions(&ranges(store.path(), id, "symbol_table")) {
            let covers =
                |range: &Value| hexadecimal(&range["start"]) <= start && start < hexadecimal(&range["end"]);
            if !dwarf.iter().any(covers) {
                symbols += 1;
                expected.insert(start, symbol);
            }
        }
        let list = server.get(&format!("/v1/images/{id}/functions?limit=10000")).json();
        assert_eq!((&list["total"], &list["next_offset"]), (&expected.len().into(), &Value::Null));
        let found: BTreeMap<_, _> = list["functions"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|function| {
                let number = |member: &str| function[member].as_u64().expect("a number");
                (
                    hexadecimal(&function["start"]),
                    (number("size"), number("ranges"), function["name"].clone()),
                )
            })
            .collect();
        assert_eq!(found, expected, "{id}");
    }
    assert!(symbols > 0, "an image has functions without debug information");
}

pub(crate) fn bytes_by_file_are_those_of_the_innermost_functions() {
    let (store, ids) = store_of(&IMAGES);
    let server = TestServer::start(store.path(), &[]);
    for id in &ids {
        let (dwarf, symbols) = (ranges(store.path(), id, "dwarf"), ranges(store.path(), id, "symbol_table"));
        let mut expected: BTreeMap<String, (u64, u64)> = BTreeMap::new();
        let mut without_file = 0;
        let mut covered = std::collections::BTreeSet::new();
        for range in &dwarf {
            covered.extend(hexadecimal(&range["start"])..hexadecimal(&range["end"]));
            let chain = range["functions"].as_array().expect("a chain");
            match chain[0]["file"].as_str() {
                None => without_file += size(range),
                Some(file) => {
                    let (bytes, inlined) = expected.entry(file.to_owned()).or_default();
                    *bytes += size(range);
                    *inlined += if chain.len() > 1 { size(range) } else { 0 };
                }
            }
        }
        let in_symbols =
            symbols.iter().flat_map(|range| hexadecimal(&range["start"])..hexadecimal(&range["end"]));
        without_file += in_symbols.filter(|address| !covered.contains(address)).count() as u64;

        let list = server.get(&format!("/v1/images/{id}/files?limit=10000")).json();
        let files = list["files"].as_array().expect("a list");
        let number = |file: &Value, member: &str| file[member].as_u64().expect("a number");
        let found: BTreeMap<_, _> = files
            .iter()
            .map(|file| {
                let name = file["file"].as_str().expect("a path").to_owned();
                (name, (number(file, "bytes"), number(file, "inlined_bytes")))
            })
            .collect();
        assert_eq!(found, expected, "{id}");
        assert_eq!(list["without_file"], without_file);
        let total = without_file + expected.values().map(|(bytes, _)| bytes).sum::<u64>();
        assert_eq!(list["bytes"], total);
        assert!(files.is_sorted_by_key(|file| std::cmp::Reverse(number(file, "bytes"))));

        let short = server.get(&format!("/v1/images/{id}/files?limit=1")).json();
        assert_eq!((&short["files"][0], &short["bytes"]), (&files[0], &list["bytes"]));
        let others = files[1..].iter().map(|file| number(file, "bytes")).sum::<u64>();
        assert_eq!(
            (&short["others"]["files"], &short["others"]["bytes"]),
            (&(files.len() - 1).into(), &others.into())
        );
    }
}

pub(crate) fn functions_are_found_by_name_and_by_address_in_either_order() {
    let (store, ids) = store_of(&["swift-names"]);
    let server = TestServer::start(store.path(), &[]);
    let get = |query: &str| server.get(&format!("/v1/images/{}/functions?{query}", ids[0])).json();
    let all = get("limit=10000")["functions"].as_array().expect("a list").clone();

    let mut paged = Vec::new();
    let mut next = Some(0);
    while let Some(offset) = next {
        let part = get(&format!("limit=3&offset={offset}"));
        paged.extend(part["functions"].as_array().expect("a list").iter().cloned());
        next = part["next_offset"].as_u64();
    }
    assert_eq!(paged, all);

    let by_size = get("sort=size&limit=10000")["functions"].as_array().expect("a list").clone();
    let sizes: Vec<_> = by_size.iter().map(|function| function["size"].as_u64().expect("a number")).collect();
    assert!(sizes.is_sorted_by(|one, other| one >= other) && by_size.len() == all.len(), "{sizes:?}");

    // The demangled name, in letters of another case.
    let wanted = &all[all.len() / 2];
    let name = wanted["function"].as_str().expect("a name").to_uppercase().replace(' ', "%20");
    let found = get(&format!("search={name}"));
    assert!(found["functions"].as_array().expect("a list").contains(wanted), "{name}: {found}");
    let linkage = wanted["name"].as_str().expect("a name");
    assert!(get(&format!("search={linkage}"))["functions"].as_array().expect("a list").contains(wanted));
    let nothing = get("search=no%20function%20has%20this");
    assert_eq!(
        (nothing["functions"].as_array().map(Vec::len), &nothing["next_offset"]),
        (Some(0), &Value::Null)
    );

    let inside = hexadecimal(&wanted["start"]) + wanted["size"].as_u64().expect("a number") - 1;
    assert_eq!(get(&format!("address={inside:#x}"))["functions"], serde_json::json!([wanted]));
    assert_eq!(get("address=0x0")["functions"], serde_json::json!([]));
}

pub(crate) fn images_are_found_by_name_and_by_the_first_digits_of_their_ids() {
    let (store, ids) = store_of(&IMAGES);
    let server = TestServer::start(store.path(), &[]);
    let list = |query: &str| server.get(&format!("/v1/images?{query}")).json();
    let ids_of = |list: &Value| -> Vec<String> {
        let images = list["images"].as_array().expect("a list").iter();
        images.map(|image| image["id"].as_str().expect("an id").to_owned()).collect()
    };
    let all = list("");
    assert_eq!((&all["total"], ids_of(&all).len()), (&4.into(), 4));
    let names: Vec<_> = all["images"].as_array().expect("a list").iter().map(|one| &one["name"]).collect();
    assert_eq!(names, IMAGES_BY_NAME);
    assert_eq!(ids_of(&list("search=SWIFT")), [ids[1].clone()]);
    let digits = &ids[2][..9].to_uppercase();
    for start in [digits.clone(), format!("{}-{}", &digits[..8], &digits[8..]), ids[2].clone()] {
        assert_eq!(ids_of(&list(&format!("search={start}"))), [ids[2].clone()], "{start}");
    }
    let first = list("limit=1");
    assert_eq!((&first["total"], ids_of(&first)), (&4.into(), ids_of(&all)[..1].to_vec()));
    assert_eq!(list("search=no+such+image")["total"], 0);
    assert_eq!(server.get("/v1/images?limit=0").status, 400);
    // A deleted image is listed no more.
    assert_eq!(server.delete(&format!("/v1/images/{}", ids[0]), &[]).status, 200);
    assert!(!ids_of(&list("")).contains(&ids[0]));
}

pub(crate) fn wrong_requests_say_what_is_expected() {
    let server = TestServer::start(store_of(&[]).0.path(), &[]);
    let id = "ab".repeat(16);
    for (path, status, detail) in [
        (format!("/v1/images/{id}/functions"), 404, "no store has"),
        (format!("/v1/images/{id}/files"), 404, "no store has"),
        ("/v1/images/xyz/files".to_owned(), 400, "xyz"),
        (format!("/v1/images/{id}/functions?limit=0"), 400, "expected 1 to 10000"),
        (format!("/v1/images/{id}/files?limit=10001"), 400, "expected 1 to 10000"),
    ] {
        let answer = server.get(&path);
        assert_eq!(answer.status, status, "{path}");
        assert!(
            answer.json()["detail"].as_str().is_some_and(|found| found.contains(detail)),
            "{}",
            answer.text()
        );
    }
    for query in ["sort=name", "offset=-1", "address=12zz", "serach=x"] {
        assert_eq!(server.get(&format!("/v1/images/{id}/functions?{query}")).status, 400, "{query}");
    }
}

pub(crate) fn a_damaged_index_is_an_error() {
    let (store, ids) = store_of(&["inline-dwarf4"]);
    let path = store.path().join(&ids[0][..2]).join(format!("{}.symdex", ids[0]));
    let mut bytes = std::fs::read(&path).expect("an index");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x55;
    std::fs::write(&path, bytes).expect("written");
    let server = TestServer::start(store.path(), &[]);
    let answer = server.get(&format!("/v1/images/{}/functions", ids[0]));
    assert_eq!((answer.status, &answer.json()["title"]), (500, &"The index cannot be read".into()));
}
