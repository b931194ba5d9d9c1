//! The description of all requests for programs.

use std::sync::LazyLock;

use axum::body::Bytes;
use axum::http::{HeaderName, header};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::{Modify, OpenApi};

/// The requests, in the order of the document.
#[derive(OpenApi)]
#[openapi(
    info(description = "Answers crash reports and addresses from indexes, and makes indexes of debug files. \
        An error is an answer with problem details (RFC 9457)."),
    paths(
        crate::v1::symbolicate::symbolicate_report,
        crate::v1::lookup::lookup,
        crate::v1::resolve::resolve,
        crate::v1::image_list::images,
        crate::v1::images::image,
        crate::v1::images::remove,
        crate::v1::images::missing,
        crate::v1::uploads::upload,
        crate::v1::uploads::upload_part,
        crate::v1::uploads::offset,
        crate::v1::uploads::upload_index,
        crate::v1::uploads::offset_of_index,
        crate::v1::jobs::job,
        crate::v1::jobs::jobs,
        crate::v1::jobs::cancel,
        crate::v1::jobs::resume,
        crate::v1::jobs::first,
        crate::mozilla::v5,
        crate::mozilla::v4,
        crate::sentry::symbolicate,
        crate::sentry::apple_crash_report,
        crate::sentry::pending_request,
        crate::operation::alive,
        crate::operation::ready,
        crate::operation::metrics,
    ),
    components(schemas(crate::problem::ProblemDetails)),
    modifiers(&BearerToken)
)]
struct Document;

/// Adds the tokens.
struct BearerToken;

impl Modify for BearerToken {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let scheme = HttpBuilder::new().scheme(HttpAuthScheme::Bearer);
        let scheme = scheme.description(Some("A token with the scopes read, upload, index or admin")).build();
        let components = document.components.get_or_insert_default();
        components.add_security_scheme("bearer", SecurityScheme::Http(scheme));
    }
}

/// The document as JSON. Text and numbers are always JSON.
static DOCUMENT: LazyLock<Bytes> =
    LazyLock::new(|| serde_json::to_vec(&Document::openapi()).unwrap_or_default().into());

/// The description of all requests, as OpenAPI has it.
pub(crate) async fn openapi() -> ([(HeaderName, &'static str); 1], Bytes) {
    ([(header::CONTENT_TYPE, "application/json")], DOCUMENT.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The routes are in the source, as `route("/path", ...)`.
    #[test]
    fn each_route_is_described() {
        let sources = [
            include_str!("router.rs"),
            include_str!("mozilla/mod.rs"),
            include_str!("sentry/mod.rs"),
            include_str!("v1/mod.rs"),
        ];
        let routes = sources.iter().flat_map(|source| source.split(".route(\"").skip(1));
        let routes: Vec<_> = routes.filter_map(|rest| rest.split('"').next()).collect();
        assert!(routes.contains(&"/v1/lookup") && routes.contains(&"/metrics"), "{routes:?}");
        let described = Document::openapi().paths.paths;
        for route in routes.iter().filter(|route| **route != "/openapi.json") {
            assert!(described.contains_key(*route), "{route} is not described");
        }
    }
}
