//! `GET /v1/images/{id}` and `POST /v1/missing`: which images the stores have.

use axum::Json;
use axum::body::Body;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Extension, Path, Query, State};
use axum::http::HeaderMap;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use symdex::{Grade, ImageId};
use symdex_report::IndexView;
use symdex_store::{Error, StoreEntry};
use utoipa::{IntoParams, ToSchema};

use crate::app::{App, SharedApp};
use crate::audit::AUDIT;
use crate::auth::Requester;
use crate::problem::{Problem, ProblemDetails, ProblemKind};

/// How many images of the same name are told.
const MAX_NEAR: usize = 5;

/// What is known of an image.
#[derive(Serialize, ToSchema)]
pub(crate) struct ImageView {
    #[serde(flatten)]
    index: IndexView,
    /// The first store that has the index of this grade. Others may have one that answers less.
    store: String,
    /// What the store states of the index; null if it cannot be queried.
    stored: Option<StoreEntry>,
}

/// What an image is called elsewhere.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ImageOptions {
    /// The name of the image. If the image is missing, the answer names other builds of it.
    #[serde(default)]
    name: String,
}

/// What is known of an image. `HEAD` tells whether a store has it.
#[utoipa::path(get, path = "/v1/images/{id}", tag = "symdex", security(("bearer" = ["read"])),
    params(("id" = String, Path, description = "The `LC_UUID` or the build id, with or without dashes"),
        ImageOptions),
    responses((status = 200, body = ImageView),
        (status = 404, body = ProblemDetails, description = "No store has the image"),
        (status = 503, body = ProblemDetails, description = "A store cannot be queried, and no other has the image")))]
pub(crate) async fn image(
    State(app): State<SharedApp>,
    Path(id): Path<String>,
    options: Result<Query<ImageOptions>, QueryRejection>,
) -> Result<Response, Problem> {
    let Query(options) = options?;
    let id = parse(&id)?;
    let work = move |app: &App| {
        let stores = app.symbolicator.stores();
        let found = stores.find_now(&id).map_err(|error| Problem::of_store(&error))?;
        let found = found.as_ref().and_then(|image| Some((image, image.store()?.store())));
        let Some((image, store)) = found else { return Err(not_found(app, &id, &options.name)) };
        let (index, stored) = (image.metadata().into(), store.stat(&id).ok().flatten());
        Ok(Json(ImageView { index, store: store.url().to_string(), stored }))
    };
    Ok(app.respond(work).await)
}

/// The image with this `LC_UUID` or build id.
pub(super) fn parse(id: &str) -> Result<ImageId, Problem> {
    // A message has the text twice, with escapes. Its middle is never shown.
    let start = id.split_at(id.floor_char_boundary(1000)).0;
    let parsed = if start.len() == id.len() { id.parse() } else { format!("{start}...").parse() };
    parsed.map_err(|error| Problem::bad_request(format!("`{start}`: {error}")))
}

/// No store has the image `id`. Names images that are called `name`.
fn not_found(app: &App, id: &ImageId, name: &str) -> Problem {
    let mut detail = format!("no store has the image {id}; send its debug file to /v1/debug-files");
    if !name.is_empty() {
        let known = app.symbolicator.known();
        let near: Vec<_> = known.iter().filter(|image| image.name == name).collect();
        let shown = near.iter().take(MAX_NEAR).map(|image| format!("{} ({})", image.id, image.arch));
        match &shown.collect::<Vec<_>>()[..] {
            [] => detail += &format!("; no image is called {name}"),
            shown => detail += &format!("; {} images are called {name}: {}", near.len(), shown.join(", ")),
        }
    }
    Problem::new(ProblemKind::NotFound, detail)
}

/// What has become of an image that was to be deleted.
#[derive(Serialize, ToSchema)]
pub(crate) struct RemovedImage {
    /// The `LC_UUID` or the build id.
    id: String,
    /// The stores that had the index and have it no more.
    removed: Vec<String>,
    /// The stores that still have an index of the image, because this server cannot write to them.
    left: Vec<String>,
}

/// Deletes the index of an image from all stores that can be written.
#[utoipa::path(delete, path = "/v1/images/{id}", tag = "symdex", security(("bearer" = ["admin"])),
    params(("id" = String, Path, description = "The `LC_UUID` or the build id, with or without dashes")),
    responses((status = 200, body = RemovedImage),
        (status = 404, body = ProblemDetails, description = "No store has the image"),
        (status = 503, body = ProblemDetails, description = "A store has failed. Others may have deleted the index")))]
