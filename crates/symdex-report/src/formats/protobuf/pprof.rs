//! Profiles of pprof that have addresses and no symbols. A profile has one table of locations, which all its samples
//! share. It is read as one stack. A compressed profile is decompressed first.
//!
//! A location has fields for the functions inlined into it. The rewritten profile has them, and new functions and
//! strings at its end.

use std::collections::{BTreeSet, HashMap};

use symdex::ImageId;

use super::{Answers, Message, push_bytes, push_number, rewritten, without};
use crate::engine::function::Function;
use crate::engine::limits::ReadLimit;
use crate::engine::symbolicate::Symbolicated;
use crate::error::Error;
use crate::formats::existing::ExistingSymbol;
use crate::formats::format::{Edit, Edits, Format};
use crate::report::{Frame, Parsed, Report, ReportImage, Site, Span, SymbolDetail, Thread};
use crate::text::lossy;

/// The format of pprof's profiles.
pub(crate) const FORMAT: Format = Format {
    name: "pprof",
    description: "Profiles of pprof, with the build ids of their mappings",
    recognises,
    parse,
    existing_symbols: Some(existing_symbols),
    edits: Edits::All(edits),
    ..Format::BINARY
};

/// The numbers of fields of a profile.
mod of_profile {
    pub(super) const MAPPING: u64 = 3;
    pub(super) const LOCATION: u64 = 4;
    pub(super) const FUNCTION: u64 = 5;
    pub(super) const STRING: u64 = 6;
}
/// The numbers of fields of a location.
mod of_location {
    pub(super) const MAPPING: u64 = 2;
    pub(super) const ADDRESS: u64 = 3;
    pub(super) const LINE: u64 = 4;
}
/// The fields of a mapping that say that its locations have functions, files, lines and inlined functions.
const MAPPING_FLAGS: [u64; 4] = [7, 8, 9, 10];

fn recognises(text: &[u8]) -> bool {
    let profile = Message::new(text, 0..text.len());
    // The first bytes of text can look like a field. The first string of a profile is empty.
    let begins = profile.fields().next().is_some_and(|field| field.number <= 6);
    begins
        && profile.intact_end() == text.len()
        && profile.messages(of_profile::STRING).next().is_some_and(|string| string.span.is_empty())
        && profile
            .messages(of_profile::LOCATION)
            .any(|location| location.number(of_location::ADDRESS).is_some())
}

/// The tables of a profile.
struct Tables<'t> {
    profile: Message<'t>,
    strings: Vec<Site>,
    /// The name and the file of each function, by id, as positions in the table of strings.
    functions: HashMap<u64, (usize, usize)>,
}

impl<'t> Tables<'t> {
    fn of(text: &'t [u8]) -> Self {
        let profile = Message::new(text, 0..text.len());
        let position = |function: &Message<'_>, number| {
            function.number(number).and_then(|position| usize::try_from(position).ok()).unwrap_or_default()
        };
        let functions = profile.messages(of_profile::FUNCTION);
        let functions = functions.filter_map(|function| {
            Some((function.number(1)?, (position(&function, 2), position(&function, 4))))
        });
        let all_strings = || profile.messages(of_profile::STRING);
        let mut strings = Vec::with_capacity(all_strings().count());
        strings.extend(all_strings().map(|string| Site::from(string.span)));
        Self { strings, functions: functions.collect(), profile }
    }

    fn string(&self, position: usize) -> String {
        let span = self.strings.get(position).map(|site| site.span()).unwrap_or_default();
        lossy(self.profile.text.get(span).unwrap_or_default())
    }

    /// The name, the file and the line of the concrete function at a location. `None` if it has no symbol.
    fn symbol(&self, location: &Message<'_>) -> Option<(Span, String, u64)> {
        let line = location.messages(of_location::LINE).last()?;
        let (name, file) = *self.functions.get(&line.number(1)?)?;
        let name = self.strings.get(name).map(|site| site.span()).filter(|name| !name.is_empty())?;
        Some((name, self.string(file), line.number(2).unwrap_or_default()))
    }

    fn image(&self, mapping: &Message<'_>) -> ReportImage {
        let number = |number| mapping.number(number).unwrap_or_default();
        let text = |field| self.string(usize::try_from(number(field)).unwrap_or(usize::MAX));
        let load_address = number(2).wrapping_sub(number(4));
        let id: Option<ImageId> = text(6).parse().ok();
        ReportImage {
            id,
            load_address,
            size: number(3).checked_sub(load_address),
            ..ReportImage::of_file(text(5), &['/'])
        }
    }

    fn frame(&self, location: &Message<'_>, images: &HashMap<u64, usize>) -> Option<Frame> {
        let symbol = self.symbol(location);
        let has_line = symbol.as_ref().is_some_and(|(_, file, line)| *line != 0 || !file.is_empty());
        let mapping = location.number(of_location::MAPPING);
        let image = mapping.and_then(|id| images.get(&id)).copied();
        // A profiler moves return addresses back into the call.
        Some(Frame {
            detail: SymbolDetail::of(symbol.is_some(), has_line),
            site: location.span.clone().into(),
            function: symbol.map(|(name, ..)| name.into()),
            ..Frame::new(location.number(of_location::ADDRESS)?, image)
        })
    }
}

