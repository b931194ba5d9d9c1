//! Takes debug files out of archives: zip (also as `.ipa`, `.apk`, `.aar`), tar, and tar or single files compressed
//! with gzip or zstd. Their kind is told by content, not by name. Archives in archives are read, too.
//!
//! Archives are untrusted. No name of an entry ever becomes a path: entries are written to a private temporary folder,
//! with numbers as names, and the entry's own name is only a label. Links are not followed. [`Limits`] bound the
//! entries, the bytes and the nesting of an archive. Memory does not depend on the archive, except for 32 bytes for
//! each entry.
//!
//! [`Unpacker::unpack`] takes an open file, so that a service can pass an upload that it has written to a temporary
//! file. What is wrong with an archive or an entry is a [`Fault`]; the other entries are read nevertheless.
//!
//! ```
//! use std::fs::File;
//! use symdex_pipeline::archive::{Limits, Unpacker};
//!
//! # let root = tempfile::tempdir()?;
//! # let path = &root.path().join("app.tar");
//! # std::fs::write(path, symdex_testkit::images::archive::tar_of(&[("lib/arm64/libapp.so", b"\x7fELF....")]))?;
//! let mut unpacker = Unpacker::new(Limits::default())?;
//! let is_wanted = |_name: &str, head: &[u8]| head.starts_with(b"\x7fELF");
//! let unpacked = unpacker.unpack(File::open(path)?, "app.tar", &is_wanted, &|_read| Ok(()));
//! assert!(unpacked.faults.is_empty());
//! assert_eq!(unpacked.files[0].entry, "lib/arm64/libapp.so");
//! assert_eq!(std::fs::read(&unpacked.files[0].path)?, b"\x7fELF....");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod compression;
mod fault;
mod kind;
mod limits;
mod meter;
mod name;
mod tar;
mod temporary;
mod unpacker;
mod zip;

pub use self::compression::Compression;
pub use self::fault::{Fault, FaultKind};
pub use self::kind::is_archive;
pub use self::limits::Limits;
pub use self::temporary::TemporaryFolder;
pub use self::unpacker::{Unpacked, UnpackedFile, Unpacker};
