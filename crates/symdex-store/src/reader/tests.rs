use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use symdex::{ImageOffset, Metadata};

use super::*;
use crate::store::{GcCounts, StoreEntry, StoreUrl};
use crate::test_stores::{id, index, name_at};
use crate::{FolderStore, PublishOutcome};

/// A store of one image, `id(0xab)`, as values. Its calls are counted, and it can be made to fail.
#[derive(Debug)]
struct FakeStore {
    url: StoreUrl,
    shared: Arc<Fake>,
}

#[derive(Debug, Default)]
pub(crate) struct Fake {
    pub(crate) values: Mutex<BTreeMap<u64, Vec<u8>>>,
    whole: Mutex<Vec<u8>>,
    generation: AtomicU64,
    opened: AtomicU64,
    fetched: AtomicU64,
    is_down: AtomicBool,
}

impl Fake {
    pub(crate) fn new(functions: u16) -> Arc<Self> {
        let fake = Self::default();
        fake.replace(functions);
        Arc::new(fake)
    }

    /// Replaces the index. The values of the old one are gone.
    pub(crate) fn replace(&self, functions: u16) {
        let whole = index(0xab, functions);
        let open = Index::open(&whole[..]).expect("an index");
        let values = symdex::write::split(&open).map(|value| value.expect("splits"));
        *self.values.lock().expect("not poisoned") =
            values.map(|value| (value.number, value.bytes)).collect();
        *self.whole.lock().expect("not poisoned") = whole;
        self.generation.fetch_add(1, Ordering::Relaxed);
    }

    /// Loses the value that answers `offset`.
    #[cfg(feature = "symbolicate")]
    pub(crate) fn lose(&self, offset: ImageOffset) {
        let whole = self.whole.lock().expect("not poisoned");
        let index = Index::open(&whole[..]).expect("an index");
        let number = index.metadata().value_number(offset);
        assert!(self.values.lock().expect("not poisoned").remove(&number).is_some());
    }

    fn answer(&self) -> Result<(), Error> {
        let (location, reason) = ("fake".to_owned(), "down".to_owned());
        match self.is_down.load(Ordering::Relaxed) {
            true => Err(Error::Store { location, action: "read", reason, is_unavailable: true }),
            false => Ok(()),
        }
    }

    pub(crate) fn reader(self: &Arc<Self>, options: &ReaderOptions) -> StoreReader {
        StoreReader::new(vec![self.store()], options)
    }

    pub(crate) fn store(self: &Arc<Self>) -> Box<dyn Store> {
        let url = "redis://fake".parse().expect("a URL");
        Box::new(FakeStore { url, shared: Arc::clone(self) })
    }
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

    fn fetch(&self, numbers: &[u64]) -> Result<Vec<Option<Index<IndexBytes>>>, Error> {
        self.shared.answer()?;
        if self.generation != self.shared.generation.load(Ordering::Relaxed) {
            return Err(Error::Replaced { location: "fake".to_owned() });
        }
        let values = self.shared.values.lock().expect("not poisoned");
        let open = |bytes: &Vec<u8>| Index::open(bytes.clone().into()).expect("a value");
        Ok(numbers.iter().map(|number| values.get(number).map(open)).collect())
    }
}

impl Store for FakeStore {
    fn url(&self) -> &StoreUrl {
        &self.url
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
    fn has_batches(&self) -> bool {
        true
    }
    fn open_many(&self, ids: &[ImageId]) -> Vec<Result<Option<StoredImage>, Error>> {
        self.shared.opened.fetch_add(1, Ordering::Relaxed);
        std::thread::sleep(Duration::from_millis(20));
        ids.iter().map(|id| self.open(id)).collect()
    }
    fn fetch_many<'v>(&self, requests: &[ValueRequest<'v>]) -> Vec<crate::FetchedValues> {
        self.shared.fetched.fetch_add(1, Ordering::Relaxed);
        requests.iter().map(|request| request.values.fetch(request.numbers)).collect()
    }
    fn put_with(&self, _: &Index<&[u8]>, _: &crate::PutOptions) -> Result<PublishOutcome, Error> {
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
        unreachable!("a reader does not remove")
    }
    fn gc(&self, _: Duration) -> Result<GcCounts, Error> {
        unreachable!("a reader does not remove")
    }
}

/// The numbers that a store has counted: opened, fetched.
pub(crate) fn calls(fake: &Fake) -> (u64, u64) {
    (fake.opened.load(Ordering::Relaxed), fake.fetched.load(Ordering::Relaxed))
}

#[test]
fn threads_that_need_one_image_open_it_once() {
    let fake = Fake::new(3);
    let reader = fake.reader(&ReaderOptions::new());
    std::thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| assert!(reader.open(0, &id(0xab)).expect("readable").is_some()));
        }
    });
    assert_eq!(calls(&fake).0, 1);
    let counts = &reader.counts()[0];
    assert_eq!((counts.found, counts.from_memory), (1, 15));
}

#[test]
fn an_absent_image_is_asked_for_again_after_its_time() {
    let fake = Fake::new(3);
    let reader = fake.reader(&ReaderOptions::new());
    for _ in 0..5 {
        assert!(reader.open(0, &id(0xcd)).expect("readable").is_none());
    }
    assert_eq!(calls(&fake).0, 1);
    let reader = fake.reader(&ReaderOptions::new().absent(Duration::ZERO));
    for _ in 0..5 {
        assert!(reader.open(0, &id(0xcd)).expect("readable").is_none());
    }
    assert_eq!((calls(&fake).0, reader.counts()[0].absent), (6, 5));
}

