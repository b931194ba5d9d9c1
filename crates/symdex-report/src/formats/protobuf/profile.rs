//! Profiles that have addresses and no symbols, of pprof and of OpenTelemetry. A profile has one table of locations,
//! which all its samples share. It is read as one stack. A compressed profile is decompressed first.
//!
//! A location has fields for the functions inlined into it. The rewritten profile has them, and new functions and
//! strings at the end of its tables. Both formats have the same tables, under other numbers: a [`Layout`].

use std::cell::OnceCell;
use std::collections::{BTreeSet, HashMap};

use symdex::ImageId;

use super::{Answers, Message, push_bytes, push_number, rewritten, without};
use crate::engine::function::Function;
use crate::engine::limits::ReadLimit;
use crate::engine::symbolicate::Symbolicated;
use crate::formats::existing::ExistingSymbol;
use crate::formats::format::Edit;
use crate::report::{Base, Frame, Parsed, Report, ReportImage, Site, Span, SymbolDetail, Thread};
use crate::text::lossy;

/// The numbers of the fields of a format. 0 is no field.
pub(super) struct Layout {
    /// The message with the tables, a field of the profile; `None` if the profile has them itself.
    pub(super) tables: Option<u64>,
    pub(super) mappings: u64,
    pub(super) locations: u64,
    pub(super) functions: u64,
    pub(super) strings: u64,
    pub(super) attributes: Option<u64>,
    /// The id of a mapping and of a function. Without one, it is the position in the table.
    pub(super) id: Option<u64>,
    /// Of a mapping: the addresses of its start and its end, the position of the start in the file, the path.
    pub(super) mapping: [u64; 4],
    /// Flags of a mapping that say that its locations have functions, files, lines and inlined functions.
    pub(super) flags: &'static [u64],
    /// Of a location: the mapping, the address, the lines. A line has the number of its function and that of the line
    /// in its first two fields.
    pub(super) location: [u64; 3],
    /// Of a function: the name, the linkage name, the file.
    pub(super) function: [u64; 3],
    /// The build id that a mapping states.
    pub(super) build_id: fn(&Tables<'_>, &Message<'_>) -> Option<ImageId>,
    /// Whether a location is code of its mapping. Other locations are frames of interpreters.
    pub(super) is_code: fn(&Tables<'_>, &Message<'_>) -> bool,
}

/// The tables of a profile.
pub(super) struct Tables<'t> {
    layout: &'static Layout,
    /// The message that has them.
    pub(super) message: Message<'t>,
    strings: Vec<Site>,
    /// The position of the key, and the text of the value.
    attributes: Vec<(usize, Site)>,
    /// The name and the file of each function, by id, as positions in the table of strings.
    functions: HashMap<u64, (usize, usize)>,
}

/// How many attributes of a message are looked at. Real ones have up to four.
const ATTRIBUTES: usize = 64;

/// How many bytes of a name or a path are read. All locations may have the same long one.
const LONGEST: usize = 4096;

/// The beginning of a name or a path as text.
fn shown(bytes: &[u8]) -> String {
    lossy(&bytes[..bytes.len().min(LONGEST)])
}

/// The position in a table that a field of a message states.
fn position(message: &Message<'_>, field: u64) -> usize {
    usize::try_from(message.number(field).unwrap_or_default()).unwrap_or(usize::MAX)
}

impl Layout {
    /// Whether `text` is a profile: it is whole, its first string is empty, and a location has an address.
    pub(super) fn recognises(&self, text: &[u8]) -> bool {
        let profile = Message::new(text, 0..text.len());
        let tables = || self.tables.map_or(Some(profile.clone()), |number| profile.message(number));
        let [_, address, _] = self.location;
        // The first bytes of text can look like a field.
        profile.fields().next().is_some_and(|field| field.number <= self.strings)
            && profile.intact_end() == text.len()
            && tables().is_some_and(|tables| {
                tables.messages(self.strings).next().is_some_and(|string| string.span.is_empty())
                    && tables.messages(self.locations).any(|location| location.number(address).is_some())
            })
    }

