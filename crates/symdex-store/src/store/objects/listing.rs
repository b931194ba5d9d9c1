//! The ids of all indexes of an object store, in memory: they tell that an image is missing without a request.
//!
//! A report of an iOS app names hundreds of images, nearly all of which are missing, and each costs a request a minute.
//! A list of the store costs a request for each 1,000 indexes. So the store is listed in the background when enough
//! images were missing lately, and the list is used for as long as a missing image is remembered.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};
use object_store::path::Path as Key;
use object_store::{ObjectMeta, ObjectStore};
use symdex::ImageId;
use xxhash_rust::xxh3::xxh3_64;

use super::cache::REMEMBERED;
use super::{PAGE, id_of};
use crate::store::runtime;

/// A page of a list is worth as many requests for missing images. With the prices of the large providers, it costs as
/// much as 12.5 of them.
const MISSING_PER_PAGE: u64 = 16;
/// No list is shorter: images that can be asked for at the same time are asked for one by one.
const MIN_PAGES: u64 = 4;
/// Longer lists are those of the 257 subfolders, so many at the same time.
const SEQUENTIAL_PAGES: u64 = 256;
const SUBFOLDERS_AT_ONCE: usize = 16;

/// The ids of a store. Threads share it.
#[derive(Debug)]
pub(super) struct Listing(Mutex<State>);

#[derive(Debug)]
struct State {
    listed: Option<Listed>,
    /// The images that were missing since `since`.
    missing: u64,
    since: Instant,
    /// How many pages a list probably has.
    pages: u64,
    /// If the store is being listed: the hashes of what was put since.
    put_meanwhile: Option<Vec<u64>>,
}

/// The result of a list.
#[derive(Debug)]
struct Listed {
    begun: Instant,
    /// The same time for other processes.
    begun_at: SystemTime,
    took: Duration,
    /// The hashes of the ids, sorted.
    hashes: Vec<u64>,
}

/// How a list ended.
enum End {
    Whole(Vec<u64>),
    /// It has about so many pages, which is more than it is worth.
    TooLong(u64),
    Failed,
}

/// The hash of `id` in lists and in the table of missing images.
pub(super) fn hash_of(id: &ImageId) -> u64 {
    xxh3_64(id.as_bytes())
}

impl Listing {
    pub(super) fn new() -> Arc<Self> {
        let (listed, put_meanwhile) = (None, None);
        let state = State { listed, missing: 0, since: Instant::now(), pages: MIN_PAGES, put_meanwhile };
        Arc::new(Self(Mutex::new(state)))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// When the store did not have `id`, if a list tells. `None` if the store has to be asked.
    pub(super) fn missing_at(&self, id: &ImageId) -> Option<SystemTime> {
        let state = self.state();
        let listed = state.listed.as_ref().filter(|listed| listed.begun.elapsed() < REMEMBERED)?;
        listed.hashes.binary_search(&hash_of(id)).err().map(|_| listed.begun_at)
    }

    /// The store may have `id` now.
    pub(super) fn add(&self, id: &ImageId) {
        let (hash, mut state) = (hash_of(id), self.state());
        state.put_meanwhile.iter_mut().for_each(|put| put.push(hash));
        if let Some(listed) = &mut state.listed
            && let Err(at) = listed.hashes.binary_search(&hash)
        {
            listed.hashes.insert(at, hash);
        }
    }

    /// Counts an image that the store does not have. Lists the objects of `client` below `prefix` in the background if
    /// that is worth it now. The store may take `timeout` for each page.
    pub(super) fn count_missing(
        self: &Arc<Self>,
        client: &Arc<dyn ObjectStore>,
        prefix: &Key,
        timeout: Duration,
    ) {
        let (begun, begun_at) = (Instant::now(), SystemTime::now());
        let Some(worth) = self.state().begin(begun) else { return };
        let (objects, prefix) = (objects(client, prefix, worth), prefix.clone());
        let running = Running(Arc::clone(self));
        runtime::spawn(async move {
            let end = list(objects, &prefix, worth, timeout).await;
            running.0.state().end(end, begun, begun_at);
        });
    }
}

/// A list that runs. Dropping it, also by a panic, lets the next one begin.
struct Running(Arc<Listing>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.state().put_meanwhile = None;
    }
}

