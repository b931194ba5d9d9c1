//! Reads and writes an object of the server of the S3 protocol as simply as possible, for files of the peers.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use anyhow::{Context as _, Result, ensure};

use symdex_testkit::moto::BUCKET;

/// The server does not check signatures, but refuses requests without any.
const AUTHORIZATION: &str = "AWS4-HMAC-SHA256 Credential=key/20260101/us-east-1/s3/aws4_request, \
                             SignedHeaders=host, Signature=00";

/// The bytes of the object `key`.
pub fn get(port: u16, key: &str) -> Result<Vec<u8>> {
    exchange(port, "GET", key, &[])
}

/// Writes the object `key`.
pub fn put(port: u16, key: &str, bytes: &[u8]) -> Result<()> {
    exchange(port, "PUT", key, bytes).map(drop)
}

fn exchange(port: u16, method: &str, key: &str, body: &[u8]) -> Result<Vec<u8>> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    let head = format!(
        "{method} /{BUCKET}/{key} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: {AUTHORIZATION}\r\n\
         Connection: close\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body)?;
    let mut response = Vec::new();
    stream.read_to_end(&mut response)?;
    let end = response.windows(4).position(|window| window == b"\r\n\r\n").context("no response")?;
    let head = String::from_utf8_lossy(&response[..end]).to_lowercase();
    ensure!(head.starts_with("http/1.1 200"), "{method} {key}: {}", head.lines().next().unwrap_or_default());
    ensure!(!head.contains("transfer-encoding: chunked"), "{method} {key}: a response in chunks");
    Ok(response.split_off(end + 4))
}
