//! The answers for the frames of all jobs of a request.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use symdex::{ImageId, ImageOffset, LinePolicy};
use symdex_report::{
    Answer, AnswerBytes, Function, ReportImage, build_id_start_of_debug_id, uuid_of_debug_id,
};

use super::request::{Frame, Job};
use super::response::Debug;
use crate::answers::{ImageAnswers, ImageOffsets};
use crate::app::App;
use crate::problem::Problem;
use crate::unasked::StoreFailures;

/// A module: its name and its debug id.
type Module<'j> = (&'j str, &'j str);

/// The answers for the frames of all jobs of a request.
pub(super) struct Lookup<'j> {
    /// The answers for each module that a frame lies in; `None` if there is no index of it.
    answers: BTreeMap<Module<'j>, Option<ImageAnswers>>,
    time: Duration,
    /// What further answers may have in the output.
    left: AnswerBytes,
}

impl<'j> Lookup<'j> {
    /// Looks up the frames of `jobs`, of a request of `size` bytes. A module is looked up once for all jobs.
    ///
    /// # Errors
    ///
    /// A problem if a store could not be queried for a module that no other source has.
    pub(super) fn new(app: &App, jobs: &'j [Job], size: usize) -> Result<Self, Problem> {
        let started = Instant::now();
        let mut offsets: BTreeMap<Module<'j>, Vec<ImageOffset>> = BTreeMap::new();
        for job in jobs {
            for frame in job.stacks.iter().flatten() {
                let (name, id) = job.module_of(*frame);
                if !name.is_empty() && !id.is_empty() {
                    let offset = frame.offset.map(ImageOffset);
                    offsets.entry((name, id)).or_default().extend(offset);
                }
            }
        }
        let (mut answers, mut unanswered) = (BTreeMap::new(), BTreeMap::new());
        // A debug id does not say whether it is of a Mach-O or of an ELF image.
        for image in [macho_image, elf_image] {
            let asked: Vec<_> = offsets
                .iter()
                .filter(|(module, _)| !answers.contains_key(*module))
                .filter_map(|(module, offsets)| {
                    Some((*module, ImageOffsets::new(image(module.1)?, offsets.clone())))
                })
                .collect();
            let (modules, requests): (Vec<_>, Vec<_>) = asked.into_iter().unzip();
            let found = modules.into_iter().zip(app.answer(requests, LinePolicy::Exact));
            for (module, found) in found {
                match found.answered {
                    Ok(_) => _ = answers.insert(module, Some(found)),
                    // The reason why the module is not answered as a Mach-O image comes first.
                    Err(_) => _ = unanswered.entry(module).or_insert(found),
                }
            }
        }
        let mut failures = StoreFailures::default();
        answers.values().flatten().for_each(|found| found.note(&mut failures, ""));
        let unanswered = unanswered.iter().filter(|(module, _)| !answers.contains_key(*module));
        unanswered.for_each(|((name, _), found)| found.note(&mut failures, name));
        failures.of_all().check()?;
        offsets.into_keys().for_each(|module| _ = answers.entry(module).or_insert(None));
        Ok(Self { answers, time: started.elapsed(), left: AnswerBytes::written(size) })
    }

    /// Whether there is an index of `module`; `None` if no frame lies in it.
    pub(super) fn is_found(&self, module: Module<'_>) -> Option<bool> {
        self.answers.get(&module).map(Option::is_some)
    }

    /// The functions at `frame` of `job`, innermost first, to be written once; empty if there is no answer, or if it is
    /// past the limit.
    pub(super) fn functions<'a>(&'a self, job: &'a Job, frame: Frame) -> &'a [Function] {
        let answers = self.answers.get(&job.module_of(frame)).and_then(Option::as_ref);
        let answer = answers.zip(frame.offset).and_then(|(answers, at)| answers.at(ImageOffset(at)).ok());
        match answer {
            Some(Answer::Functions(functions)) if self.left.take_functions(functions) => functions,
            _ => &[],
        }
    }

    /// What the header `Debug` asks for. `time` is how long the request took.
    pub(super) fn debug(&self, jobs: &[Job], time: Duration) -> Debug {
        let mut jobs_of_module = BTreeMap::new();
        for job in jobs {
            let mut modules: Vec<_> = job.modules.iter().collect();
            modules.sort_unstable();
            modules.dedup();
            for (name, id) in modules.into_iter().filter(|(name, id)| self.is_found((name, id)).is_some()) {
                *jobs_of_module.entry(format!("{name}/{id}")).or_default() += 1;
            }
        }
        let hits = self.answers.values().filter(|answers| answers.is_some()).count();
        Debug::new(time, jobs_of_module, (self.answers.len(), hits, self.time))
    }
}

/// The Mach-O image of a debug id: the id is the UUID.
fn macho_image(debug_id: &str) -> Option<ReportImage> {
    Some(image(uuid_of_debug_id(without_age(debug_id)?)?))
}

/// The ELF image of a debug id, which has the start of the build id.
fn elf_image(debug_id: &str) -> Option<ReportImage> {
    let mut image = image(build_id_start_of_debug_id(without_age(debug_id)?)?);
    image.is_id_cut = true;
    Some(image)
}

fn image(id: ImageId) -> ReportImage {
    let mut image = ReportImage::default();
    image.id = Some(id);
    image
}

/// The 32 digits before the age, which is 0 for Mach-O and ELF images. Others have no index.
fn without_age(debug_id: &str) -> Option<&str> {
    debug_id.strip_suffix('0').filter(|digits| digits.len() == 32)
}
