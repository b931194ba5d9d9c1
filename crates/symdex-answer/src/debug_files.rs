//! Debug files that answer directly, or whose indexes are built when a report needs them.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Once, OnceLock};

use symdex::{Cause, Grade, ImageId, ImageOffset, Index};
use symdex_build::debug_files::{
    DebugFile, FileError, ImageFiles, InputFiles, JoinedImage, ListedImage, slices_of,
};
use symdex_build::{BuildOptions, Companions, DirectLookup, SharedCache};
use symdex_pipeline::{BuiltIndex, Failure, Pipeline, PipelineOptions, embedded_index};
use symdex_report::{KnownImage, ReportImage, Unanswered, image_offsets};

use super::{Event, SourceError, SymbolicatorOptions, failed, file_name, unanswered};
use symdex_store::{
    Error, IndexBytes, Provenance, PutOptions, SharedStore, StoreReader, create_private_folder,
};

/// The number of addresses of an image that are answered from its debug file before its index is built.
const FEW_ADDRESSES: usize = 200;

/// The images in the debug files of a symbolicator.
pub(crate) struct DebugFiles {
    images: Vec<DebugImage>,
    /// Packages and supplementary files to which the debug files of the images may refer.
    companions: Vec<DebugFile>,
    /// Folders that are searched for the files that debug files refer to.
    debug_dirs: Vec<PathBuf>,
    /// Where new indexes are put.
    stores: Arc<StoreReader>,
    private_store: bool,
    always_store: bool,
    /// Whether new indexes get unwind rows.
    unwind_rows: bool,
    /// The size of all files, in bytes.
    size: u64,
    /// Whether [`Event::NotStored`] was sent.
    not_stored: Once,
    /// Builds indexes. The first build starts its threads.
    pipeline: OnceLock<Result<Pipeline, Failure>>,
}

/// One image of the debug files.
pub(crate) struct DebugImage {
    files: ImageFiles,
    /// The number of addresses that reports have asked for.
    asked: AtomicUsize,
    /// The index, once it is built.
    index: OnceLock<Result<NewIndex, Unanswered>>,
    /// The index that the debug file carries, once it is checked.
    embedded: OnceLock<Option<Index<IndexBytes>>>,
    /// An index with nothing but unwind rows, once it is built.
    unwind_index: OnceLock<Result<Index<Vec<u8>>, Unanswered>>,
}

/// An index that was built from debug files.
pub(crate) struct NewIndex {
    pub(crate) location: IndexLocation,
    pub(crate) grade: Grade,
    pub(crate) read: FilesRead,
}

/// Where a new index is.
pub(crate) enum IndexLocation {
    /// The store has the index.
    Stored(Arc<SharedStore>),
    /// The index could not be stored.
    Memory(Box<Index<IndexBytes>>),
}

/// The files of an image that answers come from.
#[derive(Clone, Debug)]
pub(crate) struct FilesRead {
    /// The main file, for messages.
    pub(crate) path: PathBuf,
    /// Why other files of the image could not be read.
    pub(crate) failures: Vec<Unanswered>,
}

impl DebugImage {
    /// The main file, which is read first, for messages.
    pub(crate) fn path(&self) -> &Path {
        self.files.name()
    }

    /// Its name, id and architecture.
    pub(crate) fn known(&self) -> KnownImage {
        let (id, arch) = (self.files.id().clone(), self.files.arch().to_owned());
        KnownImage { name: self.files.image_name().to_owned(), id, arch }
    }

    /// The most that its files may answer. Only their headers are read.
    pub(crate) fn grade(&self) -> Grade {
        if self.files.has_lines() { Grade::Lines } else { Grade::Names }
    }

    /// Its slice, for messages, as [`Pipeline::build_image`] names it.
    fn part(&self) -> String {
        format!("{} slice", self.files.arch())
    }