fn parse(text: &[u8]) -> Result<Parsed, Error> {
    let tables = Tables::of(text);
    let limit = ReadLimit::of(text.len());
    let mappings = tables.profile.messages(of_profile::MAPPING);
    let mappings: Vec<_> = mappings.take_while(|_| limit.take_image()).collect();
    let ids = mappings.iter().enumerate().filter_map(|(number, mapping)| Some((mapping.number(1)?, number)));
    let ids = ids.collect();
    let locations = tables.profile.messages(of_profile::LOCATION);
    let frames = limit.stack(locations.filter_map(|location| tables.frame(&location, &ids)));
    let images = mappings.iter().map(|mapping| tables.image(mapping)).collect();
    let threads = vec![Thread { name: "Locations".to_owned(), frames, ..Thread::default() }];
    Ok(Parsed { images, threads, extent: limit.extent(0), ..Parsed::default() })
}

fn existing_symbols(report: &Report<'_>) -> Vec<Vec<ExistingSymbol>> {
    let tables = Tables::of(report.text());
    report.map_frames(|frame| {
        let symbol = tables.symbol(&Message::new(report.text(), frame.site.span()));
        let Some((name, file, line)) = symbol else { return ExistingSymbol::default() };
        let line = u32::try_from(line).ok().filter(|line| *line != 0);
        let file = Some(file).filter(|file| !file.is_empty());
        ExistingSymbol { function: Some(lossy(&report.text()[name])), file, line, offset: None }
    })
}

fn edits(symbolicated: &Symbolicated<'_, '_>) -> Vec<Edit> {
    let tables = Tables::of(symbolicated.report.text());
    let answers = Answers::new(symbolicated);
    let resolved =
        symbolicated.frames().filter(|(thread, frame)| symbolicated.resolution(*thread, *frame).is_some());
    let images: BTreeSet<_> =
        resolved.filter_map(|(thread, frame)| symbolicated.image_of(thread, frame)).collect();
    let mappings = tables.profile.messages(of_profile::MAPPING).enumerate();
    let answered: BTreeSet<_> = mappings
        .filter(|(number, _)| images.contains(number))
        .map(|(_, mapping)| mapping.span.start)
        .collect();
    let mut new = NewSymbols::after(&tables);
    let paths: [&[u64]; 2] = [&[of_profile::MAPPING], &[of_profile::LOCATION]];
    let text = rewritten(&tables.profile, &paths, &mut |message| {
        if answered.contains(&message.span.start) {
            let mut mapping = without(message, &MAPPING_FLAGS);
            MAPPING_FLAGS.iter().for_each(|flag| push_number(&mut mapping, *flag, 1));
            return Some(mapping);
        }
        let resolution = answers.of(message)?;
        let mut location = without(message, &[of_location::LINE]);
        for resolved in resolution.frames {
            let mut line = Vec::new();
            push_number(&mut line, 1, new.function(resolved));
            push_number(&mut line, 2, resolved.line.unwrap_or_default().into());
            push_bytes(&mut location, of_location::LINE, &line);
        }
        Some(location)
    });
    let edit = text.map(|text| Edit { span: tables.profile.span.clone(), text: [text, new.text].concat() });
    edit.into_iter().collect()
}

/// New functions and strings of a profile.
#[derive(Default)]
struct NewSymbols {
    /// The fields to append to the profile.
    text: Vec<u8>,
    /// The id of the next function.
    next_function: u64,
    /// Ids by name, linkage name and file, as positions in the table of strings.
    functions: HashMap<[u64; 3], u64>,
    /// The number of strings.
    next_string: u64,
    strings: HashMap<String, u64>,
}

impl NewSymbols {
    fn after(tables: &Tables<'_>) -> Self {
        let next_function = tables.functions.keys().max().map_or(1, |last| last.saturating_add(1));
        Self { next_function, next_string: tables.strings.len() as u64, ..Self::default() }
    }

    /// Returns the id of a function, and adds it if it is new.
    fn function(&mut self, resolved: &Function) -> u64 {
        let name = self.string(resolved.readable().unwrap_or_default());
        let linkage_name = self.string(resolved.name().unwrap_or_default());
        let file = self.string(resolved.line.map_or("", |_| resolved.file_path()));
        let id = *self.functions.entry([name, linkage_name, file]).or_insert(self.next_function);
        if id == self.next_function {
            self.next_function += 1;
            let mut function = Vec::new();
            for (number, value) in [(1, id), (2, name), (3, linkage_name), (4, file)] {
                push_number(&mut function, number, value);
            }
            push_bytes(&mut self.text, of_profile::FUNCTION, &function);
        }
        id
    }

    /// Returns the position of a string, and adds it if it is new. The first string of a profile is empty.
    fn string(&mut self, text: &str) -> u64 {
        if text.is_empty() {
            return 0;
        }
        if let Some(known) = self.strings.get(text) {
            return *known;
        }
        push_bytes(&mut self.text, of_profile::STRING, text.as_bytes());
        let position = self.next_string;
        self.next_string += 1;
        self.strings.insert(text.to_owned(), position);
        position
    }
}
