//! Reads debug files in child processes with limits, so that a hostile debug file costs at most one child.
//!
//! [`Isolation`] starts the children. A child is a program that calls [`child::enter`] first of all: it reads its task
//! from standard input, limits itself, does the task, and ends. The program is usually the command `symdex`:
//!
//! * A program that embeds symdex ships the command `symdex` beside it, and names it with [`Isolation::new`].
//! * The command `symdex` itself names [`std::env::current_exe`].
//! * Another program can be its own child, with tasks of its own. It calls [`child::enter`] at the start of its `main`,
//!   before it starts a thread or opens a file, and uses [`Isolation::run`].
//!
//! ```no_run
//! use symdex_pipeline::isolate::{Isolation, Limits};
//! use symdex_pipeline::isolate::build::{BuildOutput, BuildTask, TaskFile};
//!
//! let isolation = Isolation::new("/opt/symdex/bin/symdex")
//!     .arg("isolated-child")
//!     .limits(Limits::new().memory(Some(1 << 30)).seconds(Some(60)));
//! let task = BuildTask::new(TaskFile::on_disk("upload/libapp.so.debug"));
//! for result in isolation.build(&task, "indexes".as_ref(), |_| {}).images {
//!     match result {
//!         // Publish it with `symdex_store::IndexFolder::publish`.
//!         Ok(BuildOutput { image, index }) => println!("{}: {} bytes", image.id, index.as_ref().len()),
//!         Err(failure) => eprintln!("{}", failure.message),
//!     }
//! }
//! ```
//!
//! # What limits a child
//!
//! | system | limits |
//! | --- | --- |
//! | Linux | memory, CPU time, size and number of files; no core files, no new privileges; Landlock; seccomp |
//! | macOS, other Unix | memory where the system enforces it, CPU time, size and number of files; no core files |
//! | Windows | a job object: the child ends with its parent, and its working set is limited |
//!
//! The parent kills a child that takes too long for one result, on every system. [`Protections`] says which of these
//! are in force in a child: older kernels lack Landlock, and some containers refuse seccomp.
//!
//! This is a crate of its own because it needs crates that no other part of symdex needs. It does not depend on the
//! builder: the command `symdex` has the code that runs in the child. Only the code for Linux is tested. The code for
//! macOS and Windows compiles, and has never been run.

#![warn(missing_debug_implementations)]

pub mod build;
pub mod child;
mod confine;
mod death;
mod isolation;
mod limits;
mod protocol;

pub use confine::{Protections, confine};
pub use death::{ChildError, Death};
pub use isolation::Isolation;
pub use limits::{Access, Limits};
pub use protocol::Event;
