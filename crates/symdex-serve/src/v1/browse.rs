//! `GET /v1/images/{id}/functions` and `GET /v1/images/{id}/files`: the contents of an image.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, Query, State};
use serde::{Deserialize, Serialize};
use symdex::{Error, NonMaxU32, StringReader};
use symdex_store::IndexBytes;
use utoipa::{IntoParams, ToSchema};

use crate::app::SharedApp;
use crate::browse::{BrowsedImage, FileEntry, FunctionEntry};
use crate::problem::{Problem, ProblemDetails};
use crate::v1::address::Address;
use crate::v1::images;

/// How many entries an answer has at most, and by default.
const MAX_LIMIT: usize = 10_000;
const DEFAULT_LIMIT: usize = 100;

/// How many functions a request compares with `search`. Their names are demangled for it.
const MAX_SEARCHED: usize = 50_000;

type Strings<'i> = StringReader<'i, IndexBytes>;

/// Which functions of an image are listed.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct FunctionsQuery {
    /// Only functions whose name, demangled or not, has this text in it. Upper and lower case letters are the same.
    #[serde(default)]
    search: String,
    /// Only the function at this image offset, or else the nearest one below it.
    #[param(value_type = Option<String>, example = "0x5ed8")]
    address: Option<Address>,
    /// The order.
    #[serde(default)]
    sort: FunctionOrder,
    /// How many functions are skipped, in the order. `next_offset` of the last answer has the next functions.
    #[serde(default)]
    offset: usize,
    /// How many functions are listed at most: 100 by default, 10000 at most.
    limit: Option<usize>,
}

#[derive(Clone, Copy, Default, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum FunctionOrder {
    /// By address.
    #[default]
    Address,
    /// The largest first.
    Size,
}

/// Functions of an image.
#[derive(Serialize, ToSchema)]
pub(crate) struct FunctionList {
    /// How many functions the image has.
    total: usize,
    /// The offset of the next request; null at the end. With `search`, an answer may have fewer functions than `limit`
    /// and more may follow: a request looks at 50,000 functions.
    next_offset: Option<usize>,
    functions: Vec<FunctionView>,
}

/// A function of an image.
#[derive(Serialize, ToSchema)]
struct FunctionView {
    /// Its offset in the image.
    start: String,
    /// The bytes of its code.
    size: u64,
    /// How many ranges with answers of their own it has.
    ranges: u32,
    /// The demangled name.
    function: Option<String>,
    /// The linkage name.
    name: Option<String>,
    /// The file and line of its first instruction.
    file: Option<String>,
    line: Option<u32>,
    /// `dwarf` or `symbol_table`.
    table: &'static str,
}

/// Lists functions of an image: those with debug information, and the symbols at other addresses.
#[utoipa::path(get, path = "/v1/images/{id}/functions", tag = "symdex", security(("bearer" = ["read"])),
    params(("id" = String, Path, description = "The LC_UUID or the build id"), FunctionsQuery),
    responses((status = 200, body = FunctionList), (status = 400, body = ProblemDetails),
        (status = 404, body = ProblemDetails, description = "No store has the image"),
        (status = 501, body = ProblemDetails, description = "The store has the index in parts")))]
pub(crate) async fn functions(
    State(app): State<SharedApp>,
    Path(id): Path<String>,
    Query(query): Query<FunctionsQuery>,
) -> Result<Json<FunctionList>, Problem> {
    let limit = checked_limit(query.limit)?;
    let image = app.browser.browse(images::parse(&id)?, &app.workers).await?;
    let list = move |_: &_| list_functions(&image, &query, limit);
    app.run(list).await?.map(Json)
}

/// Which files of an image are listed.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct FilesQuery {
    /// How many files are listed at most: 100 by default, 10000 at most. `others` sums up the rest.
    limit: Option<usize>,
}

/// The code of an image by source file.
#[derive(Serialize, ToSchema)]
pub(crate) struct FileList {
    /// The bytes of all code.
    bytes: u64,
    /// The bytes of code without a file: without debug information, or without line.
    without_file: u64,
    /// The files with the most bytes, the largest first.
    files: Vec<FileView>,
    /// The files that are not listed.
    others: OtherFiles,
}

/// The code whose innermost function is in one file. Code that is inlined counts for the file that it is written in.
#[derive(Serialize, ToSchema)]
struct FileView {
    file: String,
    bytes: u64,
    /// How many of the bytes are inlined into other functions.
    inlined_bytes: u64,
}

#[derive(Default, Serialize, ToSchema)]
struct OtherFiles {
    files: usize,
    bytes: u64,
}

