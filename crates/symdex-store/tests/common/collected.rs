//! gc while others write and read.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use symdex::Index;
use symdex_store::{OnConflict, PutOptions, Store};

use super::{id, index};

/// gc removes what was not written for this time. Times of S3 are whole seconds.
const UNUSED: Duration = Duration::from_secs(3);
const IMAGES: u8 = 16;

/// Lets 16 writers, 16 readers and gc work in one store for a minute, each with a store of `open`. Each index is
/// written again about when gc may remove it. Checks that an index is there after it was put.
pub(crate) fn gc_keeps_what_is_fresh(open: impl Fn() -> Box<dyn Store> + Sync) {
    let end = Instant::now() + Duration::from_secs(60);
    let (removed, checked) = (AtomicU64::new(0), AtomicU64::new(0));
    let put = |store: &dyn Store, image: u8, round: u16| {
        let bytes = index(image, 1 + round % 2);
        let replace = PutOptions::new().on_conflict(OnConflict::Replace);
        store.put_with(&Index::open(&bytes[..]).expect("an index"), &replace).expect("put");
    };
    let write = |image: u8| {
        let store = open();
        for round in 0.. {
            if Instant::now() >= end {
                return;
            }
            put(&*store, image, round);
            let since = Instant::now();
            let found = store.open(&id(image)).expect("readable");
            // A machine that is too slow proves nothing.
            if since.elapsed() < UNUSED / 3 {
                assert!(found.is_some(), "image {image}, round {round}");
                checked.fetch_add(1, Ordering::Relaxed);
            }
            std::thread::sleep(UNUSED + Duration::from_millis(u64::from(round % 16) * 50));
        }
    };
    std::thread::scope(|scope| {
        for image in 1..=IMAGES {
            scope.spawn(move || write(image));
            scope.spawn(|| {
                let store = open();
                while Instant::now() < end {
                    // Nothing, or a whole index.
                    (1..=IMAGES).for_each(|image| _ = store.open(&id(image)).expect("readable"));
                }
            });
        }
        let store = open();
        while Instant::now() < end {
            let counts = store.gc(UNUSED).expect("collected");
            assert_eq!(counts.failed, 0);
            removed.fetch_add(counts.removed, Ordering::Relaxed);
        }
    });
    let (removed, checked) = (removed.into_inner(), checked.into_inner());
    println!("{checked} puts were checked, gc removed {removed} indexes");
    assert!(removed > 20 && checked > 100);
}
