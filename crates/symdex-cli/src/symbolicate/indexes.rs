//! Where answers are searched: the indexes and debug files that the command line names.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use symdex::{ImageId, Index};
use symdex_report::{Answer, Image, KnownImage, MatchedBy, Unanswered, match_by_name};

use super::assumed::{Assumed, AssumedFrom, Assumption, Target};
use super::debug_files::{DebugFiles, DebugImage};
use super::folder::Folder;
use crate::failure::{Failure, Kind, complain};
use crate::open;
use crate::progress::Progress;
use crate::text;
use symdex_store::IdPrefix;

/// Every source of answers there is.
pub(super) struct Indexes<'a> {
    /// Single indexes.
    files: Vec<(KnownImage, PathBuf)>,
    /// The folders that `--index` names, then the store.
    folders: Vec<Folder>,
    debug_files: DebugFiles,
    /// The images for which the user chose an index.
    assumed: Vec<Assumed>,
    /// Whether images without an id are matched by their names.
    match_by_name: bool,
    progress: &'a Progress,
    known: OnceLock<KnownImages>,
    /// What is wrong with indexes that were found to be damaged.
    damaged: Mutex<HashMap<PathBuf, String>>,
}

/// A source that may have an image.
pub(super) enum Candidate<'a> {
    Index(PathBuf),
    DebugFile(&'a DebugImage),
}

/// The images that there are indexes or debug files of.
struct KnownImages {
    /// Each once, in order.
    images: Vec<KnownImage>,
    /// Whether some indexes were not opened because there are so many.
    is_cut: bool,
}

/// How many indexes are opened in search of one with an image's name.
const AT_MOST_OPENED: usize = 20_000;

/// What the command line says of paths.
pub(super) struct SearchPaths<'a> {
    pub(super) index: &'a [PathBuf],
    pub(super) store: Option<&'a Path>,
    pub(super) assume: &'a [Assumption],
    pub(super) match_by_name: bool,
}

impl<'a> Indexes<'a> {
    /// The sources that the command line names. An index that cannot be read is reported, and the others are still searched.
    pub(super) fn new(
        paths: &SearchPaths<'_>,
        mut debug_files: DebugFiles,
        progress: &'a Progress,
        failed: &mut impl FnMut(Failure),
    ) -> Result<Self, Failure> {
        let (mut folders, mut files) = (Vec::new(), Vec::new());
        for path in paths.index {
            match path.metadata().map_err(|error| Failure::unreadable(path, &error))?.is_dir() {
                true => folders.push(Folder::new(path.clone())),
                false => match known_index(path) {
                    Ok(known) => files.push((known, path.clone())),
                    Err(failure) => failed(failure),
                },
            }
        }
        folders.extend(paths.store.filter(|store| store.is_dir()).map(|store| Folder::new(store.to_owned())));
        let mut targets = Vec::new();
        for Assumption { name, from } in paths.assume {
            let images = match from {
                AssumedFrom::Id(_) => Vec::new(),
                AssumedFrom::File(path) => images_of(path, &mut files, &mut debug_files, failed)?,
            };
            targets.push((name, from, images));
        }
        let match_by_name = paths.match_by_name;
        let (assumed, known, damaged) = (Vec::new(), OnceLock::new(), Mutex::default());
        let mut indexes =
            Self { files, folders, debug_files, assumed, match_by_name, progress, known, damaged };
        // Ids are searched in all sources, also in those that other assumptions name.
        for (name, from, images) in targets {
            let target = match from {
                AssumedFrom::Id(id) => Target::Id(indexes.id_of(name, id)?),
                AssumedFrom::File(_) => Target::OneOf(images),
            };
            indexes.assumed.push(Assumed::new(name, target));
        }
        Ok(indexes)
    }

    /// The id of the image that `--assume NAME=ID` means.
    ///
    /// # Errors
    ///
    /// No source has such an image, or the ids of several begin so.
    fn id_of(&self, name: &str, wanted: &IdPrefix) -> Result<ImageId, Failure> {
        if let Some(id) = wanted.to_id().filter(|id| self.candidates(id).next().is_some()) {
            return Ok(id);
        }
        let mut begin: Vec<_> = self.known().iter().filter(|known| wanted.matches(&known.id)).collect();
        begin.sort_by_key(|known| &known.id);
        begin.dedup_by_key(|known| &known.id);
        match begin[..] {
            [known] => Ok(known.id.clone()),
            [] => {
                let message = format!(
                    "--assume {name}={wanted}: no file of that name, and no image of that id in --index, --dsym or the store"
                );
                Err(Failure::new(Kind::Missing, message))
            }
            _ => {
                let images = begin.iter().map(|known| {
                    let KnownImage { name, arch, id } = known;
                    format!("{} {arch} {id}", text::printable(name.into()))
                });
                let message = format!(
                    "--assume {name}={wanted}: several ids begin with {wanted}: {}; give more digits",
                    text::list(images)
                );
                Err(Failure::new(Kind::Usage, message))
            }
        }
    }

