//! What the server answers of images: `POST /v1/missing`.

use std::collections::{BTreeMap, BTreeSet};

use reqwest::Method;
use serde::Deserialize;
use symdex::{Grade, ImageId};
use symdex_pipeline::Plan;

use super::client::Server;
use super::parcel::Image;
use crate::build::RequiredArgs;
use crate::failure::Failure;

/// How many images a request asks for. The server takes 100,000.
const MAX_IDS: usize = 10_000;

/// An image that the server does not answer with lines.
#[derive(Deserialize)]
struct MissingImage {
    id: String,
    grade: Grade,
}

/// What the server answers of the images of the inputs.
pub(super) struct Known<'s> {
    server: &'s Server,
    /// The images of `--id`.
    required: &'s RequiredArgs,
    /// Whether images are sent that the server answers.
    force: bool,
    grades: BTreeMap<ImageId, Grade>,
    /// The images that the server answers with lines.
    pub(super) answered: Vec<Image>,
    listed: BTreeSet<(ImageId, String)>,
}

impl<'s> Known<'s> {
    pub(super) fn new(server: &'s Server, required: &'s RequiredArgs, force: bool) -> Self {
        let (grades, answered, listed) = Default::default();
        Self { server, required, force, grades, answered, listed }
    }

    /// Asks for the images of a plan. Returns the ids of those that need not be sent.
    pub(super) fn ask(&mut self, plan: &Plan) -> Result<BTreeSet<ImageId>, Failure> {
        if self.force {
            return Ok(BTreeSet::new());
        }
        let ids = plan.ids.iter().filter(|id| self.required.wants(id)).cloned().collect();
        let grades = grades(self.server, &ids)?;
        let answered = grades.iter().filter(|(_, grade)| **grade == Grade::Lines);
        let answered: BTreeSet<_> = answered.map(|(id, _)| id.clone()).collect();
        self.grades.extend(grades);
        for (file, (id, arch)) in plan.images() {
            if answered.contains(&id) && self.listed.insert((id.clone(), arch.clone())) {
                self.answered.push(Image::of_plan(file, &id, &arch, Grade::Lines));
            }
        }
        Ok(answered)
    }

    /// Whether the index of `image` may answer more than the server does. Of two indexes of the same grade, the server
    /// keeps the one with more functions.
    pub(super) fn needs(&self, image: &Image) -> bool {
        let grade = image.id.parse().ok().and_then(|id: ImageId| self.grades.get(&id));
        grade.is_none_or(|grade| *grade < Grade::Lines && *grade <= image.grade)
    }
}

/// The grade with which `server` answers each of `ids`.
pub(super) fn grades(server: &Server, ids: &BTreeSet<ImageId>) -> Result<BTreeMap<ImageId, Grade>, Failure> {
    let mut grades: BTreeMap<_, _> = ids.iter().map(|id| (id.clone(), Grade::Lines)).collect();
    let ids: Vec<_> = ids.iter().collect();
    for ids in ids.chunks(MAX_IDS) {
        let texts: Vec<_> = ids.iter().map(ToString::to_string).collect();
        let body = serde_json::to_vec(&texts).unwrap_or_default();
        let answer = server.ask(|| {
            let request = server.request(Method::POST, &["missing"], &[]).body(body.clone());
            request.header("content-type", "application/json")
        })?;
        if answer.status != 200 {
            return Err(server.failure(&answer));
        }
        for MissingImage { id, grade } in answer.json::<Vec<MissingImage>>()? {
            if let Some(known) = id.parse().ok().and_then(|id: ImageId| grades.get_mut(&id)) {
                *known = grade;
            }
        }
    }
    Ok(grades)
}