    /// The image, joined from all its files that can be read.
    ///
    /// # Errors
    ///
    /// The error of the main file, if no file can be read.
    fn load<'d>(
        &self,
        companions: &'d Companions,
    ) -> Result<(symdex_build::Image<'d>, FilesRead), Unanswered> {
        let JoinedImage { image, paths, failures, .. } = self.files.join(companions);
        let mut failures =
            failures.into_iter().map(|failure| unanswered(&failure.in_part(self.part()).into()));
        match image.zip(paths.into_iter().next()) {
            Some((image, path)) => Ok((image, FilesRead { path, failures: failures.collect() })),
            None => Err(failures.next().unwrap_or(Unanswered::Missing)),
        }
    }
}

impl DebugFiles {
    /// No debug files yet.
    pub(crate) fn new(options: &SymbolicatorOptions, stores: Arc<StoreReader>) -> Self {
        Self {
            images: Vec::new(),
            companions: Vec::new(),
            debug_dirs: options.debug_dirs.clone(),
            stores,
            private_store: options.private_store,
            always_store: options.always_store,
            unwind_rows: options.unwind_rows,
            size: 0,
            not_stored: Once::new(),
            pipeline: OnceLock::new(),
        }
    }

    /// Reads the headers of all debug files at or below `path`. Returns the images in them, and calls `skipped` for
    /// each file, and each slice of a universal file, that cannot be read.
    pub(crate) fn add(&mut self, path: &Path, skipped: &mut dyn FnMut(SourceError)) -> Vec<KnownImage> {
        let mut added = Vec::new();
        let inputs = InputFiles::find([path]);
        let special = inputs.special_files().clone();
        for file in inputs.into_files() {
            match file {
                Ok(file) => added.extend(self.add_file(&file, skipped)),
                Err(error) => skipped(error.into()),
            }
        }
        if !special.is_empty() {
            skipped(SourceError::Special(special));
        }
        added
    }

    /// Adds the images in `file`, as [`add`](Self::add) does.
    pub(crate) fn add_file(
        &mut self,
        file: &DebugFile,
        skipped: &mut dyn FnMut(SourceError),
    ) -> Vec<KnownImage> {
        let slices = match slices(file) {
            Ok(slices) => slices,
            Err(SourceError::DebugFile(error)) if error.is_companion() => {
                self.companions.push(file.clone());
                return Vec::new();
            }
            Err(error) => {
                skipped(error);
                return Vec::new();
            }
        };
        self.size += file.path().metadata().map_or(0, |file| file.len());
        let mut added = Vec::new();
        for slice in slices {
            match slice {
                Ok(image) => added.push(self.add_image(file, &image)),
                Err(error) => skipped(error.into()),
            }
        }
        added
    }

    /// Adds the image `listed` of `file`. If another file has the same image, both are files of one image.
    fn add_image(&mut self, file: &DebugFile, listed: &ListedImage) -> KnownImage {
        match self.images.iter_mut().find(|image| image.files.is_image(listed)) {
            Some(image) => image.files.add(file, listed),
            None => {
                let files = ImageFiles::new(file, listed);
                let (index, embedded, unwind_index) = (OnceLock::new(), OnceLock::new(), OnceLock::new());
                let asked = AtomicUsize::new(0);
                self.images.push(DebugImage { files, asked, index, embedded, unwind_index });
            }
        }
        let (id, arch) = (listed.identity.id.clone(), listed.arch.clone());
        KnownImage { name: file_name(file.name()), id, arch }
    }

    /// Calls `skipped` for each companion, if there is no image whose debug information can refer to it.
    pub(crate) fn skip_companions(&self, skipped: &mut dyn FnMut(SourceError)) {
        if self.images.is_empty() {
            self.companions.iter().filter_map(|file| slices(file).err()).for_each(skipped);
        }
    }

    /// The owner of what an image borrows while it is loaded.
    fn companions(&self) -> Companions {
        Companions::new(self.debug_dirs.clone()).files(&self.companions)
    }

    /// The size of all files, in bytes.
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// The images in the files.
    pub(crate) fn known(&self) -> impl Iterator<Item = KnownImage> {
        self.images.iter().map(DebugImage::known)
    }

    /// The image of this id; `None` if no file has it.
    pub(crate) fn image(&self, id: &ImageId) -> Option<&DebugImage> {
        self.images.iter().find(|image| image.files.id() == id)
    }

