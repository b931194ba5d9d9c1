//! Answers for offsets of several images.

use symdex::{ImageId, ImageOffset, LinePolicy};
use symdex_report::{Answer, Answers, Question, ReportImage, Source, Unanswered};
use symdex_store::OpenImage;

use crate::app::App;
use crate::unasked::StoreFailures;

/// The offsets of one image that a request asks for.
#[derive(Default)]
pub(crate) struct ImageOffsets {
    pub(crate) image: ReportImage,
    /// In ascending order, each once.
    offsets: Vec<ImageOffset>,
}

impl ImageOffsets {
    /// `offsets` may be in any order. If there are none, the start of the image is asked for, so that the stores are
    /// asked whether they have the image.
    pub(crate) fn new(image: ReportImage, mut offsets: Vec<ImageOffset>) -> Self {
        if offsets.is_empty() {
            offsets.push(ImageOffset(0));
        }
        offsets.sort_unstable();
        offsets.dedup();
        Self { image, offsets }
    }
}

/// The answers for the offsets of one image.
pub(crate) struct ImageAnswers {
    id: Option<ImageId>,
    offsets: Vec<ImageOffset>,
    pub(crate) answered: Result<Answers, Unanswered>,
}

impl ImageAnswers {
    /// The answer for one of the offsets.
    pub(crate) fn at(&self, offset: ImageOffset) -> Result<&Answer, &Unanswered> {
        let answers = self.answered.as_ref()?;
        let answer = self.offsets.binary_search(&offset).ok().and_then(|at| answers.answers.get(at));
        Ok(answer.unwrap_or(&Answer::NoFunction))
    }

    /// Adds what stores have failed at to `failures`. The image has this name in the request.
    pub(crate) fn note(&self, failures: &mut StoreFailures, name: &str) {
        match &self.answered {
            Ok(answers) => failures.add_answered(&answers.by),
            Err(why) => failures.add(self.id.as_ref(), name, why),
        }
    }
}

impl App {
    /// Answers `requests`, in their order. Images of several requests are fetched together. This blocks.
    pub(crate) fn answer(&self, requests: Vec<ImageOffsets>, lines: LinePolicy) -> Vec<ImageAnswers> {
        let asked = requests.iter().map(|one| (&one.image, &one.offsets[..]));
        let mut answered = self.session().answer(&Question::of_images(asked, lines)).into_iter();
        let answer = |ImageOffsets { image, offsets }: ImageOffsets| {
            let answered = answered.next().unwrap_or(Err(Unanswered::Missing));
            ImageAnswers { id: image.id, offsets, answered }
        };
        requests.into_iter().map(answer).collect()
    }

    /// The index of each of `images`, for its metadata. They are fetched together. `None` if no store has it, or if it
    /// cannot be read. This blocks.
    pub(crate) fn stored_images(&self, images: &[ReportImage]) -> Vec<Option<OpenImage>> {
        // Images that no store has are fetched.
        let questions = images.iter().map(|image| (image, &[][..]));
        self.session().answer(&Question::of_images(questions, LinePolicy::default()));
        self.symbolicator.stored_images(&images.iter().collect::<Vec<_>>())
    }
}
