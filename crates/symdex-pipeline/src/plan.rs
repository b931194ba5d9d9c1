//! What a build has to do: the images of each debug file, from its headers, and which files are joined in one index.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use symdex::{Cause, ImageId, Index};
use symdex_build::debug_files::{DebugFile, FileError};
use symdex_build::{Identity, SharedCache, slices};

use crate::failure::Failure;
use crate::intake::Indexes;

/// How many other files are joined with a file of an image. Files of untrusted archives may be copies of each other
/// without end.
pub(crate) const MAX_JOINED: usize = 100;

/// The images in a debug file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Contents {
    /// Those of its slices.
    Slices(Vec<HeaderImage>),
    /// Those of a shared cache, and the parts of it that are missing.
    Cache { images: Vec<HeaderImage>, missing: Vec<Failure> },
    /// That of an index, which is not built but checked.
    Index(HeaderImage),
    /// None: it is a companion of other files. The failure says so.
    Companion(Failure),
}

/// An image, as far as its headers can be read.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct HeaderImage {
    arch: Option<String>,
    id: Option<ImageId>,
    has_dwarf: bool,
    /// How many bytes an image of a shared cache has.
    size: u64,
}

impl HeaderImage {
    fn new(arch: Option<String>, identity: Option<Identity>, size: u64) -> Self {
        let has_dwarf = identity.as_ref().is_some_and(|identity| identity.has_dwarf);
        Self { arch, id: identity.map(|identity| identity.id), has_dwarf, size }
    }

    fn key(&self) -> Option<ImageKey> {
        self.id.clone().zip(self.arch.clone())
    }

    /// Whether its architecture is one of `archs`, or cannot be read.
    fn is_of(&self, archs: &[String]) -> bool {
        self.arch.as_ref().is_none_or(|arch| is_wanted(arch, archs))
    }
}

/// Whether `one` is one of `wanted`. Everything is wanted if nothing is named.
pub(crate) fn is_wanted<T: PartialEq>(one: &T, wanted: &[T]) -> bool {
    wanted.is_empty() || wanted.contains(one)
}

impl Contents {
    /// Reads the headers of `file`.
    pub(crate) fn of(file: &DebugFile) -> Result<Self, Failure> {
        // The parts of a shared cache are not found in an archive.
        if file.archive_entry().is_none() && SharedCache::is_cache(file.path()) {
            return Self::of_cache(file);
        }
        let failed = |error| FileError::new(file.name(), error);
        let bytes =
            symdex::map_file(file.path()).map_err(|error| FileError::unreadable(file.name(), error))?;
        if bytes.starts_with(&symdex::INDEX_MAGIC) {
            let index = Index::open(&bytes[..]).map_err(|error| Failure::index(file.name(), &error))?;
            let (arch, id) = (index.metadata().arch.name.clone(), index.id().clone());
            return Ok(Self::Index(HeaderImage {
                arch: Some(arch),
                id: Some(id),
                has_dwarf: false,
                size: 0,
            }));
        }
        let mut images = Vec::new();
        for slice in slices(&bytes).map_err(failed)? {
            let identity = match Identity::of(&slice).map_err(failed) {
                Err(error) if error.is_companion() => return Ok(Self::Companion(error.into())),
                identity => identity.ok(),
            };
            images.push(HeaderImage::new(Some(slice.arch.name), identity, 0));
        }
        Ok(Self::Slices(images))
    }

    fn of_cache(file: &DebugFile) -> Result<Self, Failure> {
        let failed = |error| Failure::from(FileError::new(file.path(), error));
        let cache = SharedCache::open(file.path()).map_err(failed)?;
        let missing = cache.missing().into_iter().map(failed).collect();
        let images = cache.images();
        let images = images.iter().map(|image| {
            HeaderImage::new(image.arch().ok().map(|arch| arch.name), image.identity().ok(), image.size())
        });
        Ok(Self::Cache { images: images.collect(), missing })
    }

    pub(crate) fn images(&self) -> &[HeaderImage] {
        match self {
            Self::Slices(images) | Self::Cache { images, .. } => images,
            Self::Index(image) => std::slice::from_ref(image),
            Self::Companion(_) => &[],
        }
    }
}

/// The contents of `files`, read on the threads of the rayon pool it is called in.
pub(crate) fn contents_of(files: &[DebugFile]) -> Vec<Result<Contents, Failure>> {
    files.par_iter().map(Contents::of).collect()
}

/// The id and the architecture of an image.
pub(crate) type ImageKey = (ImageId, String);

