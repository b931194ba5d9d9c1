//! Which classes explain an answer of a peer that differs from the one by the rules.

use crate::classes::Class;
use crate::dies::FunctionId;
use crate::expected::{Position, SearchBuffer};
use crate::facts::Facts;
use crate::lines::Lines;
use crate::matches::frames_match;
use crate::names;
use crate::peer::{Peer, PeerAnswer, Question};
use crate::units::Unit;

/// The classes that explain why `theirs` differs from the answer by the rules. `None` if a part of the difference is
/// not explained.
pub(crate) fn explain(
    peer: &dyn Peer,
    question: Question<'_, '_>,
    theirs: &PeerAnswer<'_>,
    buffer: &mut SearchBuffer,
) -> Option<Vec<Class>> {
    let theirs = match theirs {
        PeerAnswer::Error(_) => return gives_up(peer, &question).map(|class| vec![class]),
        PeerAnswer::Frames(frames) => frames,
    };
    if theirs.is_empty() {
        return finds_nothing(peer, &question, buffer).map(|class| vec![class]);
    }
    let mut explained = |position: &Position, of_position: Option<Class>| {
        let mut classes: Vec<Class> = of_position.into_iter().collect();
        let matches = frames_match(peer, Question { position, ..question }, theirs, &mut classes, buffer);
        classes.sort_unstable();
        classes.dedup();
        matches.then_some(classes)
    };
    // In most cases both answers are for the same position, and only written differently.
    if let Some(classes) = explained(question.position, None) {
        return Some(classes);
    }
    let positions = other_positions(peer, &question);
    let explained = positions.iter().filter_map(|(position, class)| explained(position, Some(*class)));
    explained.min_by_key(Vec::len)
}

fn is_broken(unit: &Unit<'_>) -> bool {
    unit.dies.error.is_some()
        || unit.lines.error.is_some()
        || unit.lines.overflows
        || unit.lines.has_bad_paths
}

/// Why `peer` answers with an error: a unit that it looks into is broken, or a name of the function cannot be followed.
fn gives_up(peer: &dyn Peer, question: &Question<'_, '_>) -> Option<Class> {
    let facts = question.facts;
    let any_die = |is_such: &dyn Fn(usize) -> bool| {
        let Some(id) = question.position.function else { return false };
        let dies = &facts.units[id.unit as usize].dies;
        let inlined = dies.inlined.iter().filter(|inlined| inlined.function == id.function);
        inlined.map(|inlined| inlined.die).chain([facts.function(id).die]).any(is_such)
    };
    let is_broken = |unit: &Unit<'_>| is_broken(unit) && peer.looks_into(question, unit);
    if any_die(&|die| names::is_dangling(facts, die)) || facts.units.iter().any(is_broken) {
        return Some(Class::BROKEN_UNIT);
    }
    any_die(&|die| names::chain(facts, die).any(|link| link.leaves_split)).then_some(Class::SPLIT_UNIT)
}

/// Why `peer` has no frame.
fn finds_nothing(peer: &dyn Peer, question: &Question<'_, '_>, buffer: &mut SearchBuffer) -> Option<Class> {
    let (unit, offset) = (question.unit()?, question.offset);
    if !peer.looks_into(question, unit) {
        return Some(Class::UNDECLARED_CODE);
    }
    if unit.unit.line_program.is_none() && unit.lines.error.is_some() {
        return Some(Class::BROKEN_UNIT);
    }
    let is_backward = is_in_backward_sequence(unit, offset);
    let line_lost =
        question.position.row.is_none() || is_backward || another_sequence_hides_it(unit, offset, buffer);
    match question.position.function {
        Some(function) if another_function_hides_it(question.facts, function, offset) && line_lost => {
            Some(Class::OVERLAPPING_FUNCTIONS)
        }
        None if is_backward => Some(Class::BACKWARD_ROWS),
        None if line_lost => Some(Class::OVERLAPPING_SEQUENCES),
        _ => None,
    }
}

/// Whether a binary search for `offset` in the functions of a unit can miss `function`: another one starts after it
/// and ends before `offset`.
fn another_function_hides_it(facts: &Facts<'_, '_>, function: FunctionId, offset: u64) -> bool {
    let Some((start, _)) = range_at(facts, function, offset) else { return false };
    let all = facts.functions.all();
    let later = &all[all.partition_point(|other| other.start < start)..];
    let later = later.iter().take_while(|other| other.start <= offset);
    later.into_iter().any(|other| {
        let id = facts.function_ids[other.item as usize];
        id.unit == function.unit && id != function && other.end <= offset
    })
}

