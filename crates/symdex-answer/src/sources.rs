//! The sources of a symbolicator, and the order in which they are asked.

mod known;

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use symdex::{ImageId, Index, Metadata};
use symdex_report::{Image, KnownImage, MatchedBy, Unanswered, match_by_name};

use self::known::{KnownImages, MAX_OPENED, known_index};
use super::assumption::{AssumptionTarget, ResolvedAssumption, ResolvedTarget};
use super::debug_files::{DebugFiles, DebugImage, IndexLocation};
use super::listed_folder::ListedFolder;
use super::{
    Assumption, Availability, Event, Note, Session, SourceError, SymbolicatorOptions, unanswered,
    unanswered_by_store,
};
use symdex_store::Error;
use symdex_store::IdPrefix;
use symdex_store::IndexAccess;
use symdex_store::PublishOutcome;
use symdex_store::PutOptions;
use symdex_store::{StoreCounts, StoreReader};
use symdex_store::{StoredImage, open_store};

/// How long an index that was found to be damaged is not read again. A service may run for months.
const DAMAGED: Duration = Duration::from_secs(600);

/// Answers images of crash reports from indexes and debug files. All threads can share it.
pub struct Symbolicator {
    /// Single indexes.
    files: Vec<(KnownImage, PathBuf)>,
    /// Folders of indexes, which are searched with the folders below them.
    folders: Vec<ListedFolder>,
    access: IndexAccess,
    stores: Arc<StoreReader>,
    debug_files: DebugFiles,
    assumptions: Vec<ResolvedAssumption>,
    match_by_name: bool,
    known: OnceLock<KnownImages>,
    /// The indexes that [`build_fetched`](Self::build_fetched) could not store.
    fetched: Mutex<HashMap<ImageId, Arc<FetchedIndex>>>,
    /// The damage of each index that was found to be damaged and when, by the path or the location in a store.
    damaged: Mutex<HashMap<String, (Instant, String)>>,
}

/// A source that may have an image.
pub(crate) enum Candidate<'a> {
    Index(PathBuf),
    /// An image in the store with this number.
    Stored(usize, Arc<StoredImage>),
    DebugFile(&'a DebugImage),
    Fetched(Arc<FetchedIndex>),
}

