//! A service over Redis.

use std::path::Path;

use symdex_testkit::redis;
use symdex_testkit::testdata::dsym;

use crate::server::{TestServer, symdex};

pub(crate) fn an_image_in_redis_is_found_by_its_id_and_answers() {
    let redis = redis::Server::start(&[]);
    let bundle = dsym("inline-dwarf4");
    let built = symdex(["build", bundle.to_str().expect("text"), "--json", "--store", &redis.url()]);
    assert_eq!(built.code, Some(0), "{}", built.err);
    let id = built.images()[0]["id"].as_str().expect("an id").to_owned();
    let server = TestServer::start(Path::new(&redis.url()), &[]);
    let list = server.get(&format!("/v1/images?search={id}")).json();
    assert_eq!((&list["total"], &list["images"][0]["name"]), (&1.into(), &"inline-dwarf4".into()));
    let request = serde_json::json!([{"id": id, "addresses": ["0x400"]}]);
    assert_eq!(server.post_json("/v1/lookup", &request).json()[0]["status"], "found");
}