impl State {
    /// Counts a missing image. If a list is worth it, returns how many pages it may have; it then begins.
    fn begin(&mut self, now: Instant) -> Option<u64> {
        if now.duration_since(self.since) >= REMEMBERED {
            (self.missing, self.since) = (0, now);
        }
        self.missing += 1;
        let worth = self.missing / MISSING_PER_PAGE;
        // The next list ends when this one is too old.
        let is_used = |listed: &Listed| now.duration_since(listed.begun) + listed.took < REMEMBERED;
        if worth < self.pages || self.put_meanwhile.is_some() || self.listed.as_ref().is_some_and(is_used) {
            return None;
        }
        (self.missing, self.since, self.put_meanwhile) = (0, now, Some(Vec::new()));
        Some(worth)
    }

    fn end(&mut self, end: End, begun: Instant, begun_at: SystemTime) {
        let put_meanwhile = self.put_meanwhile.take().unwrap_or_default();
        match end {
            End::Whole(mut hashes) => {
                self.pages = (hashes.len() as u64 / PAGE as u64 + 1).max(MIN_PAGES);
                hashes.extend(put_meanwhile);
                hashes.sort_unstable();
                self.listed = Some(Listed { begun, begun_at, took: begun.elapsed(), hashes });
            }
            End::TooLong(pages) => self.pages = pages.max(self.pages.saturating_mul(2)),
            // A store that cannot be listed is tried less and less.
            End::Failed => self.pages = self.pages.saturating_mul(2),
        }
    }
}

/// The objects below `prefix`. If there may be many, several subfolders are listed at the same time.
fn objects(
    client: &Arc<dyn ObjectStore>,
    prefix: &Key,
    pages: u64,
) -> BoxStream<'static, object_store::Result<ObjectMeta>> {
    if pages <= SEQUENTIAL_PAGES {
        return client.list(Some(prefix));
    }
    let (client, prefix) = (Arc::clone(client), prefix.clone());
    let digits = (0..=u8::MAX).map(|byte| format!("{byte:02x}"));
    let subfolders = digits.chain(["h-".to_owned()]).map(move |name| prefix.clone().join(name));
    let list = move |subfolder| client.list(Some(&subfolder));
    stream::iter(subfolders).flat_map_unordered(SUBFOLDERS_AT_ONCE, list).boxed()
}

/// The hashes of the ids of `objects`, unless they have more pages than `worth`.
async fn list(
    objects: BoxStream<'static, object_store::Result<ObjectMeta>>,
    prefix: &Key,
    worth: u64,
    timeout: Duration,
) -> End {
    let (mut pages, mut hashes, mut listed) = (objects.ready_chunks(PAGE), Vec::new(), 0);
    while let Ok(page) = tokio::time::timeout(timeout, pages.next()).await {
        let Some(page) = page else { return End::Whole(hashes) };
        listed += page.len() as u64;
        let mut all = listed;
        for object in page {
            let Ok(object) = object else { return End::Failed };
            let Some(id) = id_of(prefix, &object) else { continue };
            hashes.push(hash_of(&id));
            if worth <= SEQUENTIAL_PAGES {
                all = listed.saturating_mul(1 << 32) / (1 + first_digits(&id));
            }
        }
        // The ids of a short page say little.
        if listed >= PAGE as u64 && all.div_ceil(PAGE as u64) > worth {
            return End::TooLong(all.div_ceil(PAGE as u64));
        }
    }
    End::Failed
}