/// Whether a binary search for `offset` in the sequences can miss the outermost one that covers it: another one starts
/// after it and ends before `offset`.
pub(crate) fn another_sequence_hides_it(unit: &Unit<'_>, offset: u64, buffer: &mut SearchBuffer) -> bool {
    unit.lines.by_address.covering(offset, &mut buffer.covering);
    let Some(start) = buffer.covering.last().map(|outermost| outermost.start) else { return false };
    let mut all = unit.lines.by_address.all().iter();
    all.any(|other| start <= other.start && other.start <= offset && other.end <= offset)
}

/// Whether a sequence whose addresses decrease, or the next one, covers `offset`.
pub(crate) fn is_in_backward_sequence(unit: &Unit<'_>, offset: u64) -> bool {
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

/// Other positions that `peer` may have found for the address, each with the reason.
fn other_positions(peer: &dyn Peer, question: &Question<'_, '_>) -> Vec<(Position, Class)> {
    let Question { facts, offset, position } = *question;
    let buffer = &mut SearchBuffer::default();
    let mut positions = peer.positions(question);
    if let Some(function) = position.function {
        positions.extend(other_inline_chains(peer, question, function));
    }
    let range = position.function.and_then(|function| range_at(facts, function, offset));
    let functions = facts.functions_at(offset, buffer);
    for other in functions.into_iter().filter(|other| Some(*other) != position.function) {
        let is_alias = range_at(facts, other, offset) == range;
        let class = if is_alias { Class::ALIASES } else { Class::OVERLAPPING_FUNCTIONS };
        let inlined = facts.inlined_at(other, offset, buffer);
        positions.push((facts.position_in(other.unit, Some(other), inlined, offset, buffer), class));
    }
    if let Some(unit) = position.unit() {
        let dies = &facts.units[unit as usize].dies;
        dies.beyond.covering(offset, &mut buffer.covering);
        for item in buffer.covering.iter().map(|interval| interval.item) {
            let function = FunctionId { unit, function: dies.inlined[item as usize].function };
            let inlined = facts.chain_of(function, item, |inlined| inlined.stated_parent);
            let function = Some(function);
            positions.push((Position { function, inlined, row: position.row }, Class::INLINED_BEYOND));
        }
    }
    let mut units: Vec<u32> = Vec::new();
    for sequences in [&facts.sequences, &facts.sequences_of_parts] {
        sequences.covering(offset, &mut buffer.covering);
        units.extend(buffer.covering.iter().map(|sequence| sequence.item));
    }
    for number in units {
        let unit = &facts.units[number as usize];
        let class = match position.function {
            Some(function)
                if function.unit == number && another_function_hides_it(facts, function, offset) =>
            {
                Class::OVERLAPPING_FUNCTIONS
            }
            _ if position.unit() == Some(number) || !peer.looks_into(question, unit) => continue,
            _ if unit.dies.is_part => Class::PARTIAL_UNIT,
            _ => Class::OTHER_UNIT,
        };
        positions.push((facts.position_in(number, None, Vec::new(), offset, buffer), class));
    }
    positions
}

/// Inlined subroutines of `function` that `peer` may have found for the address instead.
fn other_inline_chains(
    peer: &dyn Peer,
    question: &Question<'_, '_>,
    function: FunctionId,
) -> Vec<(Position, Class)> {
    let Question { facts, offset, position } = *question;
    let all = &facts.units[function.unit as usize].dies.inlined;
    let mut buffer = SearchBuffer::default();
    facts.innermost_at(function, offset, &mut buffer);
    let mut others = Vec::new();
    let inlined = facts.innermost_chain(function, &buffer);
    if inlined != position.inlined {
        others.push((Position { inlined, ..position.clone() }, Class::INLINED_OUTSIDE));
    }
    let mut covering = std::mem::take(&mut buffer.covering);
    facts.outside_at(function, offset, &mut buffer);
    covering.append(&mut buffer.covering);
    for innermost in covering.iter().map(|interval| interval.item) {
        let mut chain = facts.chain_of(function, innermost, |inlined| inlined.stated_parent);
        let mut class = Class::OVERLAPPING_INLINED;
        if let Some(empty) = chain.iter().position(|number| all[*number as usize].is_empty) {
            class = Class::EMPTY_INLINED;
            if !peer.shows_empty_inlined() {
                chain.truncate(empty);
            }
        }
        if class == Class::EMPTY_INLINED || !position.inlined.starts_with(&chain) {
            others.push((Position { inlined: chain, ..position.clone() }, class));
        }
    }
    others
}
