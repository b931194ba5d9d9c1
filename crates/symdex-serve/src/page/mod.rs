//! The page for people: reports that become readable, uploads, and lookups in images.
//!
//! Its files are in the program. It needs no token, because it has no data: its scripts make the requests that are
//! documented, with the token that the user gives.

use std::sync::LazyLock;

use axum::Router;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use sha2::{Digest as _, Sha256};

use crate::app::SharedApp;

/// Scripts and styles come from this server only, and not from the HTML. Scripts cannot make HTML of text.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
     img-src 'self' data:; form-action 'none'; base-uri 'none'; frame-ancestors 'none'; \
     require-trusted-types-for 'script'; trusted-types 'none'";

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";

/// A file of the page.
struct Asset {
    path: &'static str,
    media_type: &'static str,
    contents: &'static str,
}

macro_rules! assets {
    ($($path:literal $media_type:ident $file:literal,)*) => {
        &[$(Asset { path: $path, media_type: $media_type, contents: include_str!(concat!("../../assets/", $file)) },)*]
    };
}

const ASSETS: &[Asset] = assets! {
    "/" HTML "index.html",
    "/assets/style.css" CSS "style.css",
    "/assets/icon.svg" SVG "icon.svg",
    "/assets/app.js" SCRIPT "app.js",
    "/assets/api.js" SCRIPT "api.js",
    "/assets/browser.js" SCRIPT "browser.js",
    "/assets/compare.js" SCRIPT "compare.js",
    "/assets/dom.js" SCRIPT "dom.js",
    "/assets/files.js" SCRIPT "files.js",
    "/assets/flame.js" SCRIPT "flame.js",
    "/assets/flamegraph.js" SCRIPT "flamegraph.js",
    "/assets/frames.js" SCRIPT "frames.js",
    "/assets/given.js" SCRIPT "given.js",
    "/assets/images.js" SCRIPT "images.js",
    "/assets/kept.js" SCRIPT "kept.js",
    "/assets/place.js" SCRIPT "place.js",
    "/assets/profile.js" SCRIPT "profile.js",
    "/assets/report.js" SCRIPT "report.js",
    "/assets/reports.js" SCRIPT "reports.js",
    "/assets/threads.js" SCRIPT "threads.js",
    "/assets/token.js" SCRIPT "token.js",
    "/assets/uploads.js" SCRIPT "uploads.js",
};

/// The `ETag` of each file: its hash.
static TAGS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let hash = |asset: &Asset| Sha256::digest(asset.contents);
    let tag = |asset| hash(asset).iter().take(16).map(|byte| format!("{byte:02x}")).collect::<String>();
    ASSETS.iter().map(|asset| format!("\"{}\"", tag(asset))).collect()
});

/// The files of the page.
pub(crate) fn routes() -> Router<SharedApp> {
    let add = |routes: Router<SharedApp>, (number, asset): (usize, &'static Asset)| {
        routes.route(asset.path, get(async move |headers: HeaderMap| serve(number, asset, &headers)))
    };
    ASSETS.iter().enumerate().fold(Router::new(), add)
}

/// Answers with a file, or with 304 if the browser has it.
fn serve(number: usize, asset: &'static Asset, headers: &HeaderMap) -> Response {
    let tag = TAGS.get(number).map_or("", String::as_str);
    let known = headers.get_all(header::IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    let mut known = known.flat_map(|value| value.split(',')).map(|tag| tag.trim().trim_start_matches("W/"));
    let mut response = if known.any(|known| known == tag) {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        ([(header::CONTENT_TYPE, asset.media_type)], asset.contents).into_response()
    };
    let headers = response.headers_mut();
    headers.insert(header::ETAG, HeaderValue::from_str(tag).unwrap_or(HeaderValue::from_static("\"\"")));
    let fixed: [(HeaderName, &'static str); 5] = [
        // The browser asks each time, so that a new version of the server has its own page at once.
        (header::CACHE_CONTROL, "no-cache"),
        (header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY),
        (header::REFERRER_POLICY, "no-referrer"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ];
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}
