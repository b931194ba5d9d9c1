//! The sources of a symbolicator.

use std::collections::HashMap;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use symdex::{Grade, ImageId, Index, Metadata};
use symdex_report::{KnownImage, ReportImage, Unanswered};

use super::assumption::{AssumptionTarget, ResolvedAssumption, ResolvedTarget};
use super::debug_files::{DebugFiles, IndexLocation};
use super::healing::{Healer, KnownDamage};
use super::known::{KnownImages, MAX_OPENED, known_index, known_of};
use super::session::Mode;
use super::{Assumption, Event, Note, Session, SourceError, SymbolicatorOptions};
use symdex_store::{
    Error, IdPrefix, OpenImage, PublishOutcome, PutOptions, SharedStore, StoreCounts, StoreReader,
    open_indexes, open_store,
};

/// Answers images of crash reports from indexes and debug files. All threads can share it.
pub struct Symbolicator {
    /// Single indexes, then folders of indexes, which are searched with the folders below them.
    pub(crate) indexes: StoreReader,
    stores: Arc<StoreReader>,
    debug_files: DebugFiles,
    pub(crate) assumptions: Vec<ResolvedAssumption>,
    pub(crate) match_by_name: bool,
    pub(crate) known: Mutex<KnownImages>,
    /// Held while the images are listed.
    pub(crate) listing: Mutex<()>,
    /// The indexes that [`build_fetched`](Self::build_fetched) could not store.
    fetched: Mutex<HashMap<ImageId, OpenImage>>,
    /// The indexes that were found to be damaged.
    pub(crate) damaged: Arc<KnownDamage>,
    healer: Healer,
}

impl Symbolicator {
    /// Opens the sources that `options` name. Calls `skipped` for each index and each debug file that cannot be read;
    /// the others are still used.
    ///
    /// Only headers are read, and folders of indexes are not listed.
    ///
    /// # Errors
    ///
    /// [`SourceError::Index`] if a path that was given as an index or a folder of indexes does not exist, or if a store
    /// cannot be opened,
    /// [`SourceError::UnknownId`] or [`SourceError::AmbiguousId`] if not exactly one image has the id of an assumption,
    /// and any [`SourceError`] if the file of an assumption cannot be read.
    pub fn open(
        options: &SymbolicatorOptions,
        skipped: &mut dyn FnMut(SourceError),
    ) -> Result<Self, SourceError> {
        let stores = options.stores.iter().map(|url| open_store(url, &options.store_options));
        let stores = StoreReader::new(stores.collect::<Result<_, _>>()?, &options.reader_options);
        let stores = Arc::new(stores);
        let mut debug_files = DebugFiles::new(options, Arc::clone(&stores));
        for file in &options.unpacked {
            debug_files.add_file(file, skipped);
        }
        for path in &options.debug_files {
            debug_files.add(path, skipped);
        }
        debug_files.skip_companions(skipped);
        let mut indexes = Vec::new();
        for path in &options.indexes {
            let unreadable = |error| Error::Unreadable { path: path.clone(), error };
            match path.metadata().map_err(unreadable)?.is_dir() {
                false if let Err(error) = known_index(path) => skipped(error.into()),
                _ => indexes.push(&**path),
            }
        }
        let mut targets = Vec::new();
        for Assumption { target, .. } in &options.assumptions {
            targets.push(match target {
                AssumptionTarget::Path(path) if is_index(path) => {
                    let known = known_index(path)?;
                    indexes.push(path);
                    vec![known]
                }
                AssumptionTarget::Path(path) => add_debug_files(&mut debug_files, path, skipped)?,
                AssumptionTarget::Id(_) => Vec::new(),
            });
        }
        // Single indexes are asked before folders.
        indexes.sort_by_key(|path| path.is_dir());
        let indexes = indexes.into_iter().map(|path| open_indexes(path, &options.store_options)).collect();
        let indexes = StoreReader::new(indexes, &options.reader_options);
        let damaged = Arc::new(KnownDamage::default());
        let mut symbolicator = Self {
            indexes,
            stores,
            debug_files,
            assumptions: Vec::new(),
            match_by_name: options.match_by_name,
            known: Mutex::default(),
            listing: Mutex::default(),
            fetched: Mutex::default(),
            healer: Healer::new(Arc::clone(&damaged), options.on_refill),
            damaged,
        };
        // Ids are searched in all sources, including those that assumptions have added.
        for (Assumption { name, target }, images) in options.assumptions.iter().zip(targets) {
            let target = match target {
                AssumptionTarget::Id(id) => {
                    ResolvedTarget::Id(symbolicator.id_of(name, id, || symbolicator.known())?)
                }
                AssumptionTarget::Path(_) => ResolvedTarget::OneOf(images),
            };
            symbolicator.assumptions.push(ResolvedAssumption::new(name, target));
        }
        Ok(symbolicator)
    }

