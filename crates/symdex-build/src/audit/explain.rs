//! Which classes explain an answer of a peer that is not the one the rules give: predicates over the facts.

use std::borrow::Cow;

use super::classes::Class;
use super::dies::Dies;
use super::expected::{Frame, Place, Scratch};
use super::facts::{Facts, FunctionId, Unit};
use super::names;
use super::peers::{Peer, Theirs};
use super::symbols;

/// The classes that explain why `theirs` is not what the rules say of `place`; `None` where something stays unexplained.
pub(super) fn explain(
    facts: &Facts<'_, '_>,
    peer: Peer,
    offset: u64,
    place: &Place,
    theirs: &Theirs<'_>,
    scratch: &mut Scratch,
) -> Option<Vec<Class>> {
    let theirs = match theirs {
        Theirs::Error(_) => return gives_up(facts, offset, place).then(|| vec![Class::BrokenUnit]),
        Theirs::Frames(frames) => frames,
    };
    if theirs.is_empty() {
        return lost(facts, offset, place, scratch).map(|class| vec![class]);
    }
    let mut explained = |place: &Place, structural: Option<Class>| {
        let mut classes: Vec<Class> = structural.into_iter().collect();
        let matches = frames_match(facts, peer, offset, place, theirs, &mut classes, scratch);
        classes.sort_unstable();
        classes.dedup();
        matches.then_some(classes)
    };
    // Most differences are of how the same place is written.
    if let Some(classes) = explained(place, None) {
        return Some(classes);
    }
    let alternatives = alternatives(facts, peer, offset, place);
    let explained = alternatives.iter().filter_map(|(place, class)| explained(place, Some(*class)));
    explained.min_by_key(Vec::len)
}

/// Whether `offset` leads `peer` to `unit`. addr2line goes by the root DIE's list of ranges, else by `.debug_aranges`, else by
/// the root's one range, else by the sequences; llvm-symbolizer by `.debug_aranges`, else by the root DIE.
fn leads_to(facts: &Facts<'_, '_>, peer: Peer, unit: &Unit<'_>, offset: u64) -> bool {
    let Dies { in_root, root_has_list, in_aranges, .. } = &unit.dies;
    let root_first = peer == Peer::Addr2line && *root_has_list || in_aranges.is_empty();
    let declared = if root_first { in_root } else { in_aranges };
    if declared.is_empty() && peer == Peer::Addr2line {
        return unit.lines.by_address.all().iter().any(|s| s.start <= offset && offset < s.end);
    }
    let svma = facts.image.info.base + offset;
    declared.iter().any(|(start, end)| *start <= svma && svma < *end)
}

fn is_broken(unit: &Unit<'_>) -> bool {
    unit.dies.error.is_some()
        || unit.lines.error.is_some()
        || unit.lines.overflows
        || unit.lines.has_bad_paths
}

/// Whether addr2line meets an error at `offset`: in a unit that it looks into, or in a name of the function there.
fn gives_up(facts: &Facts<'_, '_>, offset: u64, place: &Place) -> bool {
    let names_dangle = |id: FunctionId| {
        let dies = &facts.units[id.unit as usize].dies;
        let inlined = dies.inlined.iter().filter(|inlined| inlined.function == id.function);
        let mut all = inlined.map(|inlined| inlined.die).chain([facts.function(id).die]);
        all.any(|die| names::is_dangling(facts, die))
    };
    place.function.is_some_and(names_dangle)
        || facts.units.iter().any(|unit| is_broken(unit) && leads_to(facts, Peer::Addr2line, unit, offset))
}

/// Why addr2line has nothing at all at `place`.
fn lost(facts: &Facts<'_, '_>, offset: u64, place: &Place, scratch: &mut Scratch) -> Option<Class> {
    let number = place.unit()?;
    let unit = &facts.units[number as usize];
    if !leads_to(facts, Peer::Addr2line, unit, offset) {
        return Some(Class::UndeclaredCode);
    }
    if unit.unit.line_program.is_none() && unit.lines.error.is_some() {
        return Some(Class::BrokenUnit);
    }
    let line_lost = place.row.is_none() || sequence_hides(unit, offset, scratch);
    match place.function {
        Some(function) if function_hides(facts, function, offset) && line_lost => {
            Some(Class::OverlappingFunctions)
        }
        None if line_lost => Some(Class::OverlappingSequences),
        _ => None,
    }
}

/// Whether a binary search for `offset` among the functions of one unit may pass `function` by: another one begins behind it
/// and ends before `offset`.
fn function_hides(facts: &Facts<'_, '_>, function: FunctionId, offset: u64) -> bool {
    let Some((start, _)) = range_at(facts, function, offset) else { return false };
    let all = facts.functions.all();
    let behind = &all[all.partition_point(|other| other.start < start)..];
    let behind = behind.iter().take_while(|other| other.start <= offset);
    behind.into_iter().any(|other| {
        let id = facts.function_ids[other.item as usize];
        id.unit == function.unit && id != function && other.end <= offset
    })
}

