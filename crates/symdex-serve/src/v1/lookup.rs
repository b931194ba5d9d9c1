//! `POST /v1/lookup`: addresses of images.

use std::io::{self, Write as _};

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize, Serializer as _};
use symdex::{Cause, Grade, ImageOffset, LinePolicy};
use symdex_report::{AddressKind, Answer, AnswerBytes, FunctionWithOffset, ReportImage, Unanswered};
use utoipa::ToSchema;

use crate::answers::{ImageAnswers, ImageOffsets};
use crate::app::{App, SharedApp};
use crate::limits::WrittenAnswer;
use crate::misses::RETRY_AFTER;
use crate::problem::{Problem, ProblemDetails};
use crate::unasked::StoreFailures;
use crate::v1::accepts;
use crate::v1::address::Address;

/// How many addresses a request may have.
const MAX_ADDRESSES: usize = 100_000;

/// How much memory is reserved for the functions at an address, beside the body of the answer.
const ADDRESS_MEMORY: u64 = 2 << 10;
/// The same for an image.
const IMAGE_MEMORY: u64 = 1 << 10;

/// Addresses of one image.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LookupRequest {
    /// The `LC_UUID` or the build id, with or without dashes.
    #[schema(value_type = String, example = "0c37c502-aba0-3641-a08f-84c794684f36")]
    id: String,
    /// Offsets from the start of the image, or runtime addresses if there is a `load_address`: numbers, or text with a
    /// hexadecimal number that begins with 0x.
    #[schema(value_type = Vec<String>, example = json!(["0x5ed8"]))]
    addresses: Vec<Address>,
    /// What the addresses are.
    #[serde(default)]
    kind: AddressKind,
    /// Where the image is loaded.
    #[schema(value_type = Option<String>)]
    #[serde(default)]
    load_address: Option<Address>,
    /// Which lines answer for code with line 0.
    #[serde(default)]
    lines: LinePolicy,
}

/// The answers for the addresses of one image.
#[derive(Serialize, ToSchema)]
pub(crate) struct LookupResult<'a> {
    /// The id, as it was asked for.
    id: &'a str,
    /// `found`, `missing`, `damaged`, `lost` (a store has lost the index; upload the debug file again), `unsupported`,
    /// `fetching` (ask again), `fetching_failed`, `unavailable` (a store cannot be queried; ask again), `limit` or
    /// `other`.
    status: &'static str,
    /// Why there are no answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// The most that the indexes which were asked answer: `lines`, `names`, `bounds` or `nothing`. Absent if there is
    /// none.
    #[serde(skip_serializing_if = "Option::is_none")]
    grade: Option<Grade>,
    /// An answer for each address, in their order. Empty if there is no index.
    answers: Vec<AddressAnswer<'a>>,
}

#[derive(Serialize, ToSchema)]
struct AddressAnswer<'a> {
    /// The address, as it was asked for, in hexadecimal.
    address: String,
    /// `symbolicated`, `missing_symbol` (no function, or one without a name), `damaged`, `lost` (the store has lost
    /// this part of the index) or `limit` (the functions have more than 2 MiB of text, or the answers of the
    /// request more than 64 MiB).
    status: &'static str,
    /// The functions at the address, innermost first. The last one is the concrete function.
    functions: Vec<FunctionWithOffset<'a>>,
}

/// Looks up addresses of images. Answers are in the order of the requests.
///
/// With `Accept: application/x-ndjson`, the answer has a line for each image instead of one array.
#[utoipa::path(post, path = "/v1/lookup", tag = "symdex", security(("bearer" = ["read"])),
    request_body = Vec<LookupRequest>,
    responses((status = 200, body = Vec<LookupResult<'static>>), (status = 400, body = ProblemDetails),
        (status = 503, body = ProblemDetails,
            description = "A store cannot be queried, and no image is answered; `images` lists them")))]
pub(crate) async fn lookup(
    State(app): State<SharedApp>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let is_streamed = accepts(&headers, "application/x-ndjson");
    let body = app.receive(&headers, body).await?;
    let work = move |app: &App| {
        let (bytes, mut reserved) = app.unpack(body)?;
        let requests: Vec<LookupRequest> = super::list_of(&bytes)?;
        let count: usize = requests.iter().map(|request| request.addresses.len()).sum();
        if count > MAX_ADDRESSES {
            let detail = format!("found {count} addresses; a request may have {MAX_ADDRESSES}");
            return Err(Problem::bad_request(detail));
        }
        reserved.grow(ADDRESS_MEMORY * count as u64 + IMAGE_MEMORY * requests.len() as u64)?;
        let answers = answer_all(app, &requests)?;
        let mut failures = StoreFailures::default();
        answers.iter().for_each(|answered| answered.note(&mut failures, ""));
        let is_unasked = failures.check()?;
        let left = AnswerBytes::written(bytes.len());
        let results = requests.iter().zip(&answers);
        let results = results.map(|(request, answered)| request.result(answered, &left));
        let mut out = WrittenAnswer::new(reserved);
        let written = if is_streamed {
            write_lines(results, &mut out)
        } else {
            serde_json::Serializer::new(&mut out).collect_seq(results).map_err(io::Error::from)
        };
        written.map_err(|error| out.problem(&error))?;
        let mut answered = answers.iter().map(|one| &one.answered);
        Ok((out, is_unasked || answered.any(|one| matches!(one, Err(Unanswered::Fetching)))))
    };
    let kind = if is_streamed { "application/x-ndjson" } else { "application/json" };
    let (out, is_partial) = app.run(work).await??;
    Ok(retry_if(is_partial, ([(header::CONTENT_TYPE, kind)], out)))
}

