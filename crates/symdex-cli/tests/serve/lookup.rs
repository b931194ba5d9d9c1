//! `POST /v1/lookup`.

use serde_json::{Value, json};

use crate::server::{TestServer, store_of, symdex_on};

/// The members of a function that the command and the service have in common.
fn in_common(function: &Value) -> Value {
    let mut function = function.clone();
    // The command states offsets as text, and has two members more.
    for member in ["function_start", "function_offset", "aliases"] {
        function.as_object_mut().expect("an object").remove(member);
    }
    function
}

/// The functions that `symdex lookup --json` prints for `address`.
pub(crate) fn from_command(store: &std::path::Path, id: &str, address: &str) -> Value {
    let line = format!("lookup --store {{}} --id {id} {address} --json");
    symdex_on(store, &line).json()[0]["functions"].clone()
}

pub(crate) fn answers_are_those_of_the_command() {
    let (store, ids) = store_of(&["inline-dwarf4"]);
    let id = &ids[0];
    let server = TestServer::start(store.path(), &[]);
    let addresses = ["0x400", "0x3a0", "0x61b", "0x999999"];
    let request = json!([{"id": id, "addresses": addresses}, {"id": "00".repeat(16), "addresses": [1]}]);
    let answer = server.post_json("/v1/lookup", &request);
    assert_eq!(answer.status, 200, "{}", answer.text());
    let results = answer.json();
    assert_eq!(results[0]["status"], "found");
    for (at, address) in addresses.iter().enumerate() {
        let (found, expected) = (&results[0]["answers"][at], from_command(store.path(), id, address));
        assert_eq!(found["address"], *address);
        let functions = found["functions"].as_array().expect("a list");
        let frames = expected.as_array().expect("a list");
        assert_eq!(functions.len(), frames.len(), "{address}");
        assert_eq!(found["status"], if frames.is_empty() { "missing_symbol" } else { "symbolicated" });
        for (function, frame) in functions.iter().zip(frames) {
            assert_eq!(in_common(function), in_common(frame), "{address}");
        }
    }
    assert_eq!((&results[1]["status"], &results[1]["answers"]), (&json!("missing"), &json!([])));
    // Without addresses, too, the store is asked.
    let request = json!([{"id": id, "addresses": []}, {"id": "00".repeat(16), "addresses": []}]);
    let nothing = server.post_json("/v1/lookup", &request).json();
    assert_eq!((&nothing[0]["status"], &nothing[0]["answers"]), (&json!("found"), &json!([])));
    assert_eq!(nothing[1]["status"], "missing");
    // A return address is looked up one byte before; with a load address, addresses are those of a process.
    let moved =
        json!([{"id": id, "addresses": ["0x7401"], "load_address": "0x7000", "kind": "return_address"}]);
    let moved = server.post_json("/v1/lookup", &moved).json();
    assert_eq!(moved[0]["answers"][0]["functions"], results[0]["answers"][0]["functions"]);
}

pub(crate) fn each_image_is_a_line_of_ndjson() {
    let server = TestServer::empty(&[]);
    let request = json!([{"id": "aa".repeat(16), "addresses": []}, {"id": "bb".repeat(16), "addresses": []}]);
    let answer = server.post_with("/v1/lookup", &[("accept", "application/x-ndjson")], request.to_string());
    assert_eq!((answer.status, answer.header("content-type")), (200, "application/x-ndjson"));
    let ids: Vec<_> = answer
        .text()
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON")["id"].clone())
        .collect();
    assert_eq!(ids, ["aa".repeat(16), "bb".repeat(16)]);
}

pub(crate) fn wrong_requests_are_refused_with_problem_details() {
    let server = TestServer::empty(&[]);
    for (body, detail) in [
        ("", "EOF while parsing"),
        ("{}", "expected a sequence"),
        (r#"[{"id": "x", "addresses": []}]"#, "`x`"),
        (r#"[{"addresses": []}]"#, "missing field `id`"),
        (r#"[{"id": "00112233445566778899aabbccddeeff", "addresses": ["12"]}]"#, "an address"),
        (r#"[{"id": "00112233445566778899aabbccddeeff", "adresses": []}]"#, "unknown field"),
    ] {
        let answer = server.post("/v1/lookup", body);
        assert_eq!(
            (answer.status, answer.header("content-type")),
            (400, "application/problem+json"),
            "{body}"
        );
        let problem = answer.json();
        assert_eq!(problem["type"], "urn:symdex:problem:bad-request");
        assert!(problem["detail"].as_str().is_some_and(|found| found.contains(detail)), "{problem}");
    }
}