/// What a build has to do.
#[derive(Debug, Default)]
pub struct Plan {
    pub(crate) files: Vec<(DebugFile, Contents)>,
    /// Files that the debug information of others may refer to.
    pub(crate) companions: Vec<DebugFile>,
    /// In the order of the inputs. Each can be done on its own.
    pub(crate) tasks: Vec<Result<Task, Failure>>,
    /// The images that several files have.
    groups: HashMap<ImageKey, Group>,
    /// How many files are skipped because they have no image of a wanted architecture.
    pub skipped: u64,
    /// What is wrong if all files are skipped.
    pub no_such_arch: Option<Failure>,
    /// The ids of all images with a wanted architecture.
    pub ids: BTreeSet<ImageId>,
    /// The id that the one image gets which states none.
    pub(crate) given_id: Option<ImageId>,
}

/// The build of a debug file, or of one image of a shared cache.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Task {
    /// The number of the file.
    pub(crate) file: usize,
    /// The number of the image, if the file is a shared cache.
    pub(crate) cached_image: Option<usize>,
    /// How many bytes are read, for progress.
    pub(crate) size: u64,
}

/// The files of an image. Their sum over all images is linear in the number of slices, and the plan keeps each path
/// once.
#[derive(Debug)]
struct Group {
    /// The number of the first file.
    first: usize,
    has_dwarf: bool,
    /// The first files without debug information, up to one more than can be joined, and how many there are.
    plain: Vec<usize>,
    plain_len: usize,
}

/// The files that are joined with the image of a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Join {
    pub(crate) image: ImageKey,
    /// `None` if the image is joined into that of another file.
    pub(crate) others: Option<Vec<DebugFile>>,
    /// How many more there are.
    pub(crate) left_out: usize,
}

impl Plan {
    /// The plan for `files`, for the architectures `archs`. `contents` has those of the files that were found. If one
    /// image states no id, and none states `given_id`, this is its id. `indexes` says what becomes of indexes.
    pub(crate) fn new(
        files: Vec<Result<DebugFile, Failure>>,
        mut contents: Vec<Result<Contents, Failure>>,
        archs: &[String],
        given_id: Option<&ImageId>,
        indexes: &Indexes,
    ) -> Self {
        let mut plan = Self::default();
        if let Some(given) = given_id {
            match give_id(given, &mut contents, archs) {
                0 => {}
                1 => plan.given_id = Some(given.clone()),
                several => plan.tasks.push(Err(ambiguous_id(given, several))),
            }
        }
        let only = if let [Ok(file)] = &files[..] { Some(file.name().to_owned()) } else { None };
        let mut available = Vec::new();
        let (mut contents, mut alone) = (contents.into_iter(), Vec::new());
        for file in files {
            let read = file.and_then(|file| {
                let unread = || Err(Failure::of_file(file.name(), Cause::Other, "its headers are not read"));
                let contents = contents.next().unwrap_or_else(unread)?;
                match (&contents, indexes) {
                    (Contents::Index(_), Indexes::Refused(advice)) => {
                        Err(Failure::refused_index(file.name(), advice))
                    }
                    _ => Ok((file, contents)),
                }
            });
            match read {
                Ok((file, Contents::Companion(failure))) => {
                    plan.companions.push(file);
                    alone.push(Err(failure));
                }
                Ok((file, contents)) => plan.add(file, contents, archs, &mut available),
                Err(failure) => plan.tasks.push(Err(failure)),
            }
        }
        if plan.files.is_empty() {
            plan.tasks.extend(alone);
        }
        if plan.skipped != 0 && plan.tasks.iter().all(Result::is_err) {
            plan.no_such_arch = Some(no_such_arch(only.as_deref(), archs, &available));
        }
        if let Indexes::Only(id) = indexes {
            plan.require_only_index(id);
        }
        plan
    }

    /// Fails unless the files that can be read are one index, that of the image `id`.
    fn require_only_index(&mut self, id: &ImageId) {
        let Some((first, contents)) = self.files.first() else { return };
        let found = match (self.files.len(), contents) {
            (1, Contents::Index(image)) => match &image.id {
                Some(stated) if stated != id => format!("the index of {stated}"),
                _ => return,
            },
            (1, _) => "a debug file".to_owned(),
            (files, _) => format!("{files} files"),
        };
        let what = format!("found {found}, expected the index of {id} and nothing else");
        let failure = Failure::of_file(first.name(), Cause::Usage, &what);
        self.tasks.retain(Result::is_err);
        self.tasks.push(Err(failure));
    }

