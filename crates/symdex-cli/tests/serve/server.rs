//! A server for one test.

use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;
use symdex_testkit::command::CommandOutput;
use symdex_testkit::folders::folder;
use symdex_testkit::images::debug_file::{BASE, Die, Elf, Unit, debug_sections};
use symdex_testkit::testdata::{dsym, testdata};
use tempfile::TempDir;
use ureq::http::Response;
use ureq::{Agent, Body};

pub(crate) fn command() -> Command {
    Command::new(env!("CARGO_BIN_EXE_symdex"))
}

/// The command in a shell, after `ulimit LIMIT`.
#[cfg(unix)]
pub(crate) fn command_with_limit(limit: &str) -> Command {
    let symdex = command();
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("ulimit {limit} && exec \"$0\" \"$@\"")]).arg(symdex.get_program());
    shell.envs(symdex.get_envs().filter_map(|(name, value)| Some((name, value?))));
    shell
}

/// Runs `symdex ARGS`.
pub(crate) fn symdex<A: AsRef<OsStr>>(args: impl IntoIterator<Item = A>) -> CommandOutput {
    CommandOutput::from(command().args(args).output().expect("the command starts"))
}

/// Runs `symdex` with the arguments in `line`, separated by spaces. `{}` stands for `path`.
pub(crate) fn symdex_on(path: &Path, line: &str) -> CommandOutput {
    symdex(symdex_testkit::command::arguments(line, path))
}

/// A `symdex serve`, which ends when this is dropped.
pub(crate) struct TestServer {
    child: Child,
    log: Arc<Mutex<String>>,
    /// The folder for uploads.
    _state: TempDir,
    /// The store of [`empty`](Self::empty).
    store: Option<TempDir>,
    /// `http://127.0.0.1:PORT`.
    pub(crate) url: String,
    pub(crate) agent: Agent,
}

/// An answer: its status and its body.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: ureq::http::HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("UTF-8")
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().expect("text"))
    }

    fn of(response: Result<Response<Body>, ureq::Error>) -> Self {
        let mut response = response.expect("an answer");
        let body = response.body_mut().with_config().limit(1 << 30).read_to_vec().expect("a body");
        Self { status: response.status().as_u16(), headers: response.headers().clone(), body }
    }
}

impl TestServer {
    /// A server over the store in the folder `store`, with these arguments beside.
    pub(crate) fn start(store: &Path, arguments: &[&str]) -> Self {
        let mut serve = command();
        serve.args(["--no-config", "serve", "--listen", "127.0.0.1:0", "--store"]).arg(store).args(arguments);
        Self::spawn(serve)
    }

    /// A server over a store without indexes.
    pub(crate) fn empty(arguments: &[&str]) -> Self {
        let store = folder();
        let mut server = Self::start(store.path(), arguments);
        server.store = Some(store);
        server
    }

