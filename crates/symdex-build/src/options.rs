//! The options of a build, and what a build returns.

use std::fmt;
use std::io::Write;

use crate::build::{build_image, build_unwind_rows};
use crate::error::Error;
use crate::image::Image;
use crate::limits::{Deadline, StopFlag};
use crate::readable::Demangle;
use crate::report::BuildReport;

/// The default of [`BuildOptions::max_memory`].
pub(crate) const MAX_MEMORY: usize = 1 << 30;

/// Options of a build: limits of memory and time, and a progress callback.
///
/// [`build`] builds with the default options.
///
/// ```
/// # use std::path::Path;
/// use symdex_build::{BuildOptions, Companions, Image, slices};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let path = "../../testdata/dsyms/inline-dwarf4.dSYM/Contents/Resources/DWARF/inline-dwarf4";
/// # let path = &Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
/// # let out = tempfile::tempfile()?;
/// let bytes = symdex::map_file(path)?;
/// let companions = Companions::default();
/// let image = Image::load(&slices(&bytes)?[0], path, &companions)?;
///
/// let progress = |done: u64, total: u64| eprintln!("{done} of {total} bytes");
/// let options = BuildOptions::new().max_memory(256 << 20).progress(&progress);
/// let built = options.build_into(&image, out)?;
/// assert_eq!(built.report.failed_units, 0);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy)]
pub struct BuildOptions<'p> {
    pub(crate) max_memory: usize,
    pub(crate) max_seconds: Option<u64>,
    pub(crate) stop: StopFlag,
    pub(crate) progress: &'p (dyn Fn(u64, u64) + Sync),
    pub(crate) readable_names: Option<Demangle>,
    pub(crate) unwind_rows: bool,
    pub(crate) allow_empty: bool,
    pub(crate) input_digest: Option<[u8; 16]>,
    /// Whether files have columns, too: only for the index of a direct lookup.
    pub(crate) columns: bool,
}

impl<'p> BuildOptions<'p> {
    /// The default options: 1 GiB of memory, any time, no progress, no readable names and no unwind rows.
    #[must_use]
    pub fn new() -> Self {
        Self {
            max_memory: MAX_MEMORY,
            max_seconds: None,
            stop: None,
            progress: &|_, _| {},
            readable_names: None,
            unwind_rows: false,
            allow_empty: false,
            input_digest: None,
            columns: false,
        }
    }

    /// About how many bytes of memory the build and its image may take, excluding the bytes of the debug file: at least
    /// 32 MB. Units that wait for each other go to a temporary file, for example if an order file mixes their
    /// functions. If something else needs more, the build fails with [`Error::TooLarge`]. The index does not depend on
    /// this limit, and whether the build fails does not depend on the number of threads.
    ///
    /// [`Companions::max_memory`](crate::Companions::max_memory) limits the sections that are decompressed before.
    #[must_use]
    pub fn max_memory(self, bytes: usize) -> Self {
        Self { max_memory: bytes, ..self }
    }

    /// How many seconds the build may take, with the loading of the image. A build that takes longer fails with
    /// [`Error::TooSlow`]. `None` is no limit.
    ///
    /// [`Companions::max_seconds`](crate::Companions::max_seconds) limits the loading itself.
    #[must_use]
    pub fn max_seconds(self, seconds: Option<u64>) -> Self {
        Self { max_seconds: seconds, ..self }
    }

    /// Ends with [`Error::Stopped`] once the flag is set. The default is no flag.
    #[must_use]
    pub fn stop(self, stop: StopFlag) -> Self {
        Self { stop, ..self }
    }

    /// When the build has to be done, from now on.
    pub(crate) fn deadline(&self) -> Deadline {
        Deadline::after(self.max_seconds).stopped_by(self.stop)
    }

    /// Calls `progress` after each unit, with the number of bytes of debug information that are done, and their total.
    #[must_use]
    pub fn progress(self, progress: &'p (dyn Fn(u64, u64) + Sync)) -> Self {
        Self { progress, ..self }
    }

    /// Adds to the index the readable form of each name, as `demangle` returns it, for readers without a demangler. The
    /// default is `None`: lookups return mangled names only. The index has no readable form of a name that `demangle`
    /// returns unchanged, or that it turns into more than 64 KiB.
    ///
    /// `demangle` is called on several threads, once for each distinct name.
    #[must_use]
    pub fn readable_names(self, demangle: Option<Demangle>) -> Self {
        Self { readable_names: demangle, ..self }
    }

