//! `POST /v1/symbolicate`: crash reports.

use std::io::{self, Write};
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use serde::{Deserialize, Serialize};
use symdex::LinePolicy;
use symdex_answer::Matching;
use symdex_report::{
    Addresses, FormatKind, ImageOutcome, Options, OutputFormat, Report, ReportView, Symbolicated, Unanswered,
    most_memory, symbolicate,
};
use symdex_store::IdPrefix;
use tokio::sync::mpsc;
use utoipa::IntoParams;

use crate::app::{App, SharedApp};
use crate::limits::{Lane, Reserved, WrittenAnswer};
use crate::problem::{Problem, ProblemDetails, ProblemKind};
use crate::unasked::StoreFailures;
use crate::v1::accepts;
use crate::v1::lookup::retry_if;

/// How many answered lines of a batch may wait for the client.
const WAITING_LINES: usize = 4;

/// How many images a request may assume.
const MAX_ASSUMED: usize = 32;

const NDJSON: &str = "application/x-ndjson";

/// How a report is answered. The names and defaults are those of `symdex symbolicate`.
#[derive(Clone, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct SymbolicateOptions {
    /// The format of the answer. With the header `Accept: application/json`, the default is `json`.
    format: Option<OutputFormat>,
    /// Which rows of the line table answer.
    #[serde(default)]
    lines: LinePolicy,
    /// `adjusted` looks up return addresses one byte before, `as-given` at the address, as atos does.
    #[serde(default)]
    addresses: Addresses,
    /// Whether inlined functions get frames of their own.
    #[serde(default = "yes")]
    inlines: bool,
    /// Whether names are demangled.
    #[serde(default = "yes")]
    demangle: bool,
    /// Whether frames that have a function's name stay unchanged, even if they have no file and line.
    #[serde(default)]
    only_missing: bool,
    /// Whether an image without an id is answered by the only image of its name and architecture.
    #[serde(default)]
    match_by_name: bool,
    /// `NAME=ID`: the image NAME is answered by the image with this id or these first digits of an id. The id in the
    /// report is ignored. May be repeated, up to 32 times.
    #[serde(default)]
    #[param(value_type = Vec<String>, example = json!(["MyApp=0c37c502-aba0-3641-a08f-84c794684f36"]))]
    assume: Vec<AssumedImage>,
    /// The name of the report in JSON.
    #[serde(default)]
    name: String,
}

/// The name of an image in the report, and the id of the image that answers it.
#[derive(Clone, Deserialize)]
#[serde(try_from = "String")]
struct AssumedImage(String, IdPrefix);

impl TryFrom<String> for AssumedImage {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        match text.split_once('=') {
            Some((name, id)) if !name.is_empty() => {
                Ok(Self(name.to_owned(), id.parse().map_err(|error| format!("`assume`: {error}"))?))
            }
            _ => Err(format!("found `assume={text}`, expected NAME=ID")),
        }
    }
}

fn yes() -> bool {
    true
}

/// Options whose assumed images are found.
#[derive(Clone)]
struct MatchedOptions {
    stated: SymbolicateOptions,
    matching: Option<Arc<Matching>>,
}

/// A report of a batch.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BatchLine {
    /// The name of the report in the answer.
    #[serde(default)]
    name: String,
    /// The report.
    report: String,
}

/// The JSON form of an answered report.
#[derive(Serialize)]
struct AnsweredReport<'s> {
    report: &'s str,
    #[serde(flatten)]
    view: ReportView<'s>,
}

/// The JSON form of a report of a batch that could not be read.
#[derive(Serialize)]
struct FailedReport<'s> {
    report: &'s str,
    error: ProblemDetails,
}

/// Answers a report: the report in its own format, with functions, files and lines; or JSON.
///
/// The body is the report, in any format that `symdex symbolicate --list-formats` lists, or a minidump, whose stacks
/// are walked. Its own format is then the JSON of minidump-stackwalk. With `Content-Type: application/x-ndjson`, each
/// line of the body is a report, `{"name": "...", "report": "..."}`, and each line of the answer is one in JSON, in the
/// same order; a report that cannot be read has `error` with the problem.
#[utoipa::path(post, path = "/v1/symbolicate", tag = "symdex", security(("bearer" = ["read"])),
    params(SymbolicateOptions),
    request_body(content = Vec<u8>, content_type = "application/octet-stream", description = "A report"),
    responses((status = 200, description = "The report, with answers"),
        (status = 422, body = ProblemDetails, description = "The body is not a report in a supported format"),
        (status = 503, body = ProblemDetails,
            description = "A store cannot be queried for an image of the app, or for any image, and no other source has \
                it; `images` lists them")))]
