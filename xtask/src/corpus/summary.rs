//! The figures of a part of the corpus: files, bytes, symbols.

use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::Result;
use object::read::macho::{FatArch, MachOFatFile32, MachOFatFile64};
use object::{FileKind, Object, ObjectSymbol};
use walkdir::WalkDir;

/// The figures of the ELF and Mach-O files in a folder.
#[derive(Default)]
pub(crate) struct Summary {
    files: usize,
    bytes: u64,
    with_dwarf: usize,
    /// Files with local symbols, which means that they are not stripped.
    unstripped: usize,
    /// The largest number of defined symbols in one slice, and its file.
    largest: (usize, PathBuf),
}

impl Summary {
    /// Reads every file in `folder`, and follows links.
    ///
    /// # Errors
    /// A file cannot be read.
    pub(crate) fn of(folder: &Path) -> Result<Self> {
        let mut summary = Self::default();
        for entry in WalkDir::new(folder).follow_links(true).sort_by_file_name() {
            let entry = entry?;
            if entry.file_type().is_file() {
                let bytes = std::fs::read(entry.path())?;
                summary.add(entry.path().strip_prefix(folder)?, &bytes);
            }
        }
        Ok(summary)
    }

    fn add(&mut self, path: &Path, bytes: &[u8]) {
        let slices = slices(bytes);
        if slices.is_empty() {
            return;
        }
        self.files += 1;
        self.bytes += bytes.len() as u64;
        let is_local = |symbol: object::Symbol<'_, '_>| symbol.is_definition() && symbol.is_local();
        self.unstripped += usize::from(slices.iter().any(|slice| slice.symbols().any(is_local)));
        self.with_dwarf += usize::from(slices.iter().any(|s| s.section_by_name(".debug_info").is_some()));
        let defined = |slice: &object::File<'_>| slice.symbols().filter(ObjectSymbol::is_definition).count();
        let most = slices.iter().map(defined).max().unwrap_or_default();
        if most > self.largest.0 {
            self.largest = (most, path.to_owned());
        }
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (most, path) = &self.largest;
        let megabytes = self.bytes.div_ceil(1_000_000);
        writeln!(f, "{} files, {megabytes} MB", self.files)?;
        writeln!(f, "{} with DWARF, {} with local symbols", self.with_dwarf, self.unstripped)?;
        writeln!(f, "most symbols: {most} in {}", path.display())
    }
}

/// The readable slices of an ELF or Mach-O file. Empty for any other file.
fn slices(bytes: &[u8]) -> Vec<object::File<'_>> {
    let parts: Vec<&[u8]> = match FileKind::parse(bytes) {
        Ok(FileKind::MachOFat32) => MachOFatFile32::parse(bytes).map(|fat| of_fat(fat.arches(), bytes)),
        Ok(FileKind::MachOFat64) => MachOFatFile64::parse(bytes).map(|fat| of_fat(fat.arches(), bytes)),
        _ => Ok(vec![bytes]),
    }
    .unwrap_or_default();
    parts.into_iter().filter_map(|part| object::File::parse(part).ok()).collect()
}

fn of_fat<'data>(arches: &[impl FatArch], bytes: &'data [u8]) -> Vec<&'data [u8]> {
    arches.iter().filter_map(|arch| arch.data(bytes).ok()).collect()
}
