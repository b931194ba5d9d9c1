//! Profiles of the Firefox Profiler in its processed format, which samply writes too. The libraries are a list, and the
//! frames are the rows of tables whose columns are arrays.
//!
//! An answer sets the columns of the frame's row and appends rows for its function. A row for an inlined function would
//! move the rows of stacks, which samples and markers name by their numbers. The rewritten profile has the concrete
//! function of each frame; text and JSON have inlined functions too.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use serde_json::json;
use symdex::{Arch, ImageId};

use crate::engine::limits::ReadLimit;
use crate::engine::symbolicate::{Resolution, Symbolicated};
use crate::error::Error;
use crate::formats::existing::ExistingSymbol;
use crate::formats::format::{Edit, Edits, Format};
use crate::formats::json::{Json, List, Value};
use crate::report::{Frame, Parsed, Report, ReportImage, SymbolDetail, Thread};
use crate::text::{has, is_object};
use symdex::debug_id;

/// The format of the Firefox Profiler's profiles.
pub(crate) const FORMAT: Format = Format {
    name: "firefox-profile",
    description: "Profiles of the Firefox Profiler and samply, with the concrete function of each frame",
    example: concat!(
        r#"{"libs":[{"name":"App","breakpadId":"6DCD4E9DD3B13A0E8DFF6A5A4BE1B1B00"}],"threads":["#,
        r#"{"frameTable":{"address":[976],"func":[0]},"funcTable":{"name":[0],"resource":[0]},"#,
        r#""resourceTable":{"lib":[0]},"stringArray":["0x3d0"]}]}"#,
    ),
    marks: &[r#""frameTable""#, r#""resourceTable""#, r#""libs""#],
    recognises,
    parse,
    existing_symbols: Some(existing_symbols),
    edits: Edits::All(edits),
    ..Format::JSON
};

fn recognises(text: &[u8]) -> bool {
    is_object(text) && has(text, "\"frameTable\"") && has(text, "\"resourceTable\"") && has(text, "\"libs\"")
}

fn parse(text: &[u8]) -> Result<Parsed, Error> {
    let json = Json::parse(text, 0)?;
    let profile = json.root();
    let platform = profile.get("meta").and_then(|meta| meta.get("platform")?.text()).unwrap_or_default();
    let is_elf = matches!(&*platform, "X11" | "Android" | "Linux");
    let libs = profile.get("libs").into_iter().flat_map(Value::elements);
    let limit = ReadLimit::of(text.len());
    let libs = libs.take_while(|_| limit.take_image());
    let images = libs.map(|lib| image(lib, is_elf)).collect();
    let threads = all_tables(profile).take_while(|_| limit.has_room()).map(|tables| Thread {
        name: tables.name.clone(),
        frames: limit.stack(tables.rows().filter_map(|row| tables.frame(row))),
        ..Thread::default()
    });
    let threads = threads.collect();
    Ok(Parsed { images, threads, extent: limit.extent(json.rest()), ..Parsed::default() })
}

/// Reads a library. The code id of an ELF image is its build id.
fn image(lib: Value<'_>, is_elf: bool) -> ReportImage {
    let text = |key: &str| lib.get(key).and_then(Value::text).unwrap_or_default().into_owned();
    let (path, debug_id) = (text("path"), text("breakpadId"));
    let code_id: Option<ImageId> = text("codeId").parse().ok();
    let is_elf = is_elf || path.contains(".so");
    let stated = code_id.filter(|id| id.as_bytes().len() >= 16);
    let is_id_cut = stated.is_none() && is_elf;
    let of_debug_id = || if is_elf { debug_id::build_id_start(&debug_id) } else { debug_id::uuid(&debug_id) };
    ReportImage {
        name: text("name"),
        path,
        arch: Arch::from_name(&text("arch")),
        id: stated.or_else(of_debug_id),
        is_id_cut,
        ..ReportImage::default()
    }
}

/// The tables of one thread, or of all threads in newer versions.
struct Tables<'j> {
    name: String,
    strings: Strings<'j>,
    functions: Value<'j>,
    native_symbols: Option<Value<'j>>,
    native_symbol_count: Option<usize>,
    address: Column<'j>,
    function: Column<'j>,
    native_symbol: Column<'j>,
    line: Column<'j>,
    function_name: Column<'j>,
    resource: Column<'j>,
    lib: Column<'j>,
}

