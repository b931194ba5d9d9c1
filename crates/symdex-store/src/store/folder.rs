//! A folder of indexes as a store.

use std::ffi::OsStr;
use std::fs::{self, DirEntry};
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use symdex::{ImageId, Index, Metadata};

use super::{
    GcCounts, RecordedUses, Store, StoreEntry, StoreUrl, StoredImage, StoredLayout, again_if_damaged,
    begins_with,
};
use crate::buffer::IndexBytes;
use crate::error::Error;
use crate::folder::{EXTENSION, IndexFolder, record_use};
use crate::provenance::{self, Orphan, PutOptions};
use crate::publish::{PublishOutcome, is_abandoned};

fn failed(path: &Path, action: &'static str) -> impl FnOnce(io::Error) -> Error {
    let location = path.display().to_string();
    move |error| Error::Store { location, action, reason: error.to_string(), is_unavailable: false }
}

/// The entry of the index of `id` at `path`; `None` if it has been removed since.
fn entry(id: ImageId, path: &Path) -> io::Result<Option<StoreEntry>> {
    let metadata = match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        metadata => metadata?,
    };
    let location = path.display().to_string();
    let mut entry = StoreEntry::new(id, location, metadata.len(), StoredLayout::Whole);
    entry.index_size = Some(metadata.len());
    entry.written = metadata.created().ok();
    entry.last_use = metadata.modified().ok();
    Ok(Some(entry))
}

/// The ids of the indexes in the folder `path` that begin with `start`. None if it is not a folder.
fn ids_in(path: &Path, start: &ImageId) -> io::Result<Vec<ImageId>> {
    let entries = match fs::read_dir(path) {
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(Vec::new());
        }
        entries => entries?,
    };
    let ids = entries.map(|entry| Ok(id_of(&entry?).filter(|id| begins_with(id, start))));
    ids.filter_map(Result::transpose).collect()
}

impl IndexFolder {
    /// Calls `visit` with each entry of the folder and of its subfolders `<2 hex>`.
    ///
    /// # Errors
    ///
    /// [`Error`] if a folder cannot be listed, or has vanished.
    fn visit(&self, visit: &mut dyn FnMut(&DirEntry) -> ControlFlow<()>) -> Result<(), Error> {
        self.check_not_vanished()?;
        self.visit_entries(visit).map_err(failed(self.path(), "list"))
    }

    fn visit_entries(&self, visit: &mut dyn FnMut(&DirEntry) -> ControlFlow<()>) -> io::Result<()> {
        let entries = match fs::read_dir(self.path()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            entries => entries?,
        };
        for entry in entries {
            let entry = entry?;
            let flow = if entry.file_name().len() == 2 && entry.path().is_dir() {
                fs::read_dir(entry.path())?.flatten().try_for_each(|entry| visit(&entry))
            } else {
                visit(&entry)
            };
            if flow.is_break() {
                break;
            }
        }
        Ok(())
    }

    /// # Errors
    ///
    /// [`Error`] if the folder is [searched](Self::searched), and therefore only read.
    fn check_writable(&self, action: &'static str) -> Result<(), Error> {
        if self.is_searched { Err(Error::read_only(&self.url, action)) } else { Ok(()) }
    }

    /// The paths of the indexes that the folder has as a store. Sorted.
    ///
    /// # Errors
    ///
    /// [`Error`] if the folder cannot be listed.
    pub fn stored_paths(&self) -> Result<Vec<PathBuf>, Error> {
        if self.is_searched {
            return Ok(self.all_below().iter().map(|(_, path)| path.clone()).collect());
        }
        let mut paths = Vec::new();
        self.visit(&mut |file| {
            paths.extend(id_of(file).map(|_| file.path()));
            ControlFlow::Continue(())
        })?;
        paths.sort();
        Ok(paths)
    }

    /// Removes the provenance of `id` at `path`, if its index is not there. A writer may be about to write the index.
    fn remove_provenance(&self, id: &ImageId, path: &Path) -> Result<bool, Error> {
        let _turn = self.lock(id);
        match path.with_extension(EXTENSION).symlink_metadata() {
            Ok(_) => Ok(false),
            Err(_) => fs::remove_file(path).map(|()| true).map_err(failed(path, "remove")),
        }
    }

    /// Removes the index of `id`, if `is_wanted` returns true for its last use. The check and the removal are one step
    /// for publishers. Returns whether it was removed.
    fn remove_if(&self, id: &ImageId, is_wanted: impl Fn(SystemTime) -> bool) -> Result<bool, Error> {
        let _turn = self.lock(id);
        let (paths, mut removed) = (self.find_all(id)?, false);
        if paths.is_empty() {
            self.check_not_vanished()?;
        }
        for path in paths {
            let unused = path.metadata().and_then(|metadata| metadata.modified()).is_ok_and(&is_wanted);
            if unused {
                match fs::remove_file(&path) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => {
                        return Err(failed(&path, "remove")(error));
                    }
                    result => {
                        removed |= result.is_ok();
                        // A provenance without its index is about nothing.
                        _ = provenance::remove_beside(&path);
                    }
                }
            }
        }
        Ok(removed)
    }
}

/// The provenance `entry` if its index is not there.
fn orphan_of(entry: &DirEntry) -> Option<Orphan> {
    let path = entry.path();
    let id = provenance::image_of(&path)?;
    if path.with_extension(EXTENSION).symlink_metadata().is_ok() {
        return None;
    }
    let unused = entry.metadata().ok()?.modified().ok()?.elapsed().ok();
    Some(Orphan { id, location: path.display().to_string(), unused })
}

