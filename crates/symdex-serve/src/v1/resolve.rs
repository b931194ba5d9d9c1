//! `POST /v1/resolve`: many addresses of images, in columns.

use std::borrow::Cow;
use std::io::{self, Write as _};
use std::time::Instant;

use arrow_ipc::writer::StreamWriter;
use axum::Extension;
use axum::body::{Body, Bytes};
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse as _, Response};
use futures_util::stream;
use serde::{Deserialize, Serialize};
use symdex::{Cause, ImageOffset, LinePolicy};
use symdex_answer::resolve::arrow::{ArrowError, record_batch, schema};
use symdex_answer::resolve::request::{self, Request};
use symdex_answer::resolve::{BATCH, ImageAddress, Resolved};
use symdex_report::{AddressKind, AnsweredFunction, FunctionWithOffset};
use tokio::sync::mpsc;
use utoipa::{IntoParams, ToSchema};

use crate::app::{App, SharedApp};
use crate::limits::{IsCounted, Lane, Reserved, WrittenAnswer};
use crate::problem::{Problem, ProblemDetails, ProblemKind};
use crate::v1::accepts;
use crate::v1::address::Address;

/// How many addresses a request may have.
const MAX_ADDRESSES: usize = 1_000_000;

/// How much memory is reserved for the answer at an address of a batch, beside the body of the answer.
const ADDRESS_MEMORY: u64 = 2 << 10;

/// How much memory is reserved for each image id of a request.
const ID_MEMORY: usize = 128;

/// How many answered batches may wait for the client.
const WAITING_BATCHES: usize = 1;

const ARROW: &str = "application/vnd.apache.arrow.stream";
const JSON: &str = "application/json";

/// How addresses are resolved.
#[derive(Clone, Copy, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ResolveOptions {
    /// Which lines answer for code with line 0.
    #[serde(default)]
    lines: LinePolicy,
    /// What the addresses are.
    #[serde(default)]
    kind: AddressKind,
}

/// Addresses of one image.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ResolveRequest {
    /// The `LC_UUID` or the build id, with or without dashes.
    #[schema(value_type = String, example = "0c37c502-aba0-3641-a08f-84c794684f36")]
    id: String,
    /// Offsets from the start of the image: numbers, or text with a hexadecimal number that begins with 0x.
    #[schema(value_type = Vec<String>, example = json!(["0x5ed8"]))]
    addresses: Vec<Address>,
}

/// The outcome of an address.
#[derive(Serialize, ToSchema)]
pub(crate) struct ResolvedAddress<'a> {
    /// The id of its image.
    id: &'a str,
    /// The address, in hexadecimal.
    #[schema(value_type = String)]
    address: Address,
    /// As in `/v1/lookup`: the status of the address, or that of the image if it has no answers.
    status: &'static str,
    /// Why there are no functions.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    /// The functions at the address, innermost first. The last one is the concrete function.
    functions: Vec<FunctionWithOffset<'a>>,
}

/// Resolves up to a million addresses of images. Answers are in the order of the addresses.
///
/// The body is a stream of Arrow's IPC format with the columns `id` (utf8, or a dictionary of it) and `address`
/// (uint64), or JSON. The answer is a stream of record batches with a row for each address if `Accept` says so, or if
/// the body is one; otherwise JSON. It starts before the last address is resolved.
#[utoipa::path(post, path = "/v1/resolve", tag = "symdex", security(("bearer" = ["read"])),
    params(ResolveOptions),
    request_body(content((Vec<ResolveRequest> = "application/json"),
        (Vec<u8> = "application/vnd.apache.arrow.stream"))),
    responses((status = 200, content((Vec<ResolvedAddress<'static>> = "application/json"),
            (Vec<u8> = "application/vnd.apache.arrow.stream"))),
        (status = 400, body = ProblemDetails),
        (status = 503, body = ProblemDetails,
            description = "A store cannot be queried, and none of the first addresses is answered")))]
