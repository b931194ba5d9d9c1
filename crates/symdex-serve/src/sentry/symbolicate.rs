//! The answers for the frames of a request.

use std::borrow::Cow;

use symdex::{Arch, Cause, Grade, ImageId, ImageOffset, LinePolicy};
use symdex_report::{Answer, Function, ReportImage, Unanswered};
use symdex_store::{Error, OpenImage};

use super::call_site::{Adjust, FirstFrame, call_site, pc_register};
use super::modules::Modules;
use super::request::{Frame, Request, Stacktrace};
use crate::answers::{ImageAnswers, ImageOffsets};
use crate::app::App;
use crate::unasked::StoreFailures;

/// A request with its answers.
pub(super) struct Symbolicated {
    pub(super) request: Request,
    pub(super) modules: Modules,
    /// For each module.
    pub(super) outcomes: Vec<ModuleOutcome>,
    /// For each frame of each stack trace.
    places: Vec<Vec<FramePlace>>,
}

/// What is known of a module.
#[derive(Default)]
pub(super) struct ModuleOutcome {
    /// Whether a frame lies in the module.
    is_used: bool,
    pub(super) found: Option<IndexFeatures>,
    /// `None` if the module is not used, or states no id.
    answers: Option<ImageAnswers>,
    /// The stores that were asked, in their order. Empty unless the request wants to know.
    pub(super) candidates: Vec<Candidate>,
}

/// A store that was asked for an image.
pub(super) struct Candidate {
    /// Its URL.
    pub(super) store: String,
    /// Where the index is, or would be.
    pub(super) location: String,
    pub(super) outcome: CandidateOutcome,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum CandidateOutcome {
    Found,
    Absent,
    Damaged,
    /// The store cannot be read.
    Failed,
}

/// What the index of a module has.
pub(super) struct IndexFeatures {
    pub(super) arch: Arch,
    pub(super) has_debug_info: bool,
    pub(super) has_symbols: bool,
}

/// Where a frame was looked up.
#[derive(Clone, Copy)]
pub(super) enum FramePlace {
    UnknownImage,
    /// In this module. The offset is `None` if it is before the start of the module, or not known.
    Module(usize, Option<u64>),
}

impl Symbolicated {
    /// Looks up the frames of `request`. This blocks.
    pub(super) fn new(app: &App, mut request: Request) -> Self {
        let modules = Modules::new(std::mem::take(&mut request.modules));
        let mut outcomes: Vec<_> = modules.modules.iter().map(|_| ModuleOutcome::default()).collect();
        for frame in request.stacktraces.iter().flat_map(|stacktrace| &stacktrace.frames) {
            if let Some((module, _)) = modules.find(frame.instruction_addr.0, frame.addr_mode) {
                outcomes[module].is_used = true;
            }
        }
        // The architecture says how far a call is before its return address, so that it comes first.
        let used = (0..outcomes.len()).filter(|at| outcomes[*at].is_used);
        let (used, images): (Vec<usize>, Vec<ReportImage>) =
            used.filter_map(|at| Some((at, modules.modules[at].image()?))).unzip();
        let mut ids: Vec<_> = images.iter().map(|image| image.id.clone()).collect();
        for ((at, id), index) in used.iter().zip(&mut ids).zip(app.stored_images(&images)) {
            outcomes[*at].found = index.map(|index| {
                let metadata = index.metadata();
                *id = Some(metadata.id.clone());
                IndexFeatures {
                    arch: metadata.arch.clone(),
                    has_debug_info: metadata.counts.ranges != 0,
                    has_symbols: metadata.counts.symbols != 0,
                }
            });
        }
        let of_stacktrace = |stacktrace: &Stacktrace| places(stacktrace, request.signal, &modules, &outcomes);
        let places: Vec<_> = request.stacktraces.iter().map(of_stacktrace).collect();
        let mut offsets = vec![Vec::new(); outcomes.len()];
        for place in places.iter().flatten() {
            if let FramePlace::Module(module, Some(offset)) = place {
                offsets[*module].push(ImageOffset(*offset));
            }
        }
        let requests = used
            .iter()
            .zip(images)
            .map(|(at, image)| ImageOffsets::new(image, std::mem::take(&mut offsets[*at])));
        let answers = app.answer(requests.collect(), LinePolicy::Exact);
        // The modules say it, so that the others of the request are answered.
        let mut failures = StoreFailures::default();
        answers.iter().for_each(|answers| answers.note(&mut failures, ""));
        failures.log();
        used.iter().zip(answers).for_each(|(at, answers)| outcomes[*at].answers = Some(answers));
        if request.options.dif_candidates {
            for (at, id) in used.iter().zip(ids) {
                outcomes[*at].candidates = id.map(|id| candidates(app, &id)).unwrap_or_default();
            }
        }
        Self { request, modules, outcomes, places }
    }

