//! The requests of symdex's own interface.

mod address;
pub(crate) mod image_list;
pub(crate) mod images;
pub(crate) mod jobs;
pub(crate) mod lookup;
pub(crate) mod resolve;
pub(crate) mod symbolicate;
pub(crate) mod uploads;

use std::fmt;
use std::marker::PhantomData;

use axum::Router;
use axum::http::{HeaderMap, header};
use axum::routing::{delete, get, head, post, put};
use serde::de::{Deserialize, Deserializer, Error as _, SeqAccess, Visitor};

pub(crate) use self::address::Address;
use crate::app::SharedApp;
use crate::problem::Problem;

/// How many images a request may ask for.
const MAX_IMAGES: usize = 100_000;

/// The requests that only read.
pub(crate) fn read_routes() -> Router<SharedApp> {
    Router::new()
        .route("/v1/lookup", post(lookup::lookup))
        .route("/v1/resolve", post(resolve::resolve))
        .route("/v1/images", get(image_list::images))
        .route("/v1/images/{id}", get(images::image))
        .route("/v1/missing", post(images::missing))
        .route("/v1/symbolicate", post(symbolicate::symbolicate_report))
}

/// The requests that bring debug files.
pub(crate) fn upload_routes() -> Router<SharedApp> {
    Router::new()
        .route("/v1/debug-files", put(uploads::upload).post(uploads::upload))
        .route("/v1/debug-files/{sha256}", head(uploads::offset).put(uploads::upload_part))
}

/// The requests that bring indexes.
pub(crate) fn index_routes() -> Router<SharedApp> {
    Router::new().route("/v1/indexes/{id}", head(uploads::offset_of_index).put(uploads::upload_index))
}

/// The requests that follow the jobs of uploads.
pub(crate) fn follow_routes() -> Router<SharedApp> {
    Router::new().route("/v1/jobs/{id}", get(jobs::job))
}

/// The requests that uploaders may send for their own jobs, and those who operate the server for all jobs.
pub(crate) fn job_routes() -> Router<SharedApp> {
    Router::new().route("/v1/jobs", get(jobs::jobs)).route("/v1/jobs/{id}", delete(jobs::cancel))
}

/// The requests of those who operate the server.
pub(crate) fn admin_routes() -> Router<SharedApp> {
    Router::new()
        .route("/v1/jobs/{id}/resume", post(jobs::resume))
        .route("/v1/jobs/{id}/first", post(jobs::first))
        .route("/v1/images/{id}", delete(images::remove))
}

/// Whether the header `Accept` names this media type.
pub(crate) fn accepts(headers: &HeaderMap, media_type: &str) -> bool {
    let accepted = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let mut types = accepted.flat_map(|value| value.split(','));
    types.any(|one| one.split(';').next().is_some_and(|name| name.trim().eq_ignore_ascii_case(media_type)))
}

/// The list in the JSON `bytes`: one entry for each image.
///
/// # Errors
///
/// A problem if the JSON is wrong, or if there are more than [`MAX_IMAGES`]. The others are not read then.
fn list_of<T: for<'de> Deserialize<'de>>(bytes: &[u8]) -> Result<Vec<T>, Problem> {
    let json = &mut serde_json::Deserializer::from_slice(bytes);
    let list = json.deserialize_seq(ListVisitor(PhantomData)).and_then(|list| json.end().map(|()| list));
    list.map_err(|error| Problem::bad_request(error.to_string()))
}

struct ListVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ListVisitor<T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a sequence")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
        let mut list = Vec::new();
        while let Some(entry) = entries.next_element()? {
            if list.len() == MAX_IMAGES {
                return Err(A::Error::custom(format_args!("a request may have {MAX_IMAGES} images")));
            }
            list.push(entry);
        }
        Ok(list)
    }
}