    fn add(&mut self, file: DebugFile, contents: Contents, archs: &[String], available: &mut Vec<String>) {
        let number = self.files.len();
        if let Contents::Cache { missing, .. } = &contents {
            self.tasks.extend(missing.iter().cloned().map(Err));
        }
        let images = contents.images();
        if !archs.is_empty() && !images.iter().any(|image| image.is_of(archs)) {
            self.skipped += 1;
            for arch in images.iter().filter_map(|image| image.arch.as_ref()) {
                if !available.contains(arch) {
                    available.push(arch.clone());
                }
            }
        } else if let Contents::Cache { images, .. } = &contents {
            let wanted = images.iter().enumerate().filter(|(_, image)| image.is_of(archs));
            self.tasks.extend(
                wanted.map(|(at, image)| Ok(Task { file: number, cached_image: Some(at), size: image.size })),
            );
        } else {
            let size = file.path().metadata().map_or(0, |file| file.len());
            self.tasks.push(Ok(Task { file: number, cached_image: None, size }));
        }
        self.ids
            .extend(images.iter().filter(|image| image.is_of(archs)).filter_map(|image| image.id.clone()));
        if let Contents::Slices(images) = &contents {
            images.iter().for_each(|image| self.add_to_group(number, image));
        }
        self.files.push((file, contents));
    }

    fn add_to_group(&mut self, file: usize, image: &HeaderImage) {
        let Some(key) = image.key() else { return };
        let group = self.groups.entry(key).or_insert_with(|| Group::new(file));
        group.has_dwarf |= image.has_dwarf;
        if !image.has_dwarf {
            group.plain_len += 1;
            if group.plain.len() <= MAX_JOINED {
                group.plain.push(file);
            }
        }
    }

    /// Leaves out each debug file, and each image of a shared cache, all of whose images have one of these `ids`.
    pub fn leave_out(&mut self, ids: &BTreeSet<ImageId>) {
        let Self { files, tasks, .. } = self;
        tasks.retain(|task| {
            let contents = task.as_ref().ok().and_then(|task| Some((task, &files.get(task.file)?.1)));
            let images = contents.map_or(&[][..], |(task, contents)| match task.cached_image {
                Some(at) => contents.images().get(at..=at).unwrap_or_default(),
                None => contents.images(),
            });
            let is_left_out = |image: &HeaderImage| image.id.as_ref().is_some_and(|id| ids.contains(id));
            images.is_empty() || !images.iter().all(is_left_out)
        });
    }

    /// How many bytes of debug files are read.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.tasks.iter().flatten().map(|task| task.size).sum()
    }

    /// How many bytes the indexes and the temporary files of their builds take, about. An index takes a fiftieth to a
    /// tenth of its debug file, and is on the disk twice while it is published.
    #[must_use]
    pub fn index_space(&self) -> u64 {
        let space = |task: &Task| match self.files.get(task.file) {
            Some((_, Contents::Index(_))) => 2 * task.size,
            _ => task.size / 4,
        };
        self.tasks.iter().flatten().map(space).sum()
    }

    /// The images of the files, with their files: id and architecture. Those that cannot be read are left out.
    pub fn images(&self) -> impl Iterator<Item = (&Path, ImageKey)> {
        self.files.iter().flat_map(|(file, contents)| {
            let keys = contents.images().iter().filter_map(|image| image.key());
            keys.map(|key| (file.path(), key))
        })
    }

    /// The first failure of a file at which a child ended.
    #[must_use]
    pub fn killed(&self) -> Option<&Failure> {
        self.failures().find(|failure| failure.limit.is_some())
    }

    /// Why files are not read.
    pub fn failures(&self) -> impl Iterator<Item = &Failure> {
        self.tasks.iter().filter_map(|task| task.as_ref().err())
    }

    /// How many debug files, and images of shared caches, have a build of their own.
    #[must_use]
    pub fn task_len(&self) -> usize {
        self.tasks.len()
    }

    /// The images that `task` builds, among those with these architectures and ids, each with the files that are joined
    /// with it. `None` if there is nothing to build. An image whose headers cannot be read is not listed; its build
    /// says why.
    pub(crate) fn joins(&self, task: &Task, archs: &[String], ids: &[ImageId]) -> Option<Vec<Join>> {
        let (_, contents) = self.files.get(task.file)?;
        let images = match task.cached_image {
            Some(at) => contents.images().get(at..=at)?,
            None => contents.images(),
        };
        let (mut joins, mut is_empty) = (Vec::new(), true);
        for image in images.iter().filter(|image| image.is_of(archs)) {
            match image.key() {
                Some(key) if is_wanted(&key.0, ids) => {
                    let join = self.join(task, key);
                    is_empty &= join.others.is_none();
                    joins.push(join);
                }
                Some(_) => {}
                None => is_empty = false,
            }
        }
        (!is_empty).then_some(joins)
    }

    /// The files that are joined with an image of `task`: those without debug information, if the file of the task has
    /// some, or if it is the first file of the image and none has any. If several files have debug information, each
    /// gives an index, and publishing keeps the better one.
    fn join(&self, task: &Task, image: ImageKey) -> Join {
        let contents = &self.files[task.file].1;
        let mut own = contents.images().iter().filter(|own| own.key().as_ref() == Some(&image));
        let group = self.groups.get(&image).filter(|_| matches!(contents, Contents::Slices(_)));
        let Some(group) = group else { return Join { image, others: Some(Vec::new()), left_out: 0 } };
        let leads = if group.has_dwarf { own.any(|own| own.has_dwarf) } else { group.first == task.file };
        if !leads {
            return Join { image, others: None, left_out: 0 };
        }
        let others = group.plain.iter().filter(|file| **file != task.file).take(MAX_JOINED);
        let others: Vec<_> = others.map(|file| self.files[*file].0.clone()).collect();
        let is_plain = usize::from(group.plain.contains(&task.file));
        Join { image, left_out: group.plain_len - is_plain - others.len(), others: Some(others) }
    }
}

