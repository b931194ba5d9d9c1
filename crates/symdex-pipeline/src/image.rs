//! The index of one image of a debug file.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use symdex::{Cause, Grade, ImageId, Index, MappedFile};
use symdex_audit::{ADDR2LINE, AuditOptions, AuditReport};
use symdex_build::debug_files::{DebugFile, FileError, ImageFiles, JoinedImage};
use symdex_build::{
    BuildOptions, BuildReport, Companions, Demangle, Identity, Image, SharedCacheImage, Slice, StopFlag,
    SymbolMaps, TextCoverage, carrier_digest, slices,
};
use symdex_store::{IndexBuffer, IndexBytes};

use crate::failure::Failure;
use crate::plan::{Join, MAX_JOINED, is_wanted};

/// How many times as much memory the comparison with the debug file may take. It keeps all of the file's rows.
const AUDIT_MEMORY: usize = 4;

/// An index that is not published yet, and what its own metadata do not state. As `[u8]`, it is the index, in memory or
/// in a mapped file without a name.
#[derive(Debug, Serialize, Deserialize)]
pub struct BuiltIndex {
    /// The id of the image.
    pub id: String,
    /// The debug file.
    pub file: OsString,
    /// Other files of the image, whose symbols are in the index too.
    pub joined: Vec<OsString>,
    /// The size of the debug information, in bytes.
    pub debug_size: u64,
    /// The size of the index, in bytes.
    pub index_size: u64,
    /// What is odd about the debug file but changes no answer.
    pub warnings: Vec<String>,
    /// Whether the image has debug information.
    pub has_dwarf: bool,
    /// How many units could not be read to their end.
    pub failed_units: u64,
    /// What was left out because it states no code of the image, by reason.
    pub dropped: BTreeMap<String, u64>,
    /// How many names are still hidden.
    pub hidden_names: u64,
    /// How much code has answers.
    pub coverage: TextCoverage,
    /// The comparison with the debug file, if it was asked for.
    pub verified: Option<Verified>,
    /// How long the build took.
    pub time: Duration,
    /// Whether the input is the index itself, which was built elsewhere.
    pub is_input: bool,
    #[serde(skip)]
    pub(crate) bytes: BuiltBytes,
}

/// Where the bytes of a new index are.
#[derive(Debug, Default)]
pub(crate) enum BuiltBytes {
    /// The other process has them.
    #[default]
    Elsewhere,
    Here(IndexBytes),
    /// A part of the output of a child. It was checked whole.
    OfChild(Arc<MappedFile>, Range<usize>),
}

impl AsRef<[u8]> for BuiltIndex {
    fn as_ref(&self) -> &[u8] {
        match &self.bytes {
            BuiltBytes::Elsewhere => &[],
            BuiltBytes::Here(bytes) => bytes,
            // The range was checked when this was made.
            BuiltBytes::OfChild(file, range) => file.get(range.clone()).unwrap_or_default(),
        }
    }
}

impl BuiltIndex {
    /// The index, without a copy if it was built in this process.
    #[must_use]
    pub fn into_bytes(self) -> IndexBytes {
        match self.bytes {
            BuiltBytes::Here(bytes) => bytes,
            _ => self.as_ref().to_vec().into(),
        }
    }
}

/// The comparison of an index with its debug file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Verified {
    /// How many addresses were compared.
    pub addresses: u64,
    /// At how many of them addr2line agrees.
    pub agreements: u64,
    /// At how many addr2line differs, by reason.
    pub explained: BTreeMap<String, u64>,
    /// At how many it differs for no known reason.
    pub unexplained: u64,
    /// Why the index must not be published; empty if it is right.
    pub wrong: Vec<String>,
}