/// Lists the source files of an image with the bytes of their code.
#[utoipa::path(get, path = "/v1/images/{id}/files", tag = "symdex", security(("bearer" = ["read"])),
    params(("id" = String, Path, description = "The LC_UUID or the build id"), FilesQuery),
    responses((status = 200, body = FileList), (status = 400, body = ProblemDetails),
        (status = 404, body = ProblemDetails, description = "No store has the image"),
        (status = 501, body = ProblemDetails, description = "The store has the index in parts")))]
pub(crate) async fn files(
    State(app): State<SharedApp>,
    Path(id): Path<String>,
    Query(query): Query<FilesQuery>,
) -> Result<Json<FileList>, Problem> {
    let limit = checked_limit(query.limit)?;
    let image = app.browser.browse(images::parse(&id)?, &app.workers).await?;
    app.run(move |_| list_files(&image, limit)).await?.map(Json)
}

pub(super) fn checked_limit(limit: Option<usize>) -> Result<usize, Problem> {
    match limit.unwrap_or(DEFAULT_LIMIT) {
        limit @ 1..=MAX_LIMIT => Ok(limit),
        other => Err(Problem::bad_request(format!("found `limit={other}`, expected 1 to {MAX_LIMIT}"))),
    }
}

fn list_functions(
    image: &Arc<BrowsedImage>,
    query: &FunctionsQuery,
    limit: usize,
) -> Result<FunctionList, Problem> {
    let (overview, mut strings) = (&image.overview, image.index.strings());
    let total = overview.functions.len();
    if let Some(Address(address)) = query.address {
        let found = overview.at(address).map(|place| &overview.functions[place]);
        let views = found.map(|function| FunctionView::new(function, &mut strings)).transpose()?;
        return Ok(FunctionList { total, next_offset: None, functions: views.into_iter().collect() });
    }
    let search = query.search.to_lowercase();
    let last = match search.is_empty() {
        true => total,
        false => total.min(query.offset.saturating_add(MAX_SEARCHED)),
    };
    let mut at = query.offset;
    let mut functions = Vec::new();
    while at < last && functions.len() < limit {
        let place = match query.sort {
            FunctionOrder::Address => at,
            FunctionOrder::Size => overview.by_size[at] as usize,
        };
        let view = FunctionView::new(&overview.functions[place], &mut strings)?;
        if search.is_empty() || view.has(&search) {
            functions.push(view);
        }
        at += 1;
    }
    Ok(FunctionList { total, next_offset: (at < total).then_some(at), functions })
}

fn list_files(image: &BrowsedImage, limit: usize) -> Result<FileList, Problem> {
    let mut strings = image.index.strings();
    let mut list = FileList { bytes: 0, without_file: 0, files: Vec::new(), others: OtherFiles::default() };
    for FileEntry { file, bytes, inlined_bytes } in image.overview.files.iter().copied() {
        list.bytes = list.bytes.saturating_add(bytes);
        match text(file, |id| strings.file(id))? {
            None => list.without_file += bytes,
            Some(file) if list.files.len() < limit => {
                list.files.push(FileView { file, bytes, inlined_bytes });
            }
            Some(_) => {
                list.others.files += 1;
                list.others.bytes = list.others.bytes.saturating_add(bytes);
            }
        }
    }
    Ok(list)
}

/// The string with this id.
fn text<'s>(
    id: Option<NonMaxU32>,
    read: impl FnOnce(NonMaxU32) -> Result<&'s [u8], Error>,
) -> Result<Option<String>, Problem> {
    let bytes = id.map(read).transpose().map_err(|error| Problem::damaged(error.to_string()))?;
    Ok(bytes.map(|bytes| String::from_utf8_lossy(bytes).into_owned()))
}

impl FunctionView {
    fn new(entry: &FunctionEntry, strings: &mut Strings<'_>) -> Result<Self, Problem> {
        let name = text(entry.name, |id| strings.name(id))?;
        Ok(Self {
            start: format!("{:#x}", entry.start),
            size: entry.size,
            ranges: entry.ranges,
            function: name.as_ref().map(|name| symdex_demangle::demangle(name.as_bytes()).into_owned()),
            name,
            file: text(entry.file, |id| strings.file(id))?,
            line: entry.line.map(NonMaxU32::get),
            table: entry.table.name(),
        })
    }

    /// Whether one of the names has `lower_case` in it.
    fn has(&self, lower_case: &str) -> bool {
        let names = [&self.function, &self.name].into_iter().flatten();
        names.map(|name| name.to_lowercase()).any(|name| name.contains(lower_case))
    }
}
