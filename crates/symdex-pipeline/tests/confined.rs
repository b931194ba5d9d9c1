//! Tests of children. This program is its own child: with the argument `child` it does the task of its parent, and with
//! `parent` it is a parent that is to be killed.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use symdex_pipeline::isolate::child::{Channel, enter};
use symdex_pipeline::isolate::{Access, ChildError, Death, Event, Isolation, Limits, Protections};
use symdex_testkit::{Need, ignore};

#[cfg(unix)]
const MB: u64 = 1 << 20;

symdex_testkit::tests! {
    a_child_does_its_task,
    #[cfg(unix)]
    a_nice_child_leaves_the_cpus_to_others,
    a_child_opens_only_its_files,
    a_forbidden_system_call_kills_the_child,
    each_limit_ends_the_child_with_its_name,
    a_child_that_waits_is_killed,
    a_child_ends_with_its_parent,
    a_program_that_is_missing_is_no_death
}

fn main() -> ExitCode {
    match std::env::args().nth(1).as_deref() {
        Some("child") => return enter(|task: String, parent| work(&task, parent)),
        Some("parent") => {
            let _ = run("wait", &Access::none(), Limits::new(), |result| println!("{result}"));
            return ExitCode::SUCCESS;
        }
        _ => {}
    }
    run_tests()
}

/// The child's side.
fn work(task: &str, parent: &Channel<String>) {
    let (verb, path) = task.split_once(' ').unwrap_or((task, ""));
    let answer = |done: std::io::Result<String>| done.unwrap_or_else(|error| format!("error: {error}"));
    match verb {
        "echo" => {
            parent.progress(1000, 1, 2);
            parent.output().expect("standard output").write_all(path.as_bytes()).expect("written");
            parent.send(path.to_owned());
        }
        "read" => parent.send(answer(fs::read_to_string(path))),
        "write" => parent.send(answer(fs::write(path, "x").map(|()| "written".to_owned()))),
        "append" => {
            let file = fs::OpenOptions::new().append(true).open(path);
            parent.send(answer(file.map(|_| "opened".to_owned())));
        }
        "temporary" => {
            let file = tempfile::tempfile_in(path).and_then(|mut file| file.write_all(b"x"));
            parent.send(answer(file.map(|()| "written".to_owned())));
        }
        "delete" => parent.send(answer(fs::remove_file(path).map(|()| "deleted".to_owned()))),
        "threads" => {
            let sum: u64 =
                (0..4).map(|n| std::thread::spawn(move || n)).map(|t| t.join().expect("joined")).sum();
            parent.send(sum.to_string());
        }
        "socket" => drop(std::net::UdpSocket::bind("127.0.0.1:0")),
        "exec" => drop(Command::new("/bin/true").status()),
        "memory" => drop(std::hint::black_box(vec![1_u8; 1 << 30])),
        "spin" => loop {
            std::hint::spin_loop();
        },
        "large" => {
            let mut output = parent.output().expect("standard output");
            while output.write_all(&[0; 65536]).is_ok() {}
        }
        "stack" => parent.send(deep(0).to_string()),
        "panic" => panic!("the task is to panic"),
        "exit" => std::process::exit(7),
        "wait" => {
            parent.send(std::process::id().to_string());
            loop {
                std::thread::sleep(Duration::from_secs(3600));
            }
        }
        other => panic!("no such task: {other}"),
    }
}

#[expect(unconditional_recursion, reason = "it overflows the stack")]
fn deep(depth: u64) -> u64 {
    let frame = std::hint::black_box([depth; 512]);
    deep(depth + 1) + frame[0]
}

/// The parent's side.
fn run(
    task: &str,
    access: &Access,
    limits: Limits,
    mut each: impl FnMut(String),
) -> Result<Protections, ChildError> {
    let program = std::env::current_exe().expect("this program");
    let isolation = Isolation::new(program).arg("child").limits(limits).grace(Duration::ZERO);
    let output = tempfile::tempfile().expect("a file");
    isolation.run(&task, access, &output, &|| false, |event| {
        if let Event::Result(result) = event {
            each(result);
        }
    })
}

/// The answer of a child, and the limits that were in force.
fn answer(task: &str, access: &Access) -> (String, Protections) {
    let mut answers = Vec::new();
    let protections = run(task, access, Limits::new(), |answer| answers.push(answer)).expect(task);
    (answers.pop().expect("an answer"), protections)
}

fn death(task: &str, limits: Limits) -> Death {
    match run(task, &Access::none(), limits, |_| {}) {
        Err(ChildError::Ended(death)) => death,
        other => panic!("{task}: {other:?}"),
    }
}

/// Ends the test as ignored if this system does not have the protection `name`.
fn need(protections: &Protections, name: &str) {
    if !protections.in_force.iter().any(|other| other == name) {
        ignore(Need::Programs, &format!("this system does not have {name}"));
    }
}

fn a_child_does_its_task() {
    let program = std::env::current_exe().expect("this program");
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    let mut events = Vec::new();
    let output = file.reopen().expect("the same file");
    Isolation::new(program)
        .arg("child")
        .run(&"echo hello", &Access::none(), &output, &|| false, |event: Event<String>| events.push(event))
        .expect("done");
    let progress = Event::Progress { size: 1000, done: 1, total: 2 };
    assert_eq!(events, [progress, Event::Result("hello".to_owned())]);
    file.flush().expect("flushed");
    assert_eq!(fs::read(file.path()).expect("the output"), b"hello");
    assert_eq!(answer("threads", &Access::none()).0, "6");
}

