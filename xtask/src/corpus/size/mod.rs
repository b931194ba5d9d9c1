//! `cargo xtask corpus size`: makes a dSYM of any size from copies of a real one.
//!
//! Each copy has its own addresses after those of the copy before, and its own names. Abbreviations are shared, as
//! `dsymutil` shares them between units. So are the locations of variables, which no lookup reads: they are those of
//! the original. Accelerator tables are omitted.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use object::pod::bytes_of;
use object::{LittleEndian as LE, U32, U64};
use walkdir::WalkDir;

use self::layout::FileLayout;
use self::original::{Original, Section};
use self::shift::Shift;

mod entries;
mod layout;
mod lines;
mod original;
mod rename;
mod shift;
mod tables;
#[cfg(test)]
mod tests;

/// A number of bytes, and the word that it was parsed from.
pub(crate) struct Size {
    pub(crate) word: String,
    bytes: u64,
}

impl Size {
    /// Parses a number of bytes, or of kB, MB or GB.
    pub(crate) fn parse(word: &str) -> Option<Self> {
        let (number, unit) = word.split_at(word.find(|c: char| !c.is_ascii_digit()).unwrap_or(word.len()));
        let unit = match unit {
            "" => 1,
            "kB" => 1_000,
            "MB" => 1_000_000,
            "GB" => 1_000_000_000,
            _ => return None,
        };
        let bytes = number.parse::<u64>().ok()?.checked_mul(unit)?;
        Some(Self { word: word.to_owned(), bytes })
    }
}

/// Makes a dSYM from copies of `from`, a dSYM or its debug file. Its size is as near to `size` as whole copies allow.
/// Returns a description of the result.
///
/// # Errors
/// The dSYM cannot be copied, or not so often, or the folder cannot be written.
pub(super) fn make(size: &Size, from: &Path, folder: &Path) -> Result<String> {
    let file = debug_file(from)?;
    let bytes = std::fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?;
    let original = Original::parse(&bytes).with_context(|| file.display().to_string())?;
    let copies = original.copies_for(size.bytes)?;
    let name = file.file_name().context("a debug file without a name")?.to_string_lossy();
    let dwarf = folder.join(format!("{name}.dSYM/Contents/Resources/DWARF"));
    std::fs::create_dir_all(&dwarf)?;
    let made = dwarf.join(&*name);
    let mut out = BufWriter::new(File::create(&made)?);
    write(&original, copies, &mut out)?;
    out.flush()?;
    Ok(format!("{copies} copies, {} bytes: {}\n", made.metadata()?.len(), made.display()))
}

/// The debug file of a dSYM, or `from` itself if it is a file.
fn debug_file(from: &Path) -> Result<PathBuf> {
    let files = WalkDir::new(from).sort_by_file_name().into_iter().filter_map(Result::ok);
    let is_debug_file =
        |path: &PathBuf| path == from || path.parent().is_some_and(|p| p.ends_with("Resources/DWARF"));
    let mut files = files.filter(|entry| entry.file_type().is_file()).map(walkdir::DirEntry::into_path);
    files.find(is_debug_file).with_context(|| format!("{} has no debug file", from.display()))
}

/// Writes a file with `copies` copies. It copies one section at a time to limit memory.
fn write(original: &Original<'_>, copies: u32, out: &mut impl Write) -> Result<()> {
    let layout = FileLayout::new(original, copies)?;
    let shifts = || (0..copies).map(|copy| Shift { copy, original, spans: &layout.spans });
    out.write_all(&layout.head)?;
    for shift in shifts() {
        write_symbols(&shift, out)?;
    }
    for copy in 0..copies {
        out.write_all(&renamed(original.symbol_names, copy))?;
    }
    std::io::copy(&mut std::io::Read::take(std::io::repeat(0), layout.gap), out)?;
    for (section, bytes) in original.sections() {
        for shift in shifts().take(section.times(copies) as usize) {
            let copy = copied(section, &shift).with_context(|| format!("{section:?} cannot be copied"))?;
            ensure!(copy.len() == bytes.len(), "{section:?} changed its size");
            out.write_all(&copy)?;
        }
    }
    Ok(())
}

fn copied(section: Section, shift: &Shift<'_>) -> Result<Vec<u8>> {
    match section {
        Section::Lines => lines::copy(shift),
        Section::Aranges => tables::copy_aranges(shift),
        Section::Ranges => tables::copy_ranges(shift),
        Section::Info => entries::copy(shift),
        Section::Abbreviations | Section::Locations => Ok(shift.original.bytes(section).to_vec()),
        Section::Strings => Ok(renamed(shift.original.bytes(section), shift.copy)),
    }
}

fn renamed(strings: &[u8], copy: u32) -> Vec<u8> {
    let mut strings = strings.to_vec();
    rename::rename_all(&mut strings, copy);
    strings
}

fn write_symbols(shift: &Shift<'_>, out: &mut impl Write) -> Result<()> {
    let names = shift.original.symbol_names.len() as u64 * u64::from(shift.copy);
    for symbol in &shift.original.symbols {
        let span = usize::from(symbol.n_sect).checked_sub(1).and_then(|number| shift.spans.get(number));
        let span = span.context("a symbol in no section")?;
        let mut symbol = *symbol;
        let name = u64::from(symbol.n_strx.get(LE)) + names;
        symbol.n_strx = U32::new(LE, u32::try_from(name)?);
        symbol.n_value = U64::new(LE, span.address(symbol.n_value.get(LE), shift.copy));
        out.write_all(bytes_of(&symbol))?;
    }
    Ok(())
}
