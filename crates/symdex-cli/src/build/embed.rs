//! Indexes that go into their debug files.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use symdex_build::with_index_section;
use symdex_pipeline::{BuiltIndex, embedded_folder, section_of};
use symdex_store::{
    Durability, IndexFolder, OnConflict, PublishOutcome, PutOptions, Store as _, replace_file,
};

use super::args::EmbedArgs;
use super::summary::{self, ImageSummary};
use crate::failure::{Cause, Failure};

/// Puts the index into the bundle of its debug file, or into a copy of its ELF file, which has room for the first one.
pub(super) fn publish(built: BuiltIndex, args: &EmbedArgs, is_first: bool) -> Result<ImageSummary, Failure> {
    let file = PathBuf::from(&built.file);
    summary::publish_by(built, |index| match &args.embed_into {
        Some(_) if !is_first => Err(Failure::new(Cause::Usage, "--embed-into takes the index of one image")),
        Some(into) => Ok(vec![(write_elf(&file, index.as_bytes(), into)?, into.display().to_string())]),
        None => {
            let what = "it is in no dSYM bundle on disk; --embed-into writes an ELF file with its index";
            let folder = embedded_folder(&file)
                .ok_or_else(|| Failure::new(Cause::Unsupported, what).of_path(&file))?;
            let folder = IndexFolder::new(folder);
            let outcome = match folder.put_with(index, &PutOptions::new().on_conflict(OnConflict::Replace))? {
                // An index that does not fit any more is no other build of the same image.
                PublishOutcome::ConflictReplaced => PublishOutcome::Replaced,
                PublishOutcome::Unchanged => {
                    // All bytes of a debug file that is newer than its index are compared at each use.
                    let path = folder.location(index.id());
                    let opened = File::options().write(true).open(path);
                    _ = opened.and_then(|file| file.set_modified(SystemTime::now()));
                    PublishOutcome::Unchanged
                }
                outcome => outcome,
            };
            Ok(vec![(outcome, folder.location(index.id()))])
        }
    })
}

/// Writes the ELF file `file` with `index` to `into`.
fn write_elf(file: &Path, index: &[u8], into: &Path) -> Result<PublishOutcome, Failure> {
    let unreadable = |error| Failure::unreadable(file, &error);
    let is_there = |path: &Path| section_of(path).ok().flatten().is_some_and(|carried| carried[..] == *index);
    if is_there(into) {
        return Ok(PublishOutcome::Unchanged);
    }
    let bytes = symdex::map_file(file).map_err(unreadable)?;
    let contents: Box<dyn Read> = match is_there(file) {
        true => Box::new(&bytes[..]),
        false => {
            Box::new(with_index_section(&bytes, index).map_err(|error| Failure::debug_file(file, &error))?)
        }
    };
    replace_file(into, contents, Durability::Synced)?;
    let permissions = file.metadata().map_err(unreadable)?.permissions();
    fs::set_permissions(into, permissions).map_err(|error| Failure::unreadable(into, &error))?;
    Ok(PublishOutcome::Written)
}
