//! Which classes explain an answer of addr2line that is not the one the rules give: predicates over the facts.

use super::classes::Class;
use super::expected::{Frame, Place, Scratch};
use super::facts::{Facts, FunctionId, Unit};
use super::names;

/// What addr2line answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Theirs<'c> {
    /// Innermost first; none where it knows nothing.
    Frames(Vec<Frame<'c>>),
    Error(String),
}

/// The classes that explain why `theirs` is not what the rules say of `place`; `None` where something stays unexplained.
pub(super) fn explain(
    facts: &Facts<'_, '_>,
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
    let mut best: Option<Vec<Class>> = None;
    for (alternative, structural) in alternatives(facts, offset, place, scratch) {
        let mut classes: Vec<Class> = structural.into_iter().collect();
        if frames_match(facts, offset, &alternative, theirs, &mut classes, scratch)
            && best.as_ref().is_none_or(|best| classes.len() < best.len())
        {
            classes.sort_unstable();
            classes.dedup();
            best = Some(classes);
        }
    }
    best
}

/// The addresses that addr2line knows `unit` by: those it declares or, where it declares none, those of its sequences.
fn leads_to(facts: &Facts<'_, '_>, unit: &Unit<'_>, offset: u64) -> bool {
    let svma = facts.image.info.base + offset;
    let holds = |(start, end): &(u64, u64)| *start <= svma && svma < *end;
    match unit.dies.declared.is_empty() {
        true => unit.lines.by_address.all().iter().any(|s| s.start <= offset && offset < s.end),
        false => unit.dies.declared.iter().any(holds),
    }
}

fn is_broken(unit: &Unit<'_>) -> bool {
    unit.dies.error.is_some() || unit.lines.error.is_some() || unit.lines.overflows
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
        || facts.units.iter().any(|unit| is_broken(unit) && leads_to(facts, unit, offset))
}

/// Why addr2line has nothing at all at `place`.
fn lost(facts: &Facts<'_, '_>, offset: u64, place: &Place, scratch: &mut Scratch) -> Option<Class> {
    let number = place.unit()?;
    let unit = &facts.units[number as usize];
    if !leads_to(facts, unit, offset) {
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

/// The places that addr2line may have taken `offset` for, and what that is a case of.
fn alternatives(
    facts: &Facts<'_, '_>,
    offset: u64,
    place: &Place,
    scratch: &mut Scratch,
) -> Vec<(Place, Option<Class>)> {
    let mut alternatives = vec![(place.clone(), None)];
    let is_in_empty = |function: FunctionId, inlined: u32| {
        facts.units[function.unit as usize].dies.inlined[inlined as usize].in_empty
    };
    if let Some(function) = place.function
        && let Some(depth) = place.inlined.iter().position(|inlined| is_in_empty(function, *inlined))
    {
        let inlined = place.inlined[..depth].to_vec();
        alternatives.push((Place { inlined, ..place.clone() }, Some(Class::EmptyInlined)));
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
        alternatives.push((facts.place_in(other.unit, Some(other), inlined, offset, scratch), Some(class)));
    }
    facts.sequences.covering(offset, &mut scratch.covering);
    let units: Vec<u32> = scratch.covering.iter().map(|sequence| sequence.item).collect();
    for unit in units {
        let class = match place.function {
            Some(function) if function.unit == unit && function_hides(facts, function, offset) => {
                Class::OverlappingFunctions
            }
            _ if place.unit() != Some(unit) && leads_to(facts, &facts.units[unit as usize], offset) => {
                Class::OtherUnit
            }
            _ => continue,
        };
        alternatives.push((facts.place_in(unit, None, Vec::new(), offset, scratch), Some(class)));
    }
    alternatives
}

/// Whether `theirs` is what addr2line makes of `place`; the classes that this takes are added.
fn frames_match(
    facts: &Facts<'_, '_>,
    offset: u64,
    place: &Place,
    theirs: &[Frame<'_>],
    classes: &mut Vec<Class>,
    scratch: &mut Scratch,
) -> bool {
    let ours = facts.frames(place, offset);
    if ours.len() != theirs.len() {
        return false;
    }
    let structural = !classes.is_empty();
    if !structural
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
    ours.iter().zip(theirs).enumerate().all(|(depth, (ours, theirs))| {
        name_matches(facts, dies(depth), ours, theirs, classes)
            && (line_matches(ours, theirs, classes)
                || depth == 0 && other_row_matches(facts, offset, place, theirs, classes, scratch))
    })
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

/// Whether file and line are the same, apart from how addr2line writes them.
fn line_matches(ours: &Frame<'_>, theirs: &Frame<'_>, classes: &mut Vec<Class>) -> bool {
    let line = match (ours.line, theirs.line) {
        (ours, theirs) if ours == theirs => None,
        (Some(0), None) => Some(Class::LineZero),
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

/// Whether the innermost line is that of a row that addr2line takes instead of the one that counts.
fn other_row_matches(
    facts: &Facts<'_, '_>,
    offset: u64,
    place: &Place,
    theirs: &Frame<'_>,
    classes: &mut Vec<Class>,
    scratch: &mut Scratch,
) -> bool {
    let Some((number, row)) = place.row else { return false };
    let unit = &facts.units[number as usize];
    if (&theirs.file, theirs.line) == (&None, None) && sequence_hides(unit, offset, scratch) {
        classes.push(Class::OverlappingSequences);
        return true;
    }
    unit.lines.by_address.covering(offset, &mut scratch.covering);
    for sequence in &scratch.covering {
        // addr2line keeps the last of the rows at one address.
        let Some(last) = unit.lines.rows_at(sequence.item, offset).next_back() else { continue };
        let other = Place { row: Some((number, last)), ..Place::default() };
        let before = classes.len();
        if facts.frames(&other, offset).iter().all(|other| line_matches(other, theirs, classes)) {
            let same_address = unit.lines.rows[last].address == unit.lines.rows[row].address;
            classes.push(match same_address && sequence.item == scratch.covering[0].item {
                true => Class::RowsAtOneAddress,
                false => Class::OverlappingSequences,
            });
            return true;
        }
        classes.truncate(before);
    }
    if unit.lines.goes_back && row_before_matches(facts, offset, number, row, theirs) {
        classes.push(Class::AddressGoesBack);
        return true;
    }
    false
}

/// Whether `theirs` has no line, or that of one of the rows before row `row` of unit `number`.
fn row_before_matches(
    facts: &Facts<'_, '_>,
    offset: u64,
    number: u32,
    row: usize,
    theirs: &Frame<'_>,
) -> bool {
    /// How many rows may have been passed over; enough for a function of some size.
    const MAX_ROWS: usize = 100;
    let is_theirs = |row: usize| {
        let place = Place { row: Some((number, row)), ..Place::default() };
        facts.frames(&place, offset).iter().all(|other| line_matches(other, theirs, &mut Vec::new()))
    };
    (&theirs.file, theirs.line) == (&None, None) || (row.saturating_sub(MAX_ROWS)..row).any(is_theirs)
}