#[test]
fn values_are_fetched_once_and_together_and_lost_ones_are_told() {
    let fake = Fake::new(300);
    let reader = fake.reader(&ReaderOptions::new());
    let image = reader.open(0, &id(0xab)).expect("readable").expect("there");
    let last = image.metadata().value_number(ImageOffset(299 * 0x1000));
    assert!(last >= 2, "the index has several values");
    fake.values.lock().expect("not poisoned").remove(&1);
    for round in 0..2 {
        let found = reader.values(0, &image, &[0, 1, last]).expect("readable");
        let is_there: Vec<_> = found.iter().map(Option::is_some).collect();
        assert_eq!(is_there, [true, false, true], "{round}");
        assert_eq!(calls(&fake).1, round + 1, "the lost value is asked for again");
    }
    let counts = &reader.counts()[0];
    assert_eq!((counts.lost_values, counts.from_memory), (2, 2));
    assert_eq!(name_at(&image, ImageOffset(299 * 0x1000)).as_deref(), Some("f299"));
}

#[test]
fn a_store_that_is_down_is_left_alone_and_images_in_memory_still_answer() {
    let fake = Fake::new(3);
    let options = ReaderOptions::of_one_run().fresh(Duration::ZERO);
    let reader = fake.reader(&options);
    assert!(reader.open(0, &id(0xab)).expect("readable").is_some());
    fake.is_down.store(true, Ordering::Relaxed);
    for _ in 0..10 {
        assert!(reader.open(0, &id(0xab)).expect("in memory").is_some());
        assert!(reader.open(0, &id(0xcd)).is_err_and(|error| error.is_unavailable()));
    }
    assert_eq!(calls(&fake).0, 1 + 1, "one call fails, the others are not made");
    let counts = &reader.counts()[0];
    assert_eq!((counts.failed, counts.skipped), (1, 19));
}

#[test]
fn a_store_that_was_down_is_asked_again_after_the_pause() {
    let fake = Fake::new(3);
    let reader = fake.reader(&ReaderOptions::new().pause(Duration::from_millis(1)));
    fake.is_down.store(true, Ordering::Relaxed);
    for _ in 0..5 {
        reader.open(0, &id(0xab)).expect_err("down");
    }
    fake.is_down.store(false, Ordering::Relaxed);
    std::thread::sleep(Duration::from_millis(5));
    assert!(reader.open(0, &id(0xab)).expect("up again").is_some());
}

#[test]
fn the_next_store_answers_if_the_first_fails_or_lacks_the_image() {
    let root = tempfile::tempdir().expect("a folder");
    let folder = FolderStore::at(root.path());
    let bytes = index(0xcd, 1);
    folder.put(&Index::open(&bytes[..]).expect("an index")).expect("written");
    let fake = Fake::new(3);
    let reader = StoreReader::new(vec![fake.store(), Box::new(folder)], &ReaderOptions::new());
    let store_of = |byte| reader.find(&id(byte)).map(|found| found.map(|(store, _)| store));
    assert_eq!(store_of(0xab).expect("readable"), Some(0));
    assert_eq!(store_of(0xcd).expect("readable"), Some(1));
    assert_eq!(store_of(0xef).expect("readable"), None);
    fake.is_down.store(true, Ordering::Relaxed);
    assert_eq!(store_of(0xcd).expect("the second store answers"), Some(1));
    store_of(0x12).expect_err("nobody knows");
}

#[test]
fn several_images_are_opened_with_one_call_and_their_values_fetched_with_one() {
    let fake = Fake::new(300);
    let reader = fake.reader(&ReaderOptions::new());
    for _ in 0..2 {
        let opened = reader.open_many(0, &[0xab, 0xcd, 0xab].map(id));
        let images: Vec<_> = opened.into_iter().map(|image| image.expect("readable")).collect();
        let [Some(image), None, Some(_)] = &images[..] else { panic!("{images:?}") };
        let found = reader.values_many(0, &[(image, &[0, 1]), (image, &[]), (image, &[1, 2])]);
        let numbers: Vec<_> = found.into_iter().map(|found| found.expect("readable").len()).collect();
        assert_eq!((numbers, calls(&fake)), (vec![2, 0, 2], (1, 1)));
    }
    assert_eq!(reader.counts()[0].calls, 2);
}

#[test]
fn threads_that_open_the_same_images_in_another_order_do_not_block_each_other() {
    let fake = Fake::new(3);
    let reader = fake.reader(&ReaderOptions::new());
    std::thread::scope(|scope| {
        for thread in 0..16 {
            let mut ids = [0xab, 0xcd, 0xef].map(id);
            ids.rotate_left(thread % 3);
            let reader = &reader;
            scope.spawn(move || {
                let found = reader.open_many(0, &ids);
                assert_eq!(found.iter().filter(|image| matches!(image, Ok(Some(_)))).count(), 1);
            });
        }
    });
    assert_eq!(calls(&fake).0, 1, "the threads wait for the first one");
}

#[test]
fn values_in_memory_do_not_answer_for_the_index_that_has_replaced_theirs() {
    let fake = Fake::new(300);
    let reader = fake.reader(&ReaderOptions::new().fresh(Duration::ZERO));
    let value = || {
        let image = reader.open(0, &id(0xab)).expect("readable").expect("there");
        reader.values(0, &image, &[1]).expect("readable").pop().flatten().expect("not lost")
    };
    let old = value();
    assert!(Arc::ptr_eq(&old, &value()));
    fake.replace(301);
    let new = value();
    assert!(!Arc::ptr_eq(&old, &new) && Arc::ptr_eq(&new, &value()));
    assert_eq!(calls(&fake).1, 2);
}
