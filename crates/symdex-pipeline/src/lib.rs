//! The way from a debug file to an index that can be published, for the command and for services.
//!
//! 1. [`Intake`] takes [inputs](Input): files, folders, archives, uploads. Archives are unpacked. It returns
//!    [`Batch`]es of debug files that are built together.
//! 2. [`Pipeline::plan`] reads the headers of the debug files. The [`Plan`] knows their images, and which files are
//!    joined in one index.
//! 3. [`Pipeline::build`] builds the images, in this process or in [child processes with limits](isolate), and yields a
//!    [`BuiltIndex`] or a [`Failure`] for each. The caller puts the index into its stores.
//!
//! A program that builds in child processes is its own child: it calls [`run_child`] first of all in its `main`.
//!
//! ```
//! use symdex_pipeline::{Failure, Input, Intake, Pipeline, PipelineOptions};
//! use symdex_store::{IndexFolder, PublishOutcome};
//!
//! # let root = tempfile::tempdir()?;
//! let folder = IndexFolder::new(root.path());
//! let pipeline = Pipeline::new(PipelineOptions::default())?;
//! let inputs = vec![Input::Path("../../testdata/dsyms/fat.dSYM".into())];
//! let mut intake = Intake::new(inputs);
//! # let mut written = 0;
//! while let Some(batch) = intake.next_batch(&())? {
//!     let plan = pipeline.plan(&batch, &())?;
//!     pipeline.build(&batch, plan, &[], &(), |built| built, |built| {
//!         let built = built?;
//!         let index = symdex::Index::open(built.as_ref()).expect("a new index");
//!         assert_eq!(folder.publish(&index)?.outcome, PublishOutcome::Written);
//!         # written += 1;
//!         Ok::<(), Failure>(())
//!     })?;
//! }
//! # assert!(written > 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![warn(missing_debug_implementations)]

pub mod archive;
mod embedded;
mod failure;
mod image;
mod import;
mod intake;
pub mod isolate;
mod pipeline;
mod plan;
mod published;
mod space;

use std::collections::VecDeque;
use std::sync::mpsc;

use rayon::ThreadPool;

pub use self::embedded::{embedded_bytes, embedded_folder, embedded_index, section_of};
pub use self::failure::Failure;
pub use self::image::{BuiltIndex, Verified};
pub use self::intake::{Batch, Indexes, Input, Intake};
pub use self::isolate::tasks::run_child;
pub use self::pipeline::{Host, Pipeline, PipelineOptions};
pub use self::plan::Plan;
pub use self::published::PublishedIndex;
pub use self::space::{DiskSpace, Reservation};

/// The most threads that a build has. More take memory and are no faster.
pub const MAX_THREADS: u16 = 1024;

/// A pool of this many threads; of one for each core if it is 0.
///
/// # Errors
///
/// [`Failure`] if they cannot be started.
pub fn pool(threads: usize) -> Result<ThreadPool, Failure> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    pool.map_err(|error| {
        Failure::new(symdex::Cause::Other, format!("cannot start {threads} threads: {error}"))
    })
}

/// Calls `work` on each item, on the threads of `pool`, and `done` with each result on this thread, in the order of the
/// items. At most `in_flight` items are in work or waiting for `done` at any time. After `done` fails, no more work is
/// started.
pub fn in_order<T: Send, R: Send, E>(
    pool: &ThreadPool,
    in_flight: usize,
    items: impl IntoIterator<Item = T>,
    work: impl Fn(T) -> R + Sync,
    mut done: impl FnMut(R) -> Result<(), E>,
) -> Result<(), E> {
    let mut items = items.into_iter();
    let work = &work;
    pool.in_place_scope(|scope| {
        let mut waiting = VecDeque::new();
        loop {
            while waiting.len() < in_flight
                && let Some(item) = items.next()
            {
                let (result, receiver) = mpsc::sync_channel(1);
                scope.spawn(move |_| {
                    // Fails if `done` has failed: the receiver is gone.
                    let _ = result.send(work(item));
                });
                waiting.push_back(receiver);
            }
            let Some(receiver) = waiting.pop_front() else { return Ok(()) };
            // Without a result, the work has panicked. The scope propagates the panic.
            let Ok(result) = receiver.recv() else { return Ok(()) };
            done(result)?;
        }
    })
}
