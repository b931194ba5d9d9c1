//! Tables with stacks that `xctrace export` writes, in XML. An element with an `id` is written once, and elements with
//! its id as `ref` repeat it. So the rewritten table has only the concrete function of each frame.

use std::collections::HashMap;

use memchr::{memchr, memmem};
use symdex::Arch;

use crate::engine::limits::ReadLimit;
use crate::engine::symbolicate::Resolution;
use crate::error::Error;
use crate::formats::existing::ExistingSymbol;
use crate::formats::format::{Edits, Format};
use crate::formats::rules::is_nameless;
use crate::formats::steps::count;
use crate::render::write_crash;
use crate::report::{AddressKind, Frame, Number, Parsed, Report, ReportImage, Span, SymbolDetail, Thread};
use crate::text::{Cursor, has, lossy};

/// The format of the tables of `xctrace export`.
pub(crate) const FORMAT: Format = Format {
    name: "xctrace",
    description: "Tables of `xctrace export`, with the concrete function of each frame",
    example: concat!(
        r#"<trace-query-result><row><backtrace><frame addr="0x104a343d1"><binary name="App" load-addr="0x104a34000" "#,
        r#"UUID="6DCD4E9D-D3B1-3A0E-8DFF-6A5A4BE1B1B0"/></frame></backtrace></row></trace-query-result>"#,
    ),
    marks: &["<trace-query-result>", "<backtrace", "<binary "],
    recognises: |text| has(text, "<trace-query-result"),
    parse,
    existing_symbols: Some(existing_symbols),
    edits: Edits::Frames(replacement),
    write_text: Some(write_crash),
    ..Format::TEXT
};

/// A tag of an element: `<frame id="5" addr="0x104a343d1">`, `<binary ref="6"/>` or `</frame>`.
struct Tag<'t> {
    span: Span,
    text: &'t [u8],
}

impl<'t> Tag<'t> {
    /// The name of the element, with a slash before it at the end of the element.
    fn name(&self) -> &'t [u8] {
        let is_end = |byte: &u8| matches!(byte, b' ' | b'>' | b'\n' | b'\r' | b'\t');
        let name = self.text.split(is_end).next().unwrap_or_default();
        name.strip_suffix(b"/").unwrap_or(name)
    }

    /// The span of the value of an attribute in the tag. Values have no quotes.
    fn value(&self, key: &str) -> Option<Span> {
        let start = memmem::find(self.text, format!(" {key}=\"").as_bytes())? + key.len() + 3;
        Some(start..start + memchr(b'"', &self.text[start..])?)
    }

    fn attribute(&self, key: &str) -> Option<&'t [u8]> {
        self.text.get(self.value(key)?)
    }

    fn number(&self, key: &str) -> Option<u64> {
        Cursor::new(self.attribute(key)?).hexadecimal()
    }

    fn string(&self, key: &str) -> String {
        unescape(self.attribute(key).unwrap_or_default())
    }
}

/// The tags of `text` that are whole, in order.
fn tags(text: &[u8]) -> impl Iterator<Item = Tag<'_>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let start = at + memchr(b'<', text.get(at..)?)?;
        let end = start + memchr(b'>', &text[start..])? + 1;
        count(end - at);
        at = end;
        Some(Tag { span: start..end, text: &text[start..end] })
    })
}