    /// The index that the debug file of `image` carries, unless new indexes are wanted in the store.
    pub(crate) fn embedded<'i>(
        &self,
        image: &'i DebugImage,
        on_event: &(dyn Fn(Event<'_>) + Sync),
    ) -> Option<&'i Index<IndexBytes>> {
        let checked = image.embedded.get_or_init(|| {
            embedded_index(&image.files).unwrap_or_else(|why| {
                on_event(Event::NotUsed { why: &why });
                None
            })
        });
        checked.as_ref().filter(|_| !self.always_store)
    }

    /// Adds `addresses` to those that reports have asked of `image`. Returns whether [`Self::answer_directly`] should
    /// answer them: all together they are few, and no index is built yet.
    pub(crate) fn are_few(&self, image: &DebugImage, addresses: usize) -> bool {
        let asked = image.asked.fetch_add(addresses, Ordering::Relaxed).saturating_add(addresses);
        !self.always_store && asked <= FEW_ADDRESSES && image.index.get().is_none()
    }

    /// Calls `answer` with a small index that answers `offsets` of `image`, which a report describes as `wanted`. Only
    /// the units that have code there are read.
    pub(crate) fn answer_directly<T: Send>(
        &self,
        image: &DebugImage,
        wanted: &ReportImage,
        offsets: &[ImageOffset],
        answer: impl FnOnce(&Index<Vec<u8>>) -> Result<T, Unanswered> + Send,
    ) -> Result<(T, FilesRead), Unanswered> {
        let work = || {
            let companions = self.companions();
            let (loaded, read) = image.load(&companions)?;
            let failed = |error| unanswered(&FileError::new(&read.path, error).in_part(image.part()).into());
            let mut lookup = DirectLookup::new(&loaded).map_err(failed)?;
            let offsets = image_offsets(lookup.index().metadata(), wanted, offsets)?;
            let answers = answer(lookup.answer(&offsets).map_err(failed)?)?;
            Ok((answers, read))
        };
        // This runs on a thread of its own: a thread of a pool that waits could start on another report.
        let answered = std::thread::scope(|scope| scope.spawn(work).join());
        let panicked =
            || Unanswered::Failed(Cause::Other, format!("{}: reading it failed", image.files.id()));
        answered.unwrap_or_else(|_| Err(panicked()))
    }