    pub(super) fn parse(&'static self, text: &[u8]) -> Parsed {
        let tables = Tables::of(self, text);
        let limit = ReadLimit::of(text.len());
        let mappings = tables.message.messages(self.mappings);
        let mappings: Vec<_> = mappings.take_while(|_| limit.take_image()).collect();
        let ids = mappings.iter().enumerate();
        let ids = ids.filter_map(|(number, mapping)| Some((self.id_of(number, mapping)?, number))).collect();
        let locations = tables.message.messages(self.locations);
        let frames = limit.stack(locations.filter_map(|location| tables.frame(&location, &ids)));
        let images = mappings.iter().map(|mapping| tables.image(mapping)).collect();
        let threads = vec![Thread { name: "Locations".to_owned(), frames, ..Thread::default() }];
        Parsed { images, threads, extent: limit.extent(0), ..Parsed::default() }
    }

    /// The id of the message at this position of its table. 0 means none.
    fn id_of(&self, position: usize, message: &Message<'_>) -> Option<u64> {
        self.id.map_or(Some(position as u64), |field| message.number(field)).filter(|id| *id != 0)
    }

    pub(super) fn existing_symbols(&'static self, report: &Report<'_>) -> Vec<Vec<ExistingSymbol>> {
        let tables = Tables::of(self, report.text());
        report.map_frames(|frame| {
            let symbol = tables.symbol(&Message::new(report.text(), frame.site.span()));
            let Some((name, file, line)) = symbol else { return ExistingSymbol::default() };
            let line = u32::try_from(line).ok().filter(|line| *line != 0);
            let text = |span: Span| report.text().get(span).filter(|text| !text.is_empty()).map(shown);
            ExistingSymbol { function: text(name), file: text(file), line, offset: None }
        })
    }

    pub(super) fn edits(&'static self, symbolicated: &Symbolicated<'_, '_>) -> Vec<Edit> {
        let text = symbolicated.report.text();
        let tables = Tables::of(self, text);
        let answers = Answers::new(symbolicated);
        let answered = self.answered(&tables, symbolicated);
        let [.., lines] = self.location;
        let mut new = NewSymbols::after(&tables);
        let paths: [&[u64]; 2] = [&[self.mappings], &[self.locations]];
        let changed = rewritten(&tables.message, &paths, &mut |message| {
            if answered.contains(&message.span.start) {
                let mut mapping = without(message, self.flags);
                self.flags.iter().for_each(|flag| push_number(&mut mapping, *flag, 1));
                return Some(mapping);
            }
            let resolution = answers.of(message)?;
            let mut location = without(message, &[lines]);
            for resolved in resolution.frames {
                let mut line = Vec::new();
                push_number(&mut line, 1, new.function(resolved));
                push_number(&mut line, 2, resolved.line.unwrap_or_default().into());
                push_bytes(&mut location, lines, &line);
            }
            Some(location)
        });
        let Some(changed) = changed else { return Vec::new() };
        let changed = [changed, new.text].concat();
        let profile = Message::new(text, 0..text.len());
        let changed = match self.tables {
            None => Some(changed),
            Some(field) => rewritten(&profile, &[&[field]], &mut |message| {
                (message.span == tables.message.span).then(|| changed.clone())
            }),
        };
        changed.into_iter().map(|text| Edit { span: profile.span.clone(), text }).collect()
    }

    /// The starts of the mappings with answers, if the format marks them.
    fn answered(&self, tables: &Tables<'_>, symbolicated: &Symbolicated<'_, '_>) -> BTreeSet<usize> {
        let resolved = symbolicated
            .frames()
            .filter(|(thread, frame)| symbolicated.resolution(*thread, *frame).is_some());
        let images: BTreeSet<_> =
            resolved.filter_map(|(thread, frame)| symbolicated.image_of(thread, frame)).collect();
        let mappings = tables.message.messages(self.mappings).enumerate();
        let answered = mappings.filter(|(number, _)| !self.flags.is_empty() && images.contains(number));
        answered.map(|(_, mapping)| mapping.span.start).collect()
    }
}

