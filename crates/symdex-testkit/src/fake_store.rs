//! A store in memory that counts its calls and can be made to fail.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use symdex::{ImageId, ImageOffset, Index, Metadata};
use symdex_store::{
    Error, FetchedValue, FetchedValues, GcCounts, IndexBytes, PublishOutcome, PutOptions, ReaderOptions,
    RecordedUses, Store, StoreEntry, StoreReader, StoreUrl, StoredImage, StoredValues, ValueRequest,
};

use crate::indexes::{id, index};
use crate::web::Gate;

/// A store of one image, `id(0xab)`, as values. Its calls are counted, and it can be made to fail.
#[derive(Debug)]
struct FakeStore {
    url: StoreUrl,
    shared: Arc<Fake>,
}

#[derive(Debug, Default)]
pub struct Fake {
    pub values: Mutex<BTreeMap<u64, Vec<u8>>>,
    whole: Mutex<Vec<u8>>,
    generation: AtomicU64,
    /// What a value states as its size.
    pub value_size: AtomicU64,
    opened: AtomicU64,
    fetched: AtomicU64,
    pub is_down: AtomicBool,
    /// Whether calls that write fail.
    pub is_full: AtomicBool,
    /// Whether calls that open images panic.
    pub panics: AtomicBool,
    /// Calls that open images wait for it.
    pub gate: Mutex<Option<Gate>>,
}

impl Fake {
    pub fn new(functions: u16) -> Arc<Self> {
        let fake = Self::default();
        fake.replace(functions);
        Arc::new(fake)
    }

    /// Replaces the index. The values of the old one are gone.
    pub fn replace(&self, functions: u16) {
        self.put(index(0xab, functions));
    }

    /// Replaces the index by `whole`, another one of the image.
    pub fn put(&self, whole: Vec<u8>) {
        let open = Index::open(&whole[..]).expect("an index");
        let values = symdex::write::split(&open).map(|value| value.expect("splits"));
        *self.values.lock().expect("not poisoned") =
            values.map(|value| (value.number, value.bytes)).collect();
        *self.whole.lock().expect("not poisoned") = whole;
        self.generation.fetch_add(1, Ordering::Relaxed);
    }

    /// Loses the value that answers `offset`.
    pub fn lose(&self, offset: ImageOffset) {
        let whole = self.whole.lock().expect("not poisoned");
        let index = Index::open(&whole[..]).expect("an index");
        let number = index.metadata().value_number(offset);
        assert!(self.values.lock().expect("not poisoned").remove(&number).is_some());
    }

    fn answer(&self) -> Result<(), Error> {
        if self.is_down.load(Ordering::Relaxed) { Err(unavailable("down")) } else { Ok(()) }
    }

    pub fn reader(self: &Arc<Self>, options: &ReaderOptions) -> StoreReader {
        StoreReader::new(vec![self.store()], options)
    }

    pub fn store(self: &Arc<Self>) -> Box<dyn Store> {
        let url = "redis://fake".parse().expect("a URL");
        Box::new(FakeStore { url, shared: Arc::clone(self) })
    }
}

fn unavailable(reason: &str) -> Error {
    let (location, reason) = ("fake".to_owned(), reason.to_owned());
    Error::Store { location, action: "use", reason, is_unavailable: true }
}

#[derive(Debug)]
struct FakeValues {
    metadata: Metadata,
    generation: u64,
    shared: Arc<Fake>,
}

impl StoredValues for FakeValues {
    fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    fn generation(&self) -> u64 {
        self.generation
    }

    fn value_size(&self) -> u64 {
        self.shared.value_size.load(Ordering::Relaxed)
    }

    fn fetch(&self, numbers: &[u64]) -> FetchedValues {
        self.shared.answer()?;
        if self.generation != self.shared.generation.load(Ordering::Relaxed) {
            return Err(Error::Replaced { location: "fake".to_owned() });
        }
        let values = self.shared.values.lock().expect("not poisoned");
        let open = |bytes: &Vec<u8>| match Index::open(IndexBytes::from(bytes.clone())) {
            Ok(index) => FetchedValue::Index(Arc::new(index)),
            Err(damage) => FetchedValue::Damaged(damage.to_string()),
        };
        Ok(numbers.iter().map(|number| values.get(number).map_or(FetchedValue::Lost, open)).collect())
    }
}

impl Store for FakeStore {
    fn url(&self) -> &StoreUrl {
        &self.url
    }
    fn is_read_only(&self) -> bool {
        false
    }
    fn recorded_uses(&self) -> RecordedUses {
        RecordedUses::None
    }
    fn location(&self, id: &ImageId) -> String {
        format!("{}/{id}", self.url)
    }
    fn open(&self, wanted: &ImageId) -> Result<Option<StoredImage>, Error> {
        self.shared.answer()?;
        let whole = self.shared.whole.lock().expect("not poisoned");
        let metadata = Index::open(&whole[..]).expect("an index").metadata().clone();
        let (generation, shared) = (self.shared.generation.load(Ordering::Relaxed), Arc::clone(&self.shared));
        let is_there = *wanted == id(0xab);
        Ok(is_there.then(|| StoredImage::Values(Box::new(FakeValues { metadata, generation, shared }))))
    }
    fn images_at_once(&self) -> usize {
        1024
    }
    fn open_many(&self, ids: &[ImageId]) -> Vec<Result<Option<StoredImage>, Error>> {
        self.shared.opened.fetch_add(1, Ordering::Relaxed);
        std::thread::sleep(Duration::from_millis(20));
        let gate = self.shared.gate.lock().expect("not poisoned").clone();
        gate.iter().for_each(Gate::pass);
        assert!(!self.shared.panics.load(Ordering::Relaxed), "as the test wants");
        ids.iter().map(|id| self.open(id)).collect()
    }
    fn fetch_many<'v>(&self, requests: &[ValueRequest<'v>]) -> Vec<FetchedValues> {
        self.shared.fetched.fetch_add(1, Ordering::Relaxed);
        requests.iter().map(|request| request.values.fetch(request.numbers)).collect()
    }
    fn put_with(&self, _: &Index<&[u8]>, _: &PutOptions) -> Result<PublishOutcome, Error> {
        unreachable!("a reader does not write")
    }
    fn stat(&self, _: &ImageId) -> Result<Option<StoreEntry>, Error> {
        unreachable!("a reader opens")
    }
    fn get(&self, _: &ImageId) -> Result<Option<IndexBytes>, Error> {
        unreachable!("a reader opens")
    }
    fn list(&self, _: &mut dyn FnMut(StoreEntry) -> ControlFlow<()>) -> Result<(), Error> {
        unreachable!("a reader does not list")
    }
    fn touch(&self, _: &ImageId) -> Result<bool, Error> {
        unreachable!("opening is a use")
    }
    fn remove(&self, _: &ImageId) -> Result<bool, Error> {
        if self.shared.is_full.load(Ordering::Relaxed) { Err(unavailable("full")) } else { Ok(false) }
    }
    fn gc(&self, _: Duration) -> Result<GcCounts, Error> {
        unreachable!("a reader does not remove")
    }
}

/// The numbers that a store has counted: opened, fetched.
pub fn calls(fake: &Fake) -> (u64, u64) {
    (fake.opened.load(Ordering::Relaxed), fake.fetched.load(Ordering::Relaxed))
}