pub(crate) async fn resolve(
    State(app): State<SharedApp>,
    query: Result<Query<ResolveOptions>, QueryRejection>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let Query(options) = query?;
    let is_arrow =
        headers.get(header::CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(ARROW.as_bytes()));
    let writes_arrow = accepts(&headers, ARROW) || (is_arrow && !accepts(&headers, JSON));
    let body = app.receive(&headers, body).await?;
    let begin = move |app: &App| {
        let (bytes, mut reserved) = app.unpack(body)?;
        let request = if is_arrow { arrow_request(bytes)? } else { json_request(&bytes)? };
        if request.addresses.is_empty() {
            return Err(Problem::bad_request(
                "found no addresses; a request needs at least one, with its id",
            ));
        }
        reserved.shrink(
            (request.addresses.len() * size_of::<ImageAddress>() + request.ids.len() * ID_MEMORY) as u64,
        );
        let mut resolving = Resolving::new(app, request, options, writes_arrow, reserved)?;
        let first = resolving.next(app)?;
        Ok((resolving, first))
    };
    let (resolving, first) = app.run(begin).await??;
    let kind = if writes_arrow { ARROW } else { JSON };
    let parts = send(app, resolving, first);
    Ok((Extension(IsCounted), [(header::CONTENT_TYPE, kind)], parts).into_response())
}

/// The body of an answer that begins with `first`. The rest is resolved while the client reads.
fn send(app: SharedApp, mut resolving: Resolving, first: Bytes) -> Body {
    let (sender, mut receiver) = mpsc::channel(WAITING_BATCHES);
    let answering = async move {
        let mut part = Ok(first);
        while sender.send(part).await.is_ok() && !resolving.is_done() {
            let next = app.run_when_free(move |app| {
                let mut resolving = resolving;
                (resolving.next(app), resolving)
            });
            let next = tokio::time::timeout(app.options.timeout, next).await;
            let late = || Problem::new(ProblemKind::Timeout, "a part of the answer was not ready in time");
            let next = next.unwrap_or_else(|_| Err(late())).and_then(|(part, rest)| Ok((part?, rest)));
            match next {
                Ok((next, rest)) => (part, resolving) = (Ok(next), rest),
                Err(problem) => {
                    // The client sees that the answer is cut off.
                    tracing::warn!(error = %problem, "an answer is cut off");
                    _ = sender.send(Err(io::Error::other(problem))).await;
                    return;
                }
            }
        }
    };
    tokio::spawn(Lane::current().scope(answering));
    Body::from_stream(stream::poll_fn(move |context| receiver.poll_recv(context)))
}

fn arrow_request(bytes: Vec<u8>) -> Result<Request, Problem> {
    request::read(bytes, MAX_ADDRESSES).map_err(|error| Problem::bad_request(error.to_string()))
}

fn json_request(bytes: &[u8]) -> Result<Request, Problem> {
    let images: Vec<ResolveRequest> = super::list_of(bytes)?;
    let count: usize = images.iter().map(|image| image.addresses.len()).sum();
    if count > MAX_ADDRESSES {
        let detail = format!("found {count} addresses; a request may have {MAX_ADDRESSES}");
        return Err(Problem::bad_request(detail));
    }
    let mut request = Request::default();
    for (number, ResolveRequest { id, addresses }) in (0..).zip(images) {
        request.ids.push(super::images::parse(&id)?);
        request
            .addresses
            .extend(addresses.into_iter().map(|Address(address)| (number, ImageOffset(address))));
    }
    Ok(request)
}

/// A request that is being answered.
struct Resolving {
    request: Request,
    /// How many addresses are answered.
    done: usize,
    options: ResolveOptions,
    /// Until when images are waited for that are being fetched.
    deadline: Instant,
    output: Output,
    reserved: Reserved,
}

enum Output {
    Arrow(Box<StreamWriter<WrittenAnswer>>),
    Json(WrittenAnswer),
}

impl Resolving {
    fn new(
        app: &App,
        mut request: Request,
        options: ResolveOptions,
        writes_arrow: bool,
        reserved: Reserved,
    ) -> Result<Self, Problem> {
        if options.kind == AddressKind::ReturnAddress {
            // No code is at the end of all addresses.
            request.addresses.iter_mut().for_each(|(_, offset)| offset.0 = offset.0.wrapping_sub(1));
        }
        let out = WrittenAnswer::new(reserved.another(0)?);
        let output = if writes_arrow {
            let begun = StreamWriter::try_new(out, &schema());
            let internal = |error: ArrowError| Problem::new(ProblemKind::Internal, error.to_string());
            Output::Arrow(Box::new(begun.map_err(internal)?))
        } else {
            Output::Json(out)
        };
        let deadline = Instant::now() + app.options.fetch_wait;
        Ok(Self { request, done: 0, options, deadline, output, reserved })
    }