impl<'t> Tables<'t> {
    fn of(layout: &'static Layout, text: &'t [u8]) -> Self {
        let profile = Message::new(text, 0..text.len());
        let message = layout.tables.and_then(|number| profile.message(number)).unwrap_or(profile);
        let [name, _, file] = layout.function;
        let functions = message.messages(layout.functions).enumerate();
        let functions = functions.filter_map(|(number, function)| {
            Some((layout.id_of(number, &function)?, (position(&function, name), position(&function, file))))
        });
        let functions = functions.collect();
        let all_strings = || message.messages(layout.strings);
        let mut strings = Vec::with_capacity(all_strings().count());
        strings.extend(all_strings().map(|string| Site::from(string.span)));
        let attributes = layout.attributes.into_iter().flat_map(|field| message.messages(field));
        let value = |attribute: &Message<'_>| Some(attribute.message(2)?.message(1)?.span);
        let attributes =
            attributes.map(|one| (position(&one, 1), Site::from(value(&one).unwrap_or_default()))).collect();
        Self { layout, strings, attributes, functions, message }
    }

    /// The string whose position a field of `message` states.
    pub(super) fn string_of(&self, message: &Message<'_>, field: u64) -> String {
        self.string(position(message, field))
    }

    fn string(&self, position: usize) -> String {
        shown(self.bytes(position))
    }

    fn bytes(&self, position: usize) -> &'t [u8] {
        self.message.text.get(self.span(position)).unwrap_or_default()
    }

    /// The span of a string. Empty if there is no such string.
    fn span(&self, position: usize) -> Span {
        self.strings.get(position).map(|site| site.span()).unwrap_or_default()
    }

    /// The keys and the texts of the attributes whose positions a field of `message` states.
    pub(super) fn attributes(
        &self,
        message: &Message<'t>,
        field: u64,
    ) -> impl Iterator<Item = (&'t [u8], &'t [u8])> {
        message.numbers(field).take(ATTRIBUTES).filter_map(|number| {
            let (key, value) = self.attributes.get(usize::try_from(number).ok()?)?;
            Some((self.bytes(*key), self.message.text.get(value.span())?))
        })
    }

    /// The name, the file and the line of the concrete function at a location. `None` if it has no symbol.
    fn symbol(&self, location: &Message<'_>) -> Option<(Span, Span, u64)> {
        let [.., lines] = self.layout.location;
        let line = location.messages(lines).last()?;
        let (name, file) = *self.functions.get(&line.number(1)?)?;
        let name = Some(self.span(name)).filter(|name| !name.is_empty())?;
        Some((name, self.span(file), line.number(2).unwrap_or_default()))
    }

    fn image(&self, mapping: &Message<'_>) -> ReportImage {
        let [start, end, offset, path] = self.layout.mapping;
        let number = |field| mapping.number(field).unwrap_or_default();
        let (start, end, offset) = (number(start), number(end), number(offset));
        let load_address = start.wrapping_sub(offset);
        // Profilers that know the file write its addresses, so that those of all images overlap. Of a kernel, which they
        // know by its symbols, they write offsets and no range.
        let base = match (start, end) {
            (0, 0) => Base::Image,
            (0, _) => Base::File,
            _ => Base::FilePosition { mapped: offset },
        };
        ReportImage {
            id: (self.layout.build_id)(self, mapping),
            load_address,
            size: end.checked_sub(load_address).filter(|_| start != 0),
            base,
            ..ReportImage::of_file(self.string_of(mapping, path), &['/'])
        }
    }

    fn frame(&self, location: &Message<'_>, images: &HashMap<u64, usize>) -> Option<Frame> {
        let [mapping, address, _] = self.layout.location;
        let symbol = self.symbol(location);
        let has_line = symbol.as_ref().is_some_and(|(_, file, line)| *line != 0 || !file.is_empty());
        let is_code = (self.layout.is_code)(self, location);
        let image = location.number(mapping).filter(|_| is_code).and_then(|id| images.get(&id)).copied();
        let detail = SymbolDetail::of(symbol.is_some(), has_line);
        // A profiler moves return addresses back into the call.
        Some(Frame {
            // What an interpreter names stays.
            detail: if is_code { detail } else { SymbolDetail::Line },
            site: location.span.clone().into(),
            function: symbol.map(|(name, ..)| name.into()),
            ..Frame::new(location.number(address)?, image)
        })
    }
}