/// The strings that the tables of a thread name by their positions.
#[derive(Clone)]
struct Strings<'j> {
    array: Value<'j>,
    /// In some versions, all threads have the strings in common.
    elements: Rc<List<'j>>,
}

impl<'j> Strings<'j> {
    /// The strings in `owner`. `None` if it has none.
    fn of(owner: Value<'j>) -> Option<Self> {
        let array = owner.get("stringArray")?;
        Some(Self { array, elements: array.list().into() })
    }
}

fn all_tables(profile: Value<'_>) -> impl Iterator<Item = Tables<'_>> {
    let shared = profile.get("shared");
    let shared_strings = shared.and_then(Strings::of);
    let threads = profile.get("threads").into_iter().flat_map(Value::elements);
    shared.into_iter().chain(threads).filter_map(move |owner| Tables::of(owner, shared_strings.as_ref()))
}

/// The elements of an array that is a member of a table. `None` if there is none.
type Column<'j> = Option<List<'j>>;

fn column<'j>(table: Value<'j>, key: &str) -> Column<'j> {
    table.get(key).map(Value::list)
}

/// The number of rows of a column.
fn rows(column: &Column<'_>) -> usize {
    column.as_ref().map_or(0, List::len)
}

/// The value in a row of a column.
fn value<'j>(column: &Column<'j>, row: usize) -> Option<Value<'j>> {
    column.as_ref()?.get(row)
}

/// The number in a row that another column has there.
fn at(column: &Column<'_>, row: usize) -> Option<usize> {
    usize::try_from(value(column, row)?.number()?).ok()
}

impl<'j> Tables<'j> {
    /// The tables in `owner`, with `shared` strings if it has none of its own. `None` if it has no frames.
    fn of(owner: Value<'j>, shared: Option<&Strings<'j>>) -> Option<Self> {
        let (frames, functions) = (owner.get("frameTable")?, owner.get("funcTable")?);
        let strings = Strings::of(owner).or_else(|| shared.cloned())?;
        let name = owner.get("name").and_then(Value::text).unwrap_or_default();
        Some(Self {
            name: format!("Frames of {}", if name.is_empty() { "all threads" } else { &name }),
            strings,
            functions,
            native_symbols: owner.get("nativeSymbols"),
            native_symbol_count: owner.get("nativeSymbols").map(|table| rows(&column(table, "name"))),
            address: column(frames, "address"),
            function: column(frames, "func"),
            native_symbol: column(frames, "nativeSymbol"),
            line: column(frames, "line"),
            function_name: column(functions, "name"),
            resource: column(functions, "resource"),
            lib: column(owner.get("resourceTable")?, "lib"),
        })
    }

    /// The rows of the frames that have an address. Other frames have -1.
    fn rows(&self) -> impl Iterator<Item = usize> {
        (0..rows(&self.address)).filter(|row| self.address(*row).is_some())
    }

    /// The address of a frame.
    fn address(&self, row: usize) -> Option<u64> {
        value(&self.address, row)?.number()
    }

    /// The name of a frame's function. A frame without a symbol has its address in place of the name.
    fn name(&self, row: usize) -> Option<Value<'j>> {
        let string = at(&self.function_name, at(&self.function, row)?)?;
        let name = self.strings.elements.get(string);
        name.filter(|name| !name.unescaped().is_empty() && !name.unescaped().starts_with(b"0x"))
    }

    fn line_number(&self, row: usize) -> Option<u64> {
        value(&self.line, row)?.number()
    }

    /// The frame of a row. `None` if it has no address.
    fn frame(&self, row: usize) -> Option<Frame> {
        let address = value(&self.address, row)?;
        let lib = || at(&self.lib, at(&self.resource, at(&self.function, row)?)?);
        let name = self.name(row);
        // Profilers move return addresses back into the call.
        Some(Frame {
            detail: SymbolDetail::of(name.is_some(), self.line_number(row).is_some()),
            site: address.span().into(),
            function: name.map(Value::inner),
            ..Frame::new(address.number()?, lib())
        })
    }
}