    /// The id to search for `image`, and how it was found.
    pub(super) fn wanted(&self, image: &Image) -> Result<(ImageId, MatchedBy), Unanswered> {
        let assumed = self.assumed.iter().filter(|assumed| assumed.applies_to(image));
        let mut assumed: Vec<_> = assumed.map(|assumed| assumed.id_for(image)).collect();
        // Of several for one name, the first that fits counts.
        assumed.sort_by_key(Result::is_err);
        if let Some(id) = assumed.into_iter().next().transpose()? {
            let is_same = image.id.as_ref() == Some(id);
            return Ok((id.clone(), if is_same { MatchedBy::Id } else { MatchedBy::Assumed }));
        }
        match &image.id {
            Some(id) => Ok((id.clone(), MatchedBy::Id)),
            None if self.match_by_name => {
                Ok((match_by_name(image, self.known())?.id.clone(), MatchedBy::Name))
            }
            None => Err(Unanswered::Missing),
        }
    }

    /// The sources to ask for the image `id`, in this order: single indexes, folders, debug files. An index that was made of symbols
    /// alone comes last if a debug file has debug information.
    pub(super) fn candidates(&self, id: &ImageId) -> impl Iterator<Item = Result<Candidate<'_>, Failure>> {
        let files =
            self.files.iter().filter(move |(known, _)| known.id == *id).map(|(_, path)| Ok(path.clone()));
        let in_folders = self.folders.iter().flat_map(|folder| folder.indexes_of(id));
        let mut indexes = files.chain(in_folders);
        let mut debug_file = self.debug_files.image(id);
        let has_dwarf = self.debug_files.has_dwarf(id);
        let mut symbols_alone = Vec::new().into_iter();
        let mut postponed = Vec::new();
        std::iter::from_fn(move || {
            for path in indexes.by_ref() {
                match path {
                    Ok(path) if has_dwarf && is_without_dwarf(&path) => {
                        postponed.push(Ok(Candidate::Index(path)))
                    }
                    path => return Some(path.map(Candidate::Index)),
                }
            }
            if let Some(image) = debug_file.take() {
                symbols_alone = std::mem::take(&mut postponed).into_iter();
                return Some(Ok(Candidate::DebugFile(image)));
            }
            symbols_alone.next()
        })
    }

    /// What `ask` has from the index at `path`. Of an index that another report found to be damaged this is the damage: whether a
    /// debug file has replaced it meanwhile depends on the order in which reports are worked on.
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

    /// Whether a debug file of the image `id` is enough to answer these addresses: they are few, and there is no index of the image,
    /// not even a damaged one to replace.
    pub(super) fn is_enough(&self, id: &ImageId, file: &DebugImage, addresses: usize) -> bool {
        let has_index = self.candidates(id).any(|candidate| matches!(candidate, Ok(Candidate::Index(_))));
        !has_index && self.debug_files.are_few(file, addresses)
    }

    pub(super) fn debug_files(&self) -> &DebugFiles {
        &self.debug_files
    }

    pub(super) fn progress(&self) -> &Progress {
        self.progress
    }

    /// What images there are indexes or debug files of, each once, in order.
    pub(super) fn known(&self) -> &[KnownImage] {
        let known = self.known.get_or_init(|| {
            let mut paths = self.folders.iter().flat_map(Folder::all);
            let indexes = paths.by_ref().take(AT_MOST_OPENED).filter_map(|path| known_index(path).ok());
            let files = self.files.iter().map(|(known, _)| known.clone());
            // Indexes of images that --dsym has are left out, because the output must not depend on which of them are
            // built already.
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

    /// Says what was left out of the search, and which assumptions had no effect.
    pub(super) fn report(&self) {
        if self.known.get().is_some_and(|known| known.is_cut) {
            complain(&format!("only the first {AT_MOST_OPENED} indexes were searched for images of a name"));
        }
        for folder in self.folders.iter().filter(|folder| folder.is_cut()) {
            open::complain_of_cut(folder.path());
        }
        for assumed in self.assumed.iter().filter(|assumed| !assumed.is_used()) {
            let name = assumed.name();
            complain(&format!("--assume {name}: no report has a frame to answer in an image of that name"));
        }
    }
}

/// The images in the index or the debug files at `path`, which are searched from now on.
fn images_of(
    path: &Path,
    files: &mut Vec<(KnownImage, PathBuf)>,
    debug_files: &mut DebugFiles,
    failed: &mut impl FnMut(Failure),
) -> Result<Vec<KnownImage>, Failure> {
    let is_debug_file =
        path.is_dir() || matches!(Index::open_file(path), Err(symdex::Error::NotAnIndex { .. }));
    if !is_debug_file {
        let known = known_index(path)?;
        files.push((known.clone(), path.to_owned()));
        return Ok(vec![known]);
    }
    let mut failures = Vec::new();
    let images = debug_files.add(path, &mut |failure| failures.push(failure));
    let mut failures = failures.into_iter();
    if images.is_empty()
        && let Some(failure) = failures.next()
    {
        return Err(failure);
    }
    failures.for_each(failed);
    Ok(images)
}

/// The image of the index at `path`.
fn known_index(path: &Path) -> Result<KnownImage, Failure> {
    let index = open::index(path, None)?;
    let metadata = index.metadata();
    let (name, arch) = (metadata.image_name.clone(), metadata.arch.name.clone());
    Ok(KnownImage { name, id: index.id().clone(), arch })
}

/// Whether an index was made of symbols alone, as that of a binary is. Returns false for one that cannot be opened, which is reported
/// when it is asked.
fn is_without_dwarf(path: &Path) -> bool {
    Index::open_file(path).is_ok_and(|index| index.metadata().counts.functions == 0)
}