/// The same for sequences: whether one begins behind the one that covers `offset` and ends before `offset`.
fn sequence_hides(unit: &Unit<'_>, offset: u64, scratch: &mut Scratch) -> bool {
    unit.lines.by_address.covering(offset, &mut scratch.covering);
    let Some(start) = scratch.covering.last().map(|outermost| outermost.start) else { return false };
    let mut all = unit.lines.by_address.all().iter();
    all.any(|other| start <= other.start && other.start <= offset && other.end <= offset)
}

/// The range of `function` that covers `offset`.
fn range_at(facts: &Facts<'_, '_>, function: FunctionId, offset: u64) -> Option<(u64, u64)> {
    let ranges = facts.function(function).ranges.iter().copied();
    ranges.filter(|(start, end)| *start <= offset && offset < *end).max()
}

/// The places that `peer` may have taken `offset` for, and what that is a case of.
fn alternatives(facts: &Facts<'_, '_>, peer: Peer, offset: u64, place: &Place) -> Vec<(Place, Class)> {
    let scratch = &mut Scratch::default();
    let mut alternatives = Vec::new();
    let is_led = |unit: u32| leads_to(facts, peer, &facts.units[unit as usize], offset);
    if peer == Peer::LlvmSymbolizer && place.unit().is_some_and(|unit| !is_led(unit)) {
        alternatives.push((Place::default(), Class::UndeclaredCode));
    }
    if peer == Peer::LlvmSymbolizer && facts.has_zdebug {
        alternatives.push((Place::default(), Class::OldCompression));
    }
    if let Some(function) = place.function {
        alternatives.extend(other_chains(facts, peer, function, offset, place));
    }
    let range = place.function.and_then(|function| range_at(facts, function, offset));
    for other in
        facts.functions_at(offset, scratch).into_iter().filter(|other| Some(*other) != place.function)
    {
        let class = match range_at(facts, other, offset) == range {
            true => Class::Aliases,
            false => Class::OverlappingFunctions,
        };
        let inlined = facts.inlined_at(other, offset, scratch);
        alternatives.push((facts.place_in(other.unit, Some(other), inlined, offset, scratch), class));
    }
    let mut units: Vec<u32> = Vec::new();
    for sequences in [&facts.sequences, &facts.sequences_of_parts] {
        sequences.covering(offset, &mut scratch.covering);
        units.extend(scratch.covering.iter().map(|sequence| sequence.item));
    }
    for unit in units {
        let class = match place.function {
            Some(function) if function.unit == unit && function_hides(facts, function, offset) => {
                Class::OverlappingFunctions
            }
            _ if place.unit() == Some(unit) || !is_led(unit) => continue,
            _ if facts.units[unit as usize].dies.is_part => Class::PartialUnit,
            _ => Class::OtherUnit,
        };
        alternatives.push((facts.place_in(unit, None, Vec::new(), offset, scratch), class));
    }
    alternatives
}

/// Inlined subroutines of `function` that `peer` may have taken for those at `offset`. addr2line looks into none that has no code
/// of its own; llvm-symbolizer takes it for one that has.
fn other_chains(
    facts: &Facts<'_, '_>,
    peer: Peer,
    function: FunctionId,
    offset: u64,
    place: &Place,
) -> Vec<(Place, Class)> {
    let all = &facts.units[function.unit as usize].dies.inlined;
    let mut scratch = Scratch::default();
    facts.innermost_at(function, offset, &mut scratch);
    let mut others = Vec::new();
    for innermost in scratch.covering.iter().map(|interval| interval.item) {
        let mut chain = facts.chain_of(function, innermost, |inlined| inlined.stated_parent);
        let mut class = Class::OverlappingInlined;
        if let Some(empty) = chain.iter().position(|number| all[*number as usize].is_empty) {
            class = Class::EmptyInlined;
            if peer == Peer::Addr2line {
                chain.truncate(empty);
            }
        }
        if class == Class::EmptyInlined || !place.inlined.starts_with(&chain) {
            others.push((Place { inlined: chain, ..place.clone() }, class));
        }
    }
    others
}

/// Whether `theirs` is what `peer` makes of `place`; the classes that this takes are added.
fn frames_match(
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

/// Whether the line program lists the file of row `row`: number 0 is the unit's own file up to DWARF 4, and not listed.
fn is_listed(unit: &Unit<'_>, row: usize) -> bool {
    let file = u64::from(unit.lines.rows[row].file);
    let version = unit.unit.line_program.as_ref().map_or(0, |program| program.header().version());
    (version >= 5 || file != 0) && unit.lines.file(file).is_some()
}

/// Whether `theirs` is the line of some row of a sequence that goes backwards or, within one, nothing.
fn is_of_backward_sequence(unit: &Unit<'_>, offset: u64, theirs: &Frame<'_>) -> bool {
    let lines = &unit.lines;
    let covers = |&sequence: &u32| {
        lines.by_address.all().iter().any(|s| s.item == sequence && s.start <= offset && offset < s.end)
    };
    let has_line = |sequence: &u32| {
        lines.rows[lines.sequences[*sequence as usize].clone()]
            .iter()
            .any(|row| theirs.line == Some(row.line))
    };
    match theirs.line {
        Some(_) => lines.backward.iter().any(has_line),
        None => lines.backward.iter().any(covers),
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
