//! The commands of docs/PIPELINE.md, run on debug files of `testdata`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{CommandOutput, debug_file, folder, names_in, testdata, without_debug_information};
use saphyr::{LoadableYamlNode as _, YamlOwned};
use symdex_testkit::images::archive::zip_of;

/// The code blocks of a section of the document, in this language.
fn blocks(section: &str, language: &str) -> Vec<String> {
    let document = fs::read_to_string(testdata().join("../docs/PIPELINE.md")).expect("the document");
    let (_, rest) = document.split_once(&format!("\n## {section}\n")).expect("the section");
    let section = rest.split("\n## ").next().expect("its end");
    let begin = format!("\n```{language}\n");
    let blocks: Vec<_> = section
        .split(&begin)
        .skip(1)
        .map(|block| block.split("\n```").next().expect("its end").to_owned())
        .collect();
    assert!(!blocks.is_empty(), "no {language} in {section}");
    blocks
}

/// The only shell block of a section.
fn shell(section: &str) -> String {
    let [block] = &blocks(section, "sh")[..] else { panic!("one block in {section}") };
    block.clone()
}

/// The only YAML block of a section.
fn yaml(section: &str) -> YamlOwned {
    let [block] = &blocks(section, "yaml")[..] else { panic!("one block in {section}") };
    YamlOwned::load_from_str(block).expect("YAML").remove(0)
}

/// A folder in which a script runs, and the folder of the indexes that it makes.
struct Workplace {
    root: tempfile::TempDir,
    variables: Vec<(&'static str, String)>,
}

impl Workplace {
    fn new() -> Self {
        Self { root: folder(), variables: Vec::new() }
    }

    fn write(&self, path: &str, bytes: &[u8]) -> PathBuf {
        let path = self.root.path().join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
        fs::write(&path, bytes).expect("written");
        path
    }

    fn indexes(&self) -> PathBuf {
        self.root.path().join("indexes")
    }

    /// Runs `script` as the CI services do: with `sh -e`, and with this symdex before all others.
    fn run(&self, script: &str) -> CommandOutput {
        let symdex = Path::new(env!("CARGO_BIN_EXE_symdex")).parent().expect("a folder");
        let path = format!("{}:{}", symdex.display(), std::env::var("PATH").unwrap_or_default());
        let mut run = Command::new("sh");
        run.arg("-ec").arg(script).current_dir(self.root.path());
        run.env("PATH", path).env("INDEXES", self.indexes());
        run.envs(self.variables.iter().map(|(name, value)| (name, value)));
        CommandOutput::from(run.output().expect("sh"))
    }

    /// Runs `script` twice, and checks that it makes `count` indexes, and the same the second time.
    #[track_caller]
    fn succeeds(&self, script: &str, count: usize) {
        let first = self.run(script);
        assert_eq!((first.code, names_in(&self.indexes()).len()), (Some(0), count), "{script}\n{first:?}");
        let again = self.run(script);
        assert!(again.code == Some(0) && !again.out.contains(": written"), "{script}\n{again:?}");
    }

