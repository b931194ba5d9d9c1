//! The requests of symdex's own interface.

mod address;
mod lookup;

use axum::Router;
use axum::routing::post;

pub(crate) use self::address::Address;
use crate::app::SharedApp;

/// The requests that only read.
pub(crate) fn read_routes() -> Router<SharedApp> {
    Router::new().route("/v1/lookup", post(lookup::lookup))
}
