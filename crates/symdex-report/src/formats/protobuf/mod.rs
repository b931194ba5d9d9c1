//! Reports in the wire format of Protocol Buffers. Messages are read and edited in place, so that unknown fields and
//! the order of fields stay.

pub(crate) mod otlp;
pub(crate) mod plcrash;
pub(crate) mod pprof;
mod profile;
pub(crate) mod tombstone;

use std::collections::HashMap;

use crate::engine::symbolicate::{Resolution, Symbolicated};
use crate::report::Span;
use crate::text::lossy;

/// A field of a message.
struct Field {
    number: u64,
    /// The whole field: its key, its length and its value.
    span: Span,
    value: FieldValue,
}

enum FieldValue {
    Number(u64),
    /// The span of a string, of bytes, or of a message.
    Bytes(Span),
    /// A value of fixed size. No report uses one.
    Fixed,
}

impl Field {
    fn number(&self) -> Option<u64> {
        if let FieldValue::Number(number) = self.value { Some(number) } else { None }
    }

    fn bytes(&self) -> Option<Span> {
        if let FieldValue::Bytes(span) = &self.value { Some(span.clone()) } else { None }
    }
}

/// A message in a text.
#[derive(Clone)]
struct Message<'t> {
    text: &'t [u8],
    span: Span,
}

impl<'t> Message<'t> {
    fn new(text: &'t [u8], span: Span) -> Self {
        Self { text, span }
    }

    /// The fields in order. It ends where the message is damaged.
    fn fields(&self) -> impl Iterator<Item = Field> + use<'t> {
        let (text, Span { start, end }) = (self.text, self.span.clone());
        let mut at = start;
        std::iter::from_fn(move || {
            let field = field(text.get(..end)?, at)?;
            at = field.span.end;
            Some(field)
        })
    }

    /// The end of the last intact field. It is the end of the message if that is intact.
    fn intact_end(&self) -> usize {
        self.fields().last().map_or(self.span.start, |field| field.span.end)
    }

    /// The messages of a repeated field.
    fn messages(&self, number: u64) -> impl Iterator<Item = Message<'t>> + use<'t> {
        let text = self.text;
        let fields = self.fields().filter(move |field| field.number == number);
        fields.filter_map(move |field| Some(Message::new(text, field.bytes()?)))
    }

    fn message(&self, number: u64) -> Option<Message<'t>> {
        self.messages(number).last()
    }

    /// The last number of a field.
    fn number(&self, number: u64) -> Option<u64> {
        self.fields().filter(|field| field.number == number).filter_map(|field| field.number()).last()
    }

    /// The numbers of a repeated field, packed into one value or not.
    fn numbers(&self, number: u64) -> impl Iterator<Item = u64> + use<'t> {
        let text = self.text;
        let fields = self.fields().filter(move |field| field.number == number);
        fields.flat_map(move |field| {
            let single = field.number();
            let Span { mut start, end } = field.bytes().unwrap_or_default();
            let packed = std::iter::from_fn(move || {
                let (number, after) = varint(text.get(..end)?, start)?;
                start = after;
                Some(number)
            });
            single.into_iter().chain(packed)
        })
    }

    /// The last bytes of a field; empty if there are none.
    fn bytes(&self, number: u64) -> &'t [u8] {
        self.message(number).and_then(|message| self.text.get(message.span)).unwrap_or_default()
    }

    /// The last string of a field; empty if there is none.
    fn string(&self, number: u64) -> String {
        lossy(self.bytes(number))
    }
}

/// Reads the field at `at`. `None` if it is damaged, and at the end.
fn field(text: &[u8], at: usize) -> Option<Field> {
    let (key, mut end) = varint(text, at)?;
    let value = match key & 7 {
        0 => {
            let (number, after) = varint(text, end)?;
            end = after;
            FieldValue::Number(number)
        }
        1 => {
            end += 8;
            FieldValue::Fixed
        }
        2 => {
            let (len, start) = varint(text, end)?;
            end = start.checked_add(usize::try_from(len).ok()?)?;
            FieldValue::Bytes(start..end)
        }
        5 => {
            end += 4;
            FieldValue::Fixed
        }
        _ => return None,
    };
    let number = key >> 3;
    (number != 0 && end <= text.len()).then_some(Field { number, span: at..end, value })
}

/// Reads a number of seven bits a byte. Returns it and its end.
fn varint(text: &[u8], at: usize) -> Option<(u64, usize)> {
    let mut number = 0;
    for (position, byte) in text.get(at..)?.iter().take(10).enumerate() {
        number |= u64::from(byte & 0x7f).checked_shl(7 * u32::try_from(position).ok()?)?;
        if byte & 0x80 == 0 {
            return Some((number, at + position + 1));
        }
    }
    None
}

