//! Processes that write to one store at the same time, and processes that are killed while they write.

use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};

/// The environment variable that tells a child process the number of rounds.
pub(crate) const ROUNDS: &str = "SYMDEX_TEST_ROUNDS";
const PROCESS: &str = "SYMDEX_TEST_PROCESS";
const PROCESSES: u16 = 4;
const THREADS: u16 = 16;

/// The functions of the best index of a race. It has as many writers, and they write indexes of 1, 2, 3, ... functions.
pub(crate) const BEST: u16 = PROCESSES * THREADS;

/// The number in the environment variable `name`, which the parent of this process has set.
fn number(name: &str) -> u16 {
    std::env::var(name).expect("set").parse().expect("a number")
}

/// The rounds of the race that this process takes part in.
pub(crate) fn rounds() -> u16 {
    number(ROUNDS)
}

/// Starts [`write_in_a_race`] in several processes, each by a command of `child`, and waits for them. In each round,
/// [`BEST`] threads put different indexes of one image.
pub(crate) fn race(rounds: u16, child: impl Fn() -> Command) {
    let start = |process: u16| {
        let mut command = child();
        command.env(ROUNDS, rounds.to_string()).env(PROCESS, process.to_string());
        command.stdout(Stdio::null()).spawn().expect("started")
    };
    let processes: Vec<_> = (0..PROCESSES).map(start).collect();
    for mut process in processes {
        assert!(process.wait().expect("waited").success());
    }
}

/// Writes as one of the processes of [`race`]. `of_round` opens what the writers of a round share, and returns how one
/// of them writes an index with a number of functions.
pub(crate) fn write_in_a_race<W: Fn(u16) + Sync>(of_round: impl Fn(u16) -> W) {
    let process = number(PROCESS);
    for round in 0..rounds() {
        let write = of_round(round);
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let write = &write;
                scope.spawn(move || write(process * THREADS + thread + 1));
            }
        });
    }
}

/// Starts `writer`, which calls [`report_step`] after each of its steps. Kills it during the step after the first
/// `steps`, or one of the next steps.
pub(crate) fn kill_after(mut writer: Command, steps: usize) {
    let mut writer = writer.stdout(Stdio::piped()).spawn().expect("started");
    let mut reported = vec![0; steps];
    writer
        .stdout
        .as_mut()
        .expect("piped")
        .read_exact(&mut reported)
        .expect("the writer works until it is killed");
    writer.kill().expect("killed");
    writer.wait().expect("waited");
}

/// Tells the parent process that a step has been done.
pub(crate) fn report_step() {
    let mut out = std::io::stdout();
    // The parent may have read enough.
    let _ = out.write_all(b".").and_then(|()| out.flush());
}