pub(crate) async fn symbolicate_report(
    State(app): State<SharedApp>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let options = SymbolicateOptions::parse(&query.unwrap_or_default())?;
    let is_batch =
        headers.get(header::CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(NDJSON.as_bytes()));
    let wanted =
        if accepts(&headers, "application/json") { OutputFormat::Json } else { OutputFormat::Native };
    let format = options.format.unwrap_or(wanted);
    let body = app.receive(&headers, body).await?;
    if is_batch {
        let work = move |app: &App| Ok::<_, Problem>((options.matched(app)?, app.unpack(body)?));
        let (options, (bytes, reserved)) = app.run(work).await??;
        return Ok(batch(app, options, bytes, reserved));
    }
    let work = move |app: &App| {
        let (bytes, reserved) = app.unpack(body)?;
        let options = options.matched(app)?;
        one(app, &options, format, &bytes, reserved)
    };
    app.run(work).await?
}

/// Answers one report.
fn one(
    app: &App,
    options: &MatchedOptions,
    format: OutputFormat,
    bytes: &[u8],
    reserved: Reserved,
) -> Result<Response, Problem> {
    let mut out = WrittenAnswer::new(reserved);
    let (is_partial, kind) = answer(app, options, &options.stated.name, format, bytes, &mut out)?;
    let kind = match (format, kind) {
        (OutputFormat::Json, _) | (OutputFormat::Native, FormatKind::Json) => "application/json",
        _ if std::str::from_utf8(out.as_ref()).is_ok() => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    };
    let mut response = retry_if(is_partial, out);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    Ok(response)
}

/// Writes the answer of the report `bytes`. Returns whether a later request may answer more of its images, and the kind
/// of the report.
fn answer(
    app: &App,
    options: &MatchedOptions,
    name: &str,
    format: OutputFormat,
    bytes: &[u8],
    mut out: &mut WrittenAnswer,
) -> Result<(bool, FormatKind), Problem> {
    let not_a_report = |error: symdex_report::Error| Problem::new(ProblemKind::NotAReport, error.to_string());
    let mut source = app.session_matching(options.matching.as_deref());
    let is_process = symdex_minidump::is_process(bytes);
    let most = if is_process { symdex_minidump::most_memory(bytes.len()) } else { most_memory(bytes.len()) };
    let mut reading = out.reserved().another(most as u64)?;
    let (report, process) = match symdex_minidump::walk(bytes, &mut source) {
        Some(walked) => {
            let walked = walked.map_err(|error| Problem::new(ProblemKind::NotAReport, error.to_string()))?;
            (walked.report, Some(walked.process))
        }
        None => {
            let report = Report::parse(bytes).map_err(not_a_report)?;
            reading.shrink(report.memory() as u64);
            (report, None)
        }
    };
    let symbolicated = symbolicate(&report, &mut source, &options.stated.of_report().output(format));
    let is_unasked = StoreFailures::of(&symbolicated).check()?;
    let written = match format {
        OutputFormat::Native => match process {
            Some(mut process) => process.write_json(&symbolicated, &mut *out),
            None => symbolicated.write(&mut *out),
        },
        OutputFormat::Text => symbolicated.write_text(&mut out),
        OutputFormat::Json => write_json(app, name, &symbolicated, out),
    };
    written.map_err(|error| out.problem(&error))?;
    let fetching = |outcome: &ImageOutcome| matches!(outcome, ImageOutcome::Unanswered(Unanswered::Fetching));
    Ok((is_unasked || symbolicated.images().iter().any(fetching), report.format().kind()))
}