/// The response. If a later request may answer more of its images, it says when to ask again.
pub(crate) fn retry_if(is_partial: bool, response: impl IntoResponse) -> Response {
    let retry = is_partial.then(|| [(header::RETRY_AFTER, RETRY_AFTER.to_string())]);
    match retry {
        Some(retry) => (retry, response).into_response(),
        None => response.into_response(),
    }
}

fn write_lines<'a>(
    results: impl Iterator<Item = LookupResult<'a>>,
    out: &mut WrittenAnswer,
) -> io::Result<()> {
    for result in results {
        serde_json::to_writer(&mut *out, &result)?;
        out.write_all(b"\n")?;
    }
    Ok(())
}

/// The answers for each of `requests`.
fn answer_all(app: &App, requests: &[LookupRequest]) -> Result<Vec<ImageAnswers>, Problem> {
    let mut images = Vec::with_capacity(requests.len());
    for request in requests {
        let id = super::images::parse(&request.id)?;
        let offsets = request.addresses.iter().filter_map(|address| request.offset(*address)).collect();
        let mut image = ReportImage::default();
        image.id = Some(id);
        images.push((request.lines, ImageOffsets::new(image, offsets)));
    }
    // Requests of one line policy are answered together.
    let mut answers: Vec<_> = requests.iter().map(|_| None).collect();
    for lines in [LinePolicy::Statement, LinePolicy::Exact] {
        let positions: Vec<_> = (0..images.len()).filter(|at| images[*at].0 == lines).collect();
        let of_policy = positions.iter().map(|at| std::mem::take(&mut images[*at].1)).collect();
        for (at, answered) in positions.into_iter().zip(app.answer(of_policy, lines)) {
            answers[at] = Some(answered);
        }
    }
    Ok(answers.into_iter().flatten().collect())
}

impl LookupRequest {
    /// The offset of an address; `None` if it lies below the image.
    fn offset(&self, Address(address): Address) -> Option<ImageOffset> {
        let address = match self.kind {
            AddressKind::ProgramCounter => address,
            AddressKind::ReturnAddress => address.checked_sub(1)?,
        };
        address.checked_sub(self.load_address.map_or(0, |load| load.0)).map(ImageOffset)
    }

    /// The result for this request. Its answers are taken from `left`.
    fn result<'a>(&'a self, answered: &'a ImageAnswers, left: &AnswerBytes) -> LookupResult<'a> {
        let failed = |why: &Unanswered| (why.status(), Some(why.reason().into_owned()));
        let (status, reason) = answered.answered.as_ref().err().map_or(("found", None), failed);
        let is_found = answered.answered.is_ok();
        let addresses = self.addresses.iter().filter(|_| is_found);
        let answers = addresses.map(|address| self.answer(*address, answered, left)).collect();
        let grade = answered.answered.as_ref().ok().and_then(|answers| answers.by.grade);
        LookupResult { id: &self.id, status, reason, grade, answers }
    }

    fn answer<'a>(
        &self,
        address: Address,
        answered: &'a ImageAnswers,
        left: &AnswerBytes,
    ) -> AddressAnswer<'a> {
        let offset = self.offset(address);
        let answer = offset.and_then(|offset| answered.at(offset).ok()).unwrap_or(&Answer::NoFunction);
        let (status, functions) = match answer {
            Answer::Functions(functions) if !functions.is_empty() => match left.take_functions(functions) {
                true if answer.grade() < Grade::Names => ("missing_symbol", &functions[..]),
                true => ("symbolicated", &functions[..]),
                false => (Cause::Limit.name(), &[][..]),
            },
            Answer::Unreadable(cause, _) => (cause.name(), &[][..]),
            Answer::TooLarge => (Cause::Limit.name(), &[][..]),
            _ => ("missing_symbol", &[][..]),
        };
        let functions = functions.iter().map(|function| FunctionWithOffset {
            function: function.into(),
            function_offset: offset.and_then(|offset| function.distance(offset)),
        });
        let functions = functions.collect();
        AddressAnswer { address: format!("{:#x}", address.0), status, functions }
    }
}
