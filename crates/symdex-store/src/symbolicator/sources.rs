//! The sources of a symbolicator, and the order in which they are asked.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use symdex::{ImageId, Index};
use symdex_report::{Answer, Image, KnownImage, MatchedBy, Unanswered, match_by_name};

use super::assumption::{AssumptionTarget, ResolvedAssumption, ResolvedTarget};
use super::debug_files::{DebugFiles, DebugImage};
use super::listed_folder::ListedFolder;
use super::{Assumption, Availability, Event, Note, Session, SourceError, SymbolicatorOptions};
use crate::error::Error;
use crate::id_prefix::IdPrefix;

/// The number of indexes that are opened in the search for the name of an image.
const MAX_OPENED: usize = 20_000;

/// Answers images of crash reports from indexes and debug files. All threads can share it.
pub struct Symbolicator {
    /// Single indexes.
    files: Vec<(KnownImage, PathBuf)>,
    /// Folders of indexes. The store is the last one.
    folders: Vec<ListedFolder>,
    debug_files: DebugFiles,
    assumptions: Vec<ResolvedAssumption>,
    match_by_name: bool,
    known: OnceLock<KnownImages>,
    /// The damage of each index that was found to be damaged.
    damaged: Mutex<HashMap<PathBuf, String>>,
}

/// A source that may have an image.
pub(super) enum Candidate<'a> {
    Index(PathBuf),
    DebugFile(&'a DebugImage),
}

/// The images of all indexes and debug files.
struct KnownImages {
    /// Each image once, sorted.
    images: Vec<KnownImage>,
    /// Whether some indexes were not opened because there are too many.
    is_cut: bool,
}