/// New functions and strings of a profile.
struct NewSymbols<'n, 't> {
    tables: &'n Tables<'t>,
    /// The fields to append to the tables.
    text: Vec<u8>,
    /// The next id that may be free.
    next_function: u64,
    /// Ids by name, linkage name and file, as positions in the table of strings.
    functions: HashMap<[u64; 3], u64>,
    /// The number of strings.
    next_string: u64,
    strings: HashMap<String, u64>,
    /// The positions of the strings of the profile, in the order of their texts, once they are asked for.
    known: OnceCell<Vec<u32>>,
}

impl<'n, 't> NewSymbols<'n, 't> {
    fn after(tables: &'n Tables<'t>) -> Self {
        let layout = tables.layout;
        let next_function = match layout.id {
            Some(_) => 1,
            None => tables.message.messages(layout.functions).count() as u64,
        };
        let (mut text, functions, strings) = Default::default();
        if next_function == 0 {
            // The first function of such a table means none.
            push_bytes(&mut text, layout.functions, &[]);
        }
        let (next_function, next_string) = (next_function.max(1), tables.strings.len() as u64);
        Self { tables, text, next_function, functions, next_string, strings, known: OnceCell::new() }
    }

    /// Returns the id of a function, and adds it if it is new.
    fn function(&mut self, resolved: &Function) -> u64 {
        let name = self.string(resolved.readable().unwrap_or_default());
        let linkage_name = self.string(resolved.name().unwrap_or_default());
        let file = self.string(resolved.line.map_or("", |_| resolved.file_path()));
        let texts = [name, linkage_name, file];
        while self.tables.functions.contains_key(&self.next_function) {
            self.next_function += 1;
        }
        let id = *self.functions.entry(texts).or_insert(self.next_function);
        if id == self.next_function {
            self.next_function += 1;
            let mut function = Vec::new();
            if let Some(field) = self.tables.layout.id {
                push_number(&mut function, field, id);
            }
            self.tables
                .layout
                .function
                .iter()
                .zip(texts)
                .for_each(|(field, text)| push_number(&mut function, *field, text));
            push_bytes(&mut self.text, self.tables.layout.functions, &function);
        }
        id
    }

    /// Returns the position of a string, and adds it if it is new. The first string of a profile is empty.
    fn string(&mut self, text: &str) -> u64 {
        if text.is_empty() {
            return 0;
        }
        if let Some(known) = self.strings.get(text).copied().or_else(|| self.known(text.as_bytes())) {
            return known;
        }
        push_bytes(&mut self.text, self.tables.layout.strings, text.as_bytes());
        let position = self.next_string;
        self.next_string += 1;
        self.strings.insert(text.to_owned(), position);
        position
    }

    /// The first position of a string in the table of the profile.
    fn known(&self, text: &[u8]) -> Option<u64> {
        let bytes = |at: &u32| self.tables.bytes(*at as usize);
        let sorted = self.known.get_or_init(|| {
            let mut all: Vec<u32> = (0..).take(self.tables.strings.len()).collect();
            all.sort_unstable_by(|one, other| bytes(one).cmp(bytes(other)).then(one.cmp(other)));
            all
        });
        let first = sorted.get(sorted.partition_point(|at| bytes(at) < text))?;
        (bytes(first) == text).then_some(u64::from(*first))
    }
}