/// How images are built, in this process or in a child.
pub(crate) struct ImageBuilder<'w> {
    pub(crate) archs: &'w [String],
    /// The wanted images; all if empty.
    pub(crate) ids: &'w [ImageId],
    /// The id of an image that states none.
    pub(crate) given_id: Option<&'w ImageId>,
    pub(crate) debug_dirs: &'w [PathBuf],
    /// Files that the debug information of others may refer to.
    pub(crate) companions: &'w [DebugFile],
    pub(crate) maps: &'w SymbolMaps,
    /// The share of the memory for each image that is built at one time.
    pub(crate) max_memory: usize,
    pub(crate) max_seconds: Option<u64>,
    pub(crate) stop: StopFlag,
    pub(crate) verify: bool,
    /// Whether indexes get readable names.
    pub(crate) readable_names: bool,
    /// Whether indexes get unwind rows.
    pub(crate) unwind_rows: bool,
    pub(crate) allow_empty: bool,
    pub(crate) embed: bool,
    /// The index of an id that exists already, if it may be used.
    pub(crate) existing: &'w (dyn Fn(&ImageId) -> Option<IndexBytes> + Sync),
    /// Called with the size of an image, and with how many of how many of its parts are done.
    pub(crate) progress: &'w (dyn Fn(u64, u64, u64) + Sync),
}

/// What becomes of an image.
pub(crate) type ImageResult = Result<BuiltIndex, Failure>;

/// An image that is built: where it is, how many of its files are left out, and when the build began.
struct Loaded<'f> {
    path: &'f Path,
    part: String,
    left_out: usize,
    begun: Instant,
}

/// The slice of this architecture, for messages.
fn slice_name(arch: &str) -> String {
    format!("{arch} slice")
}

