//! `POST /v1/resolve`.

use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::types::{Int32Type, UInt32Type, UInt64Type};
use arrow_array::{Array as _, ArrayRef, DictionaryArray, RecordBatch, UInt64Array};
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use serde_json::{Value, json};
use symdex_testkit::indexes::{deep_index, id, index};

use crate::abuse::server_of_options;
use crate::server::{Answer, TestServer, store_of};

const ARROW: &str = "application/vnd.apache.arrow.stream";
const PATH: &str = "/v1/resolve";

/// The rows as a stream of Arrow.
fn stream(ids: &[&str], addresses: &[u64]) -> Vec<u8> {
    let ids: ArrayRef = Arc::new(ids.iter().copied().collect::<DictionaryArray<Int32Type>>());
    let addresses: ArrayRef = Arc::new(UInt64Array::from(addresses.to_vec()));
    let batch = RecordBatch::try_from_iter([("id", ids), ("address", addresses)]).expect("a batch");
    let mut writer = StreamWriter::try_new(Vec::new(), &batch.schema()).expect("a schema");
    writer.write(&batch).expect("written");
    writer.into_inner().expect("written")
}

/// The batches of an answer.
fn batches(answer: &Answer) -> Vec<RecordBatch> {
    assert_eq!((answer.status, answer.header("content-type")), (200, ARROW));
    let stream = StreamReader::try_new(&answer.body[..], None).expect("a stream");
    stream.map(|batch| batch.expect("a batch")).collect()
}

fn text(column: &ArrayRef, row: usize) -> Value {
    let dictionary = column.as_dictionary::<Int32Type>();
    let values = dictionary.values().as_string::<i32>();
    dictionary.key(row).map_or(Value::Null, |key| values.value(key).into())
}

/// The rows of a batch, with the members of JSON.
fn rows(batch: &RecordBatch, addresses: &[u64]) -> Vec<Value> {
    let column = |name| batch.column_by_name(name).expect("a column");
    let starts = column("function_start").as_primitive::<UInt64Type>();
    let row = |row: usize| {
        let frames = column("frames").as_list::<i32>().value(row);
        let [function, name, file, line] = frames.as_struct().columns() else { panic!("four columns") };
        let line = line.as_primitive::<UInt32Type>();
        let offset = (!starts.is_null(row)).then(|| addresses[row] - starts.value(row));
        let functions: Vec<_> = (0..frames.len())
            .map(|at| {
                json!({"function": text(function, at), "name": text(name, at), "file": text(file, at),
                    "line": (!line.is_null(at)).then(|| line.value(at)), "inlined": at + 1 != frames.len(),
                    "table": text(column("table"), row), "function_offset": offset})
            })
            .collect();
        json!({"status": text(column("status"), row), "functions": functions})
    };
    (0..batch.num_rows()).map(row).collect()
}

pub(crate) fn answers_are_those_of_lookup_as_arrow_and_as_json() {
    let (store, ids) = store_of(&["inline-dwarf4", "cxx"]);
    let server = TestServer::start(store.path(), &[]);
    let unknown = "00".repeat(16);
    let addresses = [0x400, 0x3a0, 0x61b, 0x99_9999, 0x3cf];
    let images: Vec<_> = ids.iter().chain([&unknown]).collect();
    let lookup = |kind| {
        let image = |id| json!({"id": id, "addresses": addresses, "kind": kind});
        let request = Value::Array(images.iter().map(image).collect());
        let results = server.post_json("/v1/lookup", &request).json();
        let mut rows = Vec::new();
        for result in results.as_array().expect("a list") {
            let answers = result["answers"].as_array().expect("a list");
            let missing = json!({"status": result["status"], "functions": []});
            let answer = |at: usize| {
                answers.get(at).map_or(
                    missing.clone(),
                    |answer| json!({"status": answer["status"], "functions": answer["functions"]}),
                )
            };
            rows.extend((0..addresses.len()).map(answer));
        }
        rows
    };
    let image = |id| json!({"id": id, "addresses": addresses});
    let as_json = Value::Array(images.iter().map(image).collect());
    for kind in ["instruction", "return_address"] {
        let expected = lookup(kind);
        let path = format!("{PATH}?kind={kind}");
        let answer = server.post_json(&path, &as_json);
        assert_eq!((answer.status, answer.header("content-type")), (200, "application/json"));
        let found = answer.json();
        let found = found.as_array().expect("a list");
        assert_eq!(found.len(), expected.len());
        for (at, (found, expected)) in found.iter().zip(&expected).enumerate() {
            assert_eq!(
                (&found["status"], &found["functions"]),
                (&expected["status"], &expected["functions"])
            );
            assert_eq!(found["address"], format!("{:#x}", addresses[at % addresses.len()]));
            let id = found["id"].as_str().expect("an id");
            assert_eq!(id.parse::<symdex::ImageId>(), images[at / addresses.len()].parse());
            let is_missing = found["status"] == "missing";
            assert_eq!(found["reason"].as_str().is_some_and(|why| why.contains("no index")), is_missing);
        }
        // The same rows in another order, as Arrow and compressed.
        let order: Vec<_> = (0..expected.len()).map(|at| at * 7 % expected.len()).collect();
        let row_ids: Vec<_> = order.iter().map(|at| &**images[at / addresses.len()]).collect();
        let row_addresses: Vec<_> = order.iter().map(|at| addresses[at % addresses.len()]).collect();
        let shift = u64::from(kind == "return_address");
        let looked_up: Vec<_> = row_addresses.iter().map(|address| address - shift).collect();
        let expected: Vec<_> = order.iter().map(|at| expected[*at].clone()).collect();
        let body = stream(&row_ids, &row_addresses);
        let zstd = zstd::bulk::compress(&body, 0).expect("compressed");
        let kind = ("content-type", ARROW);
        for answer in [
            server.post_with(&path, &[kind], &body),
            server.post_with(&path, &[kind, ("content-encoding", "zstd")], &zstd),
        ] {
            let [batch] = &batches(&answer)[..] else { panic!("one batch") };
            assert_eq!(rows(batch, &looked_up), expected);
        }
        // JSON in and Arrow out, and the other way round.
        let accept = ("accept", ARROW);
        assert_eq!(
            batches(&server.post_with(&path, &[accept], as_json.to_string()))[0].num_rows(),
            order.len()
        );
        let answer = server.post_with(&path, &[kind, ("accept", "application/json")], &body);
        assert_eq!(answer.json().as_array().map(Vec::len), Some(order.len()));
    }
}

