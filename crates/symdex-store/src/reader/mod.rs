//! Reads images from several stores.

mod breaker;
mod counts;
mod gate;
mod ids;
mod memory;
mod open_image;
mod options;
mod publish;
mod refresh;
mod shared_store;
mod values;

use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex};

use symdex::{Grade, ImageId};

use self::counts::Counts;
use self::gate::Gate;
use self::memory::Memory;
use self::shared_store::Shared;
use crate::error::Error;
use crate::single_flight::SingleFlight;
use crate::store::Store;

pub use self::breaker::Breaker;
pub use self::counts::StoreCounts;
pub use self::open_image::OpenImage;
pub use self::options::ReaderOptions;
pub use self::shared_store::SharedStore;

/// Reads images from several stores, with one memory for all of them. Threads share it.
///
/// Threads that need the same image at the same time wait for one of them to open it. A store that cannot be reached is
/// left alone for a while.
///
/// ```
/// use symdex_store::{IndexFolder, ReaderOptions, StoreReader};
///
/// # let near = tempfile::tempdir()?;
/// # let far = tempfile::tempdir()?;
/// # let id = "0c37c502aba03641a08f84c794684f36".parse()?;
/// let stores = [near.path(), far.path()].map(|path| Box::new(IndexFolder::new(path)) as _);
/// let reader = StoreReader::new(stores.into(), &ReaderOptions::new());
/// match reader.find(&id)? {
///     Some(image) => println!("{} is {}", image.metadata().image_name, image.location()),
///     None => println!("no store has {id}"),
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct StoreReader {
    stores: Vec<Arc<SharedStore>>,
    shared: Arc<Shared>,
}

impl StoreReader {
    /// A reader of `stores`, in the order in which they are asked.
    #[must_use]
    pub fn new(stores: Vec<Box<dyn Store>>, options: &ReaderOptions) -> Self {
        let memory = Mutex::new(Memory::new(options.memory));
        let ReaderOptions { fresh, absent, patience, .. } = *options;
        let around_calls = options.around_calls.clone();
        let flights = SingleFlight::default();
        let shared = Arc::new(Shared { memory, flights, fresh, absent, patience, around_calls });
        let store = |(number, store)| {
            Arc::new(SharedStore {
                store,
                number,
                reads: Gate::new(options),
                writes: Gate::new(options),
                counts: Counts::default(),
                refreshing: AtomicUsize::new(0),
                shared: Arc::clone(&shared),
            })
        };
        Self { stores: stores.into_iter().enumerate().map(store).collect(), shared }
    }

    /// The stores, in the order in which they are asked.
    #[must_use]
    pub fn stores(&self) -> &[Arc<SharedStore>] {
        &self.stores
    }

    /// The image `id` of the first store that has it with lines; if none has, the index of the greatest
    /// [grade](symdex::Metadata::grade). `None` if no store has the image.
    ///
    /// # Errors
    ///
    /// The first [`Error`], if a store has failed and no other store has the image.
    pub fn find(&self, id: &ImageId) -> Result<Option<OpenImage>, Error> {
        let mut failures = self.no_failures();
        match (self.find_noting(id, &mut failures), failures.into_iter().flatten().next()) {
            (None, Some(error)) => Err(error),
            (found, _) => Ok(found),
        }
    }

    /// As [`find`](Self::find), and asks the stores again that are remembered not to have the image.
    ///
    /// # Errors
    ///
    /// As [`find`](Self::find).
    pub fn find_now(&self, id: &ImageId) -> Result<Option<OpenImage>, Error> {
        let found = self.find(id);
        let is_there_now = || self.stores.iter().any(|store| matches!(store.stat(id), Ok(Some(_))));
        if !matches!(found, Ok(Some(_))) && is_there_now() { self.find(id) } else { found }
    }

    /// For [`find_noting`](Self::find_noting): the failure of each store, in their order. None has failed yet.
    #[must_use]
    pub fn no_failures(&self) -> Vec<Option<Error>> {
        self.stores.iter().map(|_| None).collect()
    }

    /// As [`find`](Self::find), without the stores that have a failure in `failures`. Those of the others are added
    /// there.
    pub fn find_noting(&self, id: &ImageId, failures: &mut [Option<Error>]) -> Option<OpenImage> {
        let id = std::slice::from_ref(id);
        self.best(id, failures, OpenImage::grade, SharedStore::open_many).pop().flatten()
    }

    /// What the stores have of each of `ids`, in their order: of the first store that has it with lines, or else of the
    /// first with the greatest `grade`. `None` if no store has it. `ask` asks a store for the ids that the stores
    /// before do not have with lines, which may be none. Stores that have a failure in `failures` are not asked.
    /// The first one of each of the others is added there.
    pub fn best<T>(
        &self,
        ids: &[ImageId],
        failures: &mut [Option<Error>],
        grade: impl Fn(&T) -> Grade,
        mut ask: impl FnMut(&Arc<SharedStore>, &[ImageId]) -> Vec<Result<Option<T>, Error>>,
    ) -> Vec<Option<T>> {
        let grade = |found: &Option<T>| found.as_ref().map(&grade);
        let mut best: Vec<Option<T>> = ids.iter().map(|_| None).collect();
        for (store, failure) in self.stores.iter().zip(failures).filter(|(_, failure)| failure.is_none()) {
            let left = ids.iter().zip(&mut best).filter(|(_, best)| grade(best) < Some(Grade::Lines));
            let (left, places): (Vec<_>, Vec<_>) = left.map(|(id, best)| (id.clone(), best)).unzip();
            for (best, found) in places.into_iter().zip(ask(store, &left)) {
                match found {
                    Ok(found) if grade(&found) > grade(best) => *best = found,
                    Ok(_) => {}
                    Err(error) => _ = failure.get_or_insert(error),
                }
            }
        }
        best
    }

    /// What the stores have answered until now, in their order.
    #[must_use]
    pub fn counts(&self) -> Vec<StoreCounts> {
        self.stores.iter().map(|store| store.counts()).collect()
    }

    /// The bytes of the images and values that are in memory now, at most [`ReaderOptions::memory`].
    #[must_use]
    pub fn memory_in_use(&self) -> u64 {
        self.shared.memory().in_use()
    }
}