fn existing_symbols(report: &Report<'_>) -> Vec<Vec<ExistingSymbol>> {
    // The text was parsed before, so this does not fail.
    let Ok(json) = Json::parse(report.text(), 0) else {
        return Vec::new();
    };
    let symbols = |(tables, thread): (Tables<'_>, &Thread)| {
        let symbol = |row| {
            let function = tables.name(row).and_then(Value::text).map(|name| name.into_owned());
            let line = tables.line_number(row).and_then(|line| u32::try_from(line).ok());
            ExistingSymbol {
                line: line.filter(|_| function.is_some()),
                function,
                ..ExistingSymbol::default()
            }
        };
        tables.rows().take(thread.frames.len()).map(symbol).collect()
    };
    all_tables(json.root()).zip(&report.threads).map(symbols).collect()
}

fn edits(symbolicated: &Symbolicated<'_, '_>) -> Vec<Edit> {
    let text = symbolicated.report.text();
    // The text was parsed before, so this does not fail.
    let Ok(json) = Json::parse(text, 0) else {
        return Vec::new();
    };
    let profile = json.root();
    let mut edits = Vec::new();
    // New strings, by the start of the array that gets them.
    let mut strings = BTreeMap::new();
    for (thread, tables) in all_tables(profile).enumerate().take(symbolicated.report.threads.len()) {
        let strings =
            strings.entry(tables.strings.array.span().start).or_insert_with(|| NewStrings::of(&tables));
        let mut new = NewRows::of(&tables, strings);
        for (number, row) in tables.rows().enumerate() {
            if let Some(resolution) = symbolicated.resolution(thread, number) {
                edits.extend(new.frame(row, &resolution));
            }
        }
        edits.extend(new.edits());
    }
    edits.extend(strings.into_values().filter_map(NewStrings::edit));
    let state = profile.get("meta").and_then(|meta| meta.get("symbolicated"));
    // The profiler asks for symbols otherwise.
    if let Some(state) = state.filter(|state| !edits.is_empty() && state.bytes() == b"false") {
        edits.push(Edit { span: state.span(), text: b"true".to_vec() });
    }
    edits
}

/// The edit that appends `values` to an array. `None` if there are none.
fn append(array: Value<'_>, values: &[serde_json::Value]) -> Option<Edit> {
    let end = array.span().end.checked_sub(1)?;
    let last = array.elements().last().map_or(end, |last| last.span().end);
    let comma = if array.elements().next().is_some() { "," } else { "" };
    let list = values.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
    (!values.is_empty()).then(|| Edit { span: last..last, text: format!("{comma}{list}").into_bytes() })
}

/// New strings of an array.
struct NewStrings<'j> {
    array: Value<'j>,
    count: usize,
    new: Vec<serde_json::Value>,
    known: HashMap<String, usize>,
}

impl<'j> NewStrings<'j> {
    fn of(tables: &Tables<'j>) -> Self {
        Self {
            array: tables.strings.array,
            count: tables.strings.elements.len(),
            new: Vec::new(),
            known: HashMap::new(),
        }
    }

    /// Returns the position of a string, and adds it if it is new.
    fn position(&mut self, text: &str) -> usize {
        let next = self.count + self.new.len();
        let position = *self.known.entry(text.to_owned()).or_insert(next);
        if position == next {
            self.new.push(json!(text));
        }
        position
    }

    fn edit(self) -> Option<Edit> {
        append(self.array, &self.new)
    }
}

/// New rows of the tables of functions and of native symbols.
struct NewRows<'n, 'j> {
    tables: &'n Tables<'j>,
    strings: &'n mut NewStrings<'j>,
    /// The name, the file and the resource of each new function.
    functions: Vec<[serde_json::Value; 3]>,
    function_rows: HashMap<(usize, usize, usize), usize>,
    /// The name, the library and the address of each new native symbol.
    symbols: Vec<[serde_json::Value; 3]>,
    symbol_rows: HashMap<(usize, usize, u64), usize>,
}

