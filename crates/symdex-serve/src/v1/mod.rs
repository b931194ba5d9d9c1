//! The requests of symdex's own interface.

mod address;
pub(crate) mod image_list;
pub(crate) mod images;
pub(crate) mod jobs;
pub(crate) mod lookup;
pub(crate) mod symbolicate;
pub(crate) mod uploads;

use axum::Router;
use axum::http::{HeaderMap, header};
use axum::routing::{delete, get, head, post, put};

pub(crate) use self::address::Address;
use crate::app::SharedApp;

/// The requests that only read.
pub(crate) fn read_routes() -> Router<SharedApp> {
    Router::new()
        .route("/v1/lookup", post(lookup::lookup))
        .route("/v1/images", get(image_list::images))
        .route("/v1/images/{id}", get(images::image))
        .route("/v1/missing", post(images::missing))
        .route("/v1/symbolicate", post(symbolicate::symbolicate_report))
}

/// The requests that bring debug files, and those that follow their jobs.
pub(crate) fn upload_routes() -> Router<SharedApp> {
    Router::new()
        .route("/v1/debug-files", put(uploads::upload).post(uploads::upload))
        .route("/v1/debug-files/{sha256}", head(uploads::offset).put(uploads::upload_part))
        .route("/v1/jobs/{id}", get(jobs::job))
}

/// The requests of those who operate the server.
pub(crate) fn admin_routes() -> Router<SharedApp> {
    Router::new()
        .route("/v1/jobs", get(jobs::jobs))
        .route("/v1/jobs/{id}/resume", post(jobs::resume))
        .route("/v1/images/{id}", delete(images::remove))
}

/// Whether the header `Accept` names this media type.
pub(crate) fn accepts(headers: &HeaderMap, media_type: &str) -> bool {
    let accepted = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let mut types = accepted.flat_map(|value| value.split(','));
    types.any(|one| one.split(';').next().is_some_and(|name| name.trim().eq_ignore_ascii_case(media_type)))
}
