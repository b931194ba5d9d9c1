//! Servers whose memory is full.

use std::time::Duration;

use symdex::{ImageId, Index};
use symdex_store::{Store, StoreOptions, StoredImage};
use symdex_testkit::redis::Server;

use crate::common::{id, index, index_of};
use crate::redis::{store, store_in};

const IMAGES: u16 = 300;

pub(crate) fn a_put_for_which_the_memory_does_not_suffice_leaves_no_values() {
    let server = Server::start(&["--maxmemory", "6mb"]);
    let store = store_in(&server);
    let is_put = |byte: &u8| {
        let bytes = index(*byte, 8000);
        store.put(&Index::open(&bytes[..]).expect("an index")).is_ok()
    };
    let full = (1..100).find(|byte| !is_put(byte)).expect("full at some time");
    assert!(full > 1, "the first index has room");
    let of_full = format!("{{{}}}", id(full));
    assert!(!server.keys().iter().any(|key| key.contains(&of_full)), "{full}");
    assert!(store.open(&id(full - 1)).expect("readable").is_some());
}

/// Prints what is left of 300 images in a server that has room for about half of them, with each policy of eviction.
/// Every tenth image is read again and again, two values of it each time.
pub(crate) fn what_each_policy_of_eviction_leaves() {
    println!("| policy | puts that failed | whole | partly lost | gone | of those in use: whole |");
    println!("| --- | ---: | ---: | ---: | ---: | ---: |");
    for policy in [
        "noeviction",
        "volatile-ttl",
        "volatile-lru",
        "volatile-lfu",
        "allkeys-lru",
        "allkeys-lfu",
        "allkeys-random",
    ] {
        let server = Server::start(&["--maxmemory", "5mb", "--maxmemory-policy", policy]);
        // A put without memory is tried again for this time.
        let options = StoreOptions::new().zstd_level(1).timeout(Duration::from_millis(500));
        let store = store(&server.url(), &options);
        let image = |number: u16| ImageId::new(&number.to_be_bytes().repeat(8)).expect("an id");
        let read = |number: u16| {
            if let Ok(Some(StoredImage::Values(values))) = store.open(&image(number)) {
                _ = values.fetch(&[0, 7]);
            }
        };
        let mut failed = 0;
        for number in 0..IMAGES {
            let bytes = index_of(image(number), 200);
            failed += u16::from(store.put(&Index::open(&bytes[..]).expect("an index")).is_err());
            (0..number).step_by(10).for_each(read);
        }
        let (mut whole, mut partly, mut gone, mut of_used) = (0, 0, 0, 0);
        for number in 0..IMAGES {
            let Some(StoredImage::Values(values)) = store.open(&image(number)).expect("readable") else {
                gone += 1;
                continue;
            };
            let numbers: Vec<u64> = values.metadata().value_numbers().into_iter().flatten().collect();
            let is_whole =
                values.fetch(&numbers).expect("readable").iter().all(|value| value.found().is_some());
            whole += u16::from(is_whole);
            partly += u16::from(!is_whole);
            of_used += u16::from(is_whole && number % 10 == 0);
        }
        println!("| {policy} | {failed} | {whole} | {partly} | {gone} | {of_used} of {} |", IMAGES / 10);
    }
}
