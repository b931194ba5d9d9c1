//! Indexes of symbol files.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

use symdex::{Arch, ImageId};
use symdex_build::{BuildOptions, BuildReport, Demangle, SymbolFile};
use symdex_store::IndexBuffer;

use crate::failure::Failure;
use crate::image::{BuiltBytes, BuiltIndex};
use crate::pipeline::Pipeline;

/// A symbol file, and what its user knows of its image.
#[derive(Clone, Copy, Debug)]
pub struct SymbolFileInput<'a> {
    /// Where it is from, for its name and for messages.
    pub path: &'a Path,
    /// The bytes of the file.
    pub bytes: &'a [u8],
    /// The id of the image, if it is not the one that the file states.
    pub id: Option<&'a ImageId>,
    /// The architecture, if it is not the one that the file states.
    pub arch: Option<&'a Arch>,
}

impl Pipeline {
    /// Builds the index of a symbol file of Breakpad or GSYM, in this process, with all of the memory.
    ///
    /// # Errors
    ///
    /// [`Failure`] if the file is not a symbol file, is damaged, states no id, or exceeds a limit.
    pub fn import(&self, input: &SymbolFileInput<'_>) -> Result<BuiltIndex, Failure> {
        let (path, begun) = (input.path, Instant::now());
        let failed = |error: &symdex_build::Error| Failure::debug_file(path, error);
        let mut file = SymbolFile::read(input.bytes).map_err(|error| failed(&error))?;
        if let Some(name) = path.file_name() {
            file = file.named(&name.to_string_lossy());
        }
        if let Some(id) = input.id {
            file = file.with_id(id.clone());
        }
        if let Some(arch) = input.arch {
            file = file.with_arch(arch.clone());
        }
        let options = self.options();
        let demangle = options.readable_names.then_some(symdex_demangle::demangle as Demangle);
        let build = BuildOptions::new().max_memory(options.max_memory).max_seconds(options.max_seconds);
        let build =
            build.readable_names(demangle).unwind_rows(options.unwind_rows).allow_empty(options.allow_empty);
        let built = self.pool().install(|| build.build_symbol_file_into(&file, IndexBuffer::new()));
        let built = built.map_err(|error| failed(&error))?;
        let index = built.bytes.into_bytes().map_err(|error| failed(&symdex::Error::from(error).into()))?;
        let BuildReport { has_dwarf, coverage, dropped, .. } = built.report;
        Ok(BuiltIndex {
            id: file.id().map(ImageId::to_string).unwrap_or_default(),
            file: path.into(),
            joined: Vec::new(),
            debug_size: input.bytes.len() as u64,
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
            bytes: BuiltBytes::Here(index),
        })
    }
}
