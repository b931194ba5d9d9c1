//! Test programs whose tests need a server, a tool or a corpus that the machine may not have.
//!
//! The standard test harness can only pass or fail a test that has started. A test program declared with
//! `harness = false` and [`main!`] has a third outcome: a test that calls [`ignore`] is reported as ignored, with the
//! reason. Where everything must run, as in continuous integration, the environment variable [`REQUIRE`] turns such
//! tests into failures.
//!
//! * [`redis`], [`moto`] and [`web`] start servers. [`proxy`] spoils the connections to them, and [`http_proxy`] their
//!   answers.
//! * [`indexes`]: indexes to put into stores. `fake_store`: a store in memory.
//! * [`limits`]: the table of limits in docs/SECURITY.md.
//! * [`images`]: made-up images, debug files and shared caches.
//! * [`testdata`]: the debug files of the repository, and [`folders`]: folders and the names in them.
//! * [`command`]: what a run of `symdex` has printed.

#![allow(missing_docs, reason = "the names of test helpers say what they do")]
#![allow(clippy::missing_panics_doc, clippy::must_use_candidate, reason = "its users are tests")]

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicBool, Ordering};

use libtest_mimic::{Arguments, Completion, Failed, Trial};

pub mod command;
#[cfg(feature = "stores")]
pub mod fake_store;
pub mod folders;
pub mod http_proxy;
pub mod images;
pub mod indexes;
pub mod limits;
pub mod minidump;
pub mod moto;
mod needs;
pub mod object_server;
pub mod proxy;
#[cfg(feature = "redis")]
pub mod redis;
pub mod testdata;
pub mod web;

pub use needs::{corpora, corpus, program, target_file};

/// The environment variable that names what must not be missing: `programs`, `corpora` or `programs,corpora`.
pub const REQUIRE: &str = "SYMDEX_TEST_REQUIRE";

/// The environment variable that names the function of a child process.
const CHILD: &str = "SYMDEX_TEST_CHILD";

/// What a test may need and not find.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Need {
    /// A program or a feature of the operating system.
    Programs,
    /// The corpora: real debug files and reports, which are not in the repository.
    Corpora,
}

impl Need {
    /// Returns whether [`REQUIRE`] names this need.
    fn is_required(self) -> bool {
        let word = match self {
            Self::Programs => "programs",
            Self::Corpora => "corpora",
        };
        std::env::var(REQUIRE).is_ok_and(|words| words.split(',').any(|required| required == word))
    }
}

/// The panic payload of [`ignore`].
struct Ignored(String);

/// Whether [`run`] runs the tests of this process.
static IS_RUNNING: AtomicBool = AtomicBool::new(false);

/// Ends the test and reports it as ignored, for the `reason` given: what is missing, and where it was looked for.
///
/// # Panics
/// Fails the test if [`REQUIRE`] names `need`, or if the test program does not use [`main!`].
pub fn ignore(need: Need, reason: &str) -> ! {
    assert!(!need.is_required(), "{reason}; {REQUIRE} requires it");
    assert!(IS_RUNNING.load(Ordering::Relaxed), "{reason}; to be ignored, the test must be run by main!");
    resume_unwind(Box::new(Ignored(reason.to_owned())))
}

/// A test of a program declared with [`main!`].
pub struct Test {
    name: &'static str,
    test: fn(),
    /// Whether the test runs only with `--ignored` or `--include-ignored`.
    is_on_request: bool,
}

impl Test {
    /// A test that runs by default. The name is its path in the test program.
    pub const fn new(name: &'static str, test: fn()) -> Self {
        Self { name, test, is_on_request: false }
    }

    /// A test that runs only with `--ignored` or `--include-ignored`.
    pub const fn on_request(name: &'static str, test: fn()) -> Self {
        Self { name, test, is_on_request: true }
    }
}

/// What a process runs that [`child`] starts.
pub type Child = fn() -> ExitCode;

/// A command that runs one of the functions that [`main!`] lists after `children:`, in a process of its own.
///
/// # Panics
/// If the path of the running program is unknown.
#[must_use]
pub fn child(name: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.env(CHILD, name);
    command
}

/// Runs `tests` with the options of the standard harness, and returns the exit code of the test program. In a process
/// that [`child`] started, runs one of `children` instead.
///
/// # Panics
/// If [`child`] named a function that is not in `children`.
pub fn run(tests: impl IntoIterator<Item = Test>, children: &[(&str, Child)]) -> ExitCode {
    if let Ok(name) = std::env::var(CHILD) {
        let (_, child) = children.iter().find(|(child, _)| *child == name).expect("main! lists it");
        return child();
    }
    IS_RUNNING.store(true, Ordering::Relaxed);
    let trial = |Test { name, test, is_on_request }| {
        Trial::ignorable_test(name, move || outcome(catch_unwind(AssertUnwindSafe(test))))
            .with_ignored_flag(is_on_request)
    };
    libtest_mimic::run(&Arguments::from_args(), tests.into_iter().map(trial).collect()).exit_code()
}

fn outcome(result: Result<(), Box<dyn Any + Send>>) -> Result<Completion, Failed> {
    match result.map_err(|payload| payload.downcast::<Ignored>()) {
        Ok(()) => Ok(Completion::Completed),
        Err(Ok(ignored)) => Ok(Completion::ignored_with(ignored.0)),
        // The panic hook has printed the message of the test.
        Err(Err(payload)) => resume_unwind(payload),
    }
}

/// Declares `main` of a test program: the functions that are its tests, each with attributes such as `#[cfg]`, those
/// that run only with `--ignored` (after `on request:`), and those that tests run in processes of their own (after
/// `children:`, see [`child`]). The compiler reports a function that is not listed as unused.
#[macro_export]
macro_rules! main {
    ($($tests:tt)+) => {
        $crate::tests!($($tests)+);

        fn main() -> std::process::ExitCode {
            run_tests()
        }
    };
}

/// As [`main!`], for a program that has its own `main`: declares the function `run_tests`.
#[macro_export]
macro_rules! tests {
    (
        $($(#[$attribute:meta])* $test:path),+ $(,)?
        $(; on request: $($slow:path),+ $(,)?)?
        $(; children: $($child:path),+ $(,)?)?
    ) => {
        fn run_tests() -> std::process::ExitCode {
            let tests = [
                $($(#[$attribute])* $crate::Test::new(stringify!($test), $test),)+
                $($($crate::Test::on_request(stringify!($slow), $slow),)+)?
            ];
            $crate::run(tests, &[$($((stringify!($child), || std::process::Termination::report($child())),)+)?])
        }
    };
}