/// The index of a fetched debug file, in memory.
pub(crate) struct FetchedIndex {
    pub(crate) index: Index<Vec<u8>>,
    /// Where the debug file was.
    pub(crate) location: String,
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
        let (mut folders, mut files) = (Vec::new(), Vec::new());
        for path in &options.indexes {
            match path.metadata().map_err(|error| Error::unreadable(path, error))?.is_dir() {
                true => folders.push(ListedFolder::new(path.clone())),
                false => match known_index(path) {
                    Ok(known) => files.push((known, path.clone())),
                    Err(error) => skipped(error.into()),
                },
            }
        }
        let mut symbolicator = Self {
            files,
            folders,
            access: options.access,
            stores,
            debug_files,
            assumptions: Vec::new(),
            match_by_name: options.match_by_name,
            known: OnceLock::new(),
            fetched: Mutex::default(),
            damaged: Mutex::default(),
        };
        symbolicator.resolve(&options.assumptions, skipped)?;
        Ok(symbolicator)
    }

    /// Finds the images that `assumptions` name.
    fn resolve(
        &mut self,
        assumptions: &[Assumption],
        skipped: &mut dyn FnMut(SourceError),
    ) -> Result<(), SourceError> {
        let mut images = Vec::new();
        for Assumption { target, .. } in assumptions {
            images.push(match target {
                AssumptionTarget::Id(_) => Vec::new(),
                AssumptionTarget::Path(path) => self.add(path, skipped)?,
            });
        }
        // Ids are searched in all sources, including those that other assumptions have added.
        for (Assumption { name, target }, images) in assumptions.iter().zip(images) {
            let target = match target {
                AssumptionTarget::Id(id) => ResolvedTarget::Id(self.id_of(name, id)?),
                AssumptionTarget::Path(_) => ResolvedTarget::OneOf(images),
            };
            self.assumptions.push(ResolvedAssumption::new(name, target));
        }
        Ok(())
    }

    /// Adds the index or the debug files at `path` to the sources. Returns their images.
    fn add(
        &mut self,
        path: &Path,
        skipped: &mut dyn FnMut(SourceError),
    ) -> Result<Vec<KnownImage>, SourceError> {
        let is_debug_file =
            path.is_dir() || matches!(Metadata::read_file(path), Err(symdex::Error::NotAnIndex { .. }));
        if !is_debug_file {
            let known = known_index(path)?;
            self.files.push((known.clone(), path.to_owned()));
            return Ok(vec![known]);
        }
        let mut errors = Vec::new();
        let images = self.debug_files.add(path, &mut |error| errors.push(error));
        let mut errors = errors.into_iter();
        if images.is_empty()
            && let Some(error) = errors.next()
        {
            return Err(error);
        }
        errors.for_each(skipped);
        Ok(images)
    }

    /// The id of the image that is assumed for `name`.
    fn id_of(&self, name: &str, wanted: &IdPrefix) -> Result<ImageId, SourceError> {
        if let Some(id) = wanted.to_id().filter(|id| self.candidates(id).next().is_some()) {
            return Ok(id);
        }
        let mut matching: Vec<_> = self.known().iter().filter(|known| wanted.matches(&known.id)).collect();
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

    /// Whether the report states the id of `image`, and no source has an image of this id. A source that fails may have it.
    pub fn is_missing(&self, image: &Image) -> bool {
        let Ok((id, _)) = self.wanted(image) else { return false };
        image.id.as_ref() == Some(&id) && self.candidates(&id).next().is_none()
    }

    /// Builds the index of the image `id` in the debug file at `path`, puts it into the first store that can be written,
    /// and answers from it from now on. If it cannot be stored, it is kept in memory. The file is not needed afterwards.
    /// `name` is the name of the image, and `location` says where the file comes from.
    ///
    /// Returns `false` if the file does not have the image. The file is read in this process; see `symdex-pipeline` for
    /// untrusted files.
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
    ) -> Result<bool, Unanswered> {
        let Some(built) = self.debug_files.build_file(path, id, name, on_event)? else { return Ok(false) };
        if let IndexLocation::Memory(index) = built.location {
            let fetched = FetchedIndex { index: *index, location: location.to_owned() };
            let mut all = self.fetched.lock().unwrap_or_else(PoisonError::into_inner);
            all.insert(id.clone(), Arc::new(fetched));
        }
        Ok(true)
    }

    /// The index of `id` that could not be stored.
    fn fetched(&self, id: &ImageId) -> Option<Arc<FetchedIndex>> {
        self.fetched.lock().unwrap_or_else(PoisonError::into_inner).get(id).cloned()
    }

    /// A source of answers for one report at a time. `on_event` is called while it answers.
    pub fn session<'a>(&'a self, on_event: &'a (dyn Fn(Event<'_>) + Sync)) -> Session<'a> {
        Session::new(self, on_event)
    }

    /// A source that only states which source has each image, and builds no index. See [`Availability`].
    pub fn availability(&self) -> Availability<'_> {
        Availability::new(self)
    }

    /// The size of all debug files, in bytes, for progress.
    #[must_use]
    pub fn debug_files_size(&self) -> u64 {
        self.debug_files.size()
    }

    /// Searches that were not complete, and assumptions that no report has needed, until now.
    #[must_use]
    pub fn notes(&self) -> Vec<Note> {
        let is_cut = self.known.get().is_some_and(|known| known.is_cut);
        let opened = is_cut.then_some(Note::NotAllOpened { opened: MAX_OPENED });
        let folders = self.folders.iter().filter(|folder| folder.is_cut());
        let folders = folders.map(|folder| Note::FolderCut { folder: folder.path().to_owned() });
        let unused = self.assumptions.iter().filter(|assumption| !assumption.is_used());
        let unused = unused.map(|assumption| Note::AssumptionUnused { name: assumption.name().to_owned() });
        opened.into_iter().chain(folders).chain(unused).collect()
    }

    /// The id to search for `image`, and how it was chosen.
    pub(crate) fn wanted(&self, image: &Image) -> Result<(ImageId, MatchedBy), Unanswered> {
        let assumptions = self.assumptions.iter().filter(|assumption| assumption.applies_to(image));
        let mut assumed: Vec<_> = assumptions.map(|assumption| assumption.id_for(image)).collect();
        // If several assumptions have one name, the first that fits is used.
        assumed.sort_by_key(Result::is_err);
        if let Some(id) = assumed.into_iter().next().transpose()? {
            let is_same = image.id.as_ref() == Some(id);
            return Ok((id.clone(), if is_same { MatchedBy::Id } else { MatchedBy::Assumed }));
        }
        match &image.id {
            Some(start) if image.is_id_cut => Ok((self.whole_id(image, start)?, MatchedBy::Id)),
            Some(id) => Ok((id.clone(), MatchedBy::Id)),
            None if self.match_by_name => {
                Ok((match_by_name(image, self.known())?.id.clone(), MatchedBy::Name))
            }
            None => Err(Unanswered::Missing),
        }
    }

    /// The index of `image` in the first store that has it, for its metadata. `None` if no store has it, or if it cannot
    /// be read. Single indexes, folders of indexes and debug files are not searched.
    #[must_use]
    pub fn stored_image(&self, image: &Image) -> Option<Arc<StoredImage>> {
        let (id, _) = self.wanted(image).ok()?;
        let (_, stored) = self.stores.find(&id).ok()??;
        Some(stored)
    }

    /// The sources of the image `id`, in this order: single indexes, folders, stores, fetched files, debug files. An index
    /// without debug information comes last if a debug file has some.
    pub(crate) fn candidates(&self, id: &ImageId) -> impl Iterator<Item = Result<Candidate<'_>, Unanswered>> {
        let indexes = self.indexes(id).map(|path| match path {
            Ok(path) => Ok(Candidate::Index(path)),
            Err(error) => Err(unanswered(&error.into())),
        });
        let in_stores = 0..self.stores.stores().len();
        let indexes = indexes.chain(in_stores.filter_map(|store| self.stored(store, id).transpose()));
        let mut indexes = indexes.chain(self.fetched(id).map(|index| Ok(Candidate::Fetched(index))));
        let mut debug_file = self.debug_files.image(id);
        let has_dwarf = self.debug_files.has_dwarf(id);
        let mut without_dwarf = Vec::new().into_iter();
        let mut postponed = Vec::new();
        std::iter::from_fn(move || {
            for index in indexes.by_ref() {
                match index {
                    Ok(index) if has_dwarf && index.is_without_dwarf() => postponed.push(Ok(index)),
                    index => return Some(index),
                }
            }
            if let Some(image) = debug_file.take() {
                without_dwarf = std::mem::take(&mut postponed).into_iter();
                return Some(Ok(Candidate::DebugFile(image)));
            }
            without_dwarf.next()
        })
    }

    /// The single indexes of the image `id`, and those in folders.
    pub(crate) fn indexes(&self, id: &ImageId) -> impl Iterator<Item = Result<PathBuf, Error>> {
        let files =
            self.files.iter().filter(move |(known, _)| known.id == *id).map(|(_, path)| Ok(path.clone()));
        files.chain(self.folders.iter().flat_map(|folder| folder.indexes_of(id)))
    }

    /// The image `id` in the store with this number.
    fn stored(&self, store: usize, id: &ImageId) -> Result<Option<Candidate<'_>>, Unanswered> {
        let open = || self.stores.open(store, id).map_err(unanswered_by_store);
        let image = self.unless_damaged(&self.stores.stores()[store].location(id), open)?;
        Ok(image.map(|image| Candidate::Stored(store, image)))
    }

    /// Calls `ask` for what the index at `location` has. If another report has found the index to be damaged in the last
    /// ten minutes, returns that damage instead: whether a new index has replaced it meanwhile depends on the order in
    /// which reports are answered.
    pub(crate) fn unless_damaged<T>(
        &self,
        location: &str,
        ask: impl FnOnce() -> Result<T, Unanswered>,
    ) -> Result<T, Unanswered> {
        let damaged = || self.damaged.lock().unwrap_or_else(PoisonError::into_inner);
        let known = damaged().get(location).cloned();
        if let Some((found, damage)) = known
            && found.elapsed() < DAMAGED
        {
            return Err(Unanswered::Damaged(damage));
        }
        let answers = ask();
        if let Err(Unanswered::Damaged(damage)) = &answers {
            damaged().insert(location.to_owned(), (Instant::now(), damage.clone()));
        }
        answers
    }

    /// Whether this many more addresses of the image `id` are answered directly from its debug file. They are if they
    /// are few and the image has no index, not even a damaged one that needs replacing.
    pub(crate) fn is_answered_directly(&self, id: &ImageId, file: &DebugImage, addresses: usize) -> bool {
        let is_index = |candidate: Result<Candidate<'_>, _>| match candidate {
            Ok(candidate) => !matches!(candidate, Candidate::DebugFile(_)),
            Err(why) => matches!(why, Unanswered::Damaged(_)),
        };
        let has_index = self.candidates(id).any(is_index);
        !has_index && self.debug_files.are_few(file, addresses)
    }

    /// How indexes are opened.
    pub(crate) fn access(&self) -> IndexAccess {
        self.access
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

    /// Puts `index` into the store with this number. Later answers come from it, even if the index that it replaces was
    /// found to be damaged. See [`StoreReader::put`].
    ///
    /// # Errors
    ///
    /// As [`StoreReader::put`].
    ///
    /// # Panics
    ///
    /// If there is no store with this number.
    pub fn put(
        &self,
        store: usize,
        index: &Index<&[u8]>,
        options: &PutOptions,
    ) -> Result<PublishOutcome, Error> {
        let outcome = self.stores.put(store, index, options)?;
        self.forget_damage(&self.stores.stores()[store].location(index.id()));
        Ok(outcome)
    }

    /// Removes the image `id` from the store with this number. Returns whether the store had it. See
    /// [`StoreReader::remove`].
    ///
    /// # Errors
    ///
    /// As [`StoreReader::remove`].
    ///
    /// # Panics
    ///
    /// If there is no store with this number.
    pub fn remove(&self, store: usize, id: &ImageId) -> Result<bool, Error> {
        let location = self.stores.stores()[store].location(id);
        let removed = self.stores.remove(store, id)?;
        self.forget_damage(&location);
        Ok(removed)
    }

    fn forget_damage(&self, location: &str) {
        self.damaged.lock().unwrap_or_else(PoisonError::into_inner).remove(location);
    }

    pub(crate) fn debug_files(&self) -> &DebugFiles {
        &self.debug_files
    }
}

impl fmt::Debug for Symbolicator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let indexes: Vec<_> = self.files.iter().map(|(_, path)| path).collect();
        let folders: Vec<_> = self.folders.iter().map(ListedFolder::path).collect();
        let debug_files: Vec<_> = self.debug_files.known().collect();
        f.debug_struct("Symbolicator")
            .field("indexes", &indexes)
            .field("folders", &folders)
            .field("stores", &self.stores.stores())
            .field("debug_files", &debug_files)
            .finish_non_exhaustive()
    }
}

impl Candidate<'_> {
    /// Whether it is an index without debug information, for example because it was made from a stripped binary.
    /// Returns `false` if it cannot be opened: the error is reported when the index is asked.
    fn is_without_dwarf(&self) -> bool {
        match self {
            Self::Index(path) => {
                Metadata::read_file(path).is_ok_and(|metadata| metadata.counts.functions == 0)
            }
            Self::Stored(_, image) => image.metadata().counts.functions == 0,
            Self::Fetched(fetched) => fetched.index.metadata().counts.functions == 0,
            Self::DebugFile(_) => false,
        }
    }
}
