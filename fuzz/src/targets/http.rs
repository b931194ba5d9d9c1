//! Bodies of HTTP requests: lookups, reports, stacks and forms.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::{LazyLock, mpsc};

use symdex_answer::SymbolicatorOptions;
use symdex_serve::{Server, ServerOptions};

use crate::input;

/// The paths that read a body, and the types of the bodies.
const PATHS: [(&str, &str); 7] = [
    ("/v1/lookup", JSON),
    ("/v1/missing", JSON),
    ("/v1/symbolicate", "text/plain"),
    ("/symbolicate/v5", JSON),
    ("/symbolicate/v4", JSON),
    ("/symbolicate", JSON),
    ("/applecrashreport", FORM),
];
const JSON: &str = "application/json";
const FORM: &str = "multipart/form-data; boundary=xx";

/// A server of this process, without indexes.
static SERVER: LazyLock<SocketAddr> = LazyLock::new(|| {
    let (send, receive) = mpsc::channel();
    std::thread::spawn(move || {
        let mut options = ServerOptions::new(SymbolicatorOptions::new());
        options.listen.set_port(0);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let server = Server::bind(options).await.expect("listens");
            send.send(server.local_addr().expect("an address")).expect("somebody waits");
            server.run(std::future::pending()).await;
        });
    });
    receive.recv().expect("the server listens")
});

pub fn run(data: &[u8]) {
    let (path, body) = input::choice(data);
    let (path, kind) = PATHS[usize::from(path) % PATHS.len()];
    let size = body.len();
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: {kind}\r\ncontent-length: {size}\r\n\
         connection: close\r\n\r\n"
    );
    let mut stream = TcpStream::connect(*SERVER).expect("the server listens");
    // A body that is refused may not be read to its end.
    _ = stream.write_all(&[head.as_bytes(), body].concat());
    let mut answer = Vec::new();
    _ = stream.read_to_end(&mut answer);
    let status = answer.strip_prefix(b"HTTP/1.1 ").and_then(|rest| rest.get(..3));
    let status = status.expect("an answer");
    assert!(matches!(status, [b'2' | b'4', ..] | b"503"), "{}", String::from_utf8_lossy(&answer));
}

#[must_use]
pub fn seeds() -> Vec<Vec<u8>> {
    let id = "6dcd4e9dd3b13a0e8dff6a5a4be1b1b0";
    let texts = [
        format!("0[{{\"id\": \"{id}\", \"addresses\": [\"0x10\", 16]}}]"),
        format!("1[\"{id}\"]"),
        format!("3{{\"jobs\": [{{\"memoryMap\": [[\"App\", \"{id}0\"]], \"stacks\": [[[0, 4096], [-1, 5]]]}}]}}"),
        format!("4{{\"version\": 4, \"memoryMap\": [[\"App\", \"{id}0\"]], \"stacks\": [[[0, 4096]]]}}"),
        format!(
            "5{{\"signal\": 11, \"stacktraces\": [{{\"frames\": [{{\"instruction_addr\": \"0x1010\"}}]}}], \
             \"modules\": [{{\"type\": \"macho\", \"debug_id\": \"{id}\", \"image_addr\": \"0x1000\"}}]}}"
        ),
        "6--xx\r\ncontent-disposition: form-data; name=\"apple_crash_report\"; filename=\"a\"\r\n\r\nThread 0:\n\
         0 App 0x1010 0x1000 + 16\r\n--xx--\r\n"
            .to_owned(),
    ];
    let reports = input::files("fuzz/seeds/report", |_| true);
    texts
        .map(String::into_bytes)
        .into_iter()
        .chain(reports.iter().map(|report| [b"2", &report[..]].concat()))
        .collect()
}
