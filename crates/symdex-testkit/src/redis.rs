//! Servers of Redis on this machine, which end with their values.

use std::net::TcpListener;
use std::path::PathBuf;
#[cfg(unix)]
use std::process::Command;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use redis::{Client, Connection, Value};
use tempfile::TempDir;

/// How long a test waits for a server. The tests take much less.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server of Redis.
pub struct Server {
    child: Child,
    pub port: u16,
    options: Vec<String>,
    folder: TempDir,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A port that no program listens to.
pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a port").port()
}

impl Server {
    /// Starts a server and waits until it answers.
    pub fn start(options: &[&str]) -> Self {
        let server = Self::start_unready(options);
        server.wait();
        server
    }

    /// Starts a server that may not answer without a password or TLS.
    pub fn start_unready(options: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let options: Vec<_> = options.iter().map(|&option| option.to_owned()).collect();
        let port = free_port();
        Self { child: spawn(port, &options, folder.path().into()), port, options, folder }
    }

    /// Waits until the server answers.
    pub fn wait(&self) {
        let begun = Instant::now();
        while self.connect().is_none_or(|mut connection| redis::cmd("PING").exec(&mut connection).is_err()) {
            assert!(begun.elapsed() < PATIENCE, "the server does not answer");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Kills the server, as `kill -9` does.
    pub fn kill(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }

    /// Sends the server this signal, such as `STOP`.
    #[cfg(unix)]
    pub fn signal(&self, name: &str) {
        let sent = Command::new("kill").args(["-s", name, &self.child.id().to_string()]).status();
        assert!(sent.expect("kill runs").success());
    }

    /// Starts the server again after it was killed.
    pub fn restart(&mut self) {
        self.child = spawn(self.port, &self.options, self.folder.path().into());
    }

    fn connect(&self) -> Option<Connection> {
        let client = Client::open(format!("redis://127.0.0.1:{}/", self.port)).expect("a URL");
        client.get_connection_with_timeout(PATIENCE).ok()
    }

    /// Runs a command on the server itself.
    pub fn run(&self, words: &[&str]) -> Value {
        let mut connection = self.connect().expect("connected");
        let (name, arguments) = words.split_first().expect("a command");
        redis::cmd(name)
            .arg(arguments)
            .query(&mut connection)
            .unwrap_or_else(|error| panic!("{words:?}: {error}"))
    }

    /// The text that a command prints, or the number that it returns.
    pub fn text(&self, words: &[&str]) -> String {
        redis::from_redis_value(self.run(words)).expect("text or a number")
    }

    /// All keys, sorted.
    pub fn keys(&self) -> Vec<String> {
        let mut keys: Vec<String> = redis::from_redis_value(self.run(&["KEYS", "*"])).expect("keys");
        keys.sort();
        keys
    }

    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/0", self.port)
    }
}

fn spawn(port: u16, options: &[String], folder: PathBuf) -> Child {
    let mut command = crate::program("redis-server", "--version");
    command.args([
        "--port",
        &port.to_string(),
        "--bind",
        "127.0.0.1",
        "--save",
        "",
        "--appendonly",
        "no",
        "--dir",
    ]);
    command.arg(folder).args(options).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().expect("started")
}

/// A cluster of three servers.
pub struct Cluster(pub Vec<Server>);

impl Cluster {
    const SLOTS: [&str; 3] = ["0 5460", "5461 10922", "10923 16383"];

    /// Starts a cluster and waits until it answers.
    pub fn start() -> Self {
        let bus_ports: Vec<_> = Self::SLOTS.iter().map(|_| free_port().to_string()).collect();
        let start = |bus: &String| {
            Server::start(&[
                "--cluster-enabled",
                "yes",
                "--cluster-port",
                bus,
                "--cluster-node-timeout",
                "5000",
            ])
        };
        let servers = bus_ports.iter().map(start).collect::<Vec<_>>();
        for (number, server) in servers.iter().enumerate() {
            let (first, last) = Self::SLOTS[number].split_once(' ').expect("two numbers");
            server.run(&["CLUSTER", "ADDSLOTSRANGE", first, last]);
            server.run(&["CLUSTER", "SET-CONFIG-EPOCH", &(number + 1).to_string()]);
            let (port, bus) = (servers[0].port.to_string(), &bus_ports[0]);
            if number > 0 {
                server.run(&["CLUSTER", "MEET", "127.0.0.1", &port, bus]);
            }
        }
        let begun = Instant::now();
        let is_ready = |server: &Server| {
            let info = server.text(&["CLUSTER", "INFO"]);
            info.contains("cluster_state:ok") && info.contains("cluster_known_nodes:3")
        };
        while !servers.iter().all(is_ready) {
            assert!(begun.elapsed() < PATIENCE, "the cluster is not ready");
            std::thread::sleep(Duration::from_millis(20));
        }
        Self(servers)
    }

    pub fn url(&self) -> String {
        let hosts: Vec<_> = self.0.iter().map(|server| format!("127.0.0.1:{}", server.port)).collect();
        format!("redis+cluster://{}", hosts.join(","))
    }
}
