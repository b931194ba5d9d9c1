//! `GET /v1/images`: images by name, or by the first digits of their ids.

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::response::Response;
use serde::{Deserialize, Serialize};
use symdex::ImageId;
use symdex_report::KnownImage;
use symdex_store::Error;
use utoipa::{IntoParams, ToSchema};

use crate::app::{App, SharedApp};
use crate::problem::{Problem, ProblemDetails};

/// How many images an answer has at most, and by default.
const MAX_LIMIT: usize = 10_000;
const DEFAULT_LIMIT: usize = 100;

/// How many digits of an id are needed to search stores that are not listed.
const MIN_DIGITS: usize = 8;

/// How many images that are found by id are opened for their names.
const MAX_OPENED: usize = 20;

/// Which images are listed.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ImagesQuery {
    /// Only images whose name has this text in it, or whose id begins with it, with or without dashes. Upper and lower
    /// case letters are the same. Only folders are searched by name. Object stores are searched by at least 8 digits of
    /// an id, Redis by at least 32.
    #[serde(default)]
    search: String,
    /// How many images are listed at most: 100 by default, 10000 at most.
    limit: Option<usize>,
}

/// Images of the stores.
#[derive(Serialize, ToSchema)]
pub(crate) struct ImageList {
    /// How many images match. Up to 20,000 images of stores that are folders are known.
    total: usize,
    /// By name.
    images: Vec<ListedImage>,
}

#[derive(Serialize, ToSchema)]
struct ListedImage {
    /// The `LC_UUID` or the build id.
    id: String,
    /// The file name of the image.
    name: String,
    /// The architecture.
    arch: String,
}

impl From<&KnownImage> for ListedImage {
    fn from(KnownImage { name, id, arch }: &KnownImage) -> Self {
        Self { id: id.to_string(), name: name.clone(), arch: arch.clone() }
    }
}

/// Lists images by name, or by the first digits of their ids.
#[utoipa::path(get, path = "/v1/images", tag = "symdex", security(("bearer" = ["read"])), params(ImagesQuery),
    responses((status = 200, body = ImageList), (status = 400, body = ProblemDetails),
        (status = 503, body = ProblemDetails, description = "A store cannot be asked, and no image is found")))]
pub(crate) async fn images(
    State(app): State<SharedApp>,
    query: Result<Query<ImagesQuery>, QueryRejection>,
) -> Result<Response, Problem> {
    let Query(query) = query?;
    let limit = match query.limit.unwrap_or(DEFAULT_LIMIT) {
        limit @ 1..=MAX_LIMIT => limit,
        other => {
            return Err(Problem::bad_request(format!("found `limit={other}`, expected 1 to {MAX_LIMIT}")));
        }
    };
    Ok(app.respond(move |app| list(app, &query.search, limit).map(Json)).await)
}

fn list(app: &App, search: &str, limit: usize) -> Result<ImageList, Problem> {
    let search = search.trim().to_lowercase();
    let digits = search.replace('-', "");
    let known = app.symbolicator.known();
    let is_wanted = |image: &&KnownImage| {
        image.name.to_lowercase().contains(&search)
            || !digits.is_empty() && image.id.to_string().replace('-', "").starts_with(&digits)
    };
    let mut found: Vec<_> = known.iter().filter(is_wanted).cloned().collect();
    match stored(app, &digits, &found) {
        Ok(stored) => found.extend(stored),
        Err(error) if found.is_empty() => return Err(Problem::of_store(&error)),
        Err(_) => {}
    }
    found.sort();
    Ok(ImageList { total: found.len(), images: found.iter().take(limit).map(ListedImage::from).collect() })
}

/// The images other than `known` that the stores have and whose ids begin with `digits`.
fn stored(app: &App, digits: &str, known: &[KnownImage]) -> Result<Vec<KnownImage>, Error> {
    let whole_bytes = digits.get(..digits.len() & !1).filter(|digits| digits.len() >= MIN_DIGITS);
    let Some(start) = whole_bytes.and_then(|digits| digits.parse::<ImageId>().ok()) else {
        return Ok(Vec::new());
    };
    let (stores, mut first_error) = (app.symbolicator.stores(), None);
    let mut ids = Vec::new();
    for store in stores.stores() {
        match store.ids_from(std::slice::from_ref(&start)).into_iter().next() {
            Some(Ok(of_store)) => ids.extend(of_store.iter().cloned()),
            Some(Err(error)) => _ = first_error.get_or_insert(error),
            None => {}
        }
    }
    ids.retain(|id| id.to_string().starts_with(digits) && known.iter().all(|image| image.id != *id));
    ids.sort();
    ids.dedup();
    let mut images = Vec::new();
    for id in ids.iter().take(MAX_OPENED) {
        if let Some(image) = stores.find(id)? {
            let metadata = image.metadata();
            let (name, arch) = (metadata.image_name.clone(), metadata.arch.name.clone());
            images.push(KnownImage { name, id: id.clone(), arch });
        }
    }
    match first_error {
        Some(error) if images.is_empty() => Err(error),
        _ => Ok(images),
    }
}