    fn is_done(&self) -> bool {
        self.done == self.request.addresses.len()
    }

    /// The next part of the body.
    fn next(&mut self, app: &App) -> Result<Bytes, Problem> {
        let left = self.request.addresses.get(self.done..).unwrap_or_default();
        let _working = self.reserved.another(ADDRESS_MEMORY * left.len().min(BATCH) as u64)?;
        let mut source = app.session_until(None, self.deadline);
        let lines = self.options.lines;
        let resolved = app.symbolicator.resolve_batch(&mut source, &self.request.ids, left, lines);
        let unavailable = Cause::Unavailable.name();
        let is_unavailable =
            |address| resolved.outcome_of(address).is_some_and(|of| of.status == unavailable);
        if self.done == 0 && (0..resolved.len()).all(is_unavailable) {
            let reason = resolved.outcome_of(0).and_then(|outcome| outcome.reason.clone());
            tracing::warn!(error = reason, "a store cannot be queried, and images are not answered");
            let detail = "a store could not be queried, and no other source has the images; try again later";
            return Err(Problem::new(ProblemKind::StoreFailed, detail));
        }
        let first = self.done;
        self.done += resolved.len();
        let is_done = self.is_done();
        let next = WrittenAnswer::new(self.reserved.another(0)?);
        match &mut self.output {
            Output::Arrow(writer) => {
                let written = record_batch(resolved).and_then(|batch| writer.write(&batch));
                let written = written.and_then(|()| if is_done { writer.finish() } else { Ok(()) });
                let mut out = std::mem::replace(writer.get_mut(), next);
                written.map_err(|error| out.problem(&error))?;
                Ok(out.into_bytes())
            }
            Output::Json(out) => {
                let mut out = std::mem::replace(out, next);
                let written = write_rows(&mut out, &self.request, self.options.kind, first, &resolved);
                let written = written.and_then(|()| out.write_all(if is_done { b"]" } else { b"" }));
                written.map_err(|error| out.problem(&error))?;
                Ok(out.into_bytes())
            }
        }
    }
}

/// Writes the rows of a batch, whose first one is the address `first` of `request`.
fn write_rows(
    out: &mut WrittenAnswer,
    request: &Request,
    kind: AddressKind,
    first: usize,
    resolved: &Resolved,
) -> io::Result<()> {
    let functions: Vec<_> = resolved.names.readable().collect();
    let names: Vec<_> = resolved.names.texts().collect();
    let files: Vec<_> = resolved.files.texts().collect();
    let addresses = request.addresses.iter().skip(first).take(resolved.len());
    let mut id = (None, String::new());
    for (position, (image, offset)) in addresses.enumerate() {
        if id.0 != Some(*image) {
            let text = request.ids.get(*image as usize).map(ToString::to_string);
            id = (Some(*image), text.unwrap_or_default());
        }
        let row = |row: usize, is_last: bool| FunctionWithOffset {
            function: AnsweredFunction {
                function: text(&functions, resolved.frames.name[row]),
                name: text(&names, resolved.frames.name[row]),
                file: text(&files, resolved.frames.file[row]),
                line: resolved.frames.line_of(row),
                inlined: !is_last,
                table: resolved.table[position].map_or("", |table| table.name()),
            },
            function_offset: resolved.function_start[position].and_then(|start| offset.0.checked_sub(start)),
        };
        let rows = resolved.rows(position);
        let end = rows.end;
        let outcome = resolved.outcome_of(position);
        let shift = u64::from(kind == AddressKind::ReturnAddress);
        out.write_all(if first + position == 0 { b"[" } else { b"," })?;
        serde_json::to_writer(
            &mut *out,
            &ResolvedAddress {
                id: &id.1,
                address: Address(offset.0.wrapping_add(shift)),
                status: outcome.map_or("", |outcome| outcome.status),
                reason: outcome.and_then(|outcome| outcome.reason.as_deref()),
                functions: rows.map(|number| row(number, number + 1 == end)).collect(),
            },
        )?;
        out.write_all(b"\n")?;
    }
    Ok(())
}

/// The text with this number; `None` if there is none.
fn text<'t>(texts: &'t [Cow<'_, str>], number: i32) -> Option<Cow<'t, str>> {
    let number = usize::try_from(number).ok()?;
    texts.get(number).map(|text| Cow::Borrowed(&**text))
}
