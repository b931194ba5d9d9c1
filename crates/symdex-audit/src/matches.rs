//! Whether a peer's frames are those of a position, apart from known differences in spelling, names and lines.

use crate::classes::Class;
use crate::expected::{Frame, Position, SearchBuffer};
use crate::explain::{another_sequence_hides_it, is_in_backward_sequence};
use crate::names::Link;
use crate::peer::{FramePair, Peer, Question};
use crate::units::Unit;

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
    let ours = match peer.reads_symbol_table() {
        true => peer.frames(facts.expected(position, offset)),
        false => facts.frames(position, offset),
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
    let FramePair { depth, ours, theirs, .. } = *frame;
    if ours.name == theirs.name {
        return true;
    }
    if let Some(class) = peer.explain_name(question, frame) {
        classes.push(class);
        return true;
    }
    let (ours, theirs) = (ours.name.as_deref(), theirs.name.as_deref().filter(|name| !name.is_empty()));
    let (Some(ours), Some(links)) = (ours, question.names(depth)) else { return ours == theirs };
    if theirs.and_then(|theirs| theirs.strip_prefix(b"_")) == Some(ours) {
        classes.push(Class::UNDERSCORE);
        return true;
    }
    let class = class_of_plain_name(&links, ours, theirs);
    classes.extend(class);
    class.is_some()
}

/// The class if `ours` is a linkage name and `theirs` is the plain name, or is missing because there is no plain name.
fn class_of_plain_name(links: &[Link<'_>], ours: &[u8], theirs: Option<&[u8]>) -> Option<Class> {
    let mut plain_names = links.iter().filter_map(|link| link.name);
    let is_plain = match theirs {
        Some(theirs) => plain_names.any(|name| name == theirs),
        None => plain_names.next().is_none(),
    };
    let in_scope = links.iter().any(|link| link.scope.is_some());
    let class = if links.iter().any(|link| link.linkage == Some(ours)) {
        Class::LINKAGE_NAME_BEHIND_NAME
    } else if in_scope && ours.ends_with(theirs.unwrap_or_default()) {
        Class::QUALIFIED_NAME
    } else {
        Class::SYMBOL_NAME
    };
    is_plain.then_some(class)
}

/// Whether file and line are the same, apart from how `peer` writes them.
fn line_matches(peer: &dyn Peer, ours: &Frame<'_>, theirs: &Frame<'_>, classes: &mut Vec<Class>) -> bool {
    let line = match ours.line == theirs.line {
        true => None,
        false => match peer.explain_line(ours.line, theirs.line) {
            None => return false,
            class => class,
        },
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

/// Whether `theirs` has the line of a row in a sequence whose addresses decrease or, at an address in such a sequence,
/// no line.
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
    if is_of_backward_sequence(unit, offset, theirs) {
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
