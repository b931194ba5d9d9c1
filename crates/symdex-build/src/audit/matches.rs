//! Whether frames are those of a place, apart from how a peer writes them, names them, and finds their lines.

use std::borrow::Cow;

use super::classes::Class;
use super::expected::{Frame, Place, Scratch};
use super::explain::{is_in_backward_sequence, sequence_hides};
use super::facts::{Facts, Unit};
use super::names;
use super::peers::Peer;
use super::symbols;

/// Whether `theirs` is what `peer` makes of `place`; the classes that this takes are added.
pub(super) fn frames_match(
    facts: &Facts<'_, '_>,
    peer: Peer,
    offset: u64,
    place: &Place,
    theirs: &[Frame<'_>],
    classes: &mut Vec<Class>,
    scratch: &mut Scratch,
) -> bool {
    let ours = match peer {
        Peer::Addr2line => facts.frames(place, offset),
        Peer::LlvmSymbolizer => facts.answer_for(peer, place, offset),
    };
    if ours.len() != theirs.len() {
        return false;
    }
    let structural = !classes.is_empty();
    if !structural
        && peer == Peer::Addr2line
        && place.function.is_none()
        && facts.symbol(offset).is_some_and(|symbol| symbol.name.is_some())
    {
        classes.push(Class::LineWithoutFunction);
    }
    let dies = |depth: usize| {
        let function = place.function?;
        let unit = &facts.units[function.unit as usize];
        let inlined = place.inlined.iter().rev().nth(depth);
        Some(inlined.map_or(facts.function(function).die, |inlined| unit.dies.inlined[*inlined as usize].die))
    };
    let outermost = ours.len() - 1;
    let function_start = facts.expected(place, offset).and_then(|expected| expected.function_start);
    ours.iter().zip(theirs).enumerate().all(|(depth, (ours, theirs))| {
        let symbol = match peer == Peer::LlvmSymbolizer && depth == outermost {
            true => symbol_of(facts, offset, theirs),
            false => None,
        };
        if let Some(symbol) = symbol
            && ours.name != theirs.name
        {
            let is_start = function_start.is_some_and(|start| facts.image.info.base + start == symbol.svma);
            classes.push(if is_start { Class::SymbolAlias } else { Class::SymbolElsewhere });
        }
        let is_cut_short =
            || peer == Peer::LlvmSymbolizer && symbol_is_cut_short(facts, offset, place, theirs);
        let misses = || peer == Peer::LlvmSymbolizer && misses_symbol(facts, offset, dies(depth), theirs);
        if symbol.is_none() && ours.name != theirs.name && is_cut_short() {
            classes.push(Class::SymbolCutShort);
        } else if symbol.is_none() && ours.name != theirs.name && misses() {
            classes.push(Class::SymbolMissed);
        } else if symbol.is_none()
            && ours.name != theirs.name
            && lacks_supplementary(facts, peer, dies(depth), theirs)
        {
            classes.push(Class::SupplementaryFile);
        } else if symbol.is_none() && !name_matches(facts, dies(depth), ours, theirs, classes) {
            return false;
        }
        let theirs = match symbol.and_then(|symbol| symbol.file).map(Cow::Borrowed) {
            file @ Some(_) if ours.file.is_none() && theirs.file == file => {
                classes.push(Class::SymbolFile);
                &Frame { file: None, ..theirs.clone() }
            }
            _ => theirs,
        };
        line_matches(peer, ours, theirs, classes)
            || folder_is_supplementary(facts, peer, place, ours, theirs, classes)
            || depth == 0 && other_row_matches(facts, peer, offset, place, theirs, classes, scratch)
    })
}

/// The symbol that llvm-symbolizer finds for `offset`, if the frame has its name.
fn symbol_of<'f, 'd>(
    facts: &'f Facts<'_, 'd>,
    offset: u64,
    theirs: &Frame<'_>,
) -> Option<&'f symbols::Symbol<'d>> {
    let mut symbols = symbols::symbols_at(&facts.llvm_symbols, facts.image.info.base + offset);
    symbols.find(|symbol| theirs.name.as_deref() == Some(symbol.name))
}

/// Whether a frame lacks the name that the symbol table alone gives it, because llvm-symbolizer ends the symbol too early.
fn symbol_is_cut_short(facts: &Facts<'_, '_>, offset: u64, place: &Place, theirs: &Frame<'_>) -> bool {
    let base = facts.image.info.base;
    place.function.is_none()
        && theirs.name.is_none()
        && facts.symbol(offset).is_some_and(|symbol| {
            symbols::is_cut_short(&facts.llvm_symbols, base + symbol.start, base + offset)
        })
}

/// Whether the symbol table of ELF alone names the function at `offset`, and llvm-symbolizer finds nothing: the last symbol up to
/// there ends before it.
fn misses_symbol(facts: &Facts<'_, '_>, offset: u64, die: Option<usize>, theirs: &Frame<'_>) -> bool {
    let at = facts.image.info.base + offset;
    let is_elf = facts.image.files.first().is_some_and(|file| file.starts_with(b"\x7fELF"));
    is_elf
        && theirs.name.is_none()
        && die.is_none()
        && symbols::symbols_at(&facts.llvm_symbols, at).next().is_none()
}

/// Whether a frame has no name because every one along the DIE's chain of origins is in the supplementary file, or another string
/// because llvm-symbolizer reads it out of the image's own.
fn lacks_supplementary(facts: &Facts<'_, '_>, peer: Peer, die: Option<usize>, theirs: &Frame<'_>) -> bool {
    let Some(die) = die.filter(|_| peer == Peer::LlvmSymbolizer) else { return false };
    let theirs = theirs.name.as_deref();
    let mut named = names::chain(facts, die).filter(|link| link.linkage.is_some() || link.name.is_some());
    named.all(|link| link.is_supplementary && (theirs.is_none() || link.misread == theirs))
}

fn name_matches(
    facts: &Facts<'_, '_>,
    die: Option<usize>,
    ours: &Frame<'_>,
    theirs: &Frame<'_>,
    classes: &mut Vec<Class>,
) -> bool {
    let (ours, theirs) = (ours.name.as_deref(), theirs.name.as_deref().filter(|name| !name.is_empty()));
    let (Some(ours), Some(die)) = (ours, die) else { return ours == theirs };
    if theirs == Some(ours) {
        return true;
    }
    if theirs.and_then(|theirs| theirs.strip_prefix(b"_")) == Some(ours) {
        classes.push(Class::Underscore);
        return true;
    }
    let links: Vec<names::Link<'_>> = names::chain(facts, die).collect();
    let plain_names = || links.iter().filter_map(|link| link.name);
    let is_plain = match theirs {
        Some(theirs) => plain_names().any(|name| name == theirs),
        None => plain_names().next().is_none(),
    };
    if !is_plain {
        return false;
    }
    classes.push(if links.iter().any(|link| link.linkage == Some(ours)) {
        Class::LinkageNameBehindName
    } else if links.iter().any(|link| link.scope.is_some()) && ours.ends_with(theirs.unwrap_or_default()) {
        Class::QualifiedName
    } else {
        Class::SymbolName
    });
    true
}

/// Whether file and line are the same, apart from how `peer` writes them.
fn line_matches(peer: Peer, ours: &Frame<'_>, theirs: &Frame<'_>, classes: &mut Vec<Class>) -> bool {
    let line = match (ours.line, theirs.line) {
        (ours, theirs) if ours == theirs => None,
        (Some(0), None) if peer == Peer::Addr2line => Some(Class::LineZero),
        (None, Some(0)) if peer == Peer::LlvmSymbolizer => Some(Class::LineZero),
        _ => return false,
    };
    let file = match (ours.file.as_deref(), theirs.file.as_deref()) {
        (ours, theirs) if ours == theirs => None,
        (Some(b"<compiler-generated>"), Some(theirs)) if theirs.ends_with(b"/<compiler-generated>") => {
            Some(Class::CompilerGenerated)
        }
        (Some(ours), Some(theirs)) if String::from_utf8_lossy(ours).as_bytes() == theirs => {
            Some(Class::NotUtf8)
        }
        _ => return false,
    };
    classes.extend(line.into_iter().chain(file));
    true
}

/// Whether the file is without the unit's folder because that is in the supplementary file.
fn folder_is_supplementary(
    facts: &Facts<'_, '_>,
    peer: Peer,
    place: &Place,
    ours: &Frame<'_>,
    theirs: &Frame<'_>,
    classes: &mut Vec<Class>,
) -> bool {
    let unit = place.unit().map(|unit| &facts.units[unit as usize]);
    let Some(unit) = unit.filter(|unit| unit.dies.folder_is_supplementary) else { return false };
    let folder = unit.unit.comp_dir.map(|folder| facts.image.resolve(folder.slice()));
    let rest = ours.file.as_deref().zip(folder).and_then(|(file, folder)| file.strip_prefix(folder));
    let is_it = peer == Peer::LlvmSymbolizer
        && rest
            .and_then(|rest| rest.strip_prefix(b"/"))
            .is_some_and(|rest| theirs.file.as_deref() == Some(rest))
        && ours.line == theirs.line;
    classes.extend(is_it.then_some(Class::SupplementaryFile));
    is_it
}

/// Whether the line program lists the file of row `row`: number 0 is the unit's own file up to DWARF 4, and not listed.
fn is_listed(unit: &Unit<'_>, row: usize) -> bool {
    let file = u64::from(unit.lines.rows[row].file);
    let version = unit.unit.line_program.as_ref().map_or(0, |program| program.header().version());
    (version >= 5 || file != 0) && unit.lines.file(file).is_some()
}

/// Whether `theirs` is the line of some row of a sequence that goes backwards or, within one, nothing.
fn is_of_backward_sequence(unit: &Unit<'_>, offset: u64, theirs: &Frame<'_>) -> bool {
    let lines = &unit.lines;
    let has_line = |sequence: &u32| {
        lines.rows[lines.sequences[*sequence as usize].clone()]
            .iter()
            .any(|row| theirs.line == Some(row.line))
    };
    match theirs.line {
        Some(_) => lines.backward.iter().any(has_line),
        None => is_in_backward_sequence(unit, offset),
    }
}

/// Whether the innermost line is that of a row that addr2line takes instead of the one that counts.
fn other_row_matches(
    facts: &Facts<'_, '_>,
    peer: Peer,
    offset: u64,
    place: &Place,
    theirs: &Frame<'_>,
    classes: &mut Vec<Class>,
    scratch: &mut Scratch,
) -> bool {
    let Some(number) = place.unit() else { return false };
    let unit = &facts.units[number as usize];
    if is_of_backward_sequence(unit, offset, theirs) {
        classes.push(Class::BackwardRows);
        return true;
    }
    let Some((_, row)) = place.row else { return false };
    let has_none = (&theirs.file, theirs.line) == (&None, None);
    if has_none && peer == Peer::LlvmSymbolizer && !is_listed(unit, row) {
        classes.push(Class::NoFile);
        return true;
    }
    if has_none && sequence_hides(unit, offset, scratch) {
        classes.push(Class::OverlappingSequences);
        return true;
    }
    unit.lines.by_address.covering(offset, &mut scratch.covering);
    for sequence in &scratch.covering {
        // The peers keep the last of the rows at one address.
        let Some(last) = unit.lines.rows_at(sequence.item, offset).next_back() else { continue };
        let other = Place { row: Some((number, last)), ..Place::default() };
        let before = classes.len();
        if facts.frames(&other, offset).iter().all(|other| line_matches(peer, other, theirs, classes)) {
            let same_address = unit.lines.rows[last].address == unit.lines.rows[row].address;
            classes.push(match same_address && sequence.item == scratch.covering[0].item {
                true => Class::RowsAtOneAddress,
                false => Class::OverlappingSequences,
            });
            return true;
        }
        classes.truncate(before);
    }
    false
}
