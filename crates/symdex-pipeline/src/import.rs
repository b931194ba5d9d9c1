//! Indexes of symbol files.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

use symdex::ImageId;
use symdex_build::symbol_file::SymbolFile;
use symdex_build::{BuildOptions, BuildReport, Demangle};
use symdex_store::IndexBuffer;

use crate::failure::Failure;
use crate::image::{BuiltBytes, BuiltIndex};
use crate::pipeline::Pipeline;

impl Pipeline {
    /// Builds the index of the symbol file at `path`, in this process, with all of the memory.
    ///
    /// # Errors
    ///
    /// [`Failure`] if the file states no id or exceeds a limit.
    pub fn import(&self, path: &Path, file: &SymbolFile<'_>) -> Result<BuiltIndex, Failure> {
        let begun = Instant::now();
        let failed = |error: &symdex_build::Error| Failure::debug_file(path, error);
        let options = self.options();
        let demangle = options.readable_names.then_some(symdex_demangle::demangle as Demangle);
        let build = BuildOptions::new().max_memory(options.max_memory).max_seconds(options.max_seconds);
        let build =
            build.readable_names(demangle).unwind_rows(options.unwind_rows).allow_empty(options.allow_empty);
        let built = self.pool().install(|| build.build_symbol_file_into(file, IndexBuffer::new()));
        let built = built.map_err(|error| failed(&error))?;
        let index = built.bytes.into_bytes().map_err(|error| failed(&symdex::Error::from(error).into()))?;
        let BuildReport { has_dwarf, coverage, dropped, .. } = built.report;
        Ok(BuiltIndex {
            id: file.id().map(ImageId::to_string).unwrap_or_default(),
            file: path.into(),
            joined: Vec::new(),
            debug_size: file.size(),
            index_size: index.len() as u64,
            warnings: built.warnings,
            has_dwarf,
            failed_units: 0,
            dropped: dropped
                .into_iter()
                .map(|(reason, count)| (reason.to_owned(), count))
                .collect::<BTreeMap<_, _>>(),
            hidden_names: 0,
            coverage,
            verified: None,
            time: begun.elapsed(),
            is_input: false,
            bytes: BuiltBytes::Here(index),
        })
    }
}
