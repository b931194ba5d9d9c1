//! Messages while reports are answered: progress and warnings.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use symdex::ImageId;
use symdex_answer::{Event, Note, Refill, SourceError};
use symdex_report::KnownImage;

use crate::failure::{Failure, complain};
use crate::open;
use crate::progress::{Bar, ImageProgress};
use crate::text;

/// Shows the events of a symbolicator.
pub(super) struct Events {
    progress: Bar,
    /// The builds that are running.
    builds: Mutex<HashMap<ImageId, ImageProgress>>,
}

/// Prints on standard error what has become of an index that a store had lost.
pub(super) fn report_refill(Refill { id, to, from, outcome, .. }: &Refill) {
    match outcome {
        Ok(Some(outcome)) if outcome.keeps_existing() => {}
        Ok(Some(_)) => complain(&format!("{to}: the index of {id} is put again, from {from}")),
        Ok(None) => {
            complain(&format!("warning: {to}: the index of {id} is not put again: {from} has it no longer"))
        }
        Err(error) => complain(&format!("warning: {to}: the index of {id} is not put again: {error}")),
    }
}

impl Events {
    pub(super) fn new(progress: Bar) -> Self {
        Self { progress, builds: Mutex::default() }
    }

    /// The bar that the events move.
    pub(super) fn bar(&self) -> &Bar {
        &self.progress
    }

    pub(super) fn on(&self, event: Event<'_>) {
        match event {
            Event::Building { id, size, done, total } => {
                let mut builds = self.builds.lock().unwrap_or_else(PoisonError::into_inner);
                let build = builds.entry(id.clone()).or_insert_with(|| self.progress.of_image(size));
                build.set(done, total);
            }
            Event::NotUsed { why } => self.progress.suspend(|| complain(&format!("warning: {why}"))),
            Event::NotStored { error } => {
                let no_store = || "the user has no cache folder".to_owned();
                let error = error.map_or_else(no_store, ToString::to_string);
                let message =
                    "new indexes are kept in memory for this run; choose another folder with --store";
                self.progress.suspend(|| complain(&format!("warning: {error}; {message}")));
            }
            _ => {}
        }
    }
}

/// Prints which searches were not complete, and which assumptions had no effect.
pub(super) fn report_notes(notes: &[Note]) {
    for note in notes {
        match note {
            Note::NotAllOpened { opened } => {
                complain(&format!("only the first {opened} indexes were searched for names of images"));
            }
            Note::FolderCut { folder } => open::report_incomplete_search(folder),
            Note::AssumptionUnused { name } => {
                let name = text::printable(name.into());
                complain(&format!(
                    "--assume {name}: no report has a frame to answer in an image of that name"
                ));
            }
            _ => {}
        }
    }
}

/// A source of answers cannot be used.
pub(super) fn failure_of(error: SourceError) -> Failure {
    let cause = error.cause();
    let message = match error {
        SourceError::Index(error) => return error.into(),
        SourceError::DebugFile(error) => return error.into(),
        SourceError::SharedCache { path } => {
            let message = "a dyld shared cache; build indexes of its images with `symdex build`, then give \
                               their folder with --index";
            format!("{}: {message}", path.display())
        }
        SourceError::UnknownId { name, id } => {
            let message =
                "there is no file of that name, and no image of that id in --index, --dsym or the store";
            format!("--assume {name}={id}: {message}")
        }
        SourceError::AmbiguousId { name, id, images } => {
            let images = images
                .iter()
                .map(|KnownImage { name, arch, id }| format!("{} {arch} {id}", text::printable(name.into())));
            let images = text::list(images);
            let message = format!("several ids begin with {id}: {images}; give more digits");
            format!("--assume {name}={id}: {message}")
        }
        error => error.to_string(),
    };
    Failure::new(cause, message)
}
