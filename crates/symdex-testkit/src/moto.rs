//! A server of the S3 protocol on this machine: moto, which `.ci/run` installs into `target/moto`.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The bucket of the server.
pub const BUCKET: &str = "indexes";

/// The environment of a process that uses the server at `port`.
pub fn environment(port: u16) -> [(&'static str, String); 4] {
    [
        ("AWS_ENDPOINT_URL", format!("http://127.0.0.1:{port}")),
        ("AWS_ALLOW_HTTP", "true".to_owned()),
        ("AWS_ACCESS_KEY_ID", "key".to_owned()),
        ("AWS_SECRET_ACCESS_KEY", "very secret".to_owned()),
    ]
}

/// A server of the S3 protocol, which ends with the value.
pub struct Server {
    child: Child,
    pub port: u16,
}

impl Drop for Server {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

impl Server {
    /// Starts a server with an empty bucket.
    pub fn start() -> Self {
        let port =
            TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a port").port();
        let mut command = Command::new(crate::target_file("moto/bin/moto_server"));
        command
            .args(["-H", "127.0.0.1", "-p", &port.to_string()])
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let server = Self { child: command.spawn().expect("started"), port };
        let begun = Instant::now();
        while server.request("PUT", &format!("/{BUCKET}")).is_none() {
            assert!(begun.elapsed() < Duration::from_secs(60), "the server does not answer");
            std::thread::sleep(Duration::from_millis(50));
        }
        server
    }

    /// The body of the response to a request for `path`.
    pub fn get(&self, path: &str) -> String {
        let response = self.request("GET", path).expect("a response");
        response.split_once("\r\n\r\n").expect("a head").1.to_owned()
    }

    /// The response to a request that needs no signature. `None` if the server does not answer.
    fn request(&self, method: &str, path: &str) -> Option<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).ok()?;
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).ok()?;
        let mut response = Vec::new();
        stream.read_to_end(&mut response).ok()?;
        Some(String::from_utf8_lossy(&response).into_owned()).filter(|response| !response.is_empty())
    }
}
