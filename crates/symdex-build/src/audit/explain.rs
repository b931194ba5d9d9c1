//! Which classes explain an answer of a peer that is not the one the rules give: predicates over the facts.

use super::classes::Class;
use super::dies::Dies;
use super::expected::{Place, Scratch};
use super::facts::{Facts, FunctionId, Unit};
use super::lines::Lines;
use super::matches::frames_match;
use super::names;
use super::peers::{Peer, Theirs};

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
        Theirs::Error(_) => return gives_up(facts, offset, place).map(|class| vec![class]),
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
fn gives_up(facts: &Facts<'_, '_>, offset: u64, place: &Place) -> Option<Class> {
    let any_die = |is_such: &dyn Fn(usize) -> bool| {
        let Some(id) = place.function else { return false };
        let dies = &facts.units[id.unit as usize].dies;
        let inlined = dies.inlined.iter().filter(|inlined| inlined.function == id.function);
        inlined.map(|inlined| inlined.die).chain([facts.function(id).die]).any(is_such)
    };
    let is_broken = |unit: &Unit<'_>| is_broken(unit) && leads_to(facts, Peer::Addr2line, unit, offset);
    if any_die(&|die| names::is_dangling(facts, die)) || facts.units.iter().any(is_broken) {
        return Some(Class::BrokenUnit);
    }
    any_die(&|die| names::chain(facts, die).any(|link| link.leaves_split)).then_some(Class::SplitUnit)
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
    let is_backward = is_in_backward_sequence(unit, offset);
    let line_lost = place.row.is_none() || is_backward || sequence_hides(unit, offset, scratch);
    match place.function {
        Some(function) if function_hides(facts, function, offset) && line_lost => {
            Some(Class::OverlappingFunctions)
        }
        None if is_backward => Some(Class::BackwardRows),
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
pub(super) fn sequence_hides(unit: &Unit<'_>, offset: u64, scratch: &mut Scratch) -> bool {
    unit.lines.by_address.covering(offset, &mut scratch.covering);
    let Some(start) = scratch.covering.last().map(|outermost| outermost.start) else { return false };
    let mut all = unit.lines.by_address.all().iter();
    all.any(|other| start <= other.start && other.start <= offset && other.end <= offset)
}

/// Whether a sequence of those that go backwards, or come behind such ones, covers `offset`.
pub(super) fn is_in_backward_sequence(unit: &Unit<'_>, offset: u64) -> bool {
    let Lines { backward, by_address, .. } = &unit.lines;
    let covers = |&sequence: &u32| {
        by_address.all().iter().any(|s| s.item == sequence && s.start <= offset && offset < s.end)
    };
    backward.iter().any(covers)
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
    let is_split = |function: FunctionId| facts.units[function.unit as usize].split.is_some();
    if peer == Peer::LlvmSymbolizer && place.function.is_some_and(is_split) {
        alternatives.push((Place { row: place.row, ..Place::default() }, Class::SplitUnit));
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