/// Gives the id `given` to the image that states none, if there is one and no image has this id. Returns how many
/// images could get it.
fn give_id(given: &ImageId, contents: &mut [Result<Contents, Failure>], archs: &[String]) -> usize {
    let images = contents.iter_mut().flatten().filter_map(|contents| match contents {
        Contents::Slices(images) => Some(images),
        Contents::Cache { .. } | Contents::Index(_) | Contents::Companion(_) => None,
    });
    let images: Vec<&mut HeaderImage> = images.flatten().filter(|image| image.is_of(archs)).collect();
    if images.iter().any(|image| image.id.as_ref() == Some(given)) {
        return 0;
    }
    let is_without_id = |image: &&mut HeaderImage| image.id.as_ref().is_some_and(ImageId::is_hash);
    let mut without: Vec<_> = images.into_iter().filter(is_without_id).collect();
    if let [image] = &mut without[..] {
        image.id = Some(given.clone());
    }
    without.len()
}

fn ambiguous_id(given: &ImageId, several: usize) -> Failure {
    let message = format!(
        "{several} images of the inputs state no id, and {given} can be the id of one only: give one file"
    );
    Failure::new(Cause::Usage, message).because("without an id")
}

impl Group {
    fn new(first: usize) -> Self {
        Self { first, has_dwarf: false, plain: Vec::new(), plain_len: 0 }
    }
}

