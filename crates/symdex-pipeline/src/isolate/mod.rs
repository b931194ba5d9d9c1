//! Child processes with limits, so that a hostile debug file costs at most one child.
//!
//! [`Isolation`] starts the children. A child is a program that calls [`child::enter`] first of all: it reads its task
//! from standard input, limits itself, does the task, and ends. The children of a [`Pipeline`](crate::Pipeline) are the
//! program itself: see [`run_child`](crate::run_child). Another program can have tasks of its own. It calls
//! [`child::enter`] at the start of its `main`, before it starts a thread or opens a file, and uses [`Isolation::run`].
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
//! Only the code for Linux is tested. The code for macOS and Windows compiles, and has never been run.

pub mod child;
mod confine;
mod death;
mod isolation;
mod limits;
mod protocol;
pub(crate) mod tasks;

pub use confine::Protections;
pub use death::{ChildError, Death};
pub use isolation::Isolation;
pub use limits::{Access, Limits};
pub use protocol::Event;