pub(crate) fn a_million_addresses_are_resolved_in_parts_within_the_memory() {
    let images = [(1, index(1, 300)), (2, index(2, 200)), (3, deep_index(3, 500, "_ZN4deep4deepEv"))];
    // The request takes eight times its 12 MB at first; the answer would take more than the memory if it was whole.
    let (_store, server) = server_of_options(&images, &["--memory", "400MB"]);
    let texts: Vec<_> = (1..=3).map(|byte| id(byte).to_string()).collect();
    let (mut ids, mut addresses) = (Vec::new(), Vec::new());
    for row in 0..1_000_000_u64 {
        // Few addresses have 500 frames.
        let image = if row % 100 == 0 { 2 } else { usize::from(row > 500_000) };
        ids.push(&*texts[image]);
        addresses.push(row % 0x100 + row / 0x100 % 200 * 0x1000 * u64::from(image != 2));
    }
    let answer = server.post_with(PATH, &[("content-type", ARROW)], stream(&ids, &addresses));
    let batches = batches(&answer);
    assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), addresses.len());
    assert!(batches.len() > 20, "{}", batches.len());
    let mut row = 0;
    for batch in &batches {
        let frames = batch.column(4).as_list::<i32>();
        for at in 0..batch.num_rows() {
            let depth = if ids[row] == texts[2] { 500 } else { 1 };
            assert_eq!(frames.value_length(at), depth, "{row}");
            row += 1;
        }
    }
    ids.push(&texts[0]);
    addresses.push(0);
    let refused = server.post_with(PATH, &[("content-type", ARROW)], stream(&ids, &addresses));
    assert_eq!(refused.status, 400);
    assert!(refused.text().contains("more than 1000000 addresses"), "{}", refused.text());
}

pub(crate) fn wrong_requests_are_refused_with_a_reason() {
    let server = TestServer::empty(&[]);
    let kind = [("content-type", ARROW)];
    let text = id(1).to_string();
    let whole = stream(&[&text], &[1]);
    let long = "\u{7f}".repeat(1_000_000);
    let json = |value: Value| value.to_string().into_bytes();
    for (headers, body, words) in [
        (&kind[..], Vec::new(), "no schema"),
        (&kind[..], whole[..whole.len() / 2].to_vec(), "malformed"),
        (&kind[..], stream(&[], &[]), "found no addresses"),
        (&kind[..], stream(&["x"], &[1]), "row 0: found `x`"),
        (&kind[..], stream(&[&long], &[1]), "row 0"),
        (&kind[..], json(json!([{"id": text, "addresses": [1]}])), "malformed"),
        (&[], json(json!([])), "found no addresses"),
        (&[], json(json!([{"id": text, "addresses": []}])), "found no addresses"),
        (&[], json(json!([{"id": text, "addresses": [1], "lines": "exact"}])), "unknown field"),
        (&[], json(json!([{"id": long, "addresses": [1]}])), "not an image id"),
    ] {
        let answer = server.post_with(PATH, headers, &body);
        assert_eq!(
            (answer.status, answer.header("content-type")),
            (400, "application/problem+json"),
            "{words}"
        );
        assert!(answer.text().contains(words) && answer.text().len() < 1000, "{words}: {}", answer.text());
    }
    assert_eq!(server.post_with("/v1/resolve?kind=other", &kind, &whole).status, 400);
    // Without an index, the addresses say so.
    let answer = server.post_with(PATH, &kind, &whole);
    assert_eq!(text_of_status(&answer), ["missing"]);
}

fn text_of_status(answer: &Answer) -> Vec<Value> {
    let batches = batches(answer);
    batches.iter().flat_map(|batch| (0..batch.num_rows()).map(|row| text(batch.column(0), row))).collect()
}