/// No file has one of the architectures `wanted`. `file` is the file if there is only one.
fn no_such_arch(file: Option<&Path>, wanted: &[String], available: &[String]) -> Failure {
    let wanted = wanted.iter().map(|arch| format!("{arch:?}")).collect::<Vec<_>>().join(" or ");
    let available = available.join(", ");
    let message = match file {
        Some(file) => format!("{}: no slice for {wanted}; the file has {available}", file.display()),
        None => format!("no file has a slice for {wanted}; the files have {available}"),
    };
    Failure::new(Cause::NotFound, message).because("without the architecture")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u8) -> ImageId {
        ImageId::new(&[number; 16]).expect("16 bytes are an id")
    }

    fn image(number: u8, arch: &str, has_dwarf: bool) -> HeaderImage {
        HeaderImage { arch: Some(arch.to_owned()), id: Some(id(number)), has_dwarf, size: 0 }
    }

    fn plan(files: &[(&str, Vec<HeaderImage>)], archs: &[&str]) -> Plan {
        let found = files.iter().map(|(path, _)| Ok(DebugFile::on_disk(*path))).collect();
        let contents = files.iter().map(|(_, images)| Ok(Contents::Slices(images.clone()))).collect();
        let archs: Vec<_> = archs.iter().map(|arch| (*arch).to_owned()).collect();
        Plan::new(found, contents, &archs, None, &Indexes::default())
    }

    /// For each task, the other files of its first image.
    fn joined(plan: &Plan) -> Vec<Option<String>> {
        let names = |files: Vec<DebugFile>| {
            files.iter().map(|file| file.name().display().to_string()).collect::<Vec<_>>().join(" ")
        };
        let tasks = plan.tasks.iter().flatten();
        tasks
            .map(|task| {
                plan.joins(task, &[], &[]).map(|mut joins| names(joins.remove(0).others.expect("some")))
            })
            .collect()
    }

    #[test]
    fn files_without_debug_information_join_those_that_have_some() {
        let files = |files: &[(&'static str, bool)]| -> Vec<(&str, Vec<HeaderImage>)> {
            files.iter().map(|(path, has_dwarf)| (*path, vec![image(1, "arm64", *has_dwarf)])).collect()
        };
        let some = plan(&files(&[("a", false), ("b", true), ("c", true), ("d", false)]), &[]);
        assert_eq!(joined(&some), [None, Some("a d".to_owned()), Some("a d".to_owned()), None]);
        let none = plan(&files(&[("a", false), ("b", false)]), &[]);
        assert_eq!(joined(&none), [Some("b".to_owned()), None]);
        let alone =
            plan(&[("a", vec![image(1, "arm64", false)]), ("b", vec![image(1, "x86_64", false)])], &[]);
        assert_eq!(joined(&alone), [Some(String::new()), Some(String::new())]);
    }

    #[test]
    fn an_index_is_not_joined_with_debug_files_of_its_image() {
        let slices = |has_dwarf| Ok(Contents::Slices(vec![image(1, "arm64", has_dwarf)]));
        let contents = vec![slices(true), Ok(Contents::Index(image(1, "arm64", false))), slices(false)];
        let found = ["a", "b", "c"].map(|path| Ok(DebugFile::on_disk(path)));
        let plan = Plan::new(found.into(), contents, &[], None, &Indexes::Taken);
        assert_eq!(joined(&plan), [Some("c".to_owned()), Some(String::new()), None]);
        assert_eq!(plan.index_space(), 0, "none of the files is there");
    }

    #[test]
    fn copies_without_end_are_joined_up_to_the_limit() {
        const FILES: usize = 20_000;
        let names: Vec<String> = (0..FILES).map(|number| number.to_string()).collect();
        // Every other file has debug information.
        let files = names.iter().enumerate();
        let files = files.map(|(at, name)| (name.as_str(), vec![image(1, "arm64", at % 2 == 0)]));
        let plan = plan(&files.collect::<Vec<_>>(), &[]);
        let kept: usize = plan.groups.values().map(|group| group.plain.len()).sum();
        assert_eq!((plan.groups.len(), kept), (1, MAX_JOINED + 1));
        let tasks: Vec<&Task> = plan.tasks.iter().flatten().collect();
        let joins = plan.joins(tasks[0], &[], &[]).expect("it has debug information");
        assert_eq!(joins[0].others.as_ref().map(Vec::len), Some(MAX_JOINED));
        assert_eq!(joins[0].left_out, FILES / 2 - MAX_JOINED);
        assert_eq!(plan.joins(tasks[1], &[], &[]), None, "it is joined into other files");
    }

    #[test]
    fn only_wanted_images_are_built() {
        let fat = || vec![image(1, "arm64", true), image(2, "x86_64", true)];
        let one = plan(&[("fat", fat())], &[]);
        let task = one.tasks[0].as_ref().expect("a task");
        assert!(one.joins(task, &[], &[id(3)]).is_none());
        assert_eq!(one.joins(task, &[], &[id(2)]).map(|joins| joins.len()), Some(1));
        assert_eq!(one.ids.len(), 2);
        let damaged = HeaderImage { id: None, ..image(3, "arm64", false) };
        let damaged = plan(&[("damaged", vec![damaged])], &[]);
        let task = damaged.tasks[0].as_ref().expect("a task");
        assert_eq!(damaged.joins(task, &[], &[id(3)]), Some(Vec::new()), "its build says why");

        let thin = || vec![image(4, "arm64e", true)];
        let both = plan(&[("fat", fat()), ("thin", thin())], &["x86_64"]);
        assert_eq!((both.tasks.len(), both.skipped, both.no_such_arch), (1, 1, None));
        let none = plan(&[("thin", thin())], &["x86_64"]);
        let message = none.no_such_arch.expect("no file has it").message;
        assert_eq!((none.skipped, &*message), (1, "thin: no slice for \"x86_64\"; the file has arm64e"));
    }
}