impl<'n, 'j> NewRows<'n, 'j> {
    fn of(tables: &'n Tables<'j>, strings: &'n mut NewStrings<'j>) -> Self {
        let (functions, function_rows) = Default::default();
        let (symbols, symbol_rows) = Default::default();
        Self { tables, strings, functions, function_rows, symbols, symbol_rows }
    }

    /// The edits of a frame's row.
    fn frame(&mut self, row: usize, resolution: &Resolution<'_>) -> Vec<Edit> {
        let Some(concrete) = resolution.frames.last() else { return Vec::new() };
        let set = |column: &Column<'_>, new: Option<serde_json::Value>| {
            Some(Edit { span: value(column, row)?.span(), text: new?.to_string().into_bytes() })
        };
        let function = concrete.readable().and_then(|function| {
            let old = at(&self.tables.function, row)?;
            let resource = at(&self.tables.resource, old)?;
            let name = self.strings.position(function);
            let file = concrete.line.map(|_| self.strings.position(concrete.file_path()));
            let next = rows(&self.tables.function_name) + self.functions.len();
            let key = (name, file.unwrap_or(usize::MAX), resource);
            let new = *self.function_rows.entry(key).or_insert(next);
            if new == next {
                self.functions.push([json!(name), json!(file), json!(resource)]);
            }
            Some((new, name, resource))
        });
        let symbol = function.zip(concrete.start).and_then(|((_, name, resource), start)| {
            let lib = at(&self.tables.lib, resource)?;
            let next = self.tables.native_symbol_count? + self.symbols.len();
            let new = *self.symbol_rows.entry((name, lib, start.0)).or_insert(next);
            if new == next {
                self.symbols.push([json!(name), json!(lib), json!(start.0)]);
            }
            Some(json!(new))
        });
        let edits = [
            set(&self.tables.function, function.map(|(row, ..)| json!(row))),
            set(&self.tables.native_symbol, symbol),
            set(&self.tables.line, concrete.line.map(|line| json!(line))),
        ];
        edits.into_iter().flatten().collect()
    }

    /// The edits that append the new rows. Columns that the answers do not know get a default.
    fn edits(self) -> Vec<Edit> {
        let mut edits = Vec::new();
        let function_columns = [("name", 0), ("fileName", 1), ("resource", 2)];
        edits.extend(append_rows(self.tables.functions, &function_columns, &self.functions));
        let symbol_columns = [("name", 0), ("libIndex", 1), ("address", 2)];
        let symbols = self.tables.native_symbols.into_iter();
        edits.extend(symbols.flat_map(|table| append_rows(table, &symbol_columns, &self.symbols)));
        edits
    }
}

/// How many members of a table get new rows. The tables have about ten, and each row is written to all of them.
const MAX_COLUMNS: usize = 32;

/// The edits that append `rows` to a table. `columns` are keys and positions in a row.
fn append_rows(table: Value<'_>, columns: &[(&str, usize)], rows: &[[serde_json::Value; 3]]) -> Vec<Edit> {
    let mut edits = Vec::new();
    for (key, value) in table.members().take(MAX_COLUMNS) {
        let position = columns.iter().find(|(name, _)| name.as_bytes() == key.unescaped()).map(|(_, at)| *at);
        if key.unescaped() == b"length" {
            let length = value.number().unwrap_or_default().saturating_add(rows.len() as u64);
            edits.push(Edit { span: value.span(), text: length.to_string().into_bytes() });
        } else if value.bytes().starts_with(b"[") {
            let default = match key.unescaped() {
                b"isJS" | b"relevantForJS" => json!(false),
                _ => json!(null),
            };
            let values =
                rows.iter().map(|row| position.map_or_else(|| default.clone(), |at| row[at].clone()));
            edits.extend(append(value, &values.collect::<Vec<_>>()));
        }
    }
    if rows.is_empty() { Vec::new() } else { edits }
}
