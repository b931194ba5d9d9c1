//! Whether a peer's frames are those of a position, apart from known differences in spelling, names and lines.

use crate::classes::Class;
use crate::dies::Name;
use crate::expected::{Frame, Position, SearchBuffer};
use crate::explain::{another_sequence_hides_it, is_in_backward_sequence};
use crate::peer::{FramePair, Peer, Question};

/// Whether `theirs` are the frames of the position in `question`, apart from differences that `peer` explains. Adds the
/// classes of the differences to `classes`. If the position is not the one by the rules, `classes` has its class.
pub(crate) fn frames_match(
    peer: &dyn Peer,
    question: Question<'_, '_>,
    theirs: &[Frame<'_>],
    classes: &mut Vec<Class>,
    buffer: &mut SearchBuffer,
) -> bool {
    let Question { facts, offset, position } = question;
    let ours = if peer.reads_symbol_table() {
        peer.frames(facts.expected(position, offset))
    } else {
        facts.frames(position, offset)
    };
    if ours.len() != theirs.len() {
        return false;
    }
    if classes.is_empty()
        && !peer.reads_symbol_table()
        && position.function.is_none()
        && facts.symbol(offset).is_some_and(|symbol| symbol.name.is_some())
    {
        classes.push(Class::LINE_WITHOUT_FUNCTION);
    }
    let outermost = ours.len() - 1;
    ours.iter().zip(theirs).enumerate().all(|(depth, (ours, theirs))| {
        let frame = FramePair { depth, is_outermost: depth == outermost, ours, theirs };
        name_matches(peer, &question, &frame, classes)
            && (line_matches(peer, ours, theirs, classes)
                || location_matches(peer, &question, &frame, classes)
                || depth == 0 && other_row_matches(peer, &question, theirs, classes, buffer))
    })
}

/// Whether the name is the same, or another one for a known reason.
fn name_matches(
    peer: &dyn Peer,
    question: &Question<'_, '_>,
    frame: &FramePair<'_>,
    classes: &mut Vec<Class>,
) -> bool {
    let FramePair { ours, theirs, .. } = *frame;
    if ours.name == theirs.name {
        return true;
    }
    if let Some(class) = peer.explain_name(question, frame) {
        classes.push(class);
        return true;
    }
    let (ours, theirs) = (ours.name.as_deref(), theirs.name.as_deref().filter(|name| !name.is_empty()));
    let Some(ours) = ours else { return theirs.is_none() };
    let class = class_of_stated_name(peer, question, frame, ours, theirs);
    classes.extend(class);
    class.is_some()
}

/// The class if the DIEs of the function prove that `theirs` is a name that they state, and `ours` a better one.
fn class_of_stated_name(
    peer: &dyn Peer,
    question: &Question<'_, '_>,
    frame: &FramePair<'_>,
    ours: &[u8],
    theirs: Option<&[u8]>,
) -> Option<Class> {
    if frame.is_outermost && peer.finds_symbol(question) {
        // It takes the name of the symbol, whatever the DIEs state.
        return None;
    }
    let links = question.names(frame.depth)?;
    let linkage = links.iter().position(|link| link.linkage.is_some());
    let plain = links.iter().position(|link| link.name.is_some());
    if let Some(linkage) = linkage {
        let stated = links[linkage].linkage?;
        let entry = question.entry().filter(|_| frame.is_outermost);
        let symbol = entry.and_then(|entry| question.facts.table_function_at(entry));
        if theirs == Some(stated) && links[linkage].states_nothing(symbol) {
            let is_ours = symbol.and_then(|symbol| symbol.name_for(stated)).is_none_or(|name| name == ours);
            return is_ours.then_some(Class::PLAIN_LINKAGE_NAME);
        }
        let is_ours = |stated: &[u8]| question.facts.is_macho() && stated.strip_prefix(b"_") == Some(ours);
        if theirs == Some(stated) && is_ours(stated) {
            return Some(Class::UNDERSCORE);
        }
        let plain = plain.filter(|plain| *plain < linkage)?;
        let is_behind = theirs == links[plain].name && (stated == ours || is_ours(stated));
        return is_behind.then_some(Class::LINKAGE_NAME_BEHIND_NAME);
    }
    if theirs != plain.and_then(|plain| links[plain].name) {
        return None;
    }
    match question.die(frame.depth)?.1 {
        Name::Scoped(_, _, name) => (theirs == Some(name)).then_some(Class::QUALIFIED_NAME),
        Name::Stated(name) => {
            let symbol = question.entry().filter(|_| frame.is_outermost);
            let symbol = symbol.and_then(|entry| question.facts.table_function_at(entry));
            let symbol = symbol.and_then(|symbol| symbol.name_for(theirs.unwrap_or_default()));
            (name == ours && symbol == Some(ours)).then_some(Class::SYMBOL_NAME)
        }
        Name::None => None,
    }
}

/// Whether file and line are the same, apart from how `peer` writes them.
fn line_matches(peer: &dyn Peer, ours: &Frame<'_>, theirs: &Frame<'_>, classes: &mut Vec<Class>) -> bool {
    let line = match peer.explain_line(ours.line, theirs.line) {
        _ if ours.line == theirs.line => None,
        None => return false,
        class => class,
    };
    let file = match (ours.file.as_deref(), theirs.file.as_deref()) {
        (ours, theirs) if ours == theirs => None,
        (Some(b"<compiler-generated>"), Some(theirs)) if theirs.ends_with(b"/<compiler-generated>") => {
            Some(Class::COMPILER_GENERATED)
        }
        (Some(ours), Some(theirs)) if String::from_utf8_lossy(ours).as_bytes() == theirs => {
            Some(Class::NOT_UTF8)
        }
        _ => return false,
    };
    classes.extend(line.into_iter().chain(file));
    true
}

/// Whether `peer` explains why file and line differ.
fn location_matches(
    peer: &dyn Peer,
    question: &Question<'_, '_>,
    frame: &FramePair<'_>,
    classes: &mut Vec<Class>,
) -> bool {
    let explained = peer.explain_location(question, frame);
    classes.extend(explained.iter().flatten());
    explained.is_some()
}

/// Whether `theirs` has file and line of a row of `unit`, in a sequence whose addresses decrease and that starts before
/// the address. Also whether it has none, and such a sequence covers the address.
fn is_of_backward_sequence(
    peer: &dyn Peer,
    question: &Question<'_, '_>,
    number: u32,
    theirs: &Frame<'_>,
) -> bool {
    let Question { facts, offset, .. } = *question;
    let unit = &facts.units[number as usize];
    let lines = &unit.lines;
    if (&theirs.file, theirs.line) == (&None, None) {
        return is_in_backward_sequence(unit, offset);
    }
    let is_it = |row: usize| {
        let other = Position { row: Some((number, row)), ..Position::default() };
        facts.frames(&other, offset).iter().all(|other| line_matches(peer, other, theirs, &mut Vec::new()))
    };
    let starts_before = |sequence: u32| {
        lines.by_address.all().iter().any(|interval| interval.item == sequence && interval.start <= offset)
    };
    let has_it =
        |sequence: &u32| starts_before(*sequence) && lines.sequences[*sequence as usize].clone().any(is_it);
    lines.backward.iter().any(has_it)
}

/// Whether the innermost line is that of another row: of a sequence that overlaps, or of one whose addresses decrease.
fn other_row_matches(
    peer: &dyn Peer,
    question: &Question<'_, '_>,
    theirs: &Frame<'_>,
    classes: &mut Vec<Class>,
    buffer: &mut SearchBuffer,
) -> bool {
    let Question { facts, offset, position } = *question;
    let Some(number) = position.unit() else { return false };
    let unit = &facts.units[number as usize];
    if is_of_backward_sequence(peer, question, number, theirs) {
        classes.push(Class::BACKWARD_ROWS);
        return true;
    }
    if position.row.is_none() {
        return false;
    }
    if (&theirs.file, theirs.line) == (&None, None) && another_sequence_hides_it(unit, offset, buffer) {
        classes.push(Class::OVERLAPPING_SEQUENCES);
        return true;
    }
    unit.lines.by_address.covering(offset, &mut buffer.covering);
    for sequence in &buffer.covering {
        let Some(last) = unit.lines.rows_at(sequence.item, offset).next_back() else { continue };
        let other = Position { row: Some((number, last)), ..Position::default() };
        let before = classes.len();
        if facts.frames(&other, offset).iter().all(|other| line_matches(peer, other, theirs, classes)) {
            classes.push(Class::OVERLAPPING_SEQUENCES);
            return true;
        }
        classes.truncate(before);
    }
    false
}