    /// An index with the unwind rows of `image`, and nothing else. The first call reads the unwind tables.
    pub(crate) fn unwind_index<'i>(&self, image: &'i DebugImage) -> Result<&'i Index<Vec<u8>>, Unanswered> {
        let built = image.unwind_index.get_or_init(|| {
            let companions = self.companions();
            let (loaded, read) = image.load(&companions)?;
            let failed = |error| unanswered(&FileError::new(&read.path, error).in_part(image.part()).into());
            let built = BuildOptions::new().build_unwind_rows(&loaded).map_err(failed)?;
            Index::open(built).map_err(|error| unanswered(&Error::index(&read.path, error).into()))
        });
        built.as_ref().map_err(Unanswered::clone)
    }

    /// The index of `image`. The first call builds it.
    pub(crate) fn index<'i>(
        &self,
        image: &'i DebugImage,
        on_event: &(dyn Fn(Event<'_>) + Sync),
    ) -> Result<&'i NewIndex, Unanswered> {
        let built = image.index.get_or_init(|| {
            // The build runs on a thread of its own: a thread of a pool that waits could start on another report, which
            // may wait for this index.
            let files = image.files.clone().with_companions(self.companions.clone());
            let built = std::thread::scope(|scope| scope.spawn(|| self.build(&files, None, on_event)).join());
            let panicked = || {
                Unanswered::Failed(Cause::Other, format!("{}: building its index failed", image.files.id()))
            };
            built.unwrap_or_else(|_| Err(panicked()))
        });
        built.as_ref().map_err(Unanswered::clone)
    }

    /// Builds the index of the image `id` in the debug file at `path`, as [`build`](Self::build) does. `location` says
    /// where the file comes from, and the image gets the name `name`. Returns `None` if the file does not have the
    /// image.
    pub(crate) fn build_file(
        &self,
        path: &Path,
        id: &ImageId,
        name: &str,
        location: &str,
        on_event: &(dyn Fn(Event<'_>) + Sync),
    ) -> Result<Option<NewIndex>, Unanswered> {
        let file = DebugFile::of_archive(path, location, name);
        let listed = slices(&file).map_err(|error| unanswered(&error))?;
        let mut first_error = None;
        for listed in listed {
            match listed {
                Ok(listed) if listed.identity.id == *id => {
                    let provenance = Some(Provenance::fetched());
                    return self.build(&ImageFiles::new(&file, &listed), provenance, on_event).map(Some);
                }
                Ok(_) => {}
                Err(error) => _ = first_error.get_or_insert(error),
            }
        }
        first_error.map_or(Ok(None), |error| Err(unanswered(&error.into())))
    }

    /// Builds the index of the image of `files`, and publishes it with this provenance. If no store takes it, it stays
    /// in memory.
    fn build(
        &self,
        files: &ImageFiles,
        provenance: Option<Provenance>,
        on_event: &(dyn Fn(Event<'_>) + Sync),
    ) -> Result<NewIndex, Unanswered> {
        let begun = AtomicU64::new(0);
        let progress = |size, done, total| {
            begun.store(size, Ordering::Relaxed);
            on_event(Event::Building { id: files.id(), size, done, total });
        };
        let pipeline = self.pipeline.get_or_init(|| {
            let mut options = PipelineOptions::default();
            options.debug_dirs.clone_from(&self.debug_dirs);
            options.unwind_rows = self.unwind_rows;
            Pipeline::new(options)
        });
        let built = pipeline.as_ref().map_err(Failure::clone);
        let built = built.and_then(|pipeline| pipeline.build_image(files, &progress));
        match built.as_ref().map_or(begun.load(Ordering::Relaxed), |(built, _)| built.debug_size) {
            // Nothing was read.
            0 => {}
            size => progress(size, size, size),
        }
        let (built, failures) = built.map_err(|failure| unanswered_by(&failure))?;
        let put = PutOptions::new().provenance(provenance);
        self.publish(built, failures.iter().map(unanswered_by).collect(), &put, on_event)
    }

    fn publish(
        &self,
        built: BuiltIndex,
        failures: Vec<Unanswered>,
        put: &PutOptions,
        on_event: &(dyn Fn(Event<'_>) + Sync),
    ) -> Result<NewIndex, Unanswered> {
        let read = FilesRead { path: PathBuf::from(&built.file), failures };
        let failed = |error| unanswered(&Error::index(&read.path, error).into());
        let index = Index::open(built.into_bytes()).map_err(failed)?;
        let grade = index.metadata().grade();
        if let Some(folder) = self.stores.writable().and_then(|store| store.url().folder())
            && self.private_store
        {
            // If this fails, publishing fails too, and says why.
            let _ = create_private_folder(&folder);
        }
        let borrowed = Index::open(index.as_bytes()).map_err(failed)?;
        let error = match self.stores.publish(&borrowed, put) {
            Ok(Some((store, _))) => {
                return Ok(NewIndex { location: IndexLocation::Stored(Arc::clone(store)), grade, read });
            }
            Ok(None) => None,
            Err(error) => Some(error),
        };
        self.not_stored.call_once(|| on_event(Event::NotStored { error: error.as_ref() }));
        Ok(NewIndex { location: IndexLocation::Memory(Box::new(index)), grade, read })
    }
}

/// Why an image has no answers, if its index cannot be built because of `failure`.
fn unanswered_by(failure: &Failure) -> Unanswered {
    failed(failure.cause, failure.message.clone())
}

/// The images in `file`, each read or with the reason why it cannot be.
fn slices(file: &DebugFile) -> Result<Vec<Result<ListedImage, FileError>>, SourceError> {
    if SharedCache::is_cache(file.path()) {
        return Err(SourceError::SharedCache { path: file.name().to_owned() });
    }
    Ok(slices_of(file)?)
}