    pub(super) fn place(&self, stacktrace: usize, frame: usize) -> FramePlace {
        let places = self.places.get(stacktrace);
        places.and_then(|places| places.get(frame)).copied().unwrap_or(FramePlace::UnknownImage)
    }

    /// The functions at `place`, innermost first.
    ///
    /// # Errors
    ///
    /// The status of a frame without functions.
    pub(super) fn functions(&self, place: FramePlace) -> Result<&[Function], &'static str> {
        let FramePlace::Module(module, offset) = place else { return Err("unknown_image") };
        let answers =
            self.outcomes.get(module).and_then(|outcome| outcome.answers.as_ref()).ok_or("missing")?;
        if let Err(why) = &answers.answered {
            return Err(if why.cause() == Cause::Damaged { "malformed" } else { "missing" });
        }
        match offset.and_then(|offset| answers.at(ImageOffset(offset)).ok()) {
            Some(answer @ Answer::Functions(functions)) if answer.grade() >= Grade::Names => Ok(functions),
            Some(Answer::Unreadable(Cause::Damaged, _)) => Err("malformed"),
            _ => Err("missing_symbol"),
        }
    }
}

impl ModuleOutcome {
    /// Why the module has the status `other`: a store could not be queried, for example.
    pub(super) fn reason(&self) -> Option<Cow<'static, str>> {
        let why = self.answers.as_ref()?.answered.as_ref().err()?;
        (self.status() == "other").then(|| why.reason())
    }

    /// The status of the module, in Sentry's words.
    pub(super) fn status(&self) -> &'static str {
        let Some(answers) = self.answers.as_ref().filter(|_| self.is_used) else {
            return if self.is_used { "missing" } else { "unused" };
        };
        match &answers.answered {
            Ok(_) => "found",
            // A later request may find it.
            Err(Unanswered::Fetching) => "timeout",
            Err(Unanswered::Failed(cause, _)) => match cause {
                Cause::Damaged => "malformed",
                Cause::Unsupported => "unsupported",
                _ => "other",
            },
            Err(why) => why.status(),
        }
    }
}

/// The stores that are asked for the image `id`, up to the one that has it. Images that were opened are in memory.
fn candidates(app: &App, id: &ImageId) -> Vec<Candidate> {
    let mut candidates = Vec::new();
    let outcome = |opened: &Result<Option<OpenImage>, Error>| match opened {
        Ok(Some(_)) => CandidateOutcome::Found,
        Ok(None) => CandidateOutcome::Absent,
        Err(error) if matches!(error.cause(), Cause::Unsupported | Cause::Lost | Cause::Damaged) => {
            CandidateOutcome::Damaged
        }
        Err(_) => CandidateOutcome::Failed,
    };
    let (id, stores) = (std::slice::from_ref(id), app.symbolicator.stores());
    stores.best(id, &mut stores.no_failures(), OpenImage::grade, |store, ids| {
        let opened = store.open_many(ids);
        candidates.extend(ids.iter().zip(&opened).map(|(id, opened)| Candidate {
            store: store.url().to_string(),
            location: store.store().location(id),
            outcome: outcome(opened),
        }));
        opened
    });
    candidates
}

/// Where the frames of `stacktrace` are looked up.
fn places(
    stacktrace: &Stacktrace,
    signal: Option<u32>,
    modules: &Modules,
    outcomes: &[ModuleOutcome],
) -> Vec<FramePlace> {
    let is_stated = stacktrace.frames.iter().any(|frame| frame.adjust_instruction_addr.is_some());
    let place = |(at, frame): (usize, &Frame)| {
        let Some((module, offset)) = modules.find(frame.instruction_addr.0, frame.addr_mode) else {
            return FramePlace::UnknownImage;
        };
        let Some(offset) = offset else { return FramePlace::Module(module, None) };
        // Offsets in a module without a load address are looked up unchanged.
        let Some(address) = modules.modules[module].address(offset) else {
            return FramePlace::Module(module, Some(offset));
        };
        let arch = outcomes[module].found.as_ref().map(|found| &found.arch);
        let first = (at == 0).then(|| {
            let pc = arch.and_then(|arch| stacktrace.registers.get(pc_register(arch)));
            FirstFrame { signal, pc: pc.map(|pc| pc.0) }
        });
        let adjust = Adjust::of(frame.adjust_instruction_addr, is_stated);
        let address = call_site(address, arch, adjust, first);
        let start = modules.modules[module].image_addr.0;
        FramePlace::Module(module, address.and_then(|address| address.checked_sub(start)))
    };
    stacktrace.frames.iter().enumerate().map(place).collect()
}
