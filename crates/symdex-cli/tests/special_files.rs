//! FIFOs, sockets and devices in folders that the command reads. Opening a FIFO waits for its writer.

use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{OpenOptionsExt as _, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use crate::common::{CommandOutput, command, folder, index_of, names_in, symbolicate, symdex, testdata};
use symdex_testkit::images::archive::zip_of;

fn make_fifo(path: &Path) {
    fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
    assert!(Command::new("mkfifo").arg(path).status().expect("mkfifo starts").success());
}

/// A FIFO with a writer, so that a reader gets its end instead of waiting. The test fails if there was a reader.
struct WatchedFifo {
    path: PathBuf,
    is_over: Arc<AtomicBool>,
    /// Returns whether there was a reader before `is_over`.
    writer: JoinHandle<bool>,
}

impl WatchedFifo {
    fn new(path: PathBuf) -> Self {
        make_fifo(&path);
        let is_over = Arc::new(AtomicBool::new(false));
        let writer = std::thread::spawn({
            let (path, is_over) = (path.clone(), Arc::clone(&is_over));
            move || {
                let mut was_read = false;
                loop {
                    // This waits for a reader.
                    drop(OpenOptions::new().write(true).open(&path).expect("a FIFO"));
                    if is_over.load(Ordering::SeqCst) {
                        return was_read;
                    }
                    was_read = true;
                }
            }
        });
        Self { path, is_over, writer }
    }

    fn assert_never_opened(self) {
        self.is_over.store(true, Ordering::SeqCst);
        let nonblocking = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
        let reader =
            OpenOptions::new().read(true).custom_flags(nonblocking).open(&self.path).expect("a FIFO");
        assert!(!self.writer.join().expect("no panic"), "{} was opened", self.path.display());
        drop(reader);
    }
}

/// A FIFO, a socket and a device in `folder`.
struct SpecialFiles {
    fifo: WatchedFifo,
    _socket: UnixListener,
}

const NAMES: [&str; 3] = ["a.fifo", "b.socket", "c.device"];

impl SpecialFiles {
    fn new(folder: &Path) -> Self {
        let [fifo, socket, device] = NAMES.map(|name| folder.join(name));
        let fifo = WatchedFifo::new(fifo);
        symlink("/dev/null", device).expect("a link");
        Self { fifo, _socket: UnixListener::bind(socket).expect("a socket") }
    }

    /// Asserts that the FIFO was not opened, and that standard error names all three.
    fn are_skipped(self, folder: &Path, done: &CommandOutput) {
        self.fifo.assert_never_opened();
        for path in NAMES.map(|name| folder.join(name)) {
            assert!(done.err.contains(path.to_str().expect("UTF-8")), "{}", done.err);
        }
        assert!(done.err.contains("neither a file nor a folder"), "{}", done.err);
    }
}

#[test]
fn reports_that_are_no_files_are_skipped_and_named() {
    let root = folder();
    let reports = root.path().join("reports");
    fs::create_dir(&reports).expect("a folder");
    fs::copy(testdata().join("demo/demo.crash"), reports.join("d.crash")).expect("copied");
    let special = SpecialFiles::new(&reports);
    let done = symbolicate(root.path(), &testdata().join("demo"), &["--json"], [&reports]);
    assert_eq!(done.code, Some(6), "{}", done.err);
    let refused: Vec<_> = done.json().into_iter().filter(|line| !line["error"].is_null()).collect();
    let expected = NAMES.map(|name| reports.join(name).display().to_string());
    assert_eq!(
        refused.iter().map(|line| line["report"].as_str().expect("a path")).collect::<Vec<_>>(),
        expected
    );
    assert!(refused.iter().all(|line| line["error"]["kind"] == "unsupported"), "{refused:?}");
    assert_eq!(done.json().len(), 4, "the report is read");
    special.are_skipped(&reports, &done);
}

#[test]
fn a_pipe_that_is_named_is_a_report() {
    let root = folder();
    let (path, report) = (root.path().join("fifo"), testdata().join("demo/demo.crash"));
    make_fifo(&path);
    let (reading, writing) = (path.clone(), report.clone());
    let writer = std::thread::spawn(move || {
        let mut fifo = OpenOptions::new().write(true).open(reading).expect("a FIFO");
        std::io::copy(&mut File::open(writing).expect("a report"), &mut fifo).expect("written")
    });
    let dsym = testdata().join("demo");
    let piped = symbolicate(root.path(), &dsym, &[], [&path]);
    writer.join().expect("no panic");
    assert_eq!((piped.code, piped.out), (Some(0), symbolicate(root.path(), &dsym, &[], [&report]).out));
}

/// The output of `symdex ARGS`, where `{}` stands for a FIFO that `bytes` are written to.
fn on_pipe(root: &Path, bytes: &[u8], args: &str) -> CommandOutput {
    let path = root.join("app.fifo");
    if !path.exists() {
        make_fifo(&path);
    }
    let (fifo, bytes) = (path.clone(), bytes.to_vec());
    let writer = std::thread::spawn(move || {
        let mut fifo = OpenOptions::new().write(true).open(fifo).expect("a FIFO");
        // A reader may stop early.
        let _ = fifo.write_all(&bytes);
    });
    let done = crate::common::symdex_on(&path, args);
    writer.join().expect("no panic");
    done
}

#[test]
fn a_pipe_that_is_named_is_a_debug_file() {
    let root = folder();
    let file = crate::common::debug_file("cxx");
    let bytes = fs::read(&file).expect("readable");
    let out = root.path().join("out");
    fs::create_dir(&out).expect("a folder");
    let index = crate::common::index_of("cxx", &out);
    let image = "{} --arch arm64";
    for line in [
        format!("lookup {image} 0x604 0x610 0x640"),
        "atos -o {} -arch arm64 -i -offset 0x604 0x610".to_owned(),
        "llvm-symbolizer -e {} 0x100000604 main+4".to_owned(),
        "addr2line -fie {} 0x100000604".to_owned(),
        "addr2line -fie {} -j __text 0x4 0x8".to_owned(),
    ] {
        let expected = crate::common::symdex_on(&file, &line);
        let piped = on_pipe(root.path(), &bytes, &line);
        let named = piped.out.replace("(in app.fifo)", "(in cxx)");
        assert_eq!((piped.code, named), (expected.code, expected.out), "{line}: {}", piped.err);
    }
    let verified = on_pipe(root.path(), &bytes, &format!("verify {} --against {{}}", index.display())).ok();
    assert!(verified.contains("every answer of the index equals"), "{verified}");
    let listed = on_pipe(root.path(), &bytes, "ids {}").ok();
    assert!(listed.trim_end().ends_with("app.fifo"), "{listed}");
    // Archives and compressed files are read from pipes, too.
    let other = root.path().join("other");
    for packed in [symdex_testkit::images::archive::gzip(&bytes), zip_of(&[("cxx", &bytes)])] {
        on_pipe(root.path(), &packed, &format!("build {{}} -o {}", other.display())).ok();
        assert_eq!(names_in(&other), names_in(&out));
    }
    let failed = on_pipe(root.path(), b"text", "lookup {} 0x1");
    assert_eq!(failed.code, Some(6), "{}", failed.err);
    assert!(failed.err.contains("app.fifo: not a debug file: a text file"), "{}", failed.err);
    let device = crate::common::symdex_on(Path::new("/dev/null"), "lookup {} 0x1");
    assert!(device.err.contains("/dev/null: cannot read: neither a file nor a folder"), "{}", device.err);
}

#[test]
fn standard_input_is_a_debug_file_or_has_the_addresses() {
    let file = crate::common::debug_file("cxx");
    let on_stdin = |args: &[&str]| {
        let mut cat = Command::new("cat").arg(&file).stdout(Stdio::piped()).spawn().expect("cat starts");
        let pipe = cat.stdout.take().expect("piped");
        let done = command().args(args).stdin(pipe).output().expect("it starts");
        cat.wait().expect("cat ends");
        CommandOutput::from(done)
    };
    let expected = crate::common::symdex_on(&file, "lookup {} 0x604").ok();
    for path in ["-", "/dev/stdin"] {
        assert_eq!(on_stdin(&["lookup", path, "0x604"]).ok(), expected);
        for args in [&["lookup", path][..], &["atos", "-o", path]] {
            let failed = on_stdin(args);
            assert_eq!(failed.code, Some(2), "{args:?}: {}", failed.err);
            assert!(failed.err.contains("give the addresses as arguments"), "{}", failed.err);
        }
        // As llvm-symbolizer, which reads no address then.
        let none = on_stdin(&["llvm-symbolizer", "-e", path]);
        assert_eq!((none.code, none.out.as_str()), (Some(0), ""));
        let code = crate::common::symdex_on(&file, "llvm-symbolizer -e {} 0x100000604").ok();
        assert_eq!(on_stdin(&["llvm-symbolizer", "-e", path, "0x100000604"]).ok(), code);
    }
}

#[test]
fn debug_files_that_are_no_files_are_skipped_and_named() {
    let root = folder();
    let files = root.path().join("files");
    fs::create_dir(&files).expect("a folder");
    fs::copy(testdata().join("demo/DemoPlain.dylib"), files.join("DemoPlain.dylib")).expect("copied");
    let special = SpecialFiles::new(&files);
    let out = root.path().join("out");
    for args in [
        &["build", "-o", out.to_str().expect("UTF-8")][..],
        &["lookup", "0x0"],
        &["atos", "0x0", "-o"],
        &["ids"],
        &["symbolicate", "/dev/null", "--dsym"],
    ] {
        // `lookup` takes its file before the addresses.
        let mut args: Vec<_> = args.iter().map(Path::new).collect();
        let at = if args[0] == Path::new("lookup") { 1 } else { args.len() };
        args.insert(at, &files);
        let done = symdex(args.iter().map(|arg| arg.as_os_str()));
        assert!(
            done.err.contains("warning: skipped, neither a file nor a folder: "),
            "{args:?}: {}",
            done.err
        );
        for name in NAMES {
            assert!(done.err.contains(files.join(name).to_str().expect("UTF-8")), "{args:?}: {}", done.err);
        }
        if args[0] == Path::new("build") {
            assert_eq!((done.code, names_in(&out).len()), (Some(0), 1), "{}", done.err);
        }
    }
    special.fifo.assert_never_opened();
}

#[test]
fn a_bundle_an_index_and_a_symbol_map_that_are_no_files_are_failures() {
    let root = folder();
    let bundle = root.path().join("x.dSYM");
    let fifo = WatchedFifo::new(bundle.join("Contents/Resources/DWARF/x"));
    let done = symdex([
        "build".as_ref(),
        bundle.as_os_str(),
        "--json".as_ref(),
        "-o".as_ref(),
        root.path().as_os_str(),
    ]);
    assert_eq!(done.code, Some(1), "{}", done.err);
    assert_eq!(done.json()[0]["error"]["kind"], "other", "{}", done.out);
    assert!(done.err.contains(&format!("{}: cannot read: neither", fifo.path.display())), "{}", done.err);
    fifo.assert_never_opened();

    let index = index_of("icf", &root.path().join("indexes"));
    let id = index.file_stem().and_then(|id| id.to_str()).expect("an id");
    fs::remove_file(&index).expect("deleted");
    let fifo = WatchedFifo::new(index.clone());
    let folder = index.parent().expect("a folder");
    let mut lookup = command();
    let done = CommandOutput::from(
        lookup.arg("lookup").arg(folder).args(["--id", id, "0x0"]).output().expect("it starts"),
    );
    assert_eq!(done.code, Some(1), "{}", done.err);
    assert!(done.err.contains(&format!("{}: cannot read: neither", index.display())), "{}", done.err);

    let built =
        symdex(["build".as_ref(), crate::common::dsym("icf").as_os_str(), "-o".as_ref(), folder.as_os_str()]);
    assert_eq!(built.code, Some(1), "{}", built.err);
    fifo.assert_never_opened();

    let maps = root.path().join("maps");
    let fifo = WatchedFifo::new(maps.join(format!("{id}.bcsymbolmap")));
    let dsym = crate::common::dsym("icf");
    let mut build = command();
    build.arg("build").arg(dsym).arg("--symbol-map").arg(&maps).arg("-o").arg(root.path().join("out"));
    let done = CommandOutput::from(build.output().expect("it starts"));
    assert_eq!(done.code, Some(1), "{}", done.err);
    assert!(done.err.contains(&format!("{}: cannot read: neither", fifo.path.display())), "{}", done.err);
    fifo.assert_never_opened();
}
