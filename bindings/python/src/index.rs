//! An open index, and lookups in it.

use std::cell::Cell;
use std::path::PathBuf;

use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};
use symdex::{FrameAddress, Frames, ImageOffset, LinePolicy, Scratch};
use symdex_store::{IndexAccess, IndexBytes, OpenImage, StoredImage};

use crate::arguments::{Offsets, line_policy};
use crate::columns::{AnswerColumns, Columns};
use crate::errors::{UnsupportedError, missing, of_index, of_index_file, of_store};
use crate::frame::Frame;
use crate::metadata::Metadata;

thread_local! {
    /// The working memory of this thread's lookups. It is empty while a lookup has it: making Python objects can run
    /// other Python code, which can look up, too.
    static SCRATCH: Cell<Option<Box<Scratch>>> = const { Cell::new(None) };
}

/// How many offsets are looked up between two checks for signals.
const AT_ONCE: usize = 1 << 16;

/// How many answers become Python objects between two checks for signals. Other threads run then, too.
const CONVERTED_AT_ONCE: usize = 1 << 12;

/// Calls `work` with the working memory of this thread.
fn with_scratch<T>(work: impl FnOnce(&mut Scratch) -> T) -> T {
    let mut scratch = SCRATCH.take().unwrap_or_default();
    let result = work(&mut scratch);
    SCRATCH.set(Some(scratch));
    result
}

/// The symbol index of one image: maps addresses to functions, files and lines.
///
/// Open one with :meth:`open`, :meth:`from_bytes` or :meth:`Store.find`. Any number of threads may use an index. Each
/// thread that looks up addresses keeps up to 16 MiB of answers for all indexes.
///
/// Addresses are given as *image offsets*: bytes from the start of the image. :meth:`image_offset` makes one of an
/// address in a crashed process.
///
/// >>> index = Index.open("testdata/golden/v1/inline-dwarf4-1.symdex")
/// >>> for frame in index.lookup(0x3cf):
/// ...     print(frame.function, frame.line)
/// cell 9
/// row 16
/// mip 6
/// pyramid 11
#[pyclass(frozen, module = "symdex")]
pub(crate) struct Index(OpenImage);

impl Index {
    pub(crate) fn opened(bytes: IndexBytes) -> PyResult<Self> {
        let index = symdex::Index::open(bytes).map_err(of_index)?;
        Ok(Self(OpenImage::alone(index, "an index in memory")))
    }

    pub(crate) fn stored(image: OpenImage) -> Self {
        Self(image)
    }

    /// The whole index.
    ///
    /// # Errors
    ///
    /// `UnsupportedError` if the store keeps the index in parts.
    pub(crate) fn whole(&self) -> PyResult<&symdex::Index<IndexBytes>> {
        match self.0.image() {
            StoredImage::Index(index) => Ok(index),
            StoredImage::Values(_) => Err(UnsupportedError::new_err(format!(
                "{}: the store keeps this index in parts; this needs the whole index",
                self.0.location()
            ))),
        }
    }

    fn stated(&self) -> &symdex::Metadata {
        self.0.metadata()
    }

    /// Calls `each` with the position of each offset and its frames.
    ///
    /// # Errors
    ///
    /// The first error of `each`, or the exception for a part of the index that cannot be read.
    fn each(
        &self,
        offsets: &[ImageOffset],
        policy: LinePolicy,
        mut each: impl FnMut(usize, Option<Frames<'_>>) -> PyResult<()>,
    ) -> PyResult<()> {
        let mut result = Ok(());
        let mut add = |place, found: PyResult<Option<Frames<'_>>>| {
            if result.is_ok() {
                result = found.and_then(|frames| each(place, frames));
            }
        };
        let at_once = match self.0.image() {
            StoredImage::Index(_) => AT_ONCE,
            // The store is asked once.
            StoredImage::Values(_) => offsets.len().max(1),
        };
        with_scratch(|scratch| {
            offsets.chunks(at_once).enumerate().try_for_each(|(turn, offsets)| {
                Python::attach(|py| py.check_signals())?;
                ask(&self.0, |image| {
                    image.lookup_many(offsets, policy, scratch, |place, found| {
                        add(turn * at_once + place, found.map_err(of_store));
                    })
                })
            })
        })?;
        result
    }
}

/// Calls `ask` with the image as the store has it now.
fn ask<T>(image: &OpenImage, ask: impl FnMut(&OpenImage) -> Result<T, symdex_store::Error>) -> PyResult<T> {
    let gone = || missing(format!("{}: the index was removed from the store", image.location()));
    image.ask(ask).map_err(of_store)?.ok_or_else(gone)
}

fn frames(found: Option<Frames<'_>>) -> Vec<Frame> {
    found.iter().flat_map(Frames::iter).map(Frame::from).collect()
}

#[pymethods]
impl Index {
    /// Opens the index file at ``path``.
    ///
    /// By default, a file that only this user can change is mapped into memory, and other files are read: whoever
    /// truncates a mapped file ends this process. ``map`` chooses one of the two.
    ///
    /// Raises UnsupportedError if the file is no index or of a newer format, DamagedError if it is damaged, and
    /// MissingError if it does not exist.
    #[staticmethod]
    #[pyo3(signature = (path, *, map=None))]
    fn open(py: Python<'_>, path: PathBuf, map: Option<bool>) -> PyResult<Self> {
        let access = match map {
            None => IndexAccess::Auto,
            Some(true) => IndexAccess::Map,
            Some(false) => IndexAccess::Read,
        };
        let index = py.detach(|| access.open(&path));
        let index = index.map_err(|error| of_index_file(&path, error))?;
        Ok(Self(OpenImage::alone(index, path.display().to_string())))
    }