/// The image of the index file `entry`; `None` if it is not an index file.
fn id_of(entry: &DirEntry) -> Option<ImageId> {
    id_of_name(&entry.file_name())
}

/// The image of the index file with this name.
fn id_of_name(name: &OsStr) -> Option<ImageId> {
    let id = Path::new(name).file_stem()?.to_str()?.parse().ok()?;
    (name == IndexFolder::file_name(&id).as_str()).then_some(id)
}

impl Store for IndexFolder {
    fn url(&self) -> &StoreUrl {
        &self.url
    }

    fn is_read_only(&self) -> bool {
        self.is_searched
    }

    fn recorded_uses(&self) -> RecordedUses {
        RecordedUses::Daily
    }

    fn location(&self, id: &ImageId) -> String {
        let path = self.find(id).ok().flatten().unwrap_or_else(|| self.path_of_new(id));
        path.display().to_string()
    }

    fn put_with(&self, index: &Index<&[u8]>, options: &PutOptions) -> Result<PublishOutcome, Error> {
        self.check_writable("write")?;
        let published = self.publish_with(index, options)?;
        if self.fans_out {
            // Without a recorded use, an old index that was put again would expire.
            _ = record_use(&published.path);
        }
        Ok(published.outcome)
    }

    fn open(&self, id: &ImageId) -> Result<Option<StoredImage>, Error> {
        Ok(again_if_damaged(|| self.index(id))?.map(|index| StoredImage::Index(Arc::new(index))))
    }

    fn stat(&self, id: &ImageId) -> Result<Option<StoreEntry>, Error> {
        let Some(path) = self.find(id)? else { return Ok(None) };
        let entry = entry(id.clone(), &path).map_err(failed(&path, "read"))?;
        let metadata = Metadata::read_file(&path).ok();
        let grade = metadata.as_ref().map(Metadata::grade);
        let image_name = metadata.map(|metadata| metadata.image_name);
        let digest = symdex::read_digest(&path).ok();
        let provenance = digest.and_then(|digest| provenance::read_beside(&path, digest));
        Ok(entry.map(|entry| StoreEntry { image_name, grade, digest, provenance, ..entry }))
    }

    fn get(&self, id: &ImageId) -> Result<Option<IndexBytes>, Error> {
        Ok(self.bytes(id)?.map(|(_, bytes)| bytes))
    }

    fn ids_from(&self, starts: &[ImageId]) -> Vec<Result<Vec<ImageId>, Error>> {
        let ids_from = |start: &ImageId| {
            let mut ids: Vec<_> = self.ids_below(start).collect();
            for path in [self.path(), &self.subfolder(start)] {
                ids.extend(ids_in(path, start).map_err(failed(path, "list"))?);
            }
            if ids.is_empty() {
                self.check_not_vanished()?;
            }
            ids.sort();
            ids.dedup();
            Ok(ids)
        };
        starts.iter().map(ids_from).collect()
    }

    fn list(&self, visit: &mut dyn FnMut(StoreEntry) -> ControlFlow<()>) -> Result<(), Error> {
        let mut visit_index = |name: &OsStr, path: &Path| match id_of_name(name).map(|id| entry(id, path)) {
            Some(Ok(Some(entry))) => visit(entry),
            // It is no index, was removed, or is a link to nowhere.
            _ => ControlFlow::Continue(()),
        };
        if self.is_searched {
            _ = self.all_below().iter().try_for_each(|(name, path)| visit_index(name, path));
            return Ok(());
        }
        let mut visit_file = |file: &DirEntry| visit_index(&file.file_name(), &file.path());
        self.visit(&mut visit_file)
    }

    fn touch(&self, id: &ImageId) -> Result<bool, Error> {
        let Some(path) = self.find(id)? else { return Ok(false) };
        match record_use(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            result => result.map(|()| true).map_err(failed(&path, "record a use of")),
        }
    }

    fn remove(&self, id: &ImageId) -> Result<bool, Error> {
        self.check_writable("remove")?;
        self.remove_if(id, |_| true)
    }

    fn orphans(&self, visit: &mut dyn FnMut(Orphan)) -> Result<(), Error> {
        let mut visit_file = |file: &DirEntry| {
            orphan_of(file).into_iter().for_each(&mut *visit);
            ControlFlow::Continue(())
        };
        self.visit(&mut visit_file)
    }

    fn gc(&self, unused: Duration) -> Result<GcCounts, Error> {
        self.check_writable("remove")?;
        let mut counts = GcCounts::default();
        let is_unused = |last_use: SystemTime| last_use.elapsed().is_ok_and(|age| age > unused);
        let mut visit_file = |file: &DirEntry| {
            if is_abandoned(&file.path()) {
                match fs::remove_file(file.path()) {
                    Ok(()) => counts.leftovers += 1,
                    Err(_) => counts.failed += 1,
                }
            } else if let Some(orphan) = orphan_of(file) {
                if orphan.unused.is_some_and(|age| age > unused) {
                    match self.remove_provenance(&orphan.id, &file.path()) {
                        Ok(is_removed) => counts.orphans += u64::from(is_removed),
                        Err(_) => counts.failed += 1,
                    }
                }
            } else if let Some(id) = id_of(file)
                && let Ok(metadata) = file.path().metadata()
            {
                if metadata.modified().is_ok_and(is_unused) {
                    counts.count(self.remove_if(&id, is_unused), metadata.len());
                } else {
                    counts.kept += 1;
                }
            }
            ControlFlow::Continue(())
        };
        self.visit(&mut visit_file)?;
        Ok(counts)
    }
}
