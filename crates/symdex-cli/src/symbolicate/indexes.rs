//! The indexes that reports are answered from.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use symdex::{ImageId, ImageOffset, Index, LinePolicy, Scratch};
use symdex_build::publish::{find_index, indexes_in};
use symdex_report::{Answer, Image, KnownImage, Source, Unanswered, answer_from_index};

use super::debug_files::DebugFiles;
use crate::failure::{Failure, Kind};
use crate::open;
use crate::progress::Progress;

/// Where indexes are searched, in this order.
pub(super) struct Indexes<'a> {
    folders: Vec<PathBuf>,
    /// Single indexes, by their ids.
    files: Vec<(ImageId, PathBuf)>,
    debug_files: DebugFiles,
    progress: &'a Progress,
    /// What [`Self::known`] answers, once it was asked.
    known: OnceLock<(Vec<KnownImage>, bool)>,
}

/// How many indexes are opened in search of one with a missing image's name.
const AT_MOST_OPENED: usize = 20_000;

impl<'a> Indexes<'a> {
    pub(super) fn new(
        paths: &[PathBuf],
        store: Option<PathBuf>,
        debug_files: DebugFiles,
        progress: &'a Progress,
    ) -> Result<Self, Failure> {
        let (mut folders, mut files) = (Vec::new(), Vec::new());
        for path in paths {
            match path.metadata().map_err(|error| Failure::unreadable(path, &error))?.is_dir() {
                true => folders.push(path.clone()),
                false => files.push((open::index(path, None)?.id().clone(), path.clone())),
            }
        }
        folders.extend(store.filter(|store| store.is_dir()));
        Ok(Self { folders, files, debug_files, progress, known: OnceLock::new() })
    }

    /// A source of answers for one report.
    pub(super) fn source(&self) -> impl Source + use<'_> {
        Answers { indexes: self, scratch: Scratch::default() }
    }

    /// The path of the index of `id`; `None` where there is none.
    fn path(&self, id: &ImageId) -> Result<Option<PathBuf>, Failure> {
        if let Some((_, path)) = self.files.iter().find(|(known, _)| known == id) {
            return Ok(Some(path.clone()));
        }
        let mut symbols_alone = None;
        for folder in &self.folders {
            let found = find_index(folder, id).map_err(|error| Failure::unreadable(folder, &error))?;
            let Some(path) = found else { continue };
            if !self.debug_files.has_dwarf(id) || !is_without_dwarf(&path) {
                return Ok(Some(path));
            }
            symbols_alone.get_or_insert(path);
        }
        let built = self.debug_files.index(id, self.progress).transpose()?;
        Ok(built.or(symbols_alone))
    }

    /// What images there are indexes or debug files of, each once, in order; and whether some were left out because there are so many.
    pub(super) fn known(&self) -> (&[KnownImage], bool) {
        let (known, is_cut) = self.known.get_or_init(|| self.find_known());
        (known, *is_cut)
    }

    fn find_known(&self) -> (Vec<KnownImage>, bool) {
        let mut paths: Vec<PathBuf> = self.files.iter().map(|(_, path)| path.clone()).collect();
        for folder in &self.folders {
            paths.extend(indexes_in(folder));
        }
        let is_cut = paths.len() > AT_MOST_OPENED;
        paths.truncate(AT_MOST_OPENED);
        let indexes = paths.iter().filter_map(|path| {
            let index = Index::open_file(path).ok()?;
            let metadata = index.metadata();
            let (name, arch) = (metadata.image_name.clone(), metadata.arch.name.clone());
            Some(KnownImage { name, id: index.id().clone(), arch })
        });
        // Indexes of images that --dsym has are left out: the output must not depend on which of them are built
        // already.
        let mut known: Vec<_> = self.debug_files.known().collect();
        let from_debug_files: BTreeSet<_> =
            known.iter().map(|image| (image.id.clone(), image.arch.clone())).collect();
        known.extend(
            indexes.filter(|image| !from_debug_files.contains(&(image.id.clone(), image.arch.clone()))),
        );
        known.sort();
        known.dedup();
        (known, is_cut)
    }
}

/// Whether an index was made of symbols alone, as that of a binary is. One that is damaged is not: whoever opens it says so.
fn is_without_dwarf(path: &Path) -> bool {
    Index::open_file(path).is_ok_and(|index| index.metadata().counts.functions == 0)
}

struct Answers<'a> {
    indexes: &'a Indexes<'a>,
    scratch: Scratch,
}

impl Source for Answers<'_> {
    fn answer(
        &mut self,
        image: &Image,
        offsets: &[ImageOffset],
        lines: LinePolicy,
    ) -> Result<Vec<Answer>, Unanswered> {
        let id = image.id.as_ref().ok_or(Unanswered::Missing)?;
        let path = self.indexes.path(id).map_err(unanswered)?.ok_or(Unanswered::Missing)?;
        let index = open::index(&path, Some(id)).map_err(unanswered)?;
        answer_from_index(&index, image, offsets, lines, &mut self.scratch)
    }
}

fn unanswered(failure: Failure) -> Unanswered {
    match failure.kind {
        Kind::Damaged => Unanswered::Damaged(failure.message),
        Kind::Unsupported => Unanswered::Unsupported(failure.message),
        _ => Unanswered::Failed(failure.message),
    }
}