#[cfg(unix)]
fn a_nice_child_leaves_the_cpus_to_others() {
    use rustix::process::{Pid, getpriority_process};
    let program = std::env::current_exe().expect("this program");
    let own = getpriority_process(None).expect("a priority");
    let usual = Isolation::new(program).arg("child").limits(Limits::new().seconds(Some(1)));
    for (isolation, expected) in [(usual.clone(), own), (usual.nice(), (own + 10).min(19))] {
        let (output, mut found) = (tempfile::tempfile().expect("a file"), None);
        let run = isolation.run(&"wait", &Access::none(), &output, &|| false, |event| {
            if let Event::Result(pid) = event {
                let pid: String = pid;
                found = getpriority_process(Pid::from_raw(pid.parse().expect("a number"))).ok();
            }
        });
        assert!(run.is_err(), "it waits");
        assert_eq!(found, Some(expected));
    }
}

fn a_child_opens_only_its_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    fs::create_dir(path("in")).expect("a folder");
    fs::create_dir(path("temporary")).expect("a folder");
    for name in ["in/a", "outside", "temporary/old"] {
        fs::write(path(name), name).expect("a file");
    }
    let access = Access::none().read(path("in")).temporary_files_in(path("temporary"));
    let task = |verb: &str, path: &Path| format!("{verb} {}", path.display());
    let refused = |verb: &str, name: &str| {
        let (text, _) = answer(&task(verb, &path(name)), &access);
        assert!(text.starts_with("error: "), "{verb} {name}: {text}");
    };
    let (text, protections) = answer(&task("read", &path("in/a")), &access);
    assert_eq!(text, "in/a");
    assert_eq!(answer(&task("temporary", &path("temporary")), &access).0, "written");
    assert_eq!(fs::read_dir(path("temporary")).expect("a folder").count(), 1);

    need(&protections, "Landlock");
    refused("read", "outside");
    refused("temporary", "in");
    refused("write", "new");
    refused("write", "temporary/new");
    refused("write", "in/a");
    refused("delete", "in/a");
    assert_eq!(fs::read(path("in/a")).expect("unchanged"), b"in/a");
    assert_eq!(fs::read_dir(path("temporary")).expect("a folder").count(), 1);

    need(&protections, "seccomp");
    refused("append", "temporary/old");
    refused("write", "outside");
}

fn a_forbidden_system_call_kills_the_child() {
    let (_, protections) = answer("echo hello", &Access::none());
    need(&protections, "seccomp");
    for task in ["socket", "exec"] {
        assert_eq!(death(task, Limits::new()), Death::ForbiddenCall, "{task}");
    }
}

#[cfg(unix)]
fn each_limit_ends_the_child_with_its_name() {
    let memory = death("memory", Limits::new().memory(Some(64 * MB)));
    assert_eq!(memory, Death::OutOfMemory { limit: 64 * MB });
    let size = death("large", Limits::new().file_size(Some(MB)));
    assert_eq!(size, Death::FileSize { limit: MB });
    assert_eq!(death("stack", Limits::new()), Death::StackOverflow);
    assert!(
        matches!(death("panic", Limits::new()), Death::Panic { message } if message.contains("is to panic"))
    );
    assert!(matches!(death("exit", Limits::new()), Death::Protocol { .. }));
    // The wall clock is far behind, so that the limit of CPU time is reached first.
    let program = std::env::current_exe().expect("this program");
    let spin = Isolation::new(program)
        .arg("child")
        .limits(Limits::new().seconds(Some(1)))
        .grace(Duration::from_secs(600))
        .run(
            &"spin",
            &Access::none(),
            &tempfile::tempfile().expect("a file"),
            &|| false,
            |_: Event<String>| {},
        );
    assert!(matches!(spin, Err(ChildError::Ended(Death::CpuTime { limit: 3 }))), "{spin:?}");
}

#[cfg(not(unix))]
fn each_limit_ends_the_child_with_its_name() {
    assert!(matches!(death("exit", Limits::new()), Death::Protocol { .. }));
}

fn a_child_that_waits_is_killed() {
    assert_eq!(death("wait", Limits::new().seconds(Some(0))), Death::WallClock { limit: 0 });
}

fn a_child_ends_with_its_parent() {
    let program = std::env::current_exe().expect("this program");
    let mut parent = Command::new(program).arg("parent").stdout(Stdio::piped()).spawn().expect("started");
    let mut line = String::new();
    let output = parent.stdout.take().expect("a pipe");
    BufReader::new(output).read_line(&mut line).expect("the child's id");
    parent.kill().expect("killed");
    parent.wait().expect("ended");
    let process = PathBuf::from("/proc").join(line.trim());
    if cfg!(target_os = "linux") {
        // A process that has ended is there until it is reaped, which may take a moment. It has no files then.
        let is_there = || fs::read_link(process.join("exe")).is_ok();
        let tries =
            (0..600).take_while(|_| is_there()).inspect(|_| std::thread::sleep(Duration::from_millis(100)));
        assert!(tries.count() < 600, "the child {} lives on", line.trim());
    }
}

fn a_program_that_is_missing_is_no_death() {
    let isolation = Isolation::new("/nowhere/at/all");
    let output: File = tempfile::tempfile().expect("a file");
    let error = isolation
        .run(&"echo", &Access::none(), &output, &|| false, |_: Event<String>| {})
        .expect_err("no program");
    assert!(matches!(error, ChildError::NotStarted { .. }));
    assert!(error.to_string().starts_with("/nowhere/at/all: cannot start a child process: "), "{error}");
}