    /// Whether the index has unwind rows; see [`symdex::Index::unwind_row`]. They come from `.eh_frame`,
    /// `.debug_frame`, `.ARM.exidx` and Apple's compact unwind information. A dSYM has none of these but its binary
    /// beside it has: see [`debug_files::find_image`](crate::debug_files::find_image). The default is `false`.
    #[must_use]
    pub fn unwind_rows(self, unwind_rows: bool) -> Self {
        Self { unwind_rows, ..self }
    }

    /// Whether an image that has code and no function gets an empty index. The default is `false`: the build fails with
    /// [`Error::NothingFound`]. An image without code always gets one.
    #[must_use]
    pub fn allow_empty(self, allow_empty: bool) -> Self {
        Self { allow_empty, ..self }
    }

    /// What the index of an image with debug information states of its input, if its debug file is to carry it: see
    /// [`carrier_digest`]. The default is `None`.
    ///
    /// [`carrier_digest`]: crate::carrier_digest
    #[must_use]
    pub fn input_digest(self, input_digest: Option<[u8; 16]>) -> Self {
        Self { input_digest, ..self }
    }

    /// Builds the index of `image` in memory.
    ///
    /// # Errors
    ///
    /// As [`Self::build_into`].
    pub fn build(&self, image: &Image<'_>) -> Result<Built, Error> {
        self.build_into(image, Vec::new())
    }

    /// Builds an index with the [unwind rows](Self::unwind_rows) of `image`, and without functions, in memory. No debug
    /// information is read, so this takes a small part of the time of a build.
    ///
    /// # Errors
    ///
    /// As [`Self::build_into`].
    pub fn build_unwind_rows(&self, image: &Image<'_>) -> Result<Vec<u8>, Error> {
        build_unwind_rows(image, self)
    }

    /// Builds the index of `image` and writes it to `out`.
    ///
    /// The build uses the threads of the current rayon pool. The index does not depend on their number. Until the
    /// index is written, its chunks are in memory or, beyond a few megabytes, in a temporary file.
    ///
    /// # Errors
    ///
    /// [`Error::Index`] if the index is too large for the format or `out` cannot be written, [`Error::Io`] if a
    /// temporary file cannot be written, [`Error::TooSlow`] after [`Self::max_seconds`], [`Error::TooLarge`] beyond
    /// [`Self::max_memory`], and [`Error::TooLittleMemory`] if that is too low. A unit or a function that
    /// cannot be read is not an error: it is omitted and counted in the index's metadata. [`Error::NothingFound`] and
    /// [`Error::NothingIndexed`] if the index would be empty.
    pub fn build_into<W: Write + Send>(&self, image: &Image<'_>, mut out: W) -> Result<Built<W>, Error> {
        let (report, warnings) = build_image(image, self, &mut out)?;
        Ok(Built { bytes: out, warnings, report })
    }
}

impl Default for BuildOptions<'_> {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for BuildOptions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BuildOptions")
            .field("max_memory", &self.max_memory)
            .field("max_seconds", &self.max_seconds)
            .finish_non_exhaustive()
    }
}

/// An index and the report of its build.
#[non_exhaustive]
#[derive(Clone, Debug)]
pub struct Built<B = Vec<u8>> {
    /// The bytes of the index file, or the writer that they were written to.
    pub bytes: B,
    /// Oddities of the debug file that change no answer. The index's metadata states what answers lack.
    pub warnings: Vec<String>,
    /// What was omitted, and how much code has answers.
    pub report: BuildReport,
}

/// Builds the index of `image` in memory, with the default [`BuildOptions`].
///
/// ```
/// # use std::path::Path;
/// use symdex::{ImageOffset, Index, LinePolicy, Scratch};
/// use symdex_build::{Companions, Image, build, slices};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let path = "../../testdata/dsyms/inline-dwarf4.dSYM/Contents/Resources/DWARF/inline-dwarf4";
/// # let path = &Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
/// let bytes = symdex::map_file(path)?;
/// let companions = Companions::default();
/// let image = Image::load(&slices(&bytes)?[0], path, &companions)?;
/// let index = Index::open(build(&image)?.bytes)?;
///
/// let mut scratch = Scratch::default();
/// let frames = index.lookup(ImageOffset(0x400), LinePolicy::Statement, &mut scratch)?.ok_or("nothing there")?;
/// assert_eq!(frames.iter().next().and_then(|frame| frame.name), Some(&b"row"[..]));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// As [`BuildOptions::build_into`].
pub fn build(image: &Image<'_>) -> Result<Built, Error> {
    BuildOptions::new().build(image)
}
