//! The requests of symdex's own interface.

mod address;
pub(crate) mod browse;
pub(crate) mod lookup;
pub(crate) mod symbolicate;

use axum::Router;
use axum::http::{HeaderMap, header};
use axum::routing::{get, post};

pub(crate) use self::address::Address;
use crate::app::SharedApp;

/// The requests that only read.
pub(crate) fn read_routes() -> Router<SharedApp> {
    Router::new()
        .route("/v1/lookup", post(lookup::lookup))
        .route("/v1/images/{id}/files", get(browse::files))
        .route("/v1/images/{id}/functions", get(browse::functions))
        .route("/v1/symbolicate", post(symbolicate::symbolicate_report))
}

/// Whether the header `Accept` names this media type.
pub(crate) fn accepts(headers: &HeaderMap, media_type: &str) -> bool {
    let accepted = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let mut types = accepted.flat_map(|value| value.split(','));
    types.any(|one| one.split(';').next().is_some_and(|name| name.trim().eq_ignore_ascii_case(media_type)))
}
