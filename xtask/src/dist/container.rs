//! The container image: its files, and a container of it that answers a report.

use std::ffi::OsString;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;

use super::target::Target;
use super::{example, output, source};
use crate::installed::is_installed;

/// The folder of the image's files, in `dist`.
const FOLDER: &str = "container";

/// Where systems have the certificates of their authorities, in one file: Debian and Alpine; Fedora.
const CERTIFICATES: [&str; 2] = ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt"];

/// Makes what docs/deploy/Dockerfile reads: a folder of the root's files for each architecture, and the folders that
/// belong to the user of the container.
///
/// # Errors
/// This machine has no certificates, or a file cannot be copied.
pub(crate) fn stage(program: &Path, target: &Target, dist: &Path) -> Result<()> {
    let root = dist.join(FOLDER).join(target.package_arch);
    fs::create_dir_all(root.join("usr/bin"))?;
    fs::copy(program, root.join("usr/bin/symdex"))?;
    target.copy_libraries(program, &root)?;
    let certificates = CERTIFICATES.iter().find(|file| Path::new(file).is_file());
    let certificates = certificates.context("no certificates. Debian: `apt-get install ca-certificates`")?;
    fs::create_dir_all(root.join("etc/ssl/certs"))?;
    fs::copy(certificates, root.join("etc/ssl/certs/ca-certificates.crt"))?;
    for folder in ["data", "tmp"] {
        fs::create_dir_all(dist.join(FOLDER).join("folders").join(folder))?;
    }
    Ok(())
}

/// Builds the image with buildah, which needs no daemon, and runs it with its own user and command line. In the
/// container, `symdex build` makes the indexes of the demo, and the service answers the demo's report from them.
///
/// # Errors
/// The image cannot be built, or a container does not answer.
pub(crate) fn check(target: &Target, dist: &Path) -> Result<()> {
    if target.is_emulated() || !is_installed("buildah") {
        println!(
            "the image for {} was not built: it needs buildah, on a machine of this architecture",
            target.package_arch
        );
        return Ok(());
    }
    let buildah = Buildah { storage: dist.join("images") };
    let mut build =
        buildah.command(&["build", "--isolation=chroot", "--quiet", "--tag=symdex", "--platform"]);
    build.arg(format!("linux/{}", target.package_arch)).arg("--file").arg(source("docs/deploy/Dockerfile")?);
    output(build.arg(dist.join(FOLDER)))?;
    buildah.read(&["from", "--name=symdex", "localhost/symdex"])?;
    let answered = buildah.answer();
    // In its storage, buildah removes what belongs to other users.
    buildah.read(&["rm", "--all"])?;
    buildah.read(&["rmi", "--all", "--force"])?;
    fs::remove_dir_all(&buildah.storage)?;
    let user = answered?;
    println!(
        "container for {}: builds indexes and answers a report over HTTP as user {user}",
        target.package_arch
    );
    Ok(())
}

/// The program buildah, with a storage of its own.
struct Buildah {
    storage: PathBuf,
}

impl Buildah {
    fn command(&self, arguments: &[&str]) -> Command {
        let option = |name: &str, folder: &str| {
            let mut option = OsString::from(name);
            option.push(self.storage.join(folder));
            option
        };
        let mut command = Command::new("buildah");
        // Overlays cannot be mounted in all containers, where CI may run.
        command.args(["--storage-driver=vfs".into(), option("--root=", "root"), option("--runroot=", "run")]);
        command.args(arguments);
        command
    }

    fn read(&self, arguments: &[&str]) -> Result<String> {
        let printed = output(&mut self.command(arguments))?;
        Ok(String::from_utf8(printed).context("buildah does not print UTF-8")?.trim_end().to_owned())
    }

    /// A command in the container, as the user of the image.
    fn run(&self, options: &[String], words: &[String]) -> Command {
        let mut command = self.command(&["run", "--isolation=chroot"]);
        command.args(options).args(["symdex", "--"]).args(words);
        command
    }

    /// Builds the indexes of the demo, starts the service, asks it about the demo's crash, and returns the user of the
    /// container.
    fn answer(&self) -> Result<String> {
        let demo = source("testdata/demo")?;
        let read_demo = [format!("--volume={}:/demo:ro", demo.display())];
        let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        output(&mut self.run(&read_demo, &words("/usr/bin/symdex build /demo -o /data/indexes")))?;
        let made =
            self.run(&[], &words("/usr/bin/symdex serve --new-token read")).stderr(Stdio::null()).output()?;
        let made = String::from_utf8(made.stdout).context("the token")?;
        let [token, line] = made.lines().collect::<Vec<_>>()[..] else {
            bail!("`symdex serve --new-token` printed: {made}");
        };
        let hash = line.split('"').nth(1).context("the hash of the token is in quotes")?;

        let inspected: Value = serde_json::from_str(&self.read(&["inspect", "symdex"])?)?;
        let config = &inspected["OCIv1"]["config"];
        let list = |key: &str| config[key].as_array().into_iter().flatten().filter_map(Value::as_str);
        // The port of the image may be in use on this machine.
        let arguments = list("Cmd").map(|word| if word == "0.0.0.0:8040" { "127.0.0.1:0" } else { word });
        let serve: Vec<String> = list("Entrypoint").chain(arguments).map(str::to_owned).collect();
        let mut service = Running::start(&mut self.run(&[format!("--env=SYMDEX_TOKEN={hash}")], &serve))?;
        let address = service.address()?;
        let report = fs::read_to_string(demo.join("demo.crash"))?;
        let answer = post(&address, "/v1/symbolicate", token, &report)?;
        ensure!(answer.contains(example::LOCATION), "the container answered:\n{answer}");
        Ok(config["User"].as_str().context("the image names no user")?.to_owned())
    }
}

/// The service in a container, which stops when this is dropped.
struct Running {
    buildah: Child,
    /// What the service prints. It is kept open, because the service prints more than its address.
    printed: BufReader<ChildStderr>,
}

impl Running {
    fn start(command: &mut Command) -> Result<Self> {
        let mut buildah = command.stderr(Stdio::piped()).spawn()?;
        let printed = BufReader::new(buildah.stderr.take().context("stderr is a pipe")?);
        Ok(Self { buildah, printed })
    }

    /// Waits for the service and returns its address.
    fn address(&mut self) -> Result<String> {
        let mut line = String::new();
        self.printed.read_line(&mut line)?;
        let address = line.trim_end().strip_prefix("symdex: listening at ");
        Ok(address.with_context(|| format!("the service printed: {line}"))?.to_owned())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // buildah passes the signal on to the service.
        _ = Command::new("kill").arg(self.buildah.id().to_string()).status();
        _ = self.buildah.wait();
    }
}

/// Sends `body` to the service, and returns its response.
fn post(address: &str, path: &str, token: &str, body: &str) -> Result<String> {
    let mut stream = TcpStream::connect(address)?;
    let length = body.len();
    write!(
        stream,
        "POST {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n{body}"
    )?;
    let mut response = String::new();
    stream.read_to_string(&mut response)?;
    Ok(response)
}
