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
//! use symdex_pipeline::{Failure, Input, Intake, IntakeOptions, Pipeline, PipelineOptions};
//! use symdex_store::{IndexFolder, PublishOutcome};
//!
//! # let root = tempfile::tempdir()?;
//! let folder = IndexFolder::new(root.path());
//! let pipeline = Pipeline::new(PipelineOptions::default())?;
//! let inputs = vec![Input::Path("../../testdata/dsyms/fat.dSYM".into())];
//! let mut intake = Intake::new(inputs, IntakeOptions::default());
//! # let mut written = 0;
//! while let Some(batch) = intake.next_batch(&())? {
//!     let plan = pipeline.plan(&batch)?;
//!     pipeline.build(&batch, plan, &[], &(), |built| built, |built| {
//!         let built = built?;
//!         let index = symdex::Index::open(built.bytes()).expect("a new index");
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
mod child;
mod failure;
mod host;
mod image;
mod in_order;
mod intake;
pub mod isolate;
mod pipeline;
mod plan;
mod space;

pub use self::child::run_child;
pub use self::failure::{Failure, FailureKind};
pub use self::host::Host;
pub use self::image::{BuiltImage, BuiltIndex, Coverage, Verified};
pub use self::in_order::in_order;
pub use self::intake::{Batch, Input, Intake, IntakeOptions};
pub use self::pipeline::{Pipeline, PipelineOptions, pool};
pub use self::plan::Plan;
pub use self::space::{DiskSpace, Reservation};