/// The first eight digits of `id`. Lists are in the order of ids, which are random, so the digits tell how much
/// follows.
fn first_digits(id: &ImageId) -> u64 {
    let digits = id.to_string();
    // Hashes of code are the last ids.
    u64::from_str_radix(digits.get(..8).unwrap_or_default(), 16).unwrap_or(u64::from(u32::MAX))
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use object_store::memory::InMemory;

    use super::super::ObjectsStore;
    use super::super::tests::store;
    use super::*;
    use crate::store::{Store as _, StoreOptions};
    use crate::test_stores::{id, index, put};

    /// Counts so many missing images, and waits until no list runs.
    fn count(store: &ObjectsStore, missing: u64) {
        for _ in 0..missing {
            store.listing.count_missing(&store.client, &store.prefix, store.timeout);
        }
        while store.listing.state().put_meanwhile.is_some() {
            std::thread::yield_now();
        }
    }

    fn is_missing(store: &ObjectsStore, byte: u8) -> bool {
        store.listing.missing_at(&id(byte)).is_some()
    }

    #[test]
    fn a_list_is_made_when_enough_images_are_missing_and_answers_for_a_minute() {
        let store = store(&Arc::<InMemory>::default(), &StoreOptions::new());
        put(&store, &index(0xab, 1));
        count(&store, MISSING_PER_PAGE * MIN_PAGES - 1);
        assert!(!is_missing(&store, 0xcd), "nothing is listed yet");
        count(&store, 1);
        assert!(is_missing(&store, 0xcd) && !is_missing(&store, 0xab));
        assert!(store.open(&id(0xcd)).expect("readable").is_none());
        // What is put through this store is there at once.
        put(&store, &index(0xcd, 1));
        assert!(!is_missing(&store, 0xcd) && store.open(&id(0xcd)).expect("readable").is_some());
        let mut state = store.listing.state();
        let listed = state.listed.as_mut().expect("listed");
        listed.begun = listed.begun.checked_sub(REMEMBERED).expect("a time");
        drop(state);
        assert!(!is_missing(&store, 0xef), "it is too old");
        count(&store, MISSING_PER_PAGE * MIN_PAGES);
        assert!(is_missing(&store, 0xef));
    }

    #[test]
    fn a_list_that_is_used_is_made_again_only_when_it_gets_old() {
        let mut state =
            State { listed: None, missing: 0, since: Instant::now(), pages: MIN_PAGES, put_meanwhile: None };
        let begun = Instant::now();
        let begins = |state: &mut State, seconds| {
            let now = begun + Duration::from_secs(seconds);
            (0..MISSING_PER_PAGE * MIN_PAGES).filter_map(|_| state.begin(now)).next()
        };
        assert_eq!(begins(&mut state, 0), Some(MIN_PAGES));
        assert_eq!(begins(&mut state, 1), None, "it runs");
        state.put_meanwhile.as_mut().expect("it runs").push(7);
        state.end(End::Whole(vec![9, 8]), begun, SystemTime::now());
        let listed = state.listed.as_mut().expect("listed");
        assert_eq!(listed.hashes, [7, 8, 9], "what was put meanwhile is there");
        listed.took = Duration::from_secs(20);
        assert_eq!((begins(&mut state, 30), begins(&mut state, 39)), (None, None));
        assert!(begins(&mut state, 40).is_some(), "the next one takes 20 seconds, too");
        // Missing images of the last minute do not count for the next one.
        state.end(End::Failed, begun, SystemTime::now());
        assert_eq!(state.pages, 2 * MIN_PAGES);
        assert_eq!((begins(&mut state, 101), begins(&mut state, 161)), (None, None));
    }

    #[test]
    fn a_store_that_has_too_many_indexes_is_listed_only_for_more_missing_images() {
        let client = Arc::<InMemory>::default();
        let store = store(&client, &StoreOptions::new());
        // 6,000 objects. The first page tells.
        for number in 0..6000_u32 {
            let id = ImageId::new(&(number * 715_827).to_be_bytes().repeat(4)).expect("an id");
            let (key, options) = (store.key(&id), object_store::PutOptions::default());
            let written = client.put_opts(&key, vec![0].into(), options);
            written.now_or_never().expect("at once").expect("written");
        }
        count(&store, MISSING_PER_PAGE * MIN_PAGES);
        assert!(!is_missing(&store, 0xab) && store.listing.state().pages.abs_diff(6) <= 3);
        let pages = store.listing.state().pages;
        count(&store, MISSING_PER_PAGE * pages);
        assert!(is_missing(&store, 0xab));
        let state = store.listing.state();
        assert_eq!(state.listed.as_ref().expect("listed").hashes.len(), 6000);
        assert_eq!(state.pages, 7);
    }

    #[test]
    fn subfolders_have_all_objects_of_the_store() {
        let client = Arc::<InMemory>::default();
        let store = store(&client, &StoreOptions::new());
        (0..=u8::MAX).for_each(|byte| _ = put(&store, &index(byte, 1)));
        let client: Arc<dyn ObjectStore> = client;
        for pages in [1, SEQUENTIAL_PAGES + 1] {
            let listed = objects(&client, &store.prefix, pages).collect::<Vec<_>>();
            assert_eq!(runtime::wait(store.timeout, listed).expect("in time").len(), 256);
        }
    }
}