fn push_varint(out: &mut Vec<u8>, mut number: u64) {
    loop {
        let [low, ..] = number.to_le_bytes();
        number >>= 7;
        if number == 0 {
            return out.push(low & 0x7f);
        }
        out.push(low | 0x80);
    }
}

fn push_number(out: &mut Vec<u8>, number: u64, value: u64) {
    push_varint(out, number << 3);
    push_varint(out, value);
}

fn push_bytes(out: &mut Vec<u8>, number: u64, bytes: &[u8]) {
    push_varint(out, number << 3 | 2);
    push_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Returns the text of `message` with some of its inner messages replaced. `paths` are the field numbers that lead to
/// them. `replace` returns the new text of one, or `None` if it stays. Returns `None` if all stay.
fn rewritten(
    message: &Message<'_>,
    paths: &[&[u64]],
    replace: &mut dyn FnMut(&Message<'_>) -> Option<Vec<u8>>,
) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let mut copied = message.span.start;
    for field in message.fields() {
        let below: Vec<_> =
            paths.iter().filter(|path| path.first() == Some(&field.number)).map(|path| &path[1..]).collect();
        let Some(span) = field.bytes().filter(|_| !below.is_empty()) else { continue };
        let inner = Message::new(message.text, span);
        let is_end = below.iter().any(|path| path.is_empty());
        let new = if is_end { replace(&inner) } else { rewritten(&inner, &below, replace) };
        if let Some(new) = new {
            out.extend_from_slice(&message.text[copied..field.span.start]);
            push_bytes(&mut out, field.number, &new);
            copied = field.span.end;
        }
    }
    (copied != message.span.start).then(|| {
        out.extend_from_slice(&message.text[copied..message.span.end]);
        out
    })
}

/// Returns the text of `message` without the fields of these numbers.
fn without(message: &Message<'_>, numbers: &[u64]) -> Vec<u8> {
    let kept = message.fields().filter(|field| !numbers.contains(&field.number));
    kept.flat_map(|field| &message.text[field.span]).copied().collect()
}

/// The answers of a report, by the start of the frame's message.
struct Answers<'s, 'r, 't> {
    symbolicated: &'s Symbolicated<'r, 't>,
    frames: HashMap<usize, (usize, usize)>,
}

impl<'s, 'r, 't> Answers<'s, 'r, 't> {
    fn new(symbolicated: &'s Symbolicated<'r, 't>) -> Self {
        let threads = &symbolicated.report.threads;
        let start = |(thread, number): (usize, usize)| threads[thread].frames[number].site.start();
        let frames = symbolicated.frames().map(|frame| (start(frame), frame)).collect();
        Self { symbolicated, frames }
    }

    /// The answer of the frame whose message this is.
    fn of(&self, message: &Message<'_>) -> Option<Resolution<'s>> {
        let (thread, number) = self.frames.get(&message.span.start)?;
        self.symbolicated.resolution(*thread, *number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `{1: 300, 2: {3: "ab"}, 9: fixed}`
    fn sample() -> Vec<u8> {
        let (mut text, mut inner) = (Vec::new(), Vec::new());
        push_number(&mut text, 1, 300);
        push_bytes(&mut inner, 3, b"ab");
        push_bytes(&mut text, 2, &inner);
        text.extend([9 << 3 | 5, 1, 2, 3, 4]);
        text
    }

    #[test]
    fn fields_are_read_as_they_are_written() {
        let text = sample();
        let message = Message::new(&text, 0..text.len());
        assert_eq!(message.intact_end(), text.len());
        assert_eq!((message.number(1), message.number(2)), (Some(300), None));
        assert_eq!(message.message(2).expect("a message").string(3), "ab");
        assert_eq!(without(&message, &[2, 9]), text[..3]);
        for cut in [1, 2, 4, 6, 10] {
            assert!(Message::new(&text, 0..cut).intact_end() < cut, "{cut}");
        }
        for damaged in [&[0xff; 12][..], &[0x12, 0xff, 0xff, 0xff, 0xff, 0x7f], &[0x0b], &[0x00, 0x01]] {
            assert_eq!(Message::new(damaged, 0..damaged.len()).fields().count(), 0, "{damaged:?}");
        }
    }

    #[test]
    fn replaced_messages_change_the_lengths_around_them() {
        let text = sample();
        let message = Message::new(&text, 0..text.len());
        let longer = "c".repeat(200);
        let new = rewritten(&message, &[&[2, 3]], &mut |_| Some(longer.clone().into())).expect("a change");
        let changed = Message::new(&new, 0..new.len());
        assert_eq!(changed.message(2).expect("a message").string(3), longer);
        assert_eq!((changed.number(1), changed.intact_end()), (Some(300), new.len()));
        assert_eq!(rewritten(&message, &[&[2, 3]], &mut |_| None), None);
        assert_eq!(rewritten(&message, &[&[4], &[1]], &mut |_| Some(Vec::new())), None);
    }
}