    /// Opens the index in ``data``, which is copied.
    ///
    /// Raises DamagedError or UnsupportedError, as :meth:`open`.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, data: PyBuffer<u8>) -> PyResult<Self> {
        Self::opened(data.to_vec(py)?.into())
    }

    /// The id of the image: its ``LC_UUID`` or build id in lower-case hexadecimal digits.
    #[getter]
    fn id(&self) -> String {
        self.stated().id.to_string()
    }

    /// The file name of the image.
    #[getter]
    fn image_name(&self) -> &str {
        &self.stated().image_name
    }

    /// The architecture, such as ``"arm64"``.
    #[getter]
    fn arch(&self) -> &str {
        &self.stated().arch.name
    }

    /// What the index states about its image and its build.
    #[getter]
    fn metadata(&self) -> Metadata {
        self.stated().into()
    }

    /// Returns the image offset of an address in a process, or ``None`` if the address is below ``load_address``.
    ///
    /// ``load_address`` is where the image was loaded. ``return_address`` tells whether the address is one to return
    /// to, as in all frames of a stack but the first: it is then looked up in the call instruction before it.
    #[pyo3(signature = (address, load_address, *, return_address))]
    fn image_offset(&self, address: u64, load_address: u64, return_address: bool) -> Option<u64> {
        let kind = if return_address { FrameAddress::ReturnAddress } else { FrameAddress::ProgramCounter };
        let address = kind(address);
        address.image_offset(load_address, &self.stated().arch).map(|offset| offset.0)
    }

    /// Returns the frames at an image offset, the innermost inlined function first. A gap, where the image has no
    /// known code, has no frames.
    ///
    /// ``lines`` says what code with line 0 gets: ``"statement"`` the line of the last statement before it in the same
    /// inlined call, ``"exact"`` its own, as atos and llvm-symbolizer print it.
    ///
    /// Raises DamagedError if a part of the index that the lookup reads is damaged.
    #[pyo3(signature = (offset, *, lines="statement"))]
    fn lookup(&self, py: Python<'_>, offset: u64, lines: &str) -> PyResult<Vec<Frame>> {
        let (offset, policy) = (ImageOffset(offset), line_policy(lines)?);
        let find = || {
            with_scratch(|scratch| ask(&self.0, |image| image.lookup(offset, policy, scratch).map(frames)))
        };
        match self.0.image() {
            StoredImage::Index(_) => find(),
            // The store may have to fetch what the lookup needs.
            StoredImage::Values(_) => py.detach(find),
        }
    }

    /// Returns the frames at each of many image offsets, in the order of the offsets: a list of lists.
    ///
    /// ``offsets`` is an iterable of integers, or a NumPy array of 64-bit integers, which is faster. They may be in
    /// any order and repeat. ``lines`` is as in :meth:`lookup`. An image in a store is asked once for all offsets.
    ///
    /// Raises DamagedError if a part of the index that one of the lookups reads is damaged.
    #[pyo3(signature = (offsets, *, lines="statement"))]
    fn lookup_many<'py>(
        &self,
        py: Python<'py>,
        offsets: Offsets,
        lines: &str,
    ) -> PyResult<Bound<'py, PyList>> {
        let (Offsets(offsets), policy) = (offsets, line_policy(lines)?);
        let answers = py.detach(|| {
            let mut answers: Vec<Vec<Frame>> = offsets.iter().map(|_| Vec::new()).collect();
            self.each(&offsets, policy, |place, found| {
                answers[place] = frames(found);
                Ok(())
            })?;
            PyResult::Ok(answers)
        })?;
        let list = PyList::empty(py);
        for (number, frames) in answers.into_iter().enumerate() {
            if number % CONVERTED_AT_ONCE == 0 {
                py.check_signals()?;
                py.detach(|| ());
            }
            list.append(frames)?;
        }
        Ok(list)
    }

    /// As :meth:`lookup_many`, but returns columns with numbers and distinct strings: less memory for many offsets,
    /// and fast with NumPy.
    #[pyo3(signature = (offsets, *, lines="statement"))]
    fn lookup_columns(&self, py: Python<'_>, offsets: Offsets, lines: &str) -> PyResult<Columns> {
        let (Offsets(offsets), policy) = (offsets, line_policy(lines)?);
        let answers = py.detach(|| {
            let mut answers = AnswerColumns::new(offsets.len());
            self.each(&offsets, policy, |place, found| answers.add(place, found))?;
            PyResult::Ok(answers)
        })?;
        answers.columns(py)
    }

    /// Returns the mangled names that the symbol table has for the function that starts at the image offset
    /// ``start``, a :attr:`Frame.function_start`. A linker that folds identical functions leaves many names for one
    /// function.
    fn function_names(&self, py: Python<'_>, start: u64) -> PyResult<Vec<String>> {
        let start = ImageOffset(start);
        let lossy = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
        py.detach(|| {
            let names = with_scratch(|scratch| ask(&self.0, |image| image.function_names(start, scratch)))?;
            Ok(names.iter().map(|name| lossy(name)).collect())
        })
    }

    /// Reads the whole index and checks it.
    ///
    /// Raises DamagedError if any part of it is damaged. Lookups check what they read, so that this is not needed
    /// before them.
    fn verify(&self, py: Python<'_>) -> PyResult<()> {
        let index = self.whole()?;
        py.detach(|| index.verify()).map(drop).map_err(of_index)
    }

    /// Returns the bytes of the index file.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, self.whole()?.as_bytes()))
    }

    fn __repr__(&self) -> String {
        let symdex::Metadata { id, image_name, arch, .. } = self.stated();
        format!("<Index of {image_name} {} {id}>", arch.name)
    }
}