fn write_json(
    app: &App,
    name: &str,
    symbolicated: &Symbolicated<'_, '_>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut images = symbolicated.report.images().iter().zip(symbolicated.images());
    let is_any_missing = images.any(|(image, outcome)| outcome.lacks_index_of(image));
    let known = if is_any_missing { app.symbolicator.known() } else { Default::default() };
    serde_json::to_writer(out, &AnsweredReport { report: name, view: symbolicated.view(&known) })?;
    Ok(())
}

/// Answers each line of `bytes`, while the client reads.
fn batch(app: SharedApp, options: MatchedOptions, bytes: Vec<u8>, reserved: Reserved) -> Response {
    let (sender, mut receiver) = mpsc::channel::<Bytes>(WAITING_LINES);
    let bytes = Bytes::from(bytes);
    let answering = async move {
        let _reserved = reserved;
        let mut rest = bytes;
        while !rest.is_empty() {
            let end = rest.iter().position(|byte| *byte == b'\n').map_or(rest.len(), |at| at + 1);
            let line = rest.split_to(end);
            if line.trim_ascii().is_empty() {
                continue;
            }
            let (options, reserved) = (options.clone(), app.budget.reserve());
            let line = move |app: &App| batch_line(app, &options, &line, reserved);
            let Ok(answered) = app.run_when_free(line).await else {
                return;
            };
            if sender.send(answered).await.is_err() {
                return;
            }
        }
    };
    tokio::spawn(Lane::current().scope(answering));
    let lines =
        stream::poll_fn(move |context| receiver.poll_recv(context).map(|line| line.map(Ok::<_, io::Error>)));
    ([(header::CONTENT_TYPE, NDJSON)], Body::from_stream(lines)).into_response()
}

/// The line of the answer for a line of a batch.
fn batch_line(app: &App, options: &MatchedOptions, line: &[u8], reserved: Reserved) -> Bytes {
    let mut out = WrittenAnswer::new(reserved);
    let (name, answered) = match serde_json::from_slice::<BatchLine>(line) {
        Ok(BatchLine { name, report }) => {
            let answered = answer(app, options, &name, OutputFormat::Json, report.as_bytes(), &mut out);
            (name, answered)
        }
        Err(error) => (String::new(), Err(Problem::bad_request(error.to_string()))),
    };
    match answered.and_then(|_| out.write_all(b"\n").map_err(|error| out.problem(&error))) {
        Ok(()) => out.into_bytes(),
        Err(problem) => {
            out.restart();
            let failed = FailedReport { report: &name, error: problem.details() };
            let written = serde_json::to_writer(&mut out, &failed).map_err(io::Error::from);
            match written.and_then(|()| out.write_all(b"\n")) {
                Ok(()) => out.into_bytes(),
                Err(error) => {
                    let failed = FailedReport { report: "", error: out.problem(&error).details() };
                    // Text and numbers are always serialized.
                    let mut line = serde_json::to_vec(&failed).unwrap_or_default();
                    line.push(b'\n');
                    line.into()
                }
            }
        }
    }
}

impl SymbolicateOptions {
    /// The options in the query of a URL.
    fn parse(query: &str) -> Result<Self, Problem> {
        let options: Self =
            serde_html_form::from_str(query).map_err(|error| Problem::bad_request(error.to_string()))?;
        match options.assume.len() {
            0..=MAX_ASSUMED => Ok(options),
            more => {
                Err(Problem::bad_request(format!("found {more} `assume`, expected at most {MAX_ASSUMED}")))
            }
        }
    }

    /// Finds the images that are assumed.
    fn matched(self, app: &App) -> Result<MatchedOptions, Problem> {
        let matching = (self.match_by_name || !self.assume.is_empty()).then(|| {
            let assumed: Vec<_> =
                self.assume.iter().map(|AssumedImage(name, id)| (name.clone(), id.clone())).collect();
            app.symbolicator.matching(&assumed, self.match_by_name, app.symbolicator.known())
        });
        let matching = matching.transpose().map_err(|error| Problem::bad_request(error.to_string()))?;
        Ok(MatchedOptions { stated: self, matching: matching.map(Arc::new) })
    }

    fn of_report(&self) -> Options {
        Options::new()
            .lines(self.lines)
            .addresses(self.addresses)
            .inlines(self.inlines)
            .demangle(self.demangle)
            .only_missing(self.only_missing)
    }
}