impl ImageBuilder<'_> {
    fn companions(&self) -> Companions {
        let companions = Companions::new(self.debug_dirs.to_vec()).files(self.companions);
        companions.max_memory(self.max_memory).max_seconds(self.max_seconds).stop(self.stop)
    }

    /// Builds the index of every wanted image of `file`, in file order, and calls `each` with it. `joins` has the other
    /// files of its images. An index is checked instead.
    pub(crate) fn slices(&self, file: &DebugFile, joins: &[Join], mut each: impl FnMut(ImageResult)) {
        if let Err(error) = self.try_slices(file, joins, &mut each) {
            each(Err(error.into()));
        }
    }

    fn try_slices(
        &self,
        file: &DebugFile,
        joins: &[Join],
        each: &mut impl FnMut(ImageResult),
    ) -> Result<(), FileError> {
        let bytes =
            symdex::map_file(file.path()).map_err(|error| FileError::unreadable(file.name(), error))?;
        if bytes.starts_with(&symdex::INDEX_MAGIC) {
            each(self.given(file, bytes));
            return Ok(());
        }
        let slices = slices(&bytes).map_err(|error| FileError::new(file.name(), error))?;
        for slice in slices.iter().filter(|slice| is_wanted(&slice.arch.name, self.archs)) {
            self.slice(file, slice, joins, each);
        }
        Ok(())
    }

    fn slice(&self, file: &DebugFile, slice: &Slice<'_>, joins: &[Join], each: &mut impl FnMut(ImageResult)) {
        let begun = Instant::now();
        // A slice whose id cannot be read cannot be loaded either.
        let stated = Identity::of(slice).ok().map(|identity| identity.id);
        let given = self.given_id.filter(|_| stated.as_ref().is_some_and(ImageId::is_hash)).cloned();
        let id = given.clone().or(stated);
        if id.as_ref().is_some_and(|id| !is_wanted(id, self.ids)) {
            return;
        }
        let join =
            joins.iter().find(|join| Some(&join.image.0) == id.as_ref() && join.image.1 == slice.arch.name);
        let Some(others) = join.map_or(Some(&[][..]), |join| join.others.as_deref()) else { return };
        let companions = self.companions();
        let mut joined = JoinedImage::default();
        let image = file.load(slice, &companions);
        joined.add(file.name(), image.map(|image| given.into_iter().fold(image, Image::with_id)));
        if let Some(join) = join {
            others.iter().for_each(|other| joined.add_file(other, &join.image.0, &join.image.1, &companions));
        }
        let part = slice_name(&slice.arch.name);
        let left_out = join.map_or(0, |join| join.left_out);
        let loaded = Loaded { path: file.path(), part, left_out, begun };
        let built = self.joined(joined, loaded, |failure| each(Err(failure)));
        built.into_iter().for_each(each);
    }

    /// Builds the index of the image of `files`, joined from those that can be read. Calls `failed` with the failures
    /// of the others. Returns `None` if no file can be read.
    pub(crate) fn files(&self, files: &ImageFiles, failed: impl FnMut(Failure)) -> Option<ImageResult> {
        let (begun, companions) = (Instant::now(), self.companions());
        let (joined, part) = (files.join(&companions), slice_name(files.arch()));
        self.joined(joined, Loaded { path: files.name(), part, left_out: 0, begun }, failed)
    }

    fn joined(
        &self,
        joined: JoinedImage<'_>,
        loaded: Loaded<'_>,
        mut failed: impl FnMut(Failure),
    ) -> Option<ImageResult> {
        let JoinedImage { image, paths, failures, .. } = joined;
        failures.into_iter().for_each(|failure| failed(failure.in_part(&loaded.part).into()));
        let mut paths = paths.into_iter();
        // If the first file could not be read, the image is that of another file.
        let (image, name) = image.zip(paths.next())?;
        Some(self.loaded(image, loaded, name, paths.map(OsString::from).collect()))
    }

    /// Builds the index of an image of the shared cache at `path`.
    pub(crate) fn cached(&self, path: &Path, image: &SharedCacheImage<'_>) -> ImageResult {
        let (begun, part) = (Instant::now(), image.path.clone());
        let loaded = image.load().map_err(|error| FileError::new(path, error).in_part(&part))?;
        self.loaded(loaded, Loaded { path, part, left_out: 0, begun }, path.to_owned(), Vec::new())
    }

    /// Builds the index of `image`, and compares both if that is asked for. `name` is the file that the image was
    /// loaded from, and `joined` has the other files that are joined with it.
    fn loaded(
        &self,
        image: Image<'_>,
        loaded: Loaded<'_>,
        name: PathBuf,
        joined: Vec<OsString>,
    ) -> ImageResult {
        let Loaded { path, part, left_out, begun } = loaded;
        let failed = |error| Failure::from(FileError::new(&name, error).in_part(&part));
        let map = self.maps.load(&image.info().id, path, Some(self.max_memory)).map_err(failed)?;
        let image = match &map {
            Some(map) => image.with_symbol_map(map),
            None => image,
        };
        let (bytes, mut warnings, report) = self.index_of(&image).map_err(failed)?;
        if map.is_none() && report.hidden_names != 0 {
            let wanted = self.maps.file_name(&image.info().id, path);
            warnings.push(format!("its names are hidden: give {wanted} with `symbol_maps`"));
        }
        if left_out != 0 {
            warnings
                .push(format!("{MAX_JOINED} other files of this image are joined, and {left_out} are not"));
        }
        let audit = self.verify.then(|| self.audit(&image, &bytes, begun)).transpose();
        let unverified = format!("{part}; its index cannot be verified and is not published");
        let audit = audit.map_err(|error| FileError::new(&name, error).in_part(unverified))?;
        let BuildReport { has_dwarf, failed_units, dropped, hidden_names, coverage, .. } = report;
        Ok(BuiltIndex {
            id: image.info().id.to_string(),
            file: name.into(),
            joined,
            debug_size: image.debug_size(),
            index_size: bytes.len() as u64,
            warnings,
            has_dwarf,
            failed_units,
            dropped: dropped.into_iter().map(|(reason, count)| (reason.to_owned(), count)).collect(),
            hidden_names,
            coverage,
            verified: audit.as_ref().map(Verified::from),
            time: begun.elapsed(),
            is_input: false,
            bytes: BuiltBytes::Here(bytes),
        })
    }

    /// The index `bytes`, the contents of `file`, if all of it is right.
    fn given(&self, file: &DebugFile, bytes: MappedFile) -> ImageResult {
        let begun = Instant::now();
        let failed = |error| Failure::index(file.name(), &error);
        let index = Index::open(&bytes[..]).map_err(failed)?;
        let ranges = index.verify().map_err(failed)?.ranges;
        let (metadata, counts) = (index.metadata(), index.metadata().counts);
        // These counts decide which of two indexes is better.
        if counts.functions > counts.ranges || counts.ranges.saturating_add(counts.symbols) > ranges {
            let what = "damaged index: it states more functions or ranges than it has";
            return Err(Failure::of_file(file.name(), Cause::Damaged, what));
        }
        if ranges == 0 && !metadata.executable.is_empty() && !self.allow_empty {
            let what = "the index is empty: its image has code, and no address has an answer";
            return Err(Failure::of_file(file.name(), Cause::NotFound, what).because("nothing to answer"));
        }
        Ok(BuiltIndex {
            id: metadata.id.to_string(),
            file: file.name().into(),
            joined: Vec::new(),
            debug_size: bytes.len() as u64,
            index_size: bytes.len() as u64,
            warnings: Vec::new(),
            has_dwarf: counts.functions != 0,
            failed_units: 0,
            dropped: BTreeMap::new(),
            hidden_names: 0,
            coverage: TextCoverage::default(),
            verified: None,
            time: begun.elapsed(),
            is_input: true,
            bytes: BuiltBytes::Here(bytes.into()),
        })
    }

    /// The index of `image`, the warnings and the report of its build. It is the existing one if that is up to date.
    fn index_of(
        &self,
        image: &Image<'_>,
    ) -> Result<(IndexBytes, Vec<String>, BuildReport), symdex_build::Error> {
        let carrier = self.embed.then(|| carrier_digest_of(image)).transpose()?;
        if let Some((bytes, report)) = self.existing_index(image, carrier) {
            return Ok((bytes, Vec::new(), report));
        }
        let size = image.debug_size();
        let progress = |done, total| (self.progress)(size, done, total);
        let options = BuildOptions::new().max_memory(self.max_memory).max_seconds(self.max_seconds);
        let demangle = self.readable_names.then_some(symdex_demangle::demangle as Demangle);
        let options = options
            .stop(self.stop)
            .progress(&progress)
            .readable_names(demangle)
            .unwind_rows(self.unwind_rows);
        let options = options.allow_empty(self.allow_empty).input_digest(carrier);
        let built = options.build_into(image, IndexBuffer::new())?;
        let bytes = built.bytes.into_bytes().map_err(symdex::Error::from)?;
        Ok((bytes, built.warnings, built.report))
    }

    /// The index of `image` that exists already. `None` if the image has to be built. An index that a debug file
    /// carries has to state it as `carrier`.
    fn existing_index(
        &self,
        image: &Image<'_>,
        carrier: Option<[u8; 16]>,
    ) -> Option<(IndexBytes, BuildReport)> {
        let bytes = (self.existing)(&image.info().id)?;
        let index = Index::open(&bytes[..]).ok()?;
        if carrier.is_some() && carrier != index.metadata().input_digest {
            return None;
        }
        let lacks_names = self.readable_names && !index.has_readable_names();
        let is_empty = index.metadata().grade() == Grade::Nothing;
        if lacks_names || self.unwind_rows && !index.has_unwind_rows() || is_empty && !self.allow_empty {
            return None;
        }
        let report = if image.has_dwarf() {
            symdex_build::built_before(image, &index)?
        } else {
            symdex_build::up_to_date(image, &index)?
        };
        Some((bytes, report))
    }

    /// Checks a new index as `symdex verify --against` checks a published one.
    fn audit(
        &self,
        image: &Image<'_>,
        index: &[u8],
        begun: Instant,
    ) -> Result<AuditReport, symdex_build::Error> {
        let index = Index::open(index)?;
        index.verify()?;
        let options = AuditOptions::new().max_memory(AUDIT_MEMORY.saturating_mul(self.max_memory));
        options.max_seconds(self.max_seconds).stop(self.stop).time_spent(begun.elapsed()).audit(image, &index)
    }
}

/// What the index states that the debug file of `image` carries.
fn carrier_digest_of(image: &Image<'_>) -> Result<[u8; 16], symdex_build::Error> {
    match image.files() {
        [file] if image.has_dwarf() => carrier_digest(file),
        _ => {
            let what =
                "an index for it to carry: its image has other files, or no debug information".to_owned();
            Err(symdex_build::Error::Unsupported { what })
        }
    }
}

impl From<&AuditReport> for Verified {
    fn from(report: &AuditReport) -> Self {
        let AuditReport { addresses, unexplained_len, wrong_len, .. } = *report;
        let addr2line = report.peers.get(ADDR2LINE);
        let classes = addr2line.into_iter().flat_map(|peer| &peer.classes);
        Self {
            addresses,
            agreements: addr2line.map_or(0, |peer| peer.agreements),
            explained: classes.map(|(class, counted)| (class.name().to_owned(), counted.count)).collect(),
            unexplained: unexplained_len - wrong_len,
            wrong: report.wrong(),
        }
    }
}