pub(crate) async fn remove(
    State(app): State<SharedApp>,
    Path(id): Path<String>,
    Extension(requester): Extension<Requester>,
) -> Result<Response, Problem> {
    let id = parse(&id)?;
    Ok(app.respond(move |app| remove_from_stores(app, &id, &requester)).await)
}

fn remove_from_stores(app: &App, id: &ImageId, requester: &Requester) -> Result<Json<RemovedImage>, Problem> {
    let mut image = RemovedImage { id: id.to_string(), removed: Vec::new(), left: Vec::new() };
    let mut failed = None;
    for store in app.symbolicator.stores().stores() {
        let url = store.url().to_string();
        if store.store().is_read_only() {
            // A store that cannot be queried may have it.
            if !store.stat(id).is_ok_and(|entry| entry.is_none()) {
                image.left.push(url);
            }
            continue;
        }
        match app.symbolicator.remove(store, id) {
            Ok(true) => {
                tracing::info!(
                    target: AUDIT,
                    action = "delete",
                    token = requester.token,
                    client = requester.client.map(tracing::field::display),
                    image = image.id,
                    store = url,
                    "audit"
                );
                image.removed.push(url);
            }
            Ok(false) => {}
            Err(error) => failed = failed.or(Some(Problem::of_store(&error))),
        }
    }
    match failed {
        Some(problem) => Err(problem),
        None if image.removed.is_empty() && image.left.is_empty() => {
            Err(Problem::new(ProblemKind::NotFound, format!("no store has the image {id}")))
        }
        None => Ok(Json(image)),
    }
}

/// An image that no store has with lines.
#[derive(Serialize, ToSchema)]
pub(crate) struct MissingImage {
    /// The id as in the request.
    id: String,
    /// The most that an index of the stores answers. `nothing` if no store has one; `names` or `bounds` if an index was
    /// made from a file without debug information.
    grade: Grade,
}

/// Those of a list of images that no store has with lines, in the order and the spelling of the list. Each says what
/// the stores have of it.
#[utoipa::path(post, path = "/v1/missing", tag = "symdex", security(("bearer" = ["read"])),
    request_body = Vec<String>,
    responses((status = 200, body = Vec<MissingImage>), (status = 400, body = ProblemDetails),
        (status = 503, body = ProblemDetails,
            description = "A store cannot be queried, and no other has one of the images")))]
pub(crate) async fn missing(
    State(app): State<SharedApp>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let body = app.receive(&headers, body).await?;
    let work = move |app: &App| {
        let (bytes, _reserved) = app.unpack(body)?;
        let texts: Vec<String> = super::list_of(&bytes)?;
        let ids = texts.iter().map(|text| parse(text)).collect::<Result<Vec<_>, _>>()?;
        let grades = grades_of(app, &ids).map_err(|error| Problem::of_store(&error))?;
        let images = texts.into_iter().zip(grades).map(|(id, grade)| MissingImage { id, grade });
        Ok::<_, Problem>(Json(images.filter(|image| image.grade < Grade::Lines).collect::<Vec<_>>()))
    };
    Ok(app.respond(work).await)
}

/// The greatest grade of the indexes of each of `ids`. The next store is asked for those that the ones before do not
/// have with lines. An object of an older version, which does not state its grade, counts as one with lines.
///
/// # Errors
///
/// The first error of a store, if no other store has one of the images with lines.
fn grades_of(app: &App, ids: &[ImageId]) -> Result<Vec<Grade>, Error> {
    let stores = app.symbolicator.stores();
    let mut failures = stores.no_failures();
    let found = stores.best(ids, &mut failures, Grade::clone, |store, ids| {
        let stated = store.stat_many(ids).into_iter();
        stated.map(|entry| Ok(entry?.map(|entry| entry.grade.unwrap_or(Grade::Lines)))).collect()
    });
    let grades: Vec<_> = found.into_iter().map(Option::unwrap_or_default).collect();
    match failures.into_iter().flatten().next() {
        Some(error) if grades.iter().any(|grade| *grade < Grade::Lines) => Err(error),
        _ => Ok(grades),
    }
}