impl Symbolicator {
    /// Opens the sources that `options` name. Calls `skipped` for each index and each debug file that cannot be read;
    /// the others are still used.
    ///
    /// Only headers are read, and folders of indexes are not listed.
    ///
    /// # Errors
    ///
    /// [`SourceError::Index`] if a path that was given as an index or a folder of indexes does not exist,
    /// [`SourceError::UnknownId`] or [`SourceError::AmbiguousId`] if not exactly one image has the id of an assumption,
    /// and any [`SourceError`] if the file of an assumption cannot be read.
    pub fn open(
        options: &SymbolicatorOptions,
        skipped: &mut dyn FnMut(SourceError),
    ) -> Result<Self, SourceError> {
        let mut debug_files = DebugFiles::new(options);
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
        folders.extend(options.store.clone().filter(|store| store.is_dir()).map(ListedFolder::new));
        let mut symbolicator = Self {
            files,
            folders,
            debug_files,
            assumptions: Vec::new(),
            match_by_name: options.match_by_name,
            known: OnceLock::new(),
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
            path.is_dir() || matches!(Index::open_file(path), Err(symdex::Error::NotAnIndex { .. }));
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

    /// A source of answers for one report at a time. `on_event` is called while it answers.
    pub fn session<'a>(&'a self, on_event: &'a (dyn Fn(Event<'_>) + Sync)) -> Session<'a> {
        Session::new(self, on_event)
    }

    /// A source that only states which source has each image, and builds no index. See [`Availability`].
    pub fn availability(&self) -> Availability<'_> {
        Availability::new(self)
    }

    /// The images of all indexes and debug files, each once, sorted. The first call lists all folders and opens up to
    /// 20,000 indexes.
    pub fn known(&self) -> &[KnownImage] {
        let known = self.known.get_or_init(|| {
            let mut paths = self.folders.iter().flat_map(ListedFolder::all);
            let indexes = paths.by_ref().take(MAX_OPENED).filter_map(|path| known_index(path).ok());
            let files = self.files.iter().map(|(known, _)| known.clone());
            // Indexes of images in debug files are left out. Otherwise the result would depend on which indexes are
            // already built.
            let mut images: Vec<_> = self.debug_files.known().collect();
            let of_debug_files: BTreeSet<_> =
                images.iter().map(|image| (image.id.clone(), image.arch.clone())).collect();
            let is_other =
                |image: &KnownImage| !of_debug_files.contains(&(image.id.clone(), image.arch.clone()));
            images.extend(files.chain(indexes).filter(is_other));
            images.sort();
            images.dedup();
            KnownImages { images, is_cut: paths.next().is_some() }
        });
        &known.images
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
    pub(super) fn wanted(&self, image: &Image) -> Result<(ImageId, MatchedBy), Unanswered> {
        let assumptions = self.assumptions.iter().filter(|assumption| assumption.applies_to(image));
        let mut assumed: Vec<_> = assumptions.map(|assumption| assumption.id_for(image)).collect();
        // If several assumptions have one name, the first that fits is used.
        assumed.sort_by_key(Result::is_err);
        if let Some(id) = assumed.into_iter().next().transpose()? {
            let is_same = image.id.as_ref() == Some(id);
            return Ok((id.clone(), if is_same { MatchedBy::Id } else { MatchedBy::Assumed }));
        }
        match &image.id {
            Some(start) if image.is_id_cut => Ok((self.whole_id(start), MatchedBy::Id)),
            Some(id) => Ok((id.clone(), MatchedBy::Id)),
            None if self.match_by_name => {
                Ok((match_by_name(image, self.known())?.id.clone(), MatchedBy::Name))
            }
            None => Err(Unanswered::Missing),
        }
    }

    /// The first id of a source that begins with `start`. Returns `start` if there is none.
    fn whole_id(&self, start: &ImageId) -> ImageId {
        let begins = |id: &ImageId| id.as_bytes().starts_with(start.as_bytes());
        let files = self.files.iter().map(|(known, _)| known.id.clone()).filter(begins);
        let in_folders = self.folders.iter().filter_map(|folder| folder.first_id_from(start)).filter(begins);
        let in_debug_files = self.debug_files.known().map(|known| known.id).filter(begins);
        files.chain(in_folders).chain(in_debug_files).next().unwrap_or_else(|| start.clone())
    }

    /// The sources of the image `id`, in this order: single indexes, folders, debug files. An index without debug
    /// information comes last if a debug file has some.
    pub(super) fn candidates(&self, id: &ImageId) -> impl Iterator<Item = Result<Candidate<'_>, Error>> {
        let files =
            self.files.iter().filter(move |(known, _)| known.id == *id).map(|(_, path)| Ok(path.clone()));
        let in_folders = self.folders.iter().flat_map(|folder| folder.indexes_of(id));
        let mut indexes = files.chain(in_folders);
        let mut debug_file = self.debug_files.image(id);
        let has_dwarf = self.debug_files.has_dwarf(id);
        let mut without_dwarf = Vec::new().into_iter();
        let mut postponed = Vec::new();
        std::iter::from_fn(move || {
            for path in indexes.by_ref() {
                match path {
                    Ok(path) if has_dwarf && is_without_dwarf(&path) => {
                        postponed.push(Ok(Candidate::Index(path)));
                    }
                    path => return Some(path.map(Candidate::Index)),
                }
            }
            if let Some(image) = debug_file.take() {
                without_dwarf = std::mem::take(&mut postponed).into_iter();
                return Some(Ok(Candidate::DebugFile(image)));
            }
            without_dwarf.next()
        })
    }

    /// Calls `ask` for the answers of the index at `path`. If another report has found the index to be damaged, returns
    /// that damage instead: whether a new index has replaced it meanwhile depends on the order in which reports are
    /// answered.
    pub(super) fn unless_damaged(
        &self,
        path: &Path,
        ask: impl FnOnce() -> Result<Vec<Answer>, Unanswered>,
    ) -> Result<Vec<Answer>, Unanswered> {
        let damaged = || self.damaged.lock().unwrap_or_else(PoisonError::into_inner);
        let known = damaged().get(path).cloned();
        if let Some(damage) = known {
            return Err(Unanswered::Damaged(damage));
        }
        let answers = ask();
        if let Err(Unanswered::Damaged(damage)) = &answers {
            damaged().insert(path.to_owned(), damage.clone());
        }
        answers
    }

    /// Whether this many more addresses of the image `id` are answered directly from its debug file. They are if they
    /// are few and the image has no index, not even a damaged one that needs replacing.
    pub(super) fn is_answered_directly(&self, id: &ImageId, file: &DebugImage, addresses: usize) -> bool {
        let has_index = self.candidates(id).any(|candidate| matches!(candidate, Ok(Candidate::Index(_))));
        !has_index && self.debug_files.are_few(file, addresses)
    }

    pub(super) fn debug_files(&self) -> &DebugFiles {
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
            .field("debug_files", &debug_files)
            .finish_non_exhaustive()
    }
}

/// The image of the index at `path`.
fn known_index(path: &Path) -> Result<KnownImage, Error> {
    let index = Index::open_file(path).map_err(|error| Error::index(path, error))?;
    let metadata = index.metadata();
    let (name, arch) = (metadata.image_name.clone(), metadata.arch.name.clone());
    Ok(KnownImage { name, id: index.id().clone(), arch })
}

/// Whether an index has no debug information, for example because it was made from a stripped binary. Returns `false`
/// if it cannot be opened: the error is reported when the index is asked.
fn is_without_dwarf(path: &Path) -> bool {
    Index::open_file(path).is_ok_and(|index| index.metadata().counts.functions == 0)
}