    /// The id of the image that is assumed for `name`. The first digits of an id are searched in `known`.
    pub(crate) fn id_of(
        &self,
        name: &str,
        wanted: &IdPrefix,
        known: impl FnOnce() -> Arc<Vec<KnownImage>>,
    ) -> Result<ImageId, SourceError> {
        if let Some(id) = wanted.to_id().filter(|id| self.may_have(id)) {
            return Ok(id);
        }
        let known = known();
        let mut matching: Vec<_> = known.iter().filter(|known| wanted.matches(&known.id)).collect();
        matching.sort_by_key(|known| &known.id);
        matching.dedup_by_key(|known| &known.id);
        let (name, id) = (name.to_owned(), wanted.clone());
        match matching[..] {
            [known] => Ok(known.id.clone()),
            [] => Err(SourceError::UnknownId { name, id }),
            _ => {
                let images = matching.into_iter().cloned().collect();
                Err(SourceError::AmbiguousId { name, id, images })
            }
        }
    }

    /// Whether a source has the image `id`, or cannot be asked.
    fn may_have(&self, id: &ImageId) -> bool {
        self.find(id).next().is_some() || self.debug_files.image(id).is_some()
    }

    /// Builds the index of the image `id` in the debug file at `path`, puts it into the first store that can be
    /// written, and answers from it from now on. If it cannot be stored, it is kept in memory. The file is not needed
    /// afterwards. `name` is the name of the image, and `location` says where the file comes from.
    ///
    /// Returns the grade of the index; `None` if the file does not have the image. The file is read in this process;
    /// see `symdex-pipeline` for untrusted files.
    ///
    /// # Errors
    ///
    /// [`Unanswered`] if the file is damaged, unsupported, or cannot be read.
    pub fn build_fetched(
        &self,
        path: &Path,
        id: &ImageId,
        name: &str,
        location: &str,
        on_event: &(dyn Fn(Event<'_>) + Sync),
    ) -> Result<Option<Grade>, Unanswered> {
        let Some(built) = self.debug_files.build_file(path, id, name, location, on_event)? else {
            return Ok(None);
        };
        match built.location {
            IndexLocation::Stored(store) => self.damaged.forget(&store.store().location(id)),
            IndexLocation::Memory(index) => {
                let fetched = OpenImage::alone(*index, location);
                let mut all = self.fetched.lock().unwrap_or_else(PoisonError::into_inner);
                if all.get(id).is_none_or(|known| known.grade() < fetched.grade()) {
                    all.insert(id.clone(), fetched);
                }
            }
        }
        Ok(Some(built.grade))
    }

    /// Whether a store has an index of `id` that was [built](Self::build_fetched) from a fetched file. If it has no
    /// lines, the sources of debug files have none.
    #[must_use]
    pub fn was_fetched(&self, id: &ImageId) -> bool {
        let stated = self.stores.stores().iter().filter_map(|store| store.stat(id).ok().flatten());
        stated.filter_map(|entry| entry.provenance).any(|provenance| provenance.is_fetched)
    }

    /// The index of `id` that could not be stored.
    pub(crate) fn fetched(&self, id: &ImageId) -> Option<OpenImage> {
        self.fetched.lock().unwrap_or_else(PoisonError::into_inner).get(id).cloned()
    }

    /// A source of answers for one report at a time. `on_event` is called while it answers.
    pub fn session<'a>(&'a self, on_event: &'a (dyn Fn(Event<'_>) + Sync)) -> Session<'a> {
        Session::new(self, Mode::Functions(on_event))
    }

    /// A source that only states which source has each image, as
    /// [`AnsweredBy::source`](symdex_report::AnsweredBy::source). No address gets a function. Addresses are looked up
    /// in indexes, so that damage is found. Debug files are not read, and no index is built.
    pub fn availability(&self) -> Session<'_> {
        Session::new(self, Mode::Availability)
    }

    /// The size of all debug files, in bytes, for progress.
    #[must_use]
    pub fn debug_files_size(&self) -> u64 {
        self.debug_files.size()
    }

    /// Searches that were not complete, and assumptions that no report has needed, until now.
    #[must_use]
    pub fn notes(&self) -> Vec<Note> {
        let opened = self.known_images().is_cut.then_some(Note::NotAllOpened { opened: MAX_OPENED });
        let folders = self.folders().filter(|folder| folder.is_cut());
        let folders = folders.map(|folder| Note::FolderCut { folder: folder.path().to_owned() });
        let unused = self.assumptions.iter().filter(|assumption| !assumption.is_used());
        let unused = unused.map(|assumption| Note::AssumptionUnused { name: assumption.name().to_owned() });
        opened.into_iter().chain(folders).chain(unused).collect()
    }

    /// The index of each of `images` in the first store that has it with lines, or else with the greatest grade, for
    /// its metadata. `None` if no store has it, or if it cannot be read. Single indexes, folders of indexes and debug
    /// files are not searched.
    #[must_use]
    pub fn stored_images(&self, images: &[&ReportImage]) -> Vec<Option<OpenImage>> {
        let wanted = self.wanted(images, None);
        let ids: Vec<_> = wanted.iter().flatten().map(|(id, _)| id.clone()).collect();
        let failures = &mut self.stores.no_failures();
        let found = self.stores.best(&ids, failures, OpenImage::grade, SharedStore::open_many);
        let mut found = found.into_iter();
        wanted.iter().map(|wanted| wanted.as_ref().ok().and_then(|_| found.next()?)).collect()
    }

    /// What the stores have answered until now, in the order in which they are asked.
    #[must_use]
    pub fn store_counts(&self) -> Vec<StoreCounts> {
        self.stores.counts()
    }

    /// The stores.
    #[must_use]
    pub fn stores(&self) -> &StoreReader {
        &self.stores
    }

    /// Publishes `index` in the [`stores`](Self::stores), as [`StoreReader::publish`] does. Later answers come from it,
    /// even if the index that it replaces was found to be damaged.
    ///
    /// # Errors
    ///
    /// As [`StoreReader::publish`].
    pub fn publish(
        &self,
        index: &Index<&[u8]>,
        options: &PutOptions,
    ) -> Result<Option<(&Arc<SharedStore>, PublishOutcome)>, Error> {
        let published = self.stores.publish(index, options)?;
        if let Some((store, outcome)) = &published {
            self.damaged.forget(&store.store().location(index.id()));
            if !outcome.keeps_existing() {
                self.note_known(store, index.id(), Some(known_of(index.metadata().clone())));
            }
        }
        Ok(published)
    }

    /// Removes the image `id` from `store`, which is one of [`stores`](Self::stores). Returns whether the store had it.
    /// See [`SharedStore::remove`].
    ///
    /// # Errors
    ///
    /// As [`SharedStore::remove`].
    pub fn remove(&self, store: &SharedStore, id: &ImageId) -> Result<bool, Error> {
        let location = store.store().location(id);
        let removed = store.remove(id)?;
        self.note_known(store, id, None);
        self.damaged.forget(&location);
        Ok(removed)
    }

    pub(crate) fn healer(&self) -> &Healer {
        &self.healer
    }

    /// Waits until the indexes that stores have lost, and that other stores have, are put into those stores again. This
    /// happens in the background, when reports have needed these indexes.
    pub fn finish_refills(&self) {
        self.healer.finish();
    }

    pub(crate) fn debug_files(&self) -> &DebugFiles {
        &self.debug_files
    }
}

/// Whether the file at `path` is an index, even one that cannot be read.
fn is_index(path: &Path) -> bool {
    !path.is_dir() && !matches!(Metadata::read_file(path), Err(symdex::Error::NotAnIndex { .. }))
}

/// Adds the debug files at `path`. Returns their images; if there are none, the first error.
fn add_debug_files(
    debug_files: &mut DebugFiles,
    path: &Path,
    skipped: &mut dyn FnMut(SourceError),
) -> Result<Vec<KnownImage>, SourceError> {
    let mut errors = Vec::new();
    let images = debug_files.add(path, &mut |error| errors.push(error));
    let mut errors = errors.into_iter();
    if images.is_empty()
        && let Some(error) = errors.next()
    {
        return Err(error);
    }
    errors.for_each(skipped);
    Ok(images)
}

impl fmt::Debug for Symbolicator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let debug_files: Vec<_> = self.debug_files.known().collect();
        f.debug_struct("Symbolicator")
            .field("indexes", &self.indexes.stores())
            .field("stores", &self.stores.stores())
            .field("debug_files", &debug_files)
            .finish_non_exhaustive()
    }
}
