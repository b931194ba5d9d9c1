//! The functions of the symbol table by the rules. They are read independently of the builder, with the readers of the
//! crate object.

use std::collections::HashSet;

use object::File;
use symdex_build::{FunctionSymbol, Image};

use crate::image::section_end;
use crate::stubs::{self, Stub};
use crate::symbols::{Entry, Kind, symbols};
use crate::unwound::{function_starts, unwound};

/// A function of the symbol table or the unwind information.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TableFunction<'d> {
    /// Its first image offset.
    pub(crate) start: u64,
    /// The end of its range, exclusive, as an image offset.
    pub(crate) end: u64,
    pub(crate) name: Option<&'d [u8]>,
    /// Its other names, the best first.
    pub(crate) others: Vec<&'d [u8]>,
}

/// The functions, sorted by address, one for each.
pub(crate) fn read<'d>(image: &Image<'d>) -> Vec<TableFunction<'d>> {
    if image.files().is_empty() {
        // There is no second reader for the symbols of a shared cache.
        return builders(image);
    }
    let files: Vec<File<'d>> = image.files().iter().filter_map(|bytes| File::parse(*bytes).ok()).collect();
    let mut entries: Vec<Entry<'d>> = files.iter().flat_map(|file| symbols(image, file)).collect();
    let nameless =
        image.files().iter().flat_map(|bytes| function_starts(bytes, image.info().arch.is_arm32()));
    let unwound = files.iter().flat_map(|file| unwound(file, image.info().base));
    let nameless = nameless.map(|start| (start, None)).chain(unwound);
    entries.extend(nameless.map(|(start, end)| Entry {
        start,
        is_nameless: true,
        badness: (u8::MAX, u8::MAX, true),
        name: b"",
        end,
        kind: Kind::Label,
    }));
    let stubs = files.iter().flat_map(|file| stubs::read(image, file));
    entries.extend(stubs.map(|Stub { start, end, name }| Entry {
        start,
        is_nameless: false,
        // Any symbol is better.
        badness: (u8::MAX, u8::MAX, false),
        name: builders_name(image, start, &name),
        end: Some(end),
        kind: Kind::Function,
    }));
    entries.sort_unstable();
    let mut functions = Vec::new();
    // The greatest end that symbols, and unwind information, at lower addresses state.
    let (mut symbols_reach, mut functions_reach, mut unwound_reach) = (0, 0, 0);
    for (number, group) in grouped(&entries) {
        let start = group[0].start;
        let Some(section_end) = section_end(image, start) else { continue };
        let next = entries.get(number + group.len()).map_or(section_end, |next| next.start);
        let stated = |nameless: bool| {
            let ends =
                group.iter().filter(|entry| entry.is_nameless == nameless).filter_map(|entry| entry.end);
            ends.max().filter(|end| *end > start).map(|end| end.min(section_end))
        };
        let (symbol_end, unwound_end) = (stated(false), stated(true));
        unwound_reach = unwound_reach.max(unwound_end.unwrap_or(0));
        let end = match symbol_end {
            Some(end) => end,
            // Inside another symbol: a label, or what begins a function if that is none.
            None if start < functions_reach => continue,
            None if start < symbols_reach && group.iter().all(|entry| entry.kind == Kind::Label) => continue,
            None if start < symbols_reach => symbols_reach.min(section_end),
            None if start < unwound_reach => next.min(unwound_reach),
            None => next.min(section_end),
        };
        symbols_reach = symbols_reach.max(symbol_end.unwrap_or(0));
        if group.iter().any(|entry| entry.kind == Kind::Function) {
            functions_reach = functions_reach.max(symbol_end.unwrap_or(0));
        }
        let names = group.iter().filter(|entry| !entry.is_nameless && !entry.name.is_empty());
        let names =
            names.map(|entry| image.symbol_map().map_or(entry.name, |map| map.resolve_symbol(entry.name)));
        let mut seen = HashSet::new();
        let mut others: Vec<_> = names.filter(|name| seen.insert(*name)).collect();
        let is_named = !group[0].is_nameless && !group[0].name.is_empty();
        let name = is_named.then(|| others.remove(0));
        functions.push(TableFunction { start, end, name, others });
    }
    functions
}

/// The name of the builder at `start` that equals `name`, which is in no file; "another name" if it has none.
fn builders_name<'d>(image: &Image<'d>, start: u64, name: &[u8]) -> &'d [u8] {
    let symbol = image.symbols().at(start);
    let mut names = symbol.into_iter().flat_map(|symbol| symbol.name.into_iter().chain(symbol.aliases()));
    names.find(|builders| *builders == name).unwrap_or(b"another name")
}

/// The functions that the builder has read.
fn builders<'d>(image: &Image<'d>) -> Vec<TableFunction<'d>> {
    let function = |symbol: FunctionSymbol<'_, 'd>| TableFunction {
        start: symbol.start,
        end: symbol.end,
        name: symbol.name,
        others: symbol.aliases().collect(),
    };
    image.symbols().iter().map(function).collect()
}

/// The first difference between the builder's functions and `table`, as text.
pub(crate) fn difference(image: &Image<'_>, table: &[TableFunction<'_>]) -> Option<String> {
    let builders = builders(image);
    let differ = builders.iter().zip(table).position(|(ours, rules)| ours != rules);
    let longer = (builders.len() != table.len()).then(|| builders.len().min(table.len()));
    let at = differ.or(longer)?;
    let text = |function: Option<&TableFunction<'_>>| match function {
        Some(TableFunction { start, end, name, others }) => {
            // A name in a hostile file can be as long as the file.
            let name = name.unwrap_or(b"-");
            let name = String::from_utf8_lossy(&name[..name.len().min(400)]);
            let others = if others.is_empty() { "" } else { " and others" };
            format!("{name}{others} [{start:#x}, {end:#x})")
        }
        None => "nothing".to_owned(),
    };
    Some(format!("{}, by the rules {}", text(builders.get(at)), text(table.get(at))))
}

/// The entries of each address, with the index of the first.
fn grouped<'e, 'd>(entries: &'e [Entry<'d>]) -> impl Iterator<Item = (usize, &'e [Entry<'d>])> {
    let groups = entries.chunk_by(|a, b| a.start == b.start);
    groups.scan(0, |number, group| {
        let first = *number;
        *number += group.len();
        Some((first, group))
    })
}
