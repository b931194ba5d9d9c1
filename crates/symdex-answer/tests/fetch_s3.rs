//! Fetching from S3, against moto's server of the protocol on this machine.
//!
//! Without the server, this test is ignored.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use symdex_answer::fetch::{DebugSources, FetchOptions, Verdict, WantedImage};
use symdex_testkit::moto::{BUCKET, Server, environment};

const BUILD_ID: &str = "0123456789abcdef0123456789abcdef01234567";

fn elf() -> Vec<u8> {
    let mut bytes = b"\x7fELF".to_vec();
    bytes.resize(300_000, 7);
    bytes
}

fn put(server: &Server, key: &str, body: &[u8]) {
    let mut stream = TcpStream::connect(("127.0.0.1", server.port)).expect("connected");
    let len = body.len();
    write!(
        stream,
        "PUT /{BUCKET}/{key} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Length: {len}\r\n\r\n"
    )
    .and_then(|()| stream.write_all(body))
    .expect("sent");
    let mut response = String::new();
    stream.read_to_string(&mut response).expect("a response");
    assert!(response.starts_with("HTTP/1.1 200"), "{response}");
}

pub(crate) fn a_bucket_has_debug_files() {
    let server = Server::start();
    let zstd = zstd::encode_all(&elf()[..], 3).expect("memory");
    put(&server, "symbols/01/23456789abcdef0123456789abcdef01234567/debuginfo", &zstd);
    let output = symdex_testkit::child("fetch_s3::child_fetches")
        .envs(environment(server.port))
        .output()
        .expect("started");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

pub(crate) fn child_fetches() {
    for url in [format!("unified+s3://{BUCKET}/symbols"), format!("s3://{BUCKET}/symbols")] {
        let options = FetchOptions::new();
        let sources = DebugSources::open(&[url.parse().expect("a URL")], &options).expect("opened");
        let fetch = |id: &str| {
            let wanted = WantedImage::new(id.parse().expect("an id"));
            sources.fetch(&wanted, |file| Verdict::Used(std::fs::read(file.path()).expect("it is there")))
        };
        assert!(fetch(BUILD_ID).expect("no failure").is_some_and(|bytes| bytes == elf()));
        assert_eq!(fetch(&BUILD_ID.replace("01", "02")), Ok(None));
    }
    let url = "unified+s3://there-is-no-such-bucket".parse().expect("a URL");
    let sources = DebugSources::open(&[url], &FetchOptions::new()).expect("opened");
    let wanted = WantedImage::new(BUILD_ID.parse().expect("an id"));
    let error = sources.fetch(&wanted, |_| Verdict::Used(())).expect_err("no bucket");
    assert!(error.to_string().contains("s3://there-is-no-such-bucket/"), "{error}");
    assert!(!error.to_string().contains("very secret"), "{error}");
}