    /// Starts the server and waits until it listens.
    pub(crate) fn spawn(mut serve: Command) -> Self {
        // The user's own folder is not used. An option is preferred to the environment.
        let state = folder();
        // Tests do not wait for load balancers.
        serve.env("SYMDEX_DRAIN", "0s");
        if serve.get_envs().all(|(name, _)| name != "SYMDEX_STATE") {
            serve.env("SYMDEX_STATE", state.path());
        }
        let mut child = serve.stderr(Stdio::piped()).spawn().expect("symdex starts");
        let mut errors = BufReader::new(child.stderr.take().expect("a pipe"));
        let mut seen = String::new();
        let address = loop {
            let mut line = String::new();
            if errors.read_line(&mut line).expect("text") == 0 {
                panic!("the server has not started: {seen}");
            }
            if let Some((_, address)) = line.trim_end().split_once("listening at ") {
                break address.to_owned();
            }
            seen += &line;
        };
        // The pipe is read to its end, or the server would wait when it is full.
        let log = Arc::new(Mutex::new(seen));
        let lines = Arc::clone(&log);
        std::thread::spawn(move || {
            for line in errors.lines().map_while(Result::ok) {
                *lines.lock().expect("not poisoned") += &format!("{line}\n");
            }
        });
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(Duration::from_secs(120)))
            .build();
        Self {
            child,
            log,
            _state: state,
            store: None,
            url: format!("http://{address}"),
            agent: config.into(),
        }
    }

    /// What the server has written to standard error.
    pub(crate) fn log(&self) -> String {
        self.log.lock().expect("not poisoned").clone()
    }

    /// Waits until the log has each of `texts`: it is read by a thread, which may be behind the answers of the server.
    pub(crate) fn expect_log(&self, texts: &[&str]) {
        self.until(|| {
            let log = self.log();
            texts.iter().all(|text| log.contains(text))
        });
    }

    /// Waits until `is_so`, at most a minute. A failure shows the log.
    pub(crate) fn until(&self, is_so: impl Fn() -> bool) {
        let begun = Instant::now();
        while !is_so() {
            assert!(begun.elapsed() < Duration::from_secs(60), "{}", self.log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        Answer::of(self.agent.get(format!("{}{path}", self.url)).call())
    }

    /// The job at `path` when `is_so`, at most after `limit`.
    pub(crate) fn job_within(&self, limit: Duration, path: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        let begun = Instant::now();
        loop {
            let job = self.get(path).json();
            if is_so(&job) {
                return job;
            }
            assert!(begun.elapsed() < limit, "{job}: {}", self.log());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    pub(crate) fn get_with(&self, path: &str, headers: &[(&str, &str)]) -> Answer {
        let request = self.agent.get(format!("{}{path}", self.url));
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        Answer::of(request.call())
    }

    pub(crate) fn head(&self, path: &str) -> Answer {
        Answer::of(self.agent.head(format!("{}{path}", self.url)).call())
    }

    pub(crate) fn put(&self, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        let request = self.agent.put(format!("{}{path}", self.url));
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        Answer::of(request.send(body))
    }

    pub(crate) fn delete(&self, path: &str, headers: &[(&str, &str)]) -> Answer {
        let request = self.agent.delete(format!("{}{path}", self.url));
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        Answer::of(request.call())
    }

    pub(crate) fn post(&self, path: &str, body: impl AsRef<[u8]>) -> Answer {
        self.post_with(path, &[], body)
    }

    pub(crate) fn post_with(&self, path: &str, headers: &[(&str, &str)], body: impl AsRef<[u8]>) -> Answer {
        let mut request = self.agent.post(format!("{}{path}", self.url));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        Answer::of(request.send(body.as_ref()))
    }

    pub(crate) fn post_json(&self, path: &str, body: &Value) -> Answer {
        self.post_with(path, &[("content-type", "application/json")], body.to_string())
    }

    /// Sends the signal with this name.
    #[cfg(unix)]
    pub(crate) fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let killed = Command::new("kill").args(["-s", name, &pid]).status().expect("kill runs");
        assert!(killed.success());
    }

    /// Sends SIGHUP, and waits until the log has one more line with this message.
    #[cfg(unix)]
    pub(crate) fn reload(&self, message: &str) {
        let message = format!("\"message\":\"{message}");
        let logged = || self.log().matches(&message).count();
        let before = logged();
        self.signal("HUP");
        self.until(|| logged() > before);
    }

    /// Sends SIGTERM, and waits for the end.
    #[cfg(unix)]
    pub(crate) fn terminate(self) -> std::process::ExitStatus {
        self.signal("TERM");
        self.wait()
    }

    /// Waits for the end.
    #[cfg(unix)]
    pub(crate) fn wait(mut self) -> std::process::ExitStatus {
        self.child.wait().expect("the server ends")
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A token: the header of its requests, and its configuration.
pub(crate) struct TestToken {
    pub(crate) bearer: String,
    pub(crate) configured: String,
}

impl TestToken {
    pub(crate) fn new(name: &str, scopes: &str) -> Self {
        let made = symdex(["serve", "--new-token", scopes]);
        let (secret, line) = made.out.trim_end().split_once('\n').expect("two lines");
        let configured = line.split('"').nth(1).expect("a line of symdex.toml");
        Self { bearer: format!("Bearer {secret}"), configured: format!("{name}={configured}") }
    }

    pub(crate) fn headers(&self) -> [(&str, &str); 1] {
        [("authorization", &self.bearer)]
    }
}

/// A store with the indexes of these dSYMs of testdata, and the ids of their images.
pub(crate) fn store_of(names: &[&str]) -> (TempDir, Vec<String>) {
    let store = folder();
    let id_of = |name: &&str| {
        let line = format!("build {{}} --json --store {}", store.path().display());
        let built = symdex_on(&dsym(name), &line);
        assert_eq!(built.code, Some(0), "{}", built.err);
        built.images()[0]["id"].as_str().expect("an id").to_owned()
    };
    let ids = names.iter().map(id_of).collect();
    (store, ids)
}

/// The build id of the image of [`elf_store`].
pub(crate) const ELF_BUILD_ID: &str = "00112233445566778899aabbccddee0112233445";

/// A store with the index of an ELF image that has the function `f` from 0x1000 to 0x1100, and its build id of 20
/// bytes.
pub(crate) fn elf_store() -> TempDir {
    let store = folder();
    let build_id: Vec<u8> = (0..20).map(|byte| 0x11 * (byte % 15) + byte / 15).collect();
    let unit = Unit::new((0x1000, 0x1100)).child(Die::function("f", (0x1000, 0x1100)));
    let elf = Elf { base: BASE, build_id: Some(build_id), ..Elf::default() }.debug(debug_sections(&[unit]));
    let files = folder();
    let library = files.path().join("libapp.so");
    std::fs::write(&library, elf.bytes()).expect("written");
    let built = symdex_on(&library, &format!("build {{}} --json --store {}", store.path().display()));
    assert_eq!(built.code, Some(0), "{}", built.err);
    assert_eq!(built.images()[0]["id"], ELF_BUILD_ID);
    store
}

/// The crash report of the demo app.
pub(crate) fn demo_report() -> Vec<u8> {
    std::fs::read(testdata().join("demo/demo.crash")).expect("the demo's report")
}

/// A store with the demo's indexes.
pub(crate) fn demo_store() -> TempDir {
    let store = folder();
    let line = format!("build {} --store {{}}", testdata().join("demo").display());
    assert_eq!(symdex_on(store.path(), &line).code, Some(0));
    store
}