    /// Runs `script`, which has to fail and to say why.
    #[track_caller]
    fn fails(&self, script: &str, message: &str) {
        let failed = self.run(script);
        assert_ne!(failed.code, Some(0), "{script}\n{failed:?}");
        let said = failed.out + &failed.err;
        assert!(said.contains(message), "{message:?} in {said}");
    }
}

fn file(name: &str) -> Vec<u8> {
    fs::read(debug_file(name)).expect("there")
}

fn stripped(name: &str) -> Vec<u8> {
    without_debug_information(&debug_file(name))
}

const DSYM: &str = "cxx.dSYM/Contents/Resources/DWARF/cxx";
const NO_DEBUG_INFORMATION: &str = "no input has debug information of lto (arm64, ";

#[test]
fn the_script_fails_if_a_dsym_is_missing() {
    let script = shell("A shell script");
    let work = Workplace::new();
    work.write(
        "app.ipa",
        &zip_of(&[("Payload/A.app/cxx", &stripped("cxx")), ("Payload/A.app/lto", &stripped("lto"))]),
    );
    let dsyms = [(DSYM, &file("cxx")[..]), ("lto.dSYM/Contents/Resources/DWARF/lto", &file("lto"))];
    work.write("dsyms.zip", &zip_of(&dsyms));
    work.succeeds(&script, 2);
    work.write("dsyms.zip", &zip_of(&dsyms[..1]));
    fs::remove_dir_all(work.indexes()).expect("removed");
    work.fails(&script, NO_DEBUG_INFORMATION);
    work.fails(&script, "error: not every image has an index");
    fs::remove_file(work.root.path().join("dsyms.zip")).expect("removed");
    work.fails(&script, "dsyms.zip: cannot read");
}

/// A server of this machine over an empty store, which ends when this is dropped.
#[cfg(feature = "serve")]
struct Server {
    child: std::process::Child,
    url: String,
    _root: tempfile::TempDir,
}

#[cfg(feature = "serve")]
impl Server {
    fn start() -> Self {
        use std::io::{BufRead as _, BufReader, Read as _};
        let root = folder();
        let mut serve = crate::common::command();
        serve
            .args(["--no-config", "serve", "--listen", "127.0.0.1:0", "--store"])
            .arg(root.path().join("store"));
        serve.env("SYMDEX_STATE", root.path().join("state")).stderr(std::process::Stdio::piped());
        let mut child = serve.spawn().expect("symdex starts");
        let mut log = BufReader::new(child.stderr.take().expect("a pipe"));
        let address = (&mut log).lines().map_while(Result::ok);
        let address = address.filter_map(|line| Some(line.split_once("listening at ")?.1.to_owned())).next();
        let url = format!("http://{}", address.expect("the server listens"));
        // The server would wait for the reader of a full pipe.
        std::thread::spawn(move || _ = log.read_to_end(&mut Vec::new()));
        Self { child, url, _root: root }
    }
}

#[cfg(feature = "serve")]
impl Drop for Server {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

/// Runs `script` twice with a server of its own: it answers all `images`, and the second run sends nothing.
#[cfg(feature = "serve")]
#[track_caller]
fn uploads(work: &mut Workplace, script: &str, images: usize) {
    let server = Server::start();
    work.variables = vec![("SYMDEX_SERVER", server.url.clone())];
    for outcome in [": answered, ", ": unchanged\n"] {
        let run = work.run(script);
        assert_eq!((run.code, run.out.matches(outcome).count()), (Some(0), images), "{script}\n{run:?}");
    }
}

#[cfg(feature = "serve")]
#[test]
fn indexes_are_sent_to_a_server_once() {
    let section = "Send indexes to a server";
    let mut work = Workplace::new();
    work.write("app.ipa", &zip_of(&[("Payload/A.app/cxx", &stripped("cxx"))]));
    work.write("dsyms.zip", &zip_of(&[(DSYM, &file("cxx")), ("lto", &file("lto"))]));
    uploads(&mut work, &shell(section), 2);
    work.write("dsyms.zip", &zip_of(&[("lto", &file("lto"))]));
    let server = Server::start();
    work.variables = vec![("SYMDEX_SERVER", server.url.clone())];
    work.fails(&shell(section), "no input has debug information of cxx");

    let task = blocks(section, "kotlin").remove(0);
    let (_, command) = task.split_once("commandLine(\"").expect("a command");
    let (command, _) = command.split_once("\")").expect("its end");
    let libraries = "build/intermediates/merged_native_libs/release/mergeReleaseNativeLibs/out/lib";
    let library = fs::read(testdata().join("elf/gcc-parts.so")).expect("there");
    work.write(&format!("{libraries}/x86_64/libparts.so"), &library);
    uploads(&mut work, &command.replace("\", \"", " "), 1);

    let steps = yaml(section);
    let steps = steps["upload-indexes"]["script"].as_vec().expect("a script").iter();
    let script = steps.filter_map(YamlOwned::as_str).collect::<Vec<_>>().join("\n");
    work.write("App.xcarchive.zip", &xcarchive(&["cxx", "lto"]));
    uploads(&mut work, &script, 2);
}

#[test]
fn a_listing_of_archives_is_built() {
    let script = shell("Inputs");
    let work = Workplace::new();
    work.write("dsyms/a/1.zip", &zip_of(&[(DSYM, &file("cxx"))]));
    work.write("dsyms/b 2.zip", &zip_of(&[("lto", &file("lto"))]));
    work.succeeds(&script, 2);
    work.write("dsyms/none.zip", &zip_of(&[("notes", b"x")]));
    work.fails(&script, "none.zip: no debug file in this archive");
}

#[test]
fn the_command_of_the_gradle_task_fails_for_a_stripped_library() {
    use symdex_testkit::images::debug_file::{BASE, Die, Elf, ElfSymbol, Unit, debug_sections};
    let script = shell("Gradle");
    let task = blocks("Gradle", "kotlin")[0].replace("\", \"", " ");
    assert!(
        task.contains("symdex build build/intermediates/merged_native_libs/release --require-all"),
        "{task}"
    );
    let work = Workplace::new();
    let libraries = "build/intermediates/merged_native_libs/release/mergeReleaseNativeLibs/out/lib/arm64-v8a";
    let elf = |id| Elf { base: BASE, build_id: Some(vec![id; 20]), ..Elf::default() };
    let unit = Unit::new((0x1000, 0x1100)).child(Die::function("f", (0x1000, 0x1100)));
    work.write(&format!("{libraries}/libapp.so"), &elf(1).debug(debug_sections(&[unit])).bytes());
    work.succeeds(&script, 1);
    let symbols = vec![ElfSymbol::function("f", BASE + 0x1000, 0x10)];
    work.write(&format!("{libraries}/libvendor.so"), &Elf { symbols, ..elf(2) }.bytes());
    work.fails(&script, "no input has debug information of libvendor.so");
    work.write(&format!("{libraries}/libvendor.so"), &elf(2).bytes());
    work.fails(&script, "nothing to answer");
    fs::remove_dir_all(work.root.path().join("build")).expect("removed");
    work.fails(&script, "cannot read");
}

/// An .xcarchive of two binaries, and the dSYMs of some.
fn xcarchive(dsyms: &[&str]) -> Vec<u8> {
    let (cxx, lto) = (stripped("cxx"), stripped("lto"));
    let mut files = vec![
        ("App.xcarchive/Products/Applications/A.app/cxx".to_owned(), cxx),
        ("App.xcarchive/Products/Applications/A.app/lto".to_owned(), lto),
    ];
    let dsym = |name: &&str| {
        (format!("App.xcarchive/dSYMs/{name}.dSYM/Contents/Resources/DWARF/{name}"), file(name))
    };
    files.extend(dsyms.iter().map(dsym));
    zip_of(&files.iter().map(|(name, bytes)| (&**name, &bytes[..])).collect::<Vec<_>>())
}

#[test]
fn the_steps_of_gitlab_fail_if_a_dsym_is_missing() {
    let job = &yaml("GitLab CI")["indexes"];
    let lines = job["script"].as_vec().expect("a script").iter().filter_map(YamlOwned::as_str);
    let script = lines.collect::<Vec<_>>().join("\n");
    assert_eq!(job["variables"]["INDEXES"].as_str(), Some("indexes"));
    let work = Workplace::new();
    work.write("App.xcarchive.zip", &xcarchive(&["cxx", "lto"]));
    work.succeeds(&script, 2);
    work.write("App.xcarchive.zip", &xcarchive(&["cxx"]));
    fs::remove_dir_all(work.indexes()).expect("removed");
    work.fails(&script, NO_DEBUG_INFORMATION);
}

#[test]
fn the_jobs_of_the_array_build_every_input_once() {
    let manifest = yaml("All debug files again, as a job array");
    let spec = &manifest["spec"];
    let container = &spec["template"]["spec"]["containers"][0];
    assert_eq!(container["command"][0].as_str(), Some("sh"));
    let script = container["args"][0].as_str().expect("a command");
    let jobs = spec["completions"].as_integer().expect("a number");
    assert!(script.contains(&format!("$JOB_COMPLETION_INDEX/{jobs}")), "as many shards as jobs: {script}");
    let mut work = Workplace::new();
    let inputs = ["cxx", "lto", "icf", "objc"].map(|name| crate::common::dsym(name).display().to_string());
    work.write("listing", inputs.join("\n").as_bytes());
    for index in 0..jobs {
        work.variables = vec![("JOB_COMPLETION_INDEX", index.to_string())];
        let done = work.run(script);
        assert_eq!(done.code, Some(0), "{done:?}");
    }
    let built = names_in(&work.indexes());
    work.write("listing", b"gone.dSYM");
    let codes: Vec<_> = (0..jobs)
        .map(|index| {
            work.variables = vec![("JOB_COMPLETION_INDEX", index.to_string())];
            work.run(script).code
        })
        .collect();
    assert_eq!(codes.iter().filter(|code| **code == Some(5)).count(), 1, "one job has the input: {codes:?}");
    assert!(built.len() >= 4, "{built:?}");
}

#[test]
fn the_configuration_of_the_document_is_valid() {
    let work = Workplace::new();
    work.write("symdex.toml", blocks("Configuration", "toml")[0].as_bytes());
    let shown = work.run("symdex config").ok();
    assert!(shown.lines().any(|line| line.starts_with("max-memory") && line.contains("512MB")), "{shown}");
}
