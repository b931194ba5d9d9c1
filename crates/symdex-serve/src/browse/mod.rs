//! What one image consists of: its functions, and the bytes of its files.

mod overview;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use symdex::{ImageId, Index};
use symdex_answer::Symbolicator;
use symdex_store::{Error, IndexBytes, OpenImage, Store, StoredImage};

use self::overview::OverviewError;
pub(crate) use self::overview::{FileEntry, FunctionEntry, Overview};
use crate::budget::{Budget, Reserved};
use crate::problem::{Problem, ProblemKind};
use crate::workers::Workers;

/// How many images are kept. A person looks at one or two.
const MAX_KEPT: usize = 8;

/// How long an image is kept. Then its store is asked again, which may have another index.
const FRESH: Duration = Duration::from_secs(300);

/// An image that can be browsed.
#[derive(Debug)]
pub(crate) struct BrowsedImage {
    /// All of the index.
    pub(crate) index: Index<IndexBytes>,
    pub(crate) overview: Overview,
    /// The memory of the overview.
    _reserved: Reserved,
    made: Instant,
}

/// The images that were browsed last.
#[derive(Debug)]
pub(crate) struct Browser {
    symbolicator: Arc<Symbolicator>,
    budget: Budget,
    /// How much memory one image may take.
    most: u64,
    /// The last used one last.
    kept: Mutex<Vec<Arc<BrowsedImage>>>,
    /// One overview is made at a time. Requests wait for their turn without a thread.
    turn: Arc<tokio::sync::Mutex<()>>,
}

impl Browser {
    /// Browses the images of `symbolicator`, with memory of `budget`, which has `memory` bytes in all.
    pub(crate) fn new(symbolicator: Arc<Symbolicator>, budget: Budget, memory: u64) -> Self {
        Self { symbolicator, budget, most: memory / 4, kept: Mutex::default(), turn: Arc::default() }
    }

    fn find(&self, id: &ImageId) -> Option<Arc<BrowsedImage>> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|image| image.made.elapsed() < FRESH);
        let image = kept.iter().position(|image| image.index.id() == id).map(|at| kept.remove(at))?;
        kept.push(Arc::clone(&image));
        Some(image)
    }

    fn keep(&self, image: Arc<BrowsedImage>) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.truncate(MAX_KEPT);
        if kept.len() == MAX_KEPT {
            kept.remove(0);
        }
        kept.push(image);
    }

    /// Forgets all images, for example because one was deleted.
    pub(crate) fn forget_all(&self) {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// The overview of the image `id`, made on a thread of `workers`.
    ///
    /// # Errors
    ///
    /// A problem if no store has the image, if it is in a store of values, or if its index is damaged or too large.
    pub(crate) async fn browse(
        self: &Arc<Self>,
        id: ImageId,
        workers: &Workers,
    ) -> Result<Arc<BrowsedImage>, Problem> {
        if let Some(image) = self.find(&id) {
            return Ok(image);
        }
        let turn = Arc::clone(&self.turn).lock_owned().await;
        let browser = Arc::clone(self);
        let make = move || {
            let _turn = turn;
            // Another request may have created it in the meantime.
            browser.find(&id).map_or_else(|| browser.make(&id), Ok)
        };
        workers.run(make).await?
    }

    fn make(&self, id: &ImageId) -> Result<Arc<BrowsedImage>, Problem> {
        let index = self.whole_index(id)?;
        let mut reserved = self.budget.reserve();
        let overview = Overview::new(&index, |bytes| {
            // The images that are kept give way to this one, which may take a quarter of the memory.
            let grown = reserved.grow(bytes).or_else(|_| {
                self.forget_all();
                reserved.grow(bytes)
            });
            grown.ok().filter(|()| reserved.bytes() <= self.most)
        });
        let overview = overview.map_err(OverviewError::into_problem)?;
        let image = BrowsedImage { index, overview, _reserved: reserved, made: Instant::now() };
        let image = Arc::new(image);
        self.keep(Arc::clone(&image));
        Ok(image)
    }

    /// The index of `id` in the first store that has all of it.
    fn whole_index(&self, id: &ImageId) -> Result<Index<IndexBytes>, Problem> {
        let (mut first_error, mut is_in_values) = (None, false);
        for store in self.symbolicator.stores().stores() {
            let found = store.open(id).and_then(|image| match image.as_ref().map(OpenImage::image) {
                None => Ok(None),
                Some(StoredImage::Values(_)) => {
                    is_in_values = true;
                    Ok(None)
                }
                // Lookups may have fetched a part of it only.
                Some(_) => whole(store.store(), id),
            });
            match found {
                Ok(Some(index)) => return Ok(index),
                Ok(None) => {}
                Err(error) => _ = first_error.get_or_insert(error),
            }
        }
        Err(match first_error {
            Some(error) => Problem::of_store(&error),
            None if is_in_values => Problem::new(
                ProblemKind::NotWhole,
                "the store keeps the index in parts, for lookups only; images in folders and object stores can be \
                 browsed",
            ),
            None => Problem::new(ProblemKind::NotFound, format!("no store has an index of {id}")),
        })
    }
}

/// The index of `id` in `store`.
fn whole(store: &dyn Store, id: &ImageId) -> Result<Option<Index<IndexBytes>>, Error> {
    let damaged = |error| Error::Index { path: store.location(id).into(), error };
    store.get(id)?.map(|bytes| Index::open(bytes).map_err(damaged)).transpose()
}

impl OverviewError {
    fn into_problem(self) -> Problem {
        match self {
            Self::Damaged(error) => Problem::damaged(error.to_string()),
            Self::TooManyRanges(limit) => {
                let detail = format!("the index has more than {limit} ranges, the most that can be browsed");
                Problem::new(ProblemKind::TooLarge, detail)
            }
            Self::NoMemory => Problem::overloaded("other requests take the memory that the image needs"),
        }
    }
}