/// XML's names of characters.
const NAMES: [(&str, &str); 5] =
    [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&apos;", "'"), ("&amp;", "&")];

fn unescape(text: &[u8]) -> String {
    NAMES.iter().fold(lossy(text), |text, (name, character)| text.replace(name, character))
}

fn escape(text: &str) -> String {
    NAMES.iter().rev().fold(text.to_owned(), |text, (name, character)| text.replace(character, name))
}

/// What was read of a table.
struct Reader<'t> {
    limit: ReadLimit,
    parsed: Parsed,
    /// The positions of images by their ids, and those of threads and frames.
    images: HashMap<&'t [u8], usize>,
    frames: HashMap<&'t [u8], (usize, usize)>,
    /// Whether the next frame begins a stack.
    is_new: bool,
    /// The frame whose element is open, and its id.
    open: Option<(Frame, &'t [u8])>,
}

fn parse(text: &[u8]) -> Result<Parsed, Error> {
    let (images, frames) = Default::default();
    let (limit, parsed) = (ReadLimit::of(text.len()), Parsed::default());
    let mut reader = Reader { limit, parsed, images, frames, is_new: true, open: None };
    tags(text).for_each(|tag| reader.tag(&tag));
    let Reader { limit, parsed, .. } = reader;
    Ok(Parsed { extent: limit.extent(0), ..parsed })
}

impl<'t> Reader<'t> {
    fn tag(&mut self, tag: &Tag<'t>) {
        match tag.name() {
            b"<row" | b"<backtrace" | b"<tagged-backtrace" => self.is_new = true,
            b"<frame" => self.frame(tag),
            b"<binary" => {
                let number = self.binary(tag);
                self.open.iter_mut().for_each(|(frame, _)| frame.image = number.map(Number::from));
            }
            b"<source" => {
                let named = self.open.iter_mut().filter(|(frame, _)| frame.function.is_some());
                named.for_each(|(frame, _)| frame.detail = SymbolDetail::Line);
            }
            b"</frame" => {
                if let Some((frame, id)) = self.open.take() {
                    let site = (frame.site.start()..tag.span.end).into();
                    self.push(Frame { site, ..frame }, id);
                }
            }
            _ => {}
        }
    }

    fn frame(&mut self, tag: &Tag<'t>) {
        if let Some(id) = tag.attribute("ref") {
            let known = self
                .frames
                .get(id)
                .and_then(|(thread, number)| self.parsed.threads.get(*thread)?.frames.get(*number).cloned());
            if let Some(frame) = known {
                self.push(Frame { site: tag.span.clone().into(), ..frame }, b"");
            }
            return;
        }
        let address = tag.number("addr");
        self.limit.count_malformed(u64::from(address.is_none() && tag.value("addr").is_some()));
        let Some(address) = address else { return };
        // The address of an instruction is one more than that, so that all addresses are return addresses. It is not in
        // an older version.
        let is_instruction = self.is_new && address % 4 == 0;
        let is_name = |text: &[u8]| !text.starts_with(b"0x") && !is_nameless(text);
        let name = tag.value("name").filter(|_| tag.attribute("name").is_some_and(is_name));
        let frame = Frame {
            kind: AddressKind::of(is_instruction),
            detail: SymbolDetail::of(name.is_some(), false),
            site: tag.span.clone().into(),
            function: name.map(|name| (tag.span.start + name.start..tag.span.start + name.end).into()),
            ..Frame::new(address, None)
        };
        let id = tag.attribute("id").unwrap_or_default();
        if tag.text.ends_with(b"/>") { self.push(frame, id) } else { self.open = Some((frame, id)) }
    }

    /// Appends a frame to its stack.
    fn push(&mut self, frame: Frame, id: &'t [u8]) {
        let threads = &mut self.parsed.threads;
        if std::mem::take(&mut self.is_new) && self.limit.has_room() {
            self.limit.take_stack();
            threads.push(Thread { name: format!("Backtrace {}", threads.len()), ..Thread::default() });
        }
        let thread = threads.len().saturating_sub(1);
        if let Some(Thread { frames, .. }) = threads.last_mut().filter(|_| self.limit.take()) {
            if !id.is_empty() && self.limit.take_entry() {
                self.frames.insert(id, (thread, frames.len()));
            }
            frames.push(frame);
        }
    }

    /// The position of an image. It is added if the tag describes it.
    fn binary(&mut self, tag: &Tag<'t>) -> Option<usize> {
        if let Some(id) = tag.attribute("ref") {
            return self.images.get(id).copied();
        }
        let load_address = tag.number("load-addr")?;
        self.limit.take_image_of_frame().then_some(())?;
        let number = self.parsed.images.len();
        self.parsed.images.push(ReportImage {
            name: tag.string("name"),
            path: tag.string("path"),
            arch: Arch::from_name(&tag.string("arch")),
            id: tag.string("UUID").parse().ok(),
            load_address,
            ..ReportImage::default()
        });
        self.images.extend(tag.attribute("id").map(|id| (id, number)));
        Some(number)
    }
}

fn existing_symbols(report: &Report<'_>) -> Vec<Vec<ExistingSymbol>> {
    report.map_frames(|frame| {
        let text = report.at(frame.site);
        let mut tags = tags(text).skip_while(|tag| tag.name() != b"<source");
        let line = tags.next().and_then(|source| source.string("line").parse().ok());
        let path = tags.next().zip(tags.next()).filter(|(path, _)| path.name() == b"<path");
        ExistingSymbol {
            function: frame.function.map(|name| unescape(report.at(name))),
            file: path.map(|(path, end)| unescape(&text[path.span.end..end.span.start])),
            line,
            ..ExistingSymbol::default()
        }
    })
}

/// The frame's element with the name and the line of the answer. An element that repeats a frame stays.
fn replacement(text: &[u8], site: &Span, resolution: &Resolution<'_>) -> Option<Vec<u8>> {
    let element = text.get(site.clone())?;
    let tag = tags(element).next().filter(|tag| tag.value("ref").is_none())?;
    let concrete = resolution.frames.last()?;
    let mut out = element.to_vec();
    let is_open = out.ends_with(b"</frame>") && memmem::find(element, b"<source").is_none();
    if let Some(line) = concrete.line.filter(|_| is_open) {
        let path = escape(concrete.file_path());
        let end = out.len() - b"</frame>".len();
        out.splice(end..end, format!(r#"<source line="{line}"><path>{path}</path></source>"#).into_bytes());
    }
    let name = escape(concrete.readable()?);
    let (span, name) = match tag.value("name") {
        Some(old) => (old, name),
        None => (6..6, format!(r#" name="{name}""#)),
    };
    out.splice(span, name.into_bytes());
    Some(out)
}
