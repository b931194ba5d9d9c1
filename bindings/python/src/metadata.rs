//! What an index states about its image and its build.

use pyo3::prelude::*;
use symdex::Partial;

/// What an index states about its image and its build.
#[pyclass(frozen, get_all, module = "symdex")]
pub(crate) struct Metadata {
    /// The id of the image: its ``LC_UUID`` or build id in lower-case hexadecimal digits.
    id: String,
    /// The file name of the image.
    image_name: String,
    /// The architecture, such as ``"arm64"``.
    arch: String,
    /// The address in the debug file that image offsets count from.
    base: u64,
    /// The number of bytes from the base to the end of the code.
    image_size: u64,
    /// The executable sections, as half-open ranges of image offsets.
    executable: Vec<(u64, u64)>,
    /// The address of ``__TEXT_EXEC`` in the debug file of a kernel image.
    text_exec_base: Option<u64>,
    /// The position in the file, the address and the size of each executable segment of an ELF file. Empty if the
    /// index was built of a debug file without code; ``None`` if of no ELF file.
    segments: Option<Vec<[u64; 3]>>,
    /// The most that the index answers: ``"lines"``, ``"names"``, ``"bounds"`` (no names) or ``"nothing"``.
    grade: &'static str,
    /// The number of compile units. It is 0 if the index has names from a symbol table only.
    units: u64,
    /// The number of functions with debug information.
    functions: u64,
    /// The number of ranges with debug information.
    ranges: u64,
    /// The number of ranges of the symbol table.
    symbols: u64,
    /// The number of distinct names.
    names: u64,
    /// The number of distinct source files.
    files: u64,
    /// What could not be indexed: reasons, and how often each occurred. Empty for a whole index.
    partial: Vec<(String, u64)>,
    /// The version of symdex that built the index.
    builder: String,
}

impl From<&symdex::Metadata> for Metadata {
    fn from(metadata: &symdex::Metadata) -> Self {
        let symdex::Counts { units, functions, ranges, symbols, names, files, .. } = metadata.counts;
        let partial = |Partial { reason, count, .. }: &Partial| (reason.clone(), *count);
        Self {
            id: metadata.id.to_string(),
            image_name: metadata.image_name.clone(),
            arch: metadata.arch.name.clone(),
            base: metadata.base,
            image_size: metadata.image_size,
            executable: metadata.executable.clone(),
            text_exec_base: metadata.text_exec_base,
            segments: metadata.segments.clone(),
            grade: metadata.grade().name(),
            units,
            functions,
            ranges,
            symbols,
            names,
            files,
            partial: metadata.partial.iter().map(partial).collect(),
            builder: metadata.builder.clone(),
        }
    }
}

#[pymethods]
impl Metadata {
    fn __repr__(&self) -> String {
        let Self { id, image_name, arch, .. } = self;
        format!("<Metadata of {image_name} {arch} {id}>")
    }
}
